#include "dispatcher/hosts/settings.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define LETTERS "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
#define PLACE_MAX 160 /* bytes of a setting's place in a message */
#define VALUE_MAX 100 /* ... and of its value; what is longer is cut */
#define EXPECTED_MAX 300

struct kind {
    const char *what;
    bool (*is)(const config_setting_t *setting);
};

static bool is_text(const config_setting_t *setting)
{
    return config_setting_type(setting) == CONFIG_TYPE_STRING;
}

static bool is_number(const config_setting_t *setting)
{
    int type = config_setting_type(setting);

    return type == CONFIG_TYPE_INT || type == CONFIG_TYPE_INT64;
}

static bool is_group(const config_setting_t *setting)
{
    return config_setting_is_group(setting);
}

static bool all_are(const config_setting_t *list, bool (*is)(const config_setting_t *))
{
    for (int i = 0; i < config_setting_length(list); i++)
        if (!is(config_setting_get_elem(list, (unsigned)i)))
            return false;
    return true;
}

static bool is_groups(const config_setting_t *setting)
{
    return config_setting_is_list(setting) && all_are(setting, is_group);
}

static bool is_names(const config_setting_t *setting)
{
    return (config_setting_is_array(setting) || config_setting_is_list(setting)) &&
           all_are(setting, is_text);
}

static const struct kind kinds[] = {
    [SETTINGS_TEXT] = {"a text in double quotes", is_text},
    [SETTINGS_NAME] = {"a text in double quotes", is_text},
    [SETTINGS_NUMBER] = {"a whole number", is_number},
    [SETTINGS_PORT] = {"a whole number", is_number},
    [SETTINGS_GROUP] = {"a group, { name = value; ... }", is_group},
    [SETTINGS_GROUPS] = {"a list of groups, ( { ... }, { ... } )", is_groups},
    [SETTINGS_NAMES] = {"a list of names, [ \"a\", \"b\" ]", is_names},
};

/* --- messages --- */

/* What an element of a list is called: as it says itself, or by its number. */
static void put_element(FILE *to, const config_setting_t *setting)
{
    const char *name = NULL;

    if (is_group(setting) && config_setting_lookup_string(setting, "name", &name))
        fputs(name, to);
    else
        fprintf(to, "%d", config_setting_index(setting) + 1);
}

static void put_place(FILE *to, const config_setting_t *setting)
{
    const config_setting_t *parent = config_setting_parent(setting);

    if (!parent)
        return;
    put_place(to, parent);
    if (!config_setting_is_root(parent))
        fputc('.', to);
    if (config_setting_name(setting))
        fputs(config_setting_name(setting), to);
    else
        put_element(to, setting);
}

static void put_value(FILE *to, const config_setting_t *setting)
{
    switch (config_setting_type(setting)) {
    case CONFIG_TYPE_STRING:
        fprintf(to, " = \"%s\"", config_setting_get_string(setting));
        break;
    case CONFIG_TYPE_INT:
    case CONFIG_TYPE_INT64:
        fprintf(to, " = %lld", config_setting_get_int64(setting));
        break;
    case CONFIG_TYPE_FLOAT:
        fprintf(to, " = %g", config_setting_get_float(setting));
        break;
    case CONFIG_TYPE_BOOL:
        fprintf(to, " = %s", config_setting_get_bool(setting) ? "true" : "false");
        break;
    default:
        break; /* it has others in it */
    }
}

/* The first bytes of what `put` writes. */
static void cut(char *text, size_t size, const config_setting_t *setting,
                void (*put)(FILE *, const config_setting_t *))
{
    FILE *to = fmemopen(text, size, "w");

    text[0] = '\0';
    if (!to)
        return;
    put(to, setting);
    fclose(to);
    text[size - 1] = '\0';
}

int settings_fail(const struct settings *s, const config_setting_t *at, const char *expected, ...)
{
    char place[PLACE_MAX], value[VALUE_MAX], text[EXPECTED_MAX];
    va_list ap;

    va_start(ap, expected);
    vsnprintf(text, sizeof(text), expected, ap);
    va_end(ap);
    if (config_setting_is_root(at))
        return cw_err_set(s->err, CW_EINVAL, "%s: %s", s->file, text);
    cut(place, sizeof(place), at, put_place);
    cut(value, sizeof(value), at, put_value);
    return cw_err_set(s->err, CW_EINVAL, "%s, line %u: %s%s: %s", s->file,
                      config_setting_source_line(at), place, value, text);
}

/* --- what is there --- */

static int fail_unknown(const struct settings *s, const config_setting_t *at,
                        const struct settings_member *known)
{
    char names[EXPECTED_MAX - 64];
    size_t used = 0;

    names[0] = '\0';
    for (; known->name && used < sizeof(names); known++)
        used += (size_t)snprintf(names + used, sizeof(names) - used, "%s%s", used ? ", " : "",
                                 known->name);
    return settings_fail(s, at, "there is no such setting; expected %s", names);
}

static int check_names(const struct settings *s, const config_setting_t *group,
                       const struct settings_member *known)
{
    for (int i = 0; i < config_setting_length(group); i++) {
        const config_setting_t *member = config_setting_get_elem(group, (unsigned)i);
        const struct settings_member *m = known;

        while (m->name && strcmp(config_setting_name(member), m->name) != 0)
            m++;
        if (!m->name)
            return fail_unknown(s, member, known);
    }
    return CW_OK;
}

static int read_text(const struct settings *s, const struct settings_member *m,
                     const config_setting_t *at, char *to)
{
    const char *text = config_setting_get_string(at);

    if (!text[0] || strlen(text) > m->max)
        return settings_fail(s, at, "expected a text of 1 to %u bytes", m->max);
    if (m->kind == SETTINGS_NAME && (text[0] == '-' || text[strspn(text, LETTERS "-_")]))
        return settings_fail(s, at, "expected letters, digits, '-' and '_', no '-' first");
    strcpy(to, text);
    return CW_OK;
}

static int read_number(const struct settings *s, const struct settings_member *m,
                       const config_setting_t *at, void *to)
{
    long long value = config_setting_get_int64(at);

    if (value < m->min || value > m->max)
        return settings_fail(s, at, "expected a whole number from %u to %u", m->min, m->max);
    if (m->kind == SETTINGS_PORT)
        *(uint16_t *)to = (uint16_t)value;
    else
        *(uint32_t *)to = (uint32_t)value;
    return CW_OK;
}

static int read_member(const struct settings *s, const config_setting_t *group,
                       const struct settings_member *m, void *to)
{
    const config_setting_t *at = config_setting_get_member(group, m->name);

    if (!at && m->needed)
        return settings_fail(s, group, "'%s' is missing; expected %s", m->name,
                             kinds[m->kind].what);
    if (at && !kinds[m->kind].is(at))
        return settings_fail(s, at, "expected %s", kinds[m->kind].what);
    if (!at || m->max == 0)
        return CW_OK;
    return m->kind <= SETTINGS_NAME ? read_text(s, m, at, (char *)to + m->at)
                                    : read_number(s, m, at, (char *)to + m->at);
}

int settings_read(const struct settings *s, const config_setting_t *group,
                  const struct settings_member *known, void *to)
{
    int result = check_names(s, group, known);

    for (const struct settings_member *m = known; m->name && result == CW_OK; m++)
        result = read_member(s, group, m, to);
    return result;
}
