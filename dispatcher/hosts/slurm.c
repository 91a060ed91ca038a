#include "dispatcher/hosts/slurm.h"
#include "common/parse.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#define NUMBER_DIGITS_MAX 9 /* of a number in a name */

/* A name that grows from left to right. */
struct expansion {
    struct host_list *list;
    char name[HOST_NAME_MAX_BYTES + 1];
};

static int expand(struct expansion *x, size_t used, const char *at, size_t size, int depth,
                  struct cw_err *err);

static int append(struct expansion *x, size_t *used, const char *text, size_t size,
                  struct cw_err *err)
{
    if (size > HOST_NAME_MAX_BYTES - *used)
        return cw_err_set(err, CW_EINVAL, "a name of more than %d bytes", HOST_NAME_MAX_BYTES);
    memcpy(x->name + *used, text, size);
    *used += size;
    return CW_OK;
}

/* The digits at *at; sets how many there are. */
static int take_digits(const char **at, uint32_t *value, int *digits, struct cw_err *err)
{
    const char *from = *at;

    for (*value = 0, *digits = 0; isdigit((unsigned char)**at); (*at)++)
        if (++*digits <= NUMBER_DIGITS_MAX)
            *value = *value * 10 + (uint32_t)(**at - '0');
    if (*digits == 0 || *digits > NUMBER_DIGITS_MAX)
        return cw_err_set(err, CW_EINVAL, "'%.16s': expected a number of 1 to %d digits", from,
                          NUMBER_DIGITS_MAX);
    return CW_OK;
}

/* "LOW" or "LOW-HIGH"; the names have as many digits as LOW. */
static int take_range(const char **at, uint32_t *low, uint32_t *high, int *digits,
                      struct cw_err *err)
{
    const char *from = *at;
    int more;

    if (take_digits(at, low, digits, err) < 0)
        return err->code;
    *high = *low;
    if (**at != '-')
        return CW_OK;
    ++*at;
    if (take_digits(at, high, &more, err) < 0)
        return err->code;
    if (*high < *low || *high - *low >= HOSTS_MAX)
        return cw_err_set(err, CW_EINVAL, "'%.*s': expected LOW-HIGH, of at most %d hosts",
                          (int)(*at - from), from, HOSTS_MAX);
    return CW_OK;
}

/* What is in brackets from `at` on, with what follows `after` it. */
static int expand_group(struct expansion *x, size_t used, const char *at, const char *after,
                        size_t after_size, int depth, struct cw_err *err)
{
    char number[NUMBER_DIGITS_MAX + 2];
    uint32_t high;
    uint32_t low;
    int digits;

    for (;; at++) {
        if (take_range(&at, &low, &high, &digits, err) < 0)
            return err->code;
        for (uint32_t i = low; i <= high; i++) {
            size_t now = used;
            int size = snprintf(number, sizeof(number), "%0*u", digits, i);

            if (append(x, &now, number, (size_t)size, err) < 0 ||
                expand(x, now, after, after_size, depth + 1, err) < 0)
                return err->code;
        }
        if (*at == ']')
            return CW_OK;
        if (*at != ',')
            return cw_err_set(err, CW_EINVAL, "'%.16s': expected ',' or ']'", at);
    }
}

static int add_name(struct expansion *x, size_t used, struct cw_err *err)
{
    struct host host = {0};

    if (host_name_take(&host, x->name, used, err) < 0)
        return err->code;
    if (host_list_find(x->list, host.name) != HOSTS_NONE)
        return cw_err_set(err, CW_EINVAL, "host %s is there twice", host.name);
    return host_list_add(x->list, &host, err);
}

/* Adds each host that the pattern stands for, after the first `used` bytes of its name. */
static int expand(struct expansion *x, size_t used, const char *at, size_t size, int depth,
                  struct cw_err *err)
{
    const char *open = memchr(at, '[', size);
    const char *close;

