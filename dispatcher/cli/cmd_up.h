#ifndef DISPATCHER_CMD_UP_H
#define DISPATCHER_CMD_UP_H

/* `causeway up` and `causeway down`: the services of a grid. Return the exit code. */
int cmd_up(int argc, char **argv);
int cmd_down(int argc, char **argv);

#endif
