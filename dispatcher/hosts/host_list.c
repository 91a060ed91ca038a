#include "dispatcher/hosts/host_list.h"
#include "common/parse.h"
#include "dispatcher/hosts/host_lines.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define LETTERS "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
#define WHAT_MAX (HOST_NAME_MAX_BYTES + 16)

void host_list_free(struct host_list *list)
{
    free(list->host);
    *list = (struct host_list){0};
}

uint32_t host_list_find(const struct host_list *list, const char *name)
{
    for (uint32_t i = 0; i < list->count; i++)
        if (strcasecmp(list->host[i].name, name) == 0)
            return i;
    return HOSTS_NONE;
}

/* --- adding --- */

static int check_slots(const struct host *h, struct cw_err *err)
{
    if (h->slots > HOST_SLOTS_MAX || h->slots_max > HOST_SLOTS_MAX)
        return cw_err_set(err, CW_EINVAL, "host %s: more than %d slots", h->name, HOST_SLOTS_MAX);
    if (h->slots_max && h->slots > h->slots_max)
        return cw_err_set(err, CW_EINVAL, "host %s: max_slots=%u is less than its %u slots",
                          h->name, h->slots_max, h->slots);
    return CW_OK;
}

static int merge(struct host *h, const struct host *more, struct cw_err *err)
{
    h->slots = (h->slots ? h->slots : 1) + (more->slots ? more->slots : 1);
    h->slots_max += more->slots_max;
    return check_slots(h, err);
}

int host_list_add(struct host_list *list, const struct host *host, struct cw_err *err)
{
    uint32_t at = host_list_find(list, host->name);
    bool full = (list->count & (list->count - 1)) == 0; /* 0, 1, 2, 4, ... have room for no more */
    struct host *grown;

    if (at != HOSTS_NONE)
        return merge(&list->host[at], host, err);
    if (list->count == HOSTS_MAX)
        return cw_err_set(err, CW_EINVAL, "host %s: a job has at most %d hosts", host->name,
                          HOSTS_MAX);
    if (check_slots(host, err) < 0)
        return err->code;
    if (full) {
        grown = realloc(list->host, (list->count ? 2 * list->count : 1) * sizeof(*grown));
        if (!grown)
            return cw_err_set(err, CW_ENOMEM, "no memory for the hosts");
        list->host = grown;
    }
    list->host[list->count++] = *host;
    return CW_OK;
}

/* --- a host in text --- */

/* No name may be taken for an option of ssh. */
static bool is_name(const char *text)
{
    size_t user = strspn(text, LETTERS "._-");
    const char *name = text[user] == '@' ? text + user + 1 : text;

    if (text[0] == '-' || text[0] == '@' || name[0] == '-' || !name[0])
        return false;
    return name[strspn(name, LETTERS ".:_-")] == '\0';
}

int host_name_take(struct host *host, const char *text, size_t size, struct cw_err *err)
{
    bool fits = size <= HOST_NAME_MAX_BYTES;

    if (fits) {
        memcpy(host->name, text, size);
        host->name[size] = '\0';
    }
    if (!fits || strlen(host->name) != size || !is_name(host->name))
        return cw_err_set(err, CW_EINVAL,
                          "host '%.*s'%s: expected a name, like node1 or alice@node1.site, of at "
                          "most %d bytes",
                          size > 64 ? 64 : (int)size, text, size > 64 ? "..." : "",
                          HOST_NAME_MAX_BYTES);
    return CW_OK;
}

static int take_slots(uint32_t *slots, const char *what, const char *text, struct cw_err *err)
{
    uint64_t number;

    if (*slots)
        return cw_err_set(err, CW_EINVAL, "%s '%s': said twice", what, text);
    if (cw_parse_number(what, text, 1, HOST_SLOTS_MAX, &number, err) < 0)
        return err->code;
    *slots = (uint32_t)number;
    return CW_OK;
}

