#include "dispatcher/run/image_servers.h"
#include "common/cred.h"
#include "dispatcher/run/copies.h"
#include "dispatcher/run/host_relays.h"
#include "dispatcher/run/parts.h"
#include "dispatcher/servers/image_dir.h"

#include <sodium.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

static uint64_t now_of(const struct image_servers *s)
{
    return loop_now_ns(s->parts->loop);
}

static bool are_own(const struct image_servers *s)
{
    return s->parts->layout.servers == 0;
}

/* The only one, which is on this machine. */
static bool is_here(const struct image_servers *s)
{
    return are_own(s) && s->parts->options->hosts.ckptsrv_hosts == 0;
}

uint32_t image_servers_count(const struct parts *p)
{
    uint32_t on_hosts = p->options->hosts.ckptsrv_hosts;

    if (p->layout.servers)
        return p->layout.servers;
    return on_hosts ? on_hosts : 1;
}

static uint32_t host_of(const struct image_servers *s, uint32_t server)
{
    return host_relays_of(s->parts, NODE_UNIT_SERVER + server);
}

const char *image_servers_name(const struct image_servers *s, uint32_t server)
{
    return are_own(s) && !is_here(s) ? nodes_name(s->parts->nodes, host_of(s, server))
                                     : servers_address(s->servers, server, true);
}

const char *image_servers_names(struct image_servers *s, uint32_t servers)
{
    size_t used = 0;

    s->names[0] = '\0';
    for (uint32_t i = 0; i < s->count && used < sizeof(s->names); i++)
        if (servers >> i & 1)
            used += (size_t)snprintf(s->names + used, sizeof(s->names) - used, "%s%s",
                                     used ? "," : "", image_servers_name(s, i));
    return s->names;
}

/* In a line for a person: one of several has a name. */
#define SERVER_TEXT (HOST_NAME_MAX_BYTES + 40)
static const char *text_of(const struct image_servers *s, uint32_t server, char text[SERVER_TEXT])
{
    snprintf(text, SERVER_TEXT, "the checkpoint server%s%s", s->count > 1 ? " on host " : "",
             s->count > 1 ? image_servers_name(s, server) : "");
    return text;
}

int image_servers_open(struct image_servers *s, const struct servers_events *events,
                       void (*start)(void *ctx, uint32_t server, const char *listen,
                                     const uint8_t key[CW_KEY_SIZE]),
                       void *start_ctx, struct cw_err *err)
{
    const struct parts *p = s->parts;
    const struct layout *l = &p->layout;
    uint8_t key[CW_KEY_SIZE];
    struct servers_config config = {
        .loop = p->loop,
        .job_id = p->job_id,
        .ranks = p->options->ranks,
        .addresses = l->server_address,
        .count = l->servers,
        .own = s->count,
        .key_file = l->server_key_file,
        .key = p->state ? key : NULL,
        .socket_dir = is_here(s) ? nodes_facts(p->nodes, nodes_here(p->nodes))->dir : NULL,
        .host = p->host[0] ? p->host : NULL,
        .start = start,
        .start_ctx = start_ctx,
        .events = events,
        .ctx = s->ctx};

    if (is_here(s) && !p->state && image_dir_check(p->options->images.dir, err) < 0)
        return err->code;
    cw_cred_server_key(key, p->relay_key);
    s->servers = servers_new(&config, err);
    sodium_memzero(key, sizeof(key));
    return s->servers ? CW_OK : err->code;
}

void image_servers_close(struct image_servers *s)
{
    servers_free(s->servers);
}

/* --- where images go --- */

/* The first one behind this host, in the order of hosts, of those that are there; the last is one
 * on the host itself. */
static uint32_t next_behind(const struct image_servers *s, uint32_t host, uint32_t but)
{
    uint32_t hosts = s->parts->options->hosts.list.count + 1;
    uint32_t least = UINT32_MAX, found = 0;

    for (uint32_t i = 0; i < s->count; i++) {
        uint32_t steps = (host_of(s, i) + hosts - host - 1) % hosts;

        if (s->server[i].gone || but >> i & 1 || steps >= least)
            continue;
        least = steps;
        found = 1u << i;
    }
    return found;
}

/* With copies of logs, on the host to which its relay's is copied: that is where the rank goes when
 * its host is lost. 0: there is none. */
static uint32_t at_backup(const struct image_servers *s, uint32_t rank, uint32_t host)
{
    const struct copies *copies = s->parts->copies;
    uint32_t at = BACKUPS_NO_HOST;

    if (copies && copies->begun)
        at = backups_host_of(&copies->core, relays_home(s->parts->relays, rank));
    for (uint32_t i = 0; at != BACKUPS_NO_HOST && at != host && i < s->count; i++)
        if (!s->server[i].gone && host_of(s, i) == at)
            return 1u << i;
    return 0;
}

