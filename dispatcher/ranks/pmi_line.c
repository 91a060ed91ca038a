#include "dispatcher/ranks/pmi_line.h"

#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define QUOTED_BYTES 80 /* of a bad line, in an error text */
#define WIRE_VERSION 1
#define WIRE_SUBVERSION 1
#define TEXT_OF(number) #number
#define TEXT(number) TEXT_OF(number)

/* A client writes its value into a buffer of PMI_LINE_MAX; it stops on less than this. */
_Static_assert(PMI_VALLEN_MAX > 256, "MPICH wants more than 256 bytes for a value");
/* MPICH cuts what is longer at (max - 2) / 2 when it puts, at (max - 1) / 2 when it gets. */
_Static_assert(PMI_VALLEN_MAX % 2 == 0, "an odd size makes MPICH cut values in two ways");
_Static_assert(PMI_VALLEN_MAX == 482, "as the answer to get_maxes says");

#define SPACE_AND_KEY "expected kvsname= and key= of at most 255 bytes"
#define SERVICE "expected service="

/* How each request is written, and its answer. */
static const struct form {
    const char *name;
    const char *answer;
    bool judged;      /* the answer says whether it was done */
    const char *tail; /* ... and, if so, this and its value */
    const char *key;  /* the request must have this, ... */
    const char *no_key;
    const char *value; /* ... and this */
    const char *no_value;
} forms[PMI_WHATS] = {
    [PMI_LIMITS] = {"get_maxes", "maxes", false,
                    " kvsname_max=" TEXT(PMI_KVSNAME_MAX) " keylen_max=" TEXT(
                        PMI_KEYLEN_MAX) " vallen_max=482"},
    [PMI_APPNUM] = {"get_appnum", "appnum", false, " appnum="},
    [PMI_SPACE] = {"get_my_kvsname", "my_kvsname", false, " kvsname="},
    [PMI_SIZE] = {"get_universe_size", "universe_size", false, " size="},
    [PMI_GET] = {"get", "get_result", true, " value=", "key", SPACE_AND_KEY},
    [PMI_SPAWN] = {NULL, "spawn_result", true},
    [PMI_ABORT] = {"abort"},
    [PMI_INIT] = {"init", "response_to_init", true,
                  " pmi_version=" TEXT(WIRE_VERSION) " pmi_subversion=" TEXT(WIRE_SUBVERSION)},
    [PMI_PUT] = {"put", "put_result", true, NULL, "key", SPACE_AND_KEY, "value",
                 "expected value= within vallen_max"},
    [PMI_FENCE] = {"barrier_in", "barrier_out"},
    [PMI_FINALIZE] = {"finalize", "finalize_ack"},
    [PMI_PUBLISH] = {"publish_name", "publish_result", true, NULL, "service", SERVICE, "port",
                     "expected port= within vallen_max"},
    [PMI_LOOKUP] = {"lookup_name", "lookup_result", true, " port=", "service", SERVICE},
    [PMI_UNPUBLISH] = {"unpublish_name", "unpublish_result", true, NULL, "service", SERVICE},
};

size_t pmi_line_put(char line[PMI_LINE_MAX], const struct pmi_answer *answer)
{
    const struct form *form = &forms[answer->what];
    bool init = answer->what == PMI_INIT; /* has no msg=, and says our version in any case */
    bool tells = form->judged && !init;
    bool has_tail = form->tail && (!answer->problem || init);
    int size;

    size = snprintf(line, PMI_LINE_MAX, "cmd=%s%s%s%s%s%s\n", form->answer,
                    !form->judged     ? ""
                    : answer->problem ? " rc=-1"
                                      : " rc=0",
                    tells ? " msg=" : "",
                    !tells            ? ""
                    : answer->problem ? answer->problem
                                      : "success",
                    has_tail ? form->tail : "", has_tail && answer->value ? answer->value : "");
    assert(size > 0 && size < PMI_LINE_MAX);
    return (size_t)size;
}

