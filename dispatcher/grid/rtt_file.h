/* Round trips of a grid as text, as they are kept from one `causeway doctor` to the next: a line
 * "FROM TO MICROSECONDS" for each that is known, with the names of sites; FROM is "-" for outside
 * of all sites. Pure: no I/O. */
#ifndef DISPATCHER_RTT_FILE_H
#define DISPATCHER_RTT_FILE_H

#include "dispatcher/grid/routes.h"

/* The text, to be freed; NULL: no memory. */
char *rtt_file_make(const struct grid *grid, const struct routes_rtt *rtt);

/* Reads a text, which ends with a zero byte; sites that the grid has not are skipped: it may have
 * changed. `file`: its name, for messages. Error: CW_EINVAL, naming file, line and what was
 * expected; then none is known. */
int rtt_file_parse(struct routes_rtt *rtt, const struct grid *grid, const char *file,
                   const char *text, struct cw_err *err);

#endif
