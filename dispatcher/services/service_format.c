#include "dispatcher/services/service_format.h"

#include <ctype.h>
#include <string.h>

const char *const service_state_words[SERVICE_STATES] = {
    [SERVICE_STOPPED] = "stopped",
    [SERVICE_RUNS] = "running",
    [SERVICE_WAITS] = "waiting",
    [SERVICE_FAILED] = "failed",
};

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

/* Returns what is wrong with it, or NULL. */
static const char *check_start(const json_t *r)
{
    static const char *const programs[] = {"causeway", "ssh", NULL};
    static const char *const ways[] = {"descriptor", "forward", NULL};

    if (!is_one_of(service_text(r, "program"), programs))
        return "\"program\": causeway or ssh";
    if (!are_words(json_object_get(r, "argv")))
        return "\"argv\": some words";
    if (!are_texts(json_object_get(r, "env"), SERVICE_WORDS_MAX))
        return "\"env\": an object of texts";
    if (!are_texts(json_object_get(r, "files"), SERVICE_FILES_MAX))
        return "\"files\": an object of texts, with names without '.' and '/'";
    if (!is_line(service_text(r, "address"), SERVICE_ADDRESS_MAX))
        return "\"address\": a text";
    if (!is_one_of(service_text(r, "ready"), ways))
        return "\"ready\": descriptor or forward";
    return json_is_boolean(json_object_get(r, "again")) ? NULL : "\"again\": true or false";
}

static const char *check(const json_t *r)
{
    static const char *const ops[] = {"start", "stop", "look", NULL};

    if (!is_one_of(service_text(r, "op"), ops))
        return "\"op\": start, stop or look";
    if (!is_name(service_text(r, "grid")) || !is_name(service_text(r, "site")) ||
        !is_name(service_text(r, "service")))
        return "\"grid\", \"site\" and \"service\": names";
    return strcmp(service_text(r, "op"), "start") == 0 ? check_start(r) : NULL;
}

const char *service_text(const json_t *request, const char *key)
{
    return json_string_value(json_object_get(request, key));
}

json_t *service_request_read(const char *line, size_t size, struct cw_err *err)
{
    json_t *request = json_loadb(line, size, JSON_REJECT_DUPLICATES, NULL);
    const char *wrong = json_is_object(request) ? check(request) : "a JSON object";

    if (!wrong)
        return request;
    json_decref(request);
    cw_err_set(err, CW_EPROTO, "no request: expected %s", wrong);
    return NULL;
}

/* --- answers --- */

static void copy(char *to, size_t max, const char *from)
{
    size_t i;

    for (i = 0; from && from[i] && i < max; i++)
        to[i] = from[i] >= ' ' && from[i] <= '~' ? from[i] : '?';
    to[i] = '\0';
}

void service_text_copy(char to[SERVICE_TEXT_MAX + 1], const char *from)
{
    copy(to, SERVICE_TEXT_MAX, from);
}

static uint64_t number(const json_t *object, const char *key)
{
    json_int_t value = json_integer_value(json_object_get(object, key));

    return value < 0 ? 0 : (uint64_t)value;
}

/* NULL gives no memory. Takes the reference. */
static char *dump(json_t *object)
{
    char *text = object ? json_dumps(object, JSON_COMPACT) : NULL;

    json_decref(object);
    return text;
}

char *service_hello_print(const struct service_hello *hello)
{
    return dump(json_pack("{s:s, s:I, s:s}", "causeway", hello->version, "services",
                          (json_int_t)hello->protocol, "host", hello->host));
}

char *service_answer_print(const struct service_answer *a)
{
    json_t *log = json_array();

    for (uint32_t i = 0; i < a->log_lines; i++)
        json_array_append_new(log, json_string(a->log[i]));
    return dump(json_pack("{s:s, s:b, s:I, s:I, s:s, s:s, s:s, s:s, s:o}", "state",
                          service_state_words[a->state], "well", a->well, "pid", (json_int_t)a->pid,
                          "since", (json_int_t)a->since, "version", a->version, "address",
                          a->address, "why", a->why, "note", a->note, "log", log));
}

int service_hello_read(struct service_hello *hello, const char *line, size_t size,
                       struct cw_err *err)
{
    json_t *object = json_loadb(line, size, 0, NULL);

    *hello = (struct service_hello){.protocol = number(object, "services")};
    service_text_copy(hello->version, service_text(object, "causeway"));
    service_text_copy(hello->host, service_text(object, "host"));
    json_decref(object);
    return hello->version[0] ? CW_OK
                             : cw_err_set(err, CW_EPROTO, "it does not say which version it is");
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

static void read_log(struct service_answer *a, const json_t *log)
{
    size_t i;
    json_t *line;

    json_array_foreach(log, i, line)
    {
        if (a->log_lines == SERVICE_LOG_LINES_MAX)
            return;
        service_text_copy(a->log[a->log_lines++], json_string_value(line));
    }
}

int service_answer_read(struct service_answer *a, const char *line, size_t size, struct cw_err *err)
{
    json_t *object = json_loadb(line, size, 0, NULL);

    *a = (struct service_answer){.well = json_is_true(json_object_get(object, "well")),
                                 .pid = number(object, "pid"),
                                 .since = number(object, "since")};
    if (!state_of(service_text(object, "state"), &a->state)) {
        json_decref(object);
        return cw_err_set(err, CW_EPROTO, "what it answers says no state of a service");
    }
    service_text_copy(a->version, service_text(object, "version"));
    copy(a->address, SERVICE_ADDRESS_MAX, service_text(object, "address"));
    service_text_copy(a->why, service_text(object, "why"));
    service_text_copy(a->note, service_text(object, "note"));
    read_log(a, json_object_get(object, "log"));
    json_decref(object);
    return CW_OK;
}
