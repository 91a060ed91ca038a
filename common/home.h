/* The user's home directory. */
#ifndef CW_HOME_H
#define CW_HOME_H

/* $HOME, or as the user's account says, or "/". Not for several threads at a time. */
const char *cw_home(void);

#endif