static bool is_on(const struct image_servers *s, uint32_t servers, uint32_t host)
{
    return servers && host_of(s, (uint32_t)__builtin_ctz(servers)) == host;
}

/* As many as are to keep each image. Where none is left but on the host itself, that one: it
 * survives the rank, if not its host. */
void image_servers_place(struct image_servers *s, uint32_t rank, uint32_t host)
{
    uint32_t copies = s->parts->options->images.copies;
    uint32_t servers, more;

    if (!are_own(s))
        return;
    servers = at_backup(s, rank, host);
    if (!servers)
        servers = next_behind(s, host, 0);
    for (uint32_t i = 1; i < copies; i++) {
        more = next_behind(s, host, servers);
        servers |= is_on(s, more, host) ? 0 : more;
    }
    images_assign(s->core, rank, servers);
}

void image_servers_look(struct image_servers *s)
{
    for (uint32_t rank = 0; s->parts->options->log_copies && rank < s->core->config.ranks; rank++)
        image_servers_place(s, rank, s->job->slots.slot[s->job->rank[rank].slot].host);
}

uint32_t image_servers_nearest(const struct image_servers *s, uint32_t servers, uint32_t host,
                               uint32_t tries)
{
    uint32_t best = 0, rating = 0;

    for (uint32_t i = 0; i < s->count; i++) {
        uint32_t rated = 1 + 2 * s->core->server[i].up + (are_own(s) && host_of(s, i) == host);

        if (!(servers >> i & 1) || rated <= rating)
            continue;
        best = i;
        rating = rated;
    }
    servers &= ~(1u << best);
    return tries % 2 && servers ? image_servers_nearest(s, servers, host, tries / 2) : best;
}

/* Servers that were given have each a key of its own: the rank knows of the one that is its. */
static uint32_t only_of(const struct image_servers *s, uint32_t rank)
{
    uint32_t servers = s->core->rank[rank].servers;

    return servers ? (uint32_t)__builtin_ctz(servers) : 0;
}

uint32_t image_servers_places_of(const struct image_servers *s, uint32_t servers)
{
    return are_own(s) ? servers : 1;
}

static void put_address(const struct image_servers *s, uint32_t server, uint32_t host,
                        char to[CW_SETUP_ADDRESS_MAX])
{
    const struct parts *p = s->parts;
    char address[CW_ADDRESS_MAX];
    bool near = host_relays_is_near(p, NODE_UNIT_SERVER + (are_own(s) ? server : 0), host);

    if (p->options->grid)
        grid_job_server_at(p->options->grid, server, p->options->hosts.list.host[host].site,
                           address);
    else
        snprintf(address, sizeof(address), "%s", servers_address(s->servers, server, near));
    snprintf(to, CW_SETUP_ADDRESS_MAX, "%.299s", address);
}

void image_servers_set_up(const struct image_servers *s, uint32_t host, struct cw_setup *setup)
{
    uint32_t only = only_of(s, setup->process.rank);

    setup->image_servers = are_own(s) ? s->count : 1;
    for (uint32_t i = 0; i < setup->image_servers; i++)
        if (!s->server[are_own(s) ? i : only].gone)
            put_address(s, are_own(s) ? i : only, host, setup->image_address[i]);
    servers_rank_key(s->servers, only, setup->process.rank, setup->process.incarnation,
                     setup->image_key);
}

/* --- who waits for an image --- */

/* The server is away for long, or for good. */
static void fail_demands(struct image_servers *s, uint32_t server)
{
    for (uint32_t rank = 0; rank < s->core->config.ranks; rank++)
        if (s->core->rank[rank].servers >> server & 1 || !s->core->rank[rank].servers)
            images_demand_fail(s->core, rank, s->server[server].why);
}

void image_servers_fail_demands(struct image_servers *s)
{
    for (uint32_t i = 0; i < s->count; i++)
        if (s->server[i].why[0])
            fail_demands(s, i);
}

static void no_image_from(struct image_servers *s, uint32_t server, const struct cw_err *err)
{
    snprintf(s->server[server].why, sizeof(s->server[server].why), "%s", err->text);
    fail_demands(s, server);
}

/* --- what is heard of them --- */

void image_servers_up(struct image_servers *s, uint32_t server)
{
    struct image_server *of = &s->server[server];
    char text[SERVER_TEXT];

    if (of->ended && !of->back)
        log_notice(s->log, "%s is there again", text_of(s, server, text));
    else if (of->why[0])
        log_notice(s->log, "checkpoint server %s is there again",
                   servers_address(s->servers, server, true));
    of->why[0] = '\0';
    of->back = of->ended;
}