/* ---- a line, taken apart ---- */

struct field {
    const char *key;
    const char *value;
};

struct fields {
    struct field of[PMI_FIELDS_MAX];
    size_t count;
};

/* Cuts "k=v k=v" in place. A word without '=' belongs to the value before it: the name of a service
 * may have blanks, and PMI-1 has no quotes. False: it is no such line. */
static bool split(struct fields *fields, char *text)
{
    char *end = text; /* of the last word */

    fields->count = 0;
    for (;;) {
        char *word = end + strspn(end, " ");
        size_t size = strcspn(word, " ");
        char *equals = memchr(word, '=', size);

        if (size == 0)
            break;
        if (equals == word || (!equals && fields->count == 0))
            return false;
        if (equals) {
            if (fields->count == PMI_FIELDS_MAX)
                return false;
            if (fields->count)
                *end = '\0';
            *equals = '\0';
            fields->of[fields->count++] = (struct field){.key = word, .value = equals + 1};
        }
        end = word + size;
    }
    *end = '\0';
    return fields->count > 0;
}

/* NULL: there is none. */
static const char *find(const struct fields *fields, const char *key)
{
    for (size_t i = 0; key && i < fields->count; i++)
        if (strcmp(fields->of[i].key, key) == 0)
            return fields->of[i].value;
    return NULL;
}

/* False when it is no decimal number of an int; NULL is none. */
static bool read_int(const char *text, int *value)
{
    char *end;
    long v;

    if (!text || !*text)
        return false;
    errno = 0;
    v = strtol(text, &end, 10);
    if (*end || errno || v < INT_MIN || v > INT_MAX)
        return false;
    *value = (int)v;
    return true;
}

/* Returns what is wrong; NULL: nothing. */
static const char *read_numbers(struct pmi_request *request, const struct fields *fields)
{
    const char *code = find(fields, "exitcode");
    int version;
    int subversion;

    if (request->what == PMI_ABORT) {
        request->code = 1;
        return code && !read_int(code, &request->code) ? "exitcode= is no number" : NULL;
    }
    if (request->what != PMI_INIT)
        return NULL;
    if (!read_int(find(fields, "pmi_version"), &version) ||
        !read_int(find(fields, "pmi_subversion"), &subversion))
        return "expected pmi_version= and pmi_subversion=";
    request->code = version != WIRE_VERSION || subversion < 0 || subversion > WIRE_SUBVERSION;
    return NULL;
}

/* Likewise. */
static const char *read_request(struct pmi_request *request, const struct fields *fields)
{
    const struct form *form = forms;
    bool spaced;

    while (form < forms + PMI_WHATS &&
           (!form->name || strcmp(form->name, fields->of[0].value) != 0))
        form++;
    if (form == forms + PMI_WHATS)
        return "unknown command; Causeway speaks PMI-1 as MPICH does: is the program linked "
               "against MPICH?";
    request->what = (enum pmi_what)(form - forms);
    request->key = find(fields, form->key);
    request->value = find(fields, form->value);
    spaced = request->what == PMI_GET || request->what == PMI_PUT;
    if (spaced)
        request->space = find(fields, "kvsname");
    if (form->key && (!request->key || !*request->key))
        return form->no_key;
    if (spaced && (!request->space || strlen(request->key) >= PMI_KEYLEN_MAX))
        return form->no_key;
    if (form->value && (!request->value || strlen(request->value) >= PMI_VALLEN_MAX))
        return form->no_value;
    return read_numbers(request, fields);
}

/* ---- lines, one after the other ---- */

/* mcmd=spawn: one value a line, until endcmd. MPI_Comm_spawn_multiple sends a block for each
 * command and reads one answer, after the last. */
static const char *take_spawn_line(struct pmi_lines *lines, struct pmi *pmi,
                                   struct cw_process process)
{
    const char *equals = strchr(lines->text, '=');

