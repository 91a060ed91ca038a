#include "dispatcher/wire/ssh_says.h"

#include <stddef.h>
#include <string.h>

/* The first that fits counts. An ssh behind another says only that it was closed, when that one has
 * said why. */
static const struct {
    const char *begin;
    enum ssh_said said;
} kinds[] = {
    {"debug1: remote forward success", SSH_SAID_FORWARD},
    {"Authenticated to ", SSH_SAID_LOGIN},
    {"debug", SSH_SAID_NOISE},
    {"OpenSSH_", SSH_SAID_NOISE},
    {"Transferred: ", SSH_SAID_NOISE},
    {"Bytes per second: ", SSH_SAID_NOISE},
    {"Connection closed by UNKNOWN port", SSH_SAID_NOISE},
};

enum ssh_said ssh_says(const char *line)
{
    for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++)
        if (strncmp(line, kinds[i].begin, strlen(kinds[i].begin)) == 0)
            return kinds[i].said;
    return SSH_SAID_OTHER;
}
