/* The document of a directory of logs as tables for people. */
#ifndef DISPATCHER_LOG_TABLE_H
#define DISPATCHER_LOG_TABLE_H

#include <jansson.h>
#include <stdio.h>

/* `document` is that of log_document, with its jobs. */
void log_table(FILE *to, const json_t *document);

#endif