    if (append(x, &used, at, open ? (size_t)(open - at) : size, err) < 0)
        return err->code;
    if (!open)
        return add_name(x, used, err);
    close = memchr(open, ']', size - (size_t)(open - at));
    if (!close)
        return cw_err_set(err, CW_EINVAL, "'%.16s': expected a ']'", open);
    if (depth == SLURM_GROUPS_MAX)
        return cw_err_set(err, CW_EINVAL, "more than %d brackets in a name", SLURM_GROUPS_MAX);
    return expand_group(x, used, open + 1, close + 1, size - (size_t)(close + 1 - at), depth, err);
}

/* Up to the next comma that is not in brackets. */
static size_t pattern_size(const char *text)
{
    bool inside = false;
    size_t size = 0;

    for (; text[size] && (inside || text[size] != ','); size++)
        inside = text[size] == '[' || (inside && text[size] != ']');
    return size;
}

static int take_nodes(struct host_list *list, const char *text, struct cw_err *err)
{
    struct expansion x = {.list = list};

    for (;;) {
        size_t size = pattern_size(text);

        if (expand(&x, 0, text, size, 0, err) < 0)
            return err->code;
        if (!text[size])
            return CW_OK;
        text += size + 1;
    }
}

/* "N" or "N(xCOUNT)" */
static int take_tasks_item(const char **at, uint32_t *tasks, uint32_t *count, struct cw_err *err)
{
    const char *from = *at;
    int digits;

    *count = 1;
    if (take_digits(at, tasks, &digits, err) < 0)
        return err->code;
    if (**at == '(') {
        if ((*at)[1] != 'x')
            return cw_err_set(err, CW_EINVAL, "'%.16s': expected N or N(xCOUNT)", from);
        *at += 2;
        if (take_digits(at, count, &digits, err) < 0)
            return err->code;
        if (**at != ')')
            return cw_err_set(err, CW_EINVAL, "'%.16s': expected N or N(xCOUNT)", from);
        ++*at;
    }
    if (**at && **at != ',')
        return cw_err_set(err, CW_EINVAL, "'%.16s': expected N or N(xCOUNT)", from);
    if (*tasks < 1 || *tasks > HOST_SLOTS_MAX)
        return cw_err_set(err, CW_EINVAL, "'%.16s': expected 1 to %d tasks", from, HOST_SLOTS_MAX);
    return CW_OK;
}

/* Of the hosts from `first` on. */
static int take_tasks(struct host_list *list, uint32_t first, const char *text, struct cw_err *err)
{
    uint32_t at = first;
    uint32_t count;
    uint32_t tasks;

    for (;; text++) {
        if (take_tasks_item(&text, &tasks, &count, err) < 0)
            return err->code;
        if (count > list->count - at)
            return cw_err_set(err, CW_EINVAL, "more than the %u hosts of SLURM_JOB_NODELIST",
                              list->count - first);
        while (count-- > 0)
            list->host[at++].slots = tasks;
        if (!*text)
            break;
    }
    if (at < list->count)
        return cw_err_set(err, CW_EINVAL, "%u hosts, but SLURM_JOB_NODELIST has %u", at - first,
                          list->count - first);
    return CW_OK;
}

int host_list_slurm(struct host_list *list, char *(*get)(const char *name), struct cw_err *err)
{
    const char *nodes = get("SLURM_JOB_NODELIST");
    const char *tasks = get("SLURM_TASKS_PER_NODE");
    const char *number = get("SLURM_NNODES");
    uint32_t first = list->count;
    uint64_t count;

    if (!nodes)
        return CW_OK;
    if (take_nodes(list, nodes, err) < 0)
        return cw_err_wrap(err, "SLURM_JOB_NODELIST '%.128s'", nodes);
    count = list->count - first;
    if (number && cw_parse_number("SLURM_NNODES", number, 1, HOSTS_MAX, &count, err) < 0)
        return err->code;
    if (count != list->count - first)
        return cw_err_set(err, CW_EINVAL,
                          "SLURM_NNODES is %s, but SLURM_JOB_NODELIST '%.128s' has %u hosts",
                          number, nodes, list->count - first);
    if (tasks && take_tasks(list, first, tasks, err) < 0)
        return cw_err_wrap(err, "SLURM_TASKS_PER_NODE '%.128s'", tasks);
    return CW_OK;
}
