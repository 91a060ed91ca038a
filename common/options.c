#include "common/options.h"
#include "common/parse.h"

#include <assert.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>

#define FIRST 256 /* getopt returns characters too */
#define NAME_SIZE 96
#define HELP_COLUMN 23
#define HELP_WIDTH 100

/* --- finding --- */

/* Where a walk over all groups stands; zeroed: before the first. */
struct walk {
    const struct cw_option_group *group;
    const struct cw_option *option;
    int number;
};

static bool next(const struct cw_options *options, struct walk *w)
{
    if (!w->group)
        *w = (struct walk){options->groups, options->groups->list, 0};
    else
        w->option++, w->number++;
    while (w->group->list && !w->option->name)
        w->option = (++w->group)->list;
    return w->group->list;
}

static const char *dashes(const char *name)
{
    return strlen(name) > 2 ? "--" : "-";
}

int cw_option_number(const struct cw_options *options, const char *name)
{
    struct walk w = {0};

    while (next(options, &w) && strcmp(w.option->name, name) != 0)
        ;
    assert(w.group->list);
    return w.number;
}

const char *cw_option_first(const struct cw_options *options, const char *const *given,
                            const char *const *names)
{
    while (*names && !given[cw_option_number(options, *names)])
        names++;
    return *names;
}

/* --- values --- */

/* The words of "a|b|c" as "a, b or c". */
static void list_words(const char *words, char *to, size_t size)
{
    size_t used = 0;

    for (const char *at = words; *at && used + 5 < size; at++) {
        const char *between = strchr(at + 1, '|') ? ", " : " or ";

        if (*at != '|')
            to[used++] = *at;
        else
            used = (size_t)(stpcpy(to + used, between) - to);
    }
    to[used] = '\0';
}

static int take_word(const struct cw_option *o, const char *name, const char *value, uint32_t *to,
                     struct cw_err *err)
{
    char list[NAME_SIZE];
    const char *at = o->argument;

    for (*to = 0; *at; ++*to) {
        size_t size = strcspn(at, "|");

        if (strlen(value) == size && memcmp(at, value, size) == 0)
            return CW_OK;
        at += size + (at[size] == '|');
    }
    list_words(o->argument, list, sizeof(list));
    return cw_err_set(err, CW_EINVAL, "%s %s: expected %s", name, value, list);
}

static int take_number(const struct cw_option *o, const char *name, const char *value, uint32_t *to,
                       struct cw_err *err)
{
    uint64_t number = 0;
    int failed = cw_parse_number(name, value, o->min, o->max, &number, err);

    *to = (uint32_t)number;
    return failed;
}

static int take_bytes(const struct cw_option *o, const char *name, const char *value, uint64_t *to,
                      struct cw_err *err)
{
    *to = 0;
    if (o->min == 0 && strcmp(value, "0") == 0)
        return CW_OK;
    if (cw_parse_bytes(name, value, to, err) == CW_OK && *to < o->min)
        cw_err_set(err, CW_EINVAL, "%s %s: at least %lluM", name, value,
                   (unsigned long long)(o->min >> 20));
    return err->code;
}

static int take_time(const struct cw_option *o, const char *name, const char *value, uint64_t *to,
                     struct cw_err *err)
{
    if (cw_parse_duration(name, value, to, err) == CW_OK && o->range &&
        (*to < o->min || *to > o->max))
        cw_err_set(err, CW_EINVAL, "%s '%s': expected %s", name, value, o->range);
    return err->code;
}

static int take(const struct cw_option *o, char *group, const char *value, struct cw_err *err)
{
    const char *called = o->also ? o->also : o->name;
    void *to = group + o->at;
    char name[NAME_SIZE];

    snprintf(name, sizeof(name), "%s%s", dashes(called), called);
    if ((o->kind == CW_OPTION_TEXT || o->kind == CW_OPTION_CALL) && !*value)
        return cw_err_set(err, CW_EINVAL, "%s: the value is empty", name);
    switch (o->kind) {
    case CW_OPTION_FLAG:
        *(bool *)to = true;
        break;
    case CW_OPTION_TEXT:
        *(const char **)to = value;
        break;
    case CW_OPTION_NUMBER:
        return take_number(o, name, value, to, err);
    case CW_OPTION_BYTES:
        return take_bytes(o, name, value, to, err);
    case CW_OPTION_TIME:
        return take_time(o, name, value, to, err);
    case CW_OPTION_WORD:
        return take_word(o, name, value, to, err);
    case CW_OPTION_FD:
        return cw_parse_descriptor(value, to, err);
    case CW_OPTION_CALL:
        return o->take(to, value, err);
    }
    return CW_OK;
}

