#ifndef DISPATCHER_CMD_TUNNEL_H
#define DISPATCHER_CMD_TUNNEL_H

/* `causeway tunnel`. Returns the exit code. */
int cmd_tunnel(int argc, char **argv);

#endif
