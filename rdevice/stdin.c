#include "rdevice/stdin.h"
#include "common/setup.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static uint64_t of_input; /* the inode; 0: none */
static bool begun;

/* As a constructor, or by the first call: those of other libraries may read before ours. */
__attribute__((constructor)) static void begin(void)
{
    struct stat st;
    int error = errno;

    if (begun)
        return;
    begun = true;
    if (getenv(CW_SETUP_ENV) && fstat(STDIN_FILENO, &st) == 0 && S_ISFIFO(st.st_mode))
        of_input = st.st_ino;
    errno = error;
}

bool stdin_any(void)
{
    if (!begun)
        begin();
    return of_input != 0;
}

bool stdin_is(int fd)
{
    int error = errno;
    struct stat st;
    bool is = stdin_any() && fd >= 0 && fstat(fd, &st) == 0 && S_ISFIFO(st.st_mode) &&
              st.st_ino == of_input;

    errno = error;
    return is;
}

void stdin_becomes(uint64_t inode)
{
    of_input = inode;
}
