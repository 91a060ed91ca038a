/* A directory of logs as a JSON document, and that as tables: causeway log show. */
#ifndef DISPATCHER_LOG_DOCUMENT_H
#define DISPATCHER_LOG_DOCUMENT_H

#include "relay/inspect/files.h"
#include "relay/inspect/states.h"

#include <jansson.h>
#include <stdio.h>

/* The journals of a directory. A new reference, NULL without memory; so is that of log_jobs. */
json_t *log_document(const char *dir, const struct inspect_files *files);
/* The jobs that an image holds, with their ranks and sessions. Logs are read as far as they are
 * whole; *damage counts what is wrong. */
json_t *log_jobs(struct inspect_image *image, struct inspect_damage *damage);
/* The document, with its jobs, as tables for people. */
void log_table(FILE *to, const json_t *document);

#endif
