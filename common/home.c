#include "common/home.h"

#include <pwd.h>
#include <stdlib.h>
#include <unistd.h>

const char *cw_home(void)
{
    const char *text = getenv("HOME");
    const struct passwd *self = text && text[0] == '/' ? NULL : getpwuid(getuid());

    return self ? self->pw_dir : text && text[0] == '/' ? text : "/";
}
