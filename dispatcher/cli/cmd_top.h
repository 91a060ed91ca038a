#ifndef DISPATCHER_CMD_TOP_H
#define DISPATCHER_CMD_TOP_H

/* `causeway top [--interval TIME] [JOB]`; argv[0] is "top". Returns the exit code: 0 when the user
 * or the job ended it, 1 when there is no such job, 2 for bad usage. Blocks the signals that end a
 * program; call it from the only thread. */
int cmd_top(int argc, char **argv);

#endif
