/* What `causeway up`, `down` and `status -f` have in common. */
#ifndef DISPATCHER_GRID_SERVICES_H
#define DISPATCHER_GRID_SERVICES_H

#include <stdbool.h>

struct grid_services_options {
    const char *command; /* for messages: "causeway up" */
    const char *op;      /* as of crew.h */
    const char *file;    /* of the grid */
    const char *site;    /* NULL: all */
    const char *here;    /* NULL: by the name of the machine */
    bool json;
};

/* Does it with all services, and prints a table, or the document. Returns the exit code: 0, or 1
 * when something is not as asked for; 2: the grid file is wrong. */
int grid_services(const struct grid_services_options *options);

#endif
