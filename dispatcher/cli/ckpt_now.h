/* `causeway ckpt now`. */
#ifndef DISPATCHER_CKPT_NOW_H
#define DISPATCHER_CKPT_NOW_H

/* argv[0] is "now". Returns the exit code. */
int ckpt_now(int argc, char **argv);

#endif
