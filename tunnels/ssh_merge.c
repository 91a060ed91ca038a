#include "tunnels/ssh_merge.h"
#include "common/clock.h"
#include "common/marker.h"
#include "tunnels/ssh_address.h"
#include "tunnels/ssh_channel.h"

#include <limits.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NS_IN_MS 1000000ull
#define COMMAND "causeway tunnel --merge"
#define PATH_LETTERS                                                                               \
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789/._+-" /* of no meaning to      \
                                                                           * shells                \
                                                                           */

/* `causeway` as that user finds it, or the path that is configured: not where it is on this
 * machine, which may be a place there where any user can put a program. */
static void write_command(char *text, size_t size)
{
    const char *program = getenv(TUNNEL_PROGRAM_VARIABLE);

    if (!program || program[0] != '/' || strlen(program) >= PATH_MAX ||
        program[strspn(program, PATH_LETTERS)] != '\0')
        program = "causeway";
    snprintf(text, size, "exec sh -c 'exec 2>/dev/null; exec %s tunnel --merge'", program);
}

static int find_answer(const struct ssh_link *link, struct cw_err *err)
{
    struct marker marker;
    uint8_t byte = 0;

    marker_init(&marker, STRIPE_ANSWER_MARK);
    while (ssh_channel_get(link, &byte, 1, err) == CW_OK)
        if (marker_take(&marker, byte))
            return CW_OK;
        else if (marker.noise > MARKER_NOISE_MAX)
            return cw_err_set(err, CW_EPROTO, "gateway %s: no answer among %u bytes",
                              ssh_link_hop(link)->host, MARKER_NOISE_MAX);
    return err->code;
}

static int read_answer(const struct ssh_link *link, struct cw_err *err)
{
    uint8_t bytes[STRIPE_ANSWER_BYTES];
    struct stripe_answer answer;

    if (find_answer(link, err) < 0 || ssh_channel_get(link, bytes, sizeof(bytes), err) < 0)
        return err->code;
    stripe_answer_get(bytes, &answer);
    return answer.joined == 1 && answer.version == STRIPE_VERSION
               ? CW_OK
               : cw_err_set(err, CW_EPROTO, "gateway %s: " COMMAND ": %.200s",
                            ssh_link_hop(link)->host, answer.text);
}

int ssh_merge_open(struct ssh_link *link, const struct stripe_greeting *greeting,
                   struct cw_err *err)
{
    uint8_t bytes[STRIPE_GREETING_BYTES];
    char command[PATH_MAX + 200];
    uint64_t until_ns = link->chain->until_ns;

    stripe_greeting_put(bytes, greeting);
    write_command(command, sizeof(command));
    err->code = CW_OK;
    link->chain->until_ns = cw_clock_ns() + SSH_MERGE_ANSWER_MS * NS_IN_MS;
    if (ssh_channel_exec(link, command, err) == CW_OK &&
        ssh_channel_put(link, bytes, sizeof(bytes), err) == CW_OK)
        read_answer(link, err);
    sodium_memzero(bytes, sizeof(bytes));
    link->chain->until_ns = until_ns;
    return err->code;
}