/* --- the command line --- */

static char *add_name(struct option *entry, const char *name, const struct walk *w, char *letters)
{
    bool has_value = w->option->argument;

    *entry = (struct option){name, has_value, NULL, FIRST + w->number};
    if (!name[1])
        letters += sprintf(letters, has_value ? "%c:" : "%c", name[0]);
    return letters;
}

/* The number of the option that getopt has found, by its name or its letter. */
static int number_of(const struct option *list, int opt)
{
    while (opt < FIRST && (list->name[0] != opt || list->name[1]))
        list++;
    return (opt < FIRST ? list->val : opt) - FIRST;
}

int cw_options_parse(const struct cw_options *options, int argc, char **argv, void *into,
                     const char **given, struct cw_err *err)
{
    struct option list[CW_OPTIONS_MAX + 1] = {{0}};
    char letters[2 * CW_OPTIONS_MAX + 2] = ":", *end = letters + 1;
    struct walk w = {0};
    size_t used = 0;
    int opt, number;

    while (next(options, &w)) {
        assert(used + 2 <= CW_OPTIONS_MAX);
        end = add_name(&list[used++], w.option->name, &w, end);
        if (w.option->also)
            end = add_name(&list[used++], w.option->also, &w, end);
    }
    err->code = CW_OK;
    optind = 0; /* start anew, whoever used getopt before */
    opterr = 0;
    while ((opt = options->program ? getopt_long_only(argc, argv, "+:", list, NULL)
                                   : getopt_long(argc, argv, letters, list, NULL)) != -1) {
        if (opt == '?' || opt == ':')
            return cw_err_set(err, CW_EINVAL, "%s '%s'; see %s --help",
                              opt == ':' ? "a value is missing after" : "unknown option",
                              argv[optind - 1], options->command);
        number = number_of(list, opt);
        w = (struct walk){0};
        while (next(options, &w) && w.number != number)
            ;
        if (given)
            given[number] = optarg ? optarg : "";
        if (take(w.option, (char *)into + w.group->at, optarg, err) < 0)
            return err->code;
    }
    return CW_OK;
}

/* --- help --- */

static int put_names(const struct cw_option *o, FILE *to)
{
    int used = fprintf(to, "  ");

    if (o->also)
        used += fprintf(to, "%s%s, ", dashes(o->also), o->also);
    used += fprintf(to, "%s%s", dashes(o->name), o->name);
    return used + (o->argument ? fprintf(to, " %s", o->argument) : 0);
}

/* Words, with lines that begin at the column. */
static void put_text(const char *text, int used, FILE *to)
{
    if (used >= HELP_COLUMN) {
        fputc('\n', to);
        used = 0;
    }
    while (*text) {
        int size = (int)strcspn(text, " ");

        if (used + 1 + size > HELP_WIDTH) {
            fputc('\n', to);
            used = 0;
        }
        used += used < HELP_COLUMN ? fprintf(to, "%*s", HELP_COLUMN - used, "") : fprintf(to, " ");
        used += fprintf(to, "%.*s", size, text);
        text += size + strspn(text + size, " ");
    }
    fputc('\n', to);
}

void cw_options_help(const struct cw_options *options, FILE *to)
{
    fputs(options->usage, to);
    for (const struct cw_option_group *group = options->groups; group->list; group++) {
        if (group->title)
            fprintf(to, "%s:\n", group->title);
        for (const struct cw_option *o = group->list; o->name; o++)
            if (o->help)
                put_text(o->help, put_names(o, to), to);
    }
    if (options->end)
        fputs(options->end, to);
}
