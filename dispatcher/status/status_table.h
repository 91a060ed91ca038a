/* Status documents as tables for people. Pure but for the stream that is written to. A document is
 * somebody else's word: what is missing shows as nothing, what is not printable as '?'. */
#ifndef DISPATCHER_STATUS_TABLE_H
#define DISPATCHER_STATUS_TABLE_H

#include <jansson.h>
#include <stdint.h>
#include <stdio.h>

/* One job and its ranks; `document` is as status_ask() gives it. */
void status_table_job(FILE *to, const json_t *document);

/* A line for each job; `documents` is an array. */
void status_table_jobs(FILE *to, const json_t *documents);

#endif
