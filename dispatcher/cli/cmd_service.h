#ifndef DISPATCHER_CMD_SERVICE_H
#define DISPATCHER_CMD_SERVICE_H

/* `causeway service`, for causeway up, down and status alone: answers requests about services on
 * this host (service_format.h) from standard input, until its end. Returns the exit code. */
int cmd_service(int argc, char **argv);

#endif
