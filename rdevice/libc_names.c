/* The functions of libc that make, rename and remove names of files. What came of an operation is
 * recorded, and where a rank repeats it, it is made again: what an earlier incarnation has done
 * counts as done. Names that libc draws are recorded, and drawn again.
 *
 * A binding to libc, above inputs.c and, through it, above the device. */
#include "rdevice/libc_names.h"
#include "rdevice/inputs.h"
#include "rdevice/next.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define DRAWN 6 /* characters of a template that libc draws */

/* --- what came of an operation -------------------------------------------------------------------
 */

/* `result` of an operation that is made in any case but INPUT_FAILED, 0 or more, or -1. `done`: its
 * error where an earlier incarnation has made it. The relay knows of it before the program does
 * anything else: what is left to a crash is the moment in between. */
static int finish(enum input_answer answer, int result, int done)
{
    if (answer == INPUT_GIVEN && result < 0 && errno == done)
        return 0;
    inputs_finish(&(struct input){.kind = READING_NAMED}, answer, result);
    if (answer == INPUT_RECORD)
        inputs_send();
    return result;
}

static enum input_answer ask(uintptr_t caller)
{
    return inputs_ask(&(struct input){.kind = READING_NAMED}, caller);
}

#define NAMED(name, parameters, arguments, done)                                                   \
    PUBLIC int name parameters                                                                     \
    {                                                                                              \
        enum input_answer answer = ask(CALLER);                                                    \
                                                                                                   \
        return answer == INPUT_FAILED ? -1 : finish(answer, NEXT(name) arguments, done);           \
    }

NAMED(mkdir, (const char *path, mode_t mode), (path, mode), EEXIST)
NAMED(mkdirat, (int dir, const char *path, mode_t mode), (dir, path, mode), EEXIST)
NAMED(mkfifo, (const char *path, mode_t mode), (path, mode), EEXIST)
NAMED(mkfifoat, (int dir, const char *path, mode_t mode), (dir, path, mode), EEXIST)
NAMED(mknod, (const char *path, mode_t mode, dev_t device), (path, mode, device), EEXIST)
NAMED(mknodat, (int dir, const char *path, mode_t mode, dev_t device), (dir, path, mode, device),
      EEXIST)
NAMED(link, (const char *from, const char *to), (from, to), EEXIST)
NAMED(linkat, (int fd, const char *from, int to_fd, const char *to, int flags),
      (fd, from, to_fd, to, flags), EEXIST)
NAMED(symlink, (const char *from, const char *to), (from, to), EEXIST)
NAMED(symlinkat, (const char *from, int fd, const char *to), (from, fd, to), EEXIST)
NAMED(unlink, (const char *path), (path), ENOENT)
NAMED(unlinkat, (int dir, const char *path, int flags), (dir, path, flags), ENOENT)
NAMED(rmdir, (const char *path), (path), ENOENT)
NAMED(remove, (const char *path), (path), ENOENT)
NAMED(rename, (const char *from, const char *to), (from, to), ENOENT)
NAMED(renameat, (int fd, const char *from, int to_fd, const char *to), (fd, from, to_fd, to),
      ENOENT)
NAMED(renameat2, (int fd, const char *from, int to_fd, const char *to, unsigned flags),
      (fd, from, to_fd, to, flags), ENOENT)

/* --- files that must not be there ----------------------------------------------------------------
 */

/* Empty, as it was when an earlier incarnation made it; not a link, and not somebody else's. */
static int open_made(int dir, const char *path, int flags, mode_t mode)
{
    int fd = NEXT(openat)(dir, path, flags | O_CREAT | O_EXCL, mode);
    struct stat st;

    if (fd >= 0 || errno != EEXIST)
        return fd;
    fd = NEXT(openat)(dir, path, (flags & ~O_CREAT & ~O_EXCL) | O_NOFOLLOW);
    if (fd < 0)
        return -1;
    if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_uid == geteuid() &&
        ((flags & O_ACCMODE) == O_RDONLY || ftruncate(fd, 0) == 0))
        return fd;
    close(fd);
    errno = EEXIST;
    return -1;
}

int libc_names_create(int dir, const char *path, int flags, mode_t mode, uintptr_t caller)
{
    enum input_answer answer = ask(caller);

    if (answer == INPUT_FAILED)
        return -1;
    if (answer == INPUT_GIVEN)
        return open_made(dir, path, flags & ~O_EXCL, mode);
    return finish(answer, NEXT(openat)(dir, path, flags, mode), 0);
}

