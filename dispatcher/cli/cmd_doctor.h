/* `causeway doctor [--help] [PROGRAM]`: looks whether this machine, and a program, are fit for
 * Causeway, and says what to do about what is not. */
#ifndef DISPATCHER_CMD_DOCTOR_H
#define DISPATCHER_CMD_DOCTOR_H

/* argv[0] is "doctor". Prints lines "ok ...", "warning ..." and "missing ..." to stdout. Returns
 * the exit code: 0 when everything needed is there and the program can run, 1 when not, 2 for bad
 * usage. Starts short-lived children; call it from the only thread. */
int cmd_doctor(int argc, char **argv);

#endif
