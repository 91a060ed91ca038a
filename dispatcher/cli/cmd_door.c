#include "common/parse.h"
#include "dispatcher/cli/commands.h"
#include "tunnels/door.h"
#include "tunnels/ssh_address.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct door_options {
    struct door door[DOORS_MAX];
    uint32_t doors;
    int ready_fd; /* -1, or where to say that all listen */
};

static int add_door(struct door_options *o, const char *at, const char *to, struct cw_err *err)
{
    struct ssh_address checked;
    struct door *door = &o->door[o->doors];

    if (o->doors == DOORS_MAX)
        return cw_err_set(err, CW_EINVAL, "--listen %s: at most %u of them", at, DOORS_MAX);
    if (!to)
        return cw_err_set(err, CW_EINVAL,
                          "--listen %s: after it comes where it leads to, ssh:GATEWAY/HOST:PORT",
                          at);
    if (cw_address_parse(&door->at, at, err) < 0)
        return cw_err_wrap(err, "--listen");
    if (ssh_address_parse(&checked, to, err) < 0)
        return err->code;
    door->to = to;
    o->doors++;
    return CW_OK;
}

static int parse(struct door_options *o, char **argv, struct cw_err *err)
{
    while (*argv) {
        int result;

        if (strcmp(argv[0], "--listen") == 0 && argv[1]) {
            result = add_door(o, argv[1], argv[2], err);
            argv += argv[2] ? 3 : 2;
        } else if (strcmp(argv[0], "--ready-fd") == 0 && argv[1]) {
            result = cw_parse_descriptor(argv[1], &o->ready_fd, err);
            argv += 2;
        } else {
            result = cw_err_set(err, CW_EINVAL,
                                "unexpected argument '%s'; see causeway tunnel --help", argv[0]);
        }
        if (result < 0)
            return result;
    }
    return CW_OK;
}

int cmd_door(int argc, char **argv)
{
    struct door_options *o = calloc(1, sizeof(*o));
    struct cw_err err = {0};
    int code = 1;

    (void)argc;
    if (!o) {
        cw_err_set(&err, CW_ENOMEM, "no memory for doors");
    } else {
        o->ready_fd = -1;
        if (parse(o, argv + 1, &err) < 0)
            code = 2;
        else if (doors_run(o->door, o->doors, o->ready_fd, &err) == CW_OK)
            code = 0;
    }
    if (err.code)
        fprintf(stderr, "causeway tunnel: %s\n", err.text);
    free(o);
    return code;
}
