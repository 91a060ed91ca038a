/* The place where a relay is reached: its listeners, and its key. */
#ifndef RELAY_PLACE_H
#define RELAY_PLACE_H

#include "relay/engine/engine.h"

#define RELAY_PLACE_LISTENERS_MAX (RELAY_LISTENERS_MAX - 2) /* two are the relay's own */

struct relay_place {
    struct relay_listener listeners[RELAY_PLACE_LISTENERS_MAX];
    int count;
    /* How many another process has opened, and will close: all or none. Then key_fd is given. */
    int kept;
    const char *key_file; /* NULL: beside the Unix socket */
    int key_fd;           /* -1, or where the key comes from instead */
    uint8_t *key;         /* of relay_place_open */
    /* A key of this relay alone, or of a killed one whose place it takes, goes away with it. */
    char beside[CW_ADDRESS_MAX + 8];
};

/* One more address. Errors: CW_EINVAL. */
int relay_place_add(struct relay_place *place, const char *address, struct cw_err *err);

/* The next address, as it was opened by another process. Errors: CW_EINVAL. */
int relay_place_keep(struct relay_place *place, const char *descriptor, struct cw_err *err);

/* Listens at all of them, and finds the key or makes it. Who connects waits until somebody accepts.
 * A key that cannot be used is left as it is. Errors, with nothing left behind: CW_ESYS, CW_EINVAL,
 * CW_ENOMEM, and those of keyfile.h. */
int relay_place_open(struct relay_place *place, struct cw_err *err);

/* Removes sockets, and the key beside one. */
void relay_place_close(struct relay_place *place);

#endif