/* "NAME", "NAME:SLOTS", or "[ADDRESS]:SLOTS" for an address with colons */
static int take_host(struct host *host, const char *text, struct cw_err *err)
{
    char what[WHAT_MAX];
    bool bracketed = text[0] == '[';
    size_t size = bracketed ? strcspn(++text, "]") : strcspn(text, ":");
    const char *rest = text + size + (bracketed && text[size] == ']');

    *host = (struct host){0};
    if (host_name_take(host, text, size, err) < 0)
        return err->code;
    if (bracketed && rest == text + size)
        return cw_err_set(err, CW_EINVAL, "host '[%s': expected a ']'", text);
    if (!*rest)
        return CW_OK;
    if (*rest != ':')
        return cw_err_set(err, CW_EINVAL, "host '[%s': expected ':' and a number after ']'", text);
    snprintf(what, sizeof(what), "slots of %s", host->name);
    return take_slots(&host->slots, what, rest + 1, err);
}

/* --- options and files --- */

int host_list_add_option(struct host_list *list, const char *text, struct cw_err *err)
{
    char item[HOST_LINE_BYTES_MAX];
    const char *at = text;
    struct host host;

    for (;;) {
        size_t size = strcspn(at, ",");

        if (size >= sizeof(item)) {
            cw_err_set(err, CW_EINVAL, "'%.64s...' is too long for NAME:SLOTS", at);
            break;
        }
        memcpy(item, at, size);
        item[size] = '\0';
        if (take_host(&host, item, err) < 0 || host_list_add(list, &host, err) < 0)
            break;
        if (!at[size])
            return CW_OK;
        at += size + 1;
    }
    return cw_err_wrap(err, "--host");
}

/* A word after the host's name. */
static int take_setting(struct host *host, char *word, struct cw_err *err)
{
    char *value = strchr(word, '=');

    if (value)
        *value++ = '\0';
    if (value && strcmp(word, "slots") == 0)
        return take_slots(&host->slots, word, value, err);
    if (value && (strcmp(word, "max_slots") == 0 || strcmp(word, "max-slots") == 0))
        return take_slots(&host->slots_max, word, value, err);
    return cw_err_set(err, CW_EINVAL,
                      "'%s%s%s': expected slots=N or max_slots=N; other settings of hosts are not "
                      "known here",
                      word, value ? "=" : "", value ? value : "");
}

static int take_line(struct host_list *list, char *line, struct cw_err *err)
{
    struct host host;
    char *word = host_lines_word(&line);

    if (take_host(&host, word, err) < 0)
        return err->code;
    while ((word = host_lines_word(&line)))
        if (take_setting(&host, word, err) < 0)
            return err->code;
    return host_list_add(list, &host, err);
}

int host_list_parse(struct host_list *list, const char *file, const char *text, size_t size,
                    struct cw_err *err)
{
    struct host_lines lines = {.file = file, .at = text, .left = size};
    char line[HOST_LINE_BYTES_MAX];
    int more;

    while ((more = host_lines_next(&lines, line, err)) > 0)
        if (take_line(list, line, err) < 0)
            return host_lines_wrap(&lines, err);
    return more;
}

int host_list_add_service(struct host_list *list, const char *name, uint32_t *at,
                          struct cw_err *err)
{
    struct host host = {.without_ranks = true};

    if (host_name_take(&host, name, strlen(name), err) < 0)
        return err->code;
    *at = host_list_find(list, name);
    if (*at != HOSTS_NONE)
        return CW_OK;
    *at = list->count;
    return host_list_add(list, &host, err);
}

int host_list_set_spares(struct host_list *list, uint32_t spares, struct cw_err *err)
{
    if (spares >= list->count)
        return cw_err_set(err, CW_EINVAL,
                          "--spares %u: the job has %u hosts, and none is left for ranks", spares,
                          list->count);
    for (uint32_t i = list->count - spares; i < list->count; i++)
        list->host[i].spare = true;
    return CW_OK;
}
