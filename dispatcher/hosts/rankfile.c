#include "dispatcher/hosts/rankfile.h"
#include "common/parse.h"
#include "dispatcher/hosts/host_lines.h"

#include <stdlib.h>
#include <string.h>

#define RANKFILE_FORM "rank R=HOST slot=S, or rank R-R=HOST slot=S-S"

struct range {
    uint64_t first;
    uint64_t last;
};

/* Of one line. */
struct entry {
    struct range ranks;
    struct range slots;
    const char *host;
};

/* "N" or "N-M", up to max */
static int take_range(struct range *range, const char *what, char *text, uint64_t max,
                      struct cw_err *err)
{
    char *last = strchr(text, '-');

    if (last)
        *last++ = '\0';
    if (cw_parse_number(what, text, 0, max, &range->first, err) < 0)
        return err->code;
    range->last = range->first;
    return last ? cw_parse_number(what, last, range->first, max, &range->last, err) : CW_OK;
}

static int take_entry(struct entry *entry, char *line, uint32_t ranks, struct cw_err *err)
{
    char *word = host_lines_word(&line);
    char *rank = host_lines_word(&line);
    char *slot = host_lines_word(&line);
    char *host = rank ? strchr(rank, '=') : NULL;

    if (strcmp(word, "rank") != 0 || !host || !slot || strncmp(slot, "slot=", 5) != 0 ||
        host_lines_word(&line))
        return cw_err_set(err, CW_EINVAL, "expected " RANKFILE_FORM);
    *host++ = '\0';
    entry->host = host;
    slot += strlen("slot=");
    if (strchr(slot, ':') || strchr(slot, ','))
        return cw_err_set(
            err, CW_EINVAL,
            "slot '%s': expected S or S-S, as ranks are not bound to sockets or cores", slot);
    if (take_range(&entry->ranks, "rank", rank, ranks - 1, err) < 0 ||
        take_range(&entry->slots, "slot", slot, HOST_SLOTS_MAX - 1, err) < 0)
        return err->code;
    if (entry->ranks.last - entry->ranks.first != entry->slots.last - entry->slots.first)
        return cw_err_set(err, CW_EINVAL, "as many slots as ranks are expected: " RANKFILE_FORM);
    return CW_OK;
}

/* The host of that name; `adds`: if it is not there, it is added. */
static int find_host(struct host_list *hosts, bool adds, const char *name, uint32_t *at,
                     struct cw_err *err)
{
    struct host host = {0};

    *at = host_list_find(hosts, name);
    if (*at != HOSTS_NONE)
        return CW_OK;
    if (host_name_take(&host, name, strlen(name), err) < 0)
        return err->code;
    if (!adds)
        return cw_err_set(err, CW_EINVAL, "host %s is none of the job's hosts", name);
    *at = hosts->count;
    return host_list_add(hosts, &host, err);
}

static int take_line(struct rankfile *r, struct host_list *hosts, bool adds, char *text,
                     uint32_t line, struct cw_err *err)
{
    struct entry entry;
    struct host *host;
    uint32_t at;

    if (take_entry(&entry, text, r->ranks, err) < 0 ||
        find_host(hosts, adds, entry.host, &at, err) < 0)
        return err->code;
    host = &hosts->host[at];
    if (adds && entry.slots.last >= host->slots)
        host->slots = (uint32_t)entry.slots.last + 1;
    for (uint64_t i = 0; i <= entry.ranks.last - entry.ranks.first; i++) {
        struct rank_place *place = &r->place[entry.ranks.first + i];

        if (place->line)
            return cw_err_set(err, CW_EINVAL, "rank %u is in line %u already",
                              (uint32_t)(entry.ranks.first + i), place->line);
        *place = (struct rank_place){at, (uint32_t)(entry.slots.first + i), line};
    }
    return CW_OK;
}

int rankfile_parse(struct rankfile *r, const char *file, const char *text, size_t size,
                   uint32_t ranks, struct host_list *hosts, struct cw_err *err)
{
    struct host_lines lines = {.file = file, .at = text, .left = size};
    char line[HOST_LINE_BYTES_MAX];
    bool adds = hosts->count == 0;
    int more;

    *r = (struct rankfile){file, calloc(ranks, sizeof(*r->place)), ranks};
    if (!r->place)
        return cw_err_set(err, CW_ENOMEM, "no memory for the rankfile");
    while ((more = host_lines_next(&lines, line, err)) > 0)
        if (take_line(r, hosts, adds, line, lines.number, err) < 0)
            return host_lines_wrap(&lines, err);
    for (uint32_t rank = 0; more == 0 && rank < ranks; rank++)
        if (!r->place[rank].line)
            return cw_err_set(err, CW_EINVAL, "%s: no line for rank %u of %u", file, rank, ranks);
    return more;
}

void rankfile_free(struct rankfile *r)
{
    free(r->place);
    *r = (struct rankfile){0};
}
