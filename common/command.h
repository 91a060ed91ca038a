/* What a unit is started with: its words, and what goes down to it. */
#ifndef CW_COMMAND_H
#define CW_COMMAND_H

#include "common/frame.h"

#include <sys/types.h>

#define COMMAND_WORDS_MAX 96u
#define COMMAND_TEXT_MAX 256u /* bytes of values that are numbers */
#define COMMAND_FDS_MAX (12u + CW_RELAYS_MAX)

/* All that execve(2) takes, made before fork: after it there are async-signal-safe calls alone. */
struct command {
    const char *words[COMMAND_WORDS_MAX + 1];
    uint32_t count;
    int fds[COMMAND_FDS_MAX]; /* that go down to it, under the same numbers */
    uint32_t fd_count;
    int key_fd; /* owned until it is started; -1: none */
    int death;  /* the signal that it gets when our process ends */
    int out_fd; /* where it prints, the caller's; -1: where we do */
    size_t used;
    char text[COMMAND_TEXT_MAX];
    const char *name;    /* for messages */
    const char *program; /* its path, or its name on the PATH */
    char failed[128];
};

/* Of what runs now, whatever has become of its file. `name`: of its command, like "relay";
 * borrowed.
 */
void command_init(struct command *command, const char *name);

/* Borrows it. */
void command_word(struct command *command, const char *word);
/* An option and its value, a number. */
__attribute__((format(printf, 3, 4))) void command_number(struct command *command,
                                                          const char *option, const char *fmt, ...);
/* An option that names a descriptor, which goes down and stays the caller's. -1: there is none. */
void command_fd(struct command *command, const char *option, int fd);
/* One that names `count` of them, which follow each other: FIRST,COUNT. 0: there are none. */
void command_fds(struct command *command, const char *option, int first, uint32_t count);
/* --key-fd: it goes down through a pipe. Errors: CW_ESYS. */
int command_key(struct command *command, const uint8_t key[CW_KEY_SIZE], struct cw_err *err);

/* Starts it, in a group of its own, with standard signals. Returns its pid, or a negative code:
 * CW_ESYS. */
pid_t command_start(struct command *command, struct cw_err *err);

/* Whether it was started or not. */
void command_close(struct command *command);

#endif
