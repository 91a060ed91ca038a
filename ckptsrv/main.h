#ifndef CKPTSRV_MAIN_H
#define CKPTSRV_MAIN_H

/* `causeway ckptsrv`; argv[0] is "ckptsrv". Returns an exit code. */
int cmd_ckptsrv(int argc, char **argv);

#endif