    if (strcmp(lines->text, "endcmd") == 0) {
        lines->spawning = false;
        return lines->spawns_sofar < lines->spawns_total
                   ? NULL
                   : pmi_ask(pmi, process, &(struct pmi_request){.what = PMI_SPAWN});
    }
    if (!equals || equals == lines->text)
        return "expected KEY=VALUE or endcmd after mcmd=spawn";
    if (++lines->spawn_lines > PMI_SPAWN_LINES_MAX)
        return "too many lines after mcmd=spawn";
    if (strncmp(lines->text, "totspawns=", 10) == 0)
        lines->spawns_total = strtol(equals + 1, NULL, 10);
    else if (strncmp(lines->text, "spawnssofar=", 12) == 0)
        lines->spawns_sofar = strtol(equals + 1, NULL, 10);
    return NULL;
}

/* Returns what is wrong with the line that stands there; NULL: nothing. */
static const char *take_line(struct pmi_lines *lines, struct pmi *pmi, struct cw_process process)
{
    struct pmi_request request = {0};
    char cut[PMI_LINE_MAX];
    struct fields fields;
    const char *problem;

    if (lines->spawning)
        return take_spawn_line(lines, pmi, process);
    if (!split(&fields, strcpy(cut, lines->text)))
        return "expected cmd=NAME KEY=VALUE ...";
    if (strcmp(lines->text, "mcmd=spawn") == 0) {
        lines->spawning = true;
        lines->spawn_lines = 0;
        lines->spawns_total = lines->spawns_sofar = 0;
        return NULL;
    }
    if (strcmp(fields.of[0].key, "cmd") != 0)
        return "expected cmd=NAME or mcmd=spawn at its start";
    problem = read_request(&request, &fields);
    return problem ? problem : pmi_ask(pmi, process, &request);
}

/* Takes the next line, or the start of one, off what came. Returns what is wrong; NULL: nothing. */
static const char *take_next(struct pmi_lines *lines, struct pmi *pmi, struct cw_process process,
                             const char **bytes, size_t *size)
{
    const char *newline = memchr(*bytes, '\n', *size);
    size_t part = newline ? (size_t)(newline - *bytes) : *size;
    size_t room = PMI_LINE_MAX - 1 - lines->used;
    size_t fits = part < room ? part : room;
    const char *problem = NULL;

    memcpy(lines->text + lines->used, *bytes, fits);
    lines->used += fits;
    lines->text[lines->used] = '\0';
    if (fits < part)
        return "longer than 1024 bytes";
    if (memchr(lines->text, '\0', lines->used))
        return "a zero byte follows";
    if (newline) {
        problem = take_line(lines, pmi, process);
        part++;
    }
    if (newline && !problem)
        lines->used = 0;
    *bytes += part;
    *size -= part;
    return problem;
}

/* Sets CW_EPROTO: "rank 3: PMI line 'cmd=...': why". */
static int refuse(struct cw_err *err, uint32_t rank, const char *text, const char *why)
{
    char quoted[QUOTED_BYTES + 1];
    size_t i;

    for (i = 0; text[i] && i < QUOTED_BYTES; i++)
        quoted[i] = text[i] >= ' ' && text[i] <= '~' ? text[i] : '?';
    quoted[i] = '\0';
    return cw_err_set(err, CW_EPROTO, "rank %u: PMI line '%s%s': %s", rank, quoted,
                      text[i] ? "..." : "", why);
}

int pmi_lines_take(struct pmi_lines *lines, struct pmi *pmi, struct cw_process process,
                   const char *bytes, size_t size, struct cw_err *err)
{
    err->code = CW_OK;
    while (size) {
        const char *problem = take_next(lines, pmi, process, &bytes, &size);

        if (problem) {
            lines->used = 0;
            return refuse(err, process.rank, lines->text, problem);
        }
    }
    return CW_OK;
}
