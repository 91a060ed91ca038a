#include "dispatcher/run/server_news.h"

#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

void server_news_open(struct server_news *n, uint32_t server, const char *address)
{
    if (n->away[server])
        log_notice(n->log, "checkpoint server %s is there again", address);
    n->away[server] = false;
}

void server_news_lost(struct server_news *n, uint64_t now_ns, uint32_t server,
                      const struct cw_err *err)
{
    if (n->away[server])
        return;
    n->away[server] = true;
    log_warning(n->log, now_ns, JOB_NO_RANK, "a checkpoint server is away", err->text);
    log_notice(n->log, "%s; no images are stored there until it is back", err->text);
}

void server_news_own_started(struct server_news *n, pid_t pid, const char *address, const char *dir)
{
    log_verbose(n->log, "checkpoint server started (pid %d, %s, images in %s)", (int)pid, address,
                dir);
}

void server_news_in_memory(struct server_news *n, const char *dir)
{
    if (!n->in_memory)
        log_notice(n->log,
                   "note: images of ranks are kept in %s, which is in memory; choose a place on a "
                   "disk (--ckpt-dir DIR), or bound them (--ckpt-max BYTES)",
                   dir);
    n->in_memory = true;
}

void server_news_own_ended(struct server_news *n, int status, const char *why)
{
    char how[128];

    if (WIFSIGNALED(status))
        snprintf(how, sizeof(how), "was killed by signal %d (%s)", WTERMSIG(status),
                 strsignal(WTERMSIG(status)));
    else
        snprintf(how, sizeof(how), "ended with code %d", WEXITSTATUS(status));
    /* one that ends again before it was of any use is no news */
    (n->own_ended ? log_verbose : log_notice)(
        n->log, "the checkpoint server %s%s%s; starting it again", how, why[0] ? ": " : "", why);
    n->own_ended = true;
}

void server_news_own_open(struct server_news *n)
{
    if (n->own_ended && !n->own_back)
        log_notice(n->log, "the checkpoint server is there again");
    n->own_back = n->own_ended;
}

void server_news_own_stored(struct server_news *n)
{
    n->own_ended = n->own_back = false;
}

void server_news_own_failed(struct server_news *n, uint64_t now_ns, const struct cw_err *err)
{
    log_warning(n->log, now_ns, JOB_NO_RANK, "no more images are taken", err->text);
    log_notice(n->log, "no more images are taken: %s", err->text);
}