/* --- names that libc draws -----------------------------------------------------------------------
 */

/* Where the characters that are drawn begin; NULL: the template has none. */
static char *drawn_of(char *template, int suffix)
{
    size_t size = strlen(template);

    if (suffix < 0 || size < DRAWN + (size_t)suffix)
        return NULL;
    return template + size - (size_t)suffix - DRAWN;
}

static struct input drawn_input(char *template, int suffix)
{
    return (struct input){
        .kind = READING_DRAWN, .bytes = drawn_of(template, suffix), .size = DRAWN};
}

static enum input_answer ask_drawn(struct input *drawn, uintptr_t caller)
{
    return drawn->bytes ? inputs_ask(drawn, caller) : INPUT_REAL;
}

int libc_names_temporary(char *template, int suffix, int flags, uintptr_t caller)
{
    struct input drawn = drawn_input(template, suffix);
    enum input_answer answer = ask_drawn(&drawn, caller);

    if (answer == INPUT_FAILED)
        return -1;
    if (answer == INPUT_GIVEN)
        return open_made(AT_FDCWD, template, (flags & ~O_ACCMODE) | O_RDWR, S_IRUSR | S_IWUSR);
    return (int)inputs_finish(&drawn, answer, NEXT(mkostemps)(template, suffix, flags));
}

PUBLIC char *mkdtemp(char *template)
{
    struct input drawn = drawn_input(template, 0);
    enum input_answer answer = ask_drawn(&drawn, CALLER);
    bool made;

    if (answer == INPUT_FAILED)
        return NULL;
    if (answer == INPUT_GIVEN)
        return NEXT(mkdir)(template, S_IRWXU) == 0 || errno == EEXIST ? template : NULL;
    made = NEXT(mkdtemp)(template);
    inputs_finish(&drawn, answer, made ? 0 : -1);
    return made ? template : NULL;
}

/* Where there is no name the template becomes the empty string: that is recorded as a failure. */
PUBLIC char *mktemp(char *template)
{
    struct input drawn = drawn_input(template, 0);
    enum input_answer answer = ask_drawn(&drawn, CALLER);

    if (answer == INPUT_FAILED)
        template[0] = '\0';
    if (answer == INPUT_FAILED || answer == INPUT_GIVEN)
        return template;
    NEXT(mktemp)(template);
    inputs_finish(&drawn, answer, template[0] ? 0 : -1);
    return template;
}

/* Names of no template. `drawn` has PATH_MAX bytes; false: there is none, errno says why. */
static bool draw_name(char *drawn, bool (*draw)(const char *const *wanted, char *to),
                      const char *const *wanted, uintptr_t caller)
{
    struct input input = {.kind = READING_DRAWN, .bytes = drawn, .size = PATH_MAX - 1};
    enum input_answer answer = inputs_ask(&input, caller);
    bool made;

    if (answer == INPUT_GIVEN)
        drawn[input.size] = '\0';
    if (answer == INPUT_GIVEN || answer == INPUT_FAILED)
        return answer == INPUT_GIVEN;
    made = draw(wanted, drawn);
    input.size = made ? strlen(drawn) : 0;
    inputs_finish(&input, answer, made ? 0 : -1);
    return made;
}

static bool draw_tmpnam(const char *const *wanted, char *to)
{
    (void)wanted;
    return NEXT(tmpnam_r)(to);
}

static char *name_in(char to[L_tmpnam], uintptr_t caller)
{
    char drawn[PATH_MAX];

    if (!draw_name(drawn, draw_tmpnam, NULL, caller))
        return NULL;
    return memcpy(to, drawn, strnlen(drawn, L_tmpnam - 1) + 1);
}

PUBLIC char *tmpnam_r(char to[L_tmpnam])
{
    return to ? name_in(to, CALLER) : NULL;
}

PUBLIC char *tmpnam(char to[L_tmpnam])
{
    static char own[L_tmpnam];

    return name_in(to ? to : own, CALLER);
}

static bool draw_tempnam(const char *const *wanted, char *to)
{
    char *name = NEXT(tempnam)(wanted[0], wanted[1]);

    if (!name)
        return false;
    snprintf(to, PATH_MAX, "%s", name);
    free(name);
    return true;
}

PUBLIC char *tempnam(const char *dir, const char *prefix)
{
    const char *const wanted[2] = {dir, prefix};
    char drawn[PATH_MAX];

    return draw_name(drawn, draw_tempnam, wanted, CALLER) ? strdup(drawn) : NULL;
}
