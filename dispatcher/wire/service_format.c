#include "dispatcher/wire/service_format.h"
#include "dispatcher/status/json_value.h"

#include <ctype.h>
#include <string.h>

const char *const service_state_words[SERVICE_STATES] = {
    [SERVICE_STOPPED] = "stopped",
    [SERVICE_RUNS] = "running",
    [SERVICE_WAITS] = "waiting",
    [SERVICE_FAILED] = "failed",
};

const char *service_text(const json_t *request, const char *key)
{
    return json_string_value(json_object_get(request, key));
}

/* --- requests --- */

static bool is_one_of(const char *text, const char *const *words)
{
    for (; text && *words; words++)
        if (strcmp(text, *words) == 0)
            return true;
    return false;
}

/* It becomes the name of a file, too. */
static bool is_name(const char *text)
{
    size_t size = text ? strlen(text) : 0;

    for (size_t i = 0; i < size; i++)
        if (!isalnum((unsigned char)text[i]) && text[i] != '-' && text[i] != '_')
            return false;
    return size > 0 && size <= SERVICE_NAME_MAX;
}

static bool is_line(const char *text, size_t max)
{
    return text && strlen(text) <= max && !strpbrk(text, "\r\n");
}

static bool are_words(const json_t *array)
{
    size_t i;
    json_t *word;

    json_array_foreach(array, i, word)
    {
        if (!is_line(json_string_value(word), SERVICE_WORD_MAX))
            return false;
    }
    return json_is_array(array) && json_array_size(array) <= SERVICE_WORDS_MAX;
}

/* In its directory there are files of others, too. */
static bool are_texts(json_t *object, size_t max)
{
    static const char *const taken[] = {"lock", "info", "log", NULL};
    const char *key;
    json_t *value;

    json_object_foreach(object, key, value)
    {
        if (!is_name(key) || is_one_of(key, taken) || !json_is_string(value))
            return false;
    }
    return json_is_object(object) && json_object_size(object) <= max;
}

static const struct rule {
    const char *key;
    enum { WORD, NAME, LINE, WORDS, TEXTS, TRUTH } kind;
    const char *one_of[4]; /* of WORD */
    size_t max;            /* of the others */
    const char *expected;
} rules[] = {
    {"op", WORD, {"start", "stop", "look"}, .expected = "start, stop or look"},
    {"grid", NAME, .expected = "a name"},
    {"site", NAME, .expected = "a name"},
    {"service", NAME, .expected = "a name"},
    /* what follows is to start it */
    {"program", WORD, {"causeway", "ssh"}, .expected = "causeway or ssh"},
    {"argv", WORDS, .expected = "some words"},
    {"env", TEXTS, .max = SERVICE_WORDS_MAX, .expected = "an object of texts"},
    {"files", TEXTS, .max = SERVICE_FILES_MAX,
     .expected = "an object of texts, with names without '.' and '/'"},
    {"address", LINE, .max = SERVICE_ADDRESS_MAX, .expected = "a text"},
    {"ready", WORD, {"descriptor", "forward"}, .expected = "descriptor or forward"},
    {"again", TRUTH, .expected = "true or false"},
};

#define RULES (sizeof(rules) / sizeof(*rules))
#define RULES_OF_ALL 4u

static bool holds(const struct rule *rule, json_t *value)
{
    const char *text = json_string_value(value);

    switch (rule->kind) {
    case WORD:
        return is_one_of(text, rule->one_of);
    case NAME:
        return is_name(text);
    case LINE:
        return is_line(text, rule->max);
    case WORDS:
        return are_words(value);
    case TEXTS:
        return are_texts(value, rule->max);
    default:
        return json_is_boolean(value);
    }
}

int service_request_check(const json_t *request, struct cw_err *err)
{
    for (size_t i = 0; i < RULES; i++) {
        if (i == RULES_OF_ALL && strcmp(service_text(request, "op"), "start") != 0)
            break;
        if (!holds(&rules[i], json_object_get(request, rules[i].key)))
            return cw_err_set(err, CW_EPROTO, "no request about a service: expected \"%s\": %s",
                              rules[i].key, rules[i].expected);
    }
    return CW_OK;
}

/* --- answers --- */

static const struct json_field fields[] = {
    JSON_FIELD(TRUTH, service_answer, well),   JSON_FIELD(NUMBER, service_answer, pid),
    JSON_FIELD(NUMBER, service_answer, since), JSON_FIELD(TEXT, service_answer, version),
    JSON_FIELD(TEXT, service_answer, address), JSON_FIELD(TEXT, service_answer, why),
    JSON_FIELD(TEXT, service_answer, note),    {0}};

void service_text_copy(char to[SERVICE_TEXT_MAX + 1], const char *from)
{
    json_text_copy(to, SERVICE_TEXT_MAX + 1, from);
}

json_t *service_answer_put(const struct service_answer *a)
{
    json_t *object = json_fields_put(fields, a), *log = json_array();

    for (uint32_t i = 0; i < a->log_lines; i++)
        json_array_append_new(log, json_string(a->log[i]));
    json_object_set_new(object, "state", json_string(service_state_words[a->state]));
    json_object_set_new(object, "log", log);
    return object;
}

static bool state_of(const char *word, enum service_state *state)
{
    for (int i = 0; word && i < SERVICE_STATES; i++)
        if (strcmp(word, service_state_words[i]) == 0) {
            *state = (enum service_state)i;
            return true;
        }
    return false;
}

int service_answer_get(struct service_answer *a, const json_t *object, struct cw_err *err)
{
    const json_t *log = json_object_get(object, "log");

    *a = (struct service_answer){0};
    json_fields_get(fields, object, a);
    if (!state_of(service_text(object, "state"), &a->state))
        return cw_err_set(err, CW_EPROTO, "what it answers says no state of a service");
    for (; a->log_lines < SERVICE_LOG_LINES_MAX && a->log_lines < json_array_size(log);
         a->log_lines++)
        service_text_copy(a->log[a->log_lines],
                          json_string_value(json_array_get(log, a->log_lines)));
    return CW_OK;
}
