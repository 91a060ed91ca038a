#ifndef DISPATCHER_CMD_DOOR_H
#define DISPATCHER_CMD_DOOR_H

/* `causeway tunnel --listen ADDRESS TO ...`: doors. Returns the exit code. */
int cmd_door(int argc, char **argv);

#endif
