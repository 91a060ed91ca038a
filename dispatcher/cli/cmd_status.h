#ifndef DISPATCHER_CMD_STATUS_H
#define DISPATCHER_CMD_STATUS_H

/* `causeway status [--json] [JOB]`; argv[0] is "status". Returns the exit code: 0, 1 when there is
 * no such job or it does not answer, 2 for bad usage. */
int cmd_status(int argc, char **argv);

#endif
