#ifndef DISPATCHER_CMD_RUN_H
#define DISPATCHER_CMD_RUN_H

/* `causeway run ...`; argv[0] is "run". Returns the exit code. */
int cmd_run(int argc, char **argv);

#endif