void image_servers_stored(struct image_servers *s, uint32_t server)
{
    s->server[server].ended = s->server[server].back = false;
}

void image_servers_lost(struct image_servers *s, uint32_t server, const struct cw_err *err)
{
    struct image_server *of = &s->server[server];

    if (s->ending)
        return;
    if (are_own(s)) {
        log_verbose(s->log, "%s", err->text); /* how its process ended says more */
        return;
    }
    if (!of->why[0]) {
        log_warning(s->log, now_of(s), JOB_NO_RANK, "a checkpoint server is away", err->text);
        log_notice(s->log, "%s; no images are stored there until it is back", err->text);
    }
    no_image_from(s, server, err);
}

/* --- our own --- */

void image_servers_want(struct image_servers *s, uint32_t server)
{
    servers_want(s->servers, server);
}

void image_servers_started(struct image_servers *s, uint32_t server, pid_t pid, const char *dir)
{
    snprintf(s->server[server].dir, sizeof(s->server[server].dir), "%s", dir);
    log_verbose(s->log, "checkpoint server started (pid %d, %s, images in %s)", (int)pid,
                image_servers_name(s, server), dir);
}

void image_servers_listens(struct image_servers *s, uint32_t server, const char *local,
                           const char *far, bool in_memory)
{
    if (in_memory && !s->in_memory_told) {
        s->in_memory_told = true;
        log_notice(s->log,
                   "note: images of ranks are kept in %s, which is in memory; choose a place on a "
                   "disk (--ckpt-dir DIR), or bound them (--ckpt-max BYTES)",
                   s->server[server].dir);
    }
    servers_own_listens(s->servers, server, local, far, is_here(s));
}

void image_servers_ended(struct image_servers *s, uint32_t server, int status, const char *why)
{
    char how[128], text[SERVER_TEXT];

    if (s->ending)
        return;
    if (WIFSIGNALED(status))
        snprintf(how, sizeof(how), "was killed by signal %d (%s)", WTERMSIG(status),
                 strsignal(WTERMSIG(status)));
    else
        snprintf(how, sizeof(how), "ended with code %d", WEXITSTATUS(status));
    /* one that ends again before it was of any use is no news */
    (s->server[server].ended ? log_verbose : log_notice)(s->log, "%s %s%s%s; starting it again",
                                                         text_of(s, server, text), how,
                                                         why[0] ? ": " : "", why);
    s->server[server].ended = true;
}

/* Returns how many ranks are without the image that they had. */
static uint32_t lose_images(struct image_servers *s, uint32_t server, const struct cw_err *err)
{
    uint32_t lost = 0;

    for (uint32_t rank = 0; rank < s->core->config.ranks; rank++) {
        uint32_t number = images_server_gone(s->core, server, rank);
        char why[CW_ERR_TEXT_MAX];

        lost += number > 0;
        if (number == 0)
            continue;
        snprintf(why, sizeof(why), "image %u is gone with its checkpoint server: %.*s", number,
                 CW_ERR_TEXT_MAX - 80, err->text);
        images_fail(s->core, rank, 0, why);
    }
    return lost;
}

/* Each on another host's; no rank has one on its own while there is another. */
static bool place_again(struct image_servers *s)
{
    bool any = false;

    for (uint32_t i = 0; i < s->count; i++)
        any |= !s->server[i].gone;
    for (uint32_t rank = 0; any && rank < s->core->config.ranks; rank++)
        if (!s->core->rank[rank].servers)
            image_servers_place(s, rank, s->job->slots.slot[s->job->rank[rank].slot].host);
    return any;
}

void image_servers_gone(struct image_servers *s, uint32_t server, const struct cw_err *err)
{
    uint32_t lost;
    bool others;

    s->server[server].gone = true;
    servers_gone(s->servers, server);
    lost = lose_images(s, server, err);
    others = place_again(s);
    if (s->ending)
        return;
    no_image_from(s, server, err);
    if (others && lost == 0) {
        log_verbose(s->log, "%s; no rank had its last image there alone", err->text);
    } else if (others) {
        log_warning(s->log, now_of(s), JOB_NO_RANK, "a checkpoint server is lost", err->text);
        log_notice(s->log,
                   "%s; ranks whose last image was there: %u; new ones are taken at once, and kept "
                   "on other hosts",
                   err->text, lost);
    } else {
        log_warning(s->log, now_of(s), JOB_NO_RANK, "no more images are taken", err->text);
        log_notice(s->log, "no more images are taken: %s", err->text);
    }
    s->changed(s->ctx);
}
