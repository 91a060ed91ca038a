#ifndef RELAY_MAIN_H
#define RELAY_MAIN_H

/* `causeway relay ...`; argv[0] is "relay". Returns the exit code. */
int cmd_relay(int argc, char **argv);

#endif
