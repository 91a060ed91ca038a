#ifndef DISPATCHER_CMD_CKPT_H
#define DISPATCHER_CMD_CKPT_H

/* `causeway ckpt list|show|verify|rm --dir DIR [JOB [RANK [NUMBER]]]`; argv[0] is "ckpt". Returns
 * the exit code: 0, 1 when there is damage or something failed, 2 for bad usage. */
int cmd_ckpt(int argc, char **argv);

#endif
