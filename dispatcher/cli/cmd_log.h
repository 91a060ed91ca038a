#ifndef DISPATCHER_CMD_LOG_H
#define DISPATCHER_CMD_LOG_H

/* `causeway log show|verify DIR`; argv[0] is "log". Returns the exit code: 0, 1 when there is
 * damage or DIR cannot be read, 2 for bad usage. */
int cmd_log(int argc, char **argv);

#endif
