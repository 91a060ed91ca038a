#include "dispatcher/wire/node_frames.h"

#include <stdlib.h>
#include <string.h>

static void put_text(struct cw_writer *w, const char *text)
{
    size_t size = strlen(text);

    cw_put_u16(w, (uint16_t)size);
    cw_put_bytes(w, text, size);
}

/* Into `max` + 1 bytes. */
static void get_text(struct cw_reader *r, char *text, size_t max)
{
    size_t size = cw_get_u16(r);

    text[0] = '\0';
    if (size > max)
        r->bad = true;
    if (r->bad)
        return;
    cw_get_copy(r, text, size);
    text[size] = '\0';
    if (strlen(text) != size)
        r->bad = true;
}

/* --- events --- */

size_t node_event_put(uint8_t *to, const struct node_event *v)
{
    struct cw_writer w = cw_writer(to, NODE_EVENT_MAX);

    cw_put_u32(&w, v->of);
    cw_put_u32(&w, v->value);
    cw_put_bytes(&w, v->text, strnlen(v->text, CW_ERR_TEXT_MAX - 1));
    return w.used;
}

void node_event_send(struct mux *mux, uint32_t type, uint32_t of, uint32_t value, const char *text)
{
    struct node_event event = {.of = of, .value = value};
    uint8_t body[NODE_EVENT_MAX];
    struct cw_err err;

    strncpy(event.text, text, sizeof(event.text) - 1);
    mux_send(mux, type, body, node_event_put(body, &event), &err);
}

bool node_event_get(const uint8_t *from, size_t size, struct node_event *v)
{
    struct cw_reader r = cw_reader(from, size);

    v->of = cw_get_u32(&r);
    v->value = cw_get_u32(&r);
    cw_get_text(&r, v->text, CW_ERR_TEXT_MAX - 1);
    return cw_reader_end(&r);
}

/* --- starts --- */

size_t node_start_put(uint8_t *to, const struct node_start *v)
{
    struct cw_writer w = cw_writer(to, NODE_START_MAX);

    cw_put_u32(&w, v->start);
    cw_put_u32(&w, v->program);
    cw_put_u32(&w, v->flags);
    cw_put_u32(&w, v->setup.local_rank);
    cw_put_u32(&w, v->setup.local_ranks);
    return w.used + cw_setup_put(to + w.used, &v->setup);
}

bool node_start_get(const uint8_t *from, size_t size, struct node_start *v)
{
    struct cw_reader r = cw_reader(from, size);

    v->start = cw_get_u32(&r);
    v->program = cw_get_u32(&r);
    v->flags = cw_get_u32(&r);
    v->setup.local_rank = cw_get_u32(&r);
    v->setup.local_ranks = cw_get_u32(&r);
    return !r.bad && v->setup.local_rank < v->setup.local_ranks && v->start < NODE_STARTS_MAX &&
           v->program > 0 && v->program < NODE_BLOBS_MAX &&
           (v->flags & ~(NODE_START_READS | NODE_START_FROM_IMAGE)) == 0 &&
           cw_setup_get(r.at, r.left, &v->setup);
}

/* --- units --- */

static bool add_word(struct node_unit *v, const char *word)
{
    size_t size = strlen(word) + 1;

    if (v->count == NODE_WORDS_MAX || size > sizeof(v->words) - v->used)
        return false;
    memcpy(v->words + v->used, word, size);
    v->used += (uint32_t)size;
    v->count++;
    return true;
}

bool node_unit_option(struct node_unit *v, const char *option, const char *value)
{
    return add_word(v, option) && add_word(v, value);
}

size_t node_unit_put(uint8_t *to, const struct node_unit *v)
{
    struct cw_writer w = cw_writer(to, NODE_UNIT_MAX);

    cw_put_u32(&w, v->number);
    cw_put_u32(&w, v->kind);
    cw_put_u32(&w, v->flags);
    cw_put_bytes(&w, v->key, sizeof(v->key));
    cw_put_u32(&w, v->copies);
    cw_put_u32(&w, v->from);
    cw_put_u64(&w, v->bytes_max);
    put_text(&w, v->dir);
    put_text(&w, v->listen);
    cw_put_bytes(&w, v->words, v->used);
    return w.used;
}

bool node_unit_get(const uint8_t *from, size_t size, struct node_unit *v)
{
    struct cw_reader r = cw_reader(from, size);
    const char *at, *end;

    memset(v, 0, sizeof(*v));
    v->number = cw_get_u32(&r);
    v->kind = cw_get_u32(&r);
    v->flags = cw_get_u32(&r);
    cw_get_copy(&r, v->key, sizeof(v->key));
    v->copies = cw_get_u32(&r);
    v->from = cw_get_u32(&r);
    v->bytes_max = cw_get_u64(&r);
    get_text(&r, v->dir, sizeof(v->dir) - 1);
    get_text(&r, v->listen, sizeof(v->listen) - 1);
    for (at = (const char *)r.at; !r.bad && r.left > 0; at = (const char *)r.at) {
        end = memchr(at, '\0', r.left);
        if (!end || !add_word(v, at))
            return false;
        cw_get_bytes(&r, (size_t)(end - at) + 1);
    }
    return cw_reader_end(&r) && v->number < NODE_UNITS_MAX && v->kind < NODE_UNIT_KINDS &&
           v->copies <= CW_RELAYS_MAX && v->from < CW_RELAYS_MAX &&
           (v->flags & ~(NODE_UNIT_RETURNS | NODE_UNIT_KEPT | NODE_UNIT_COPIED)) == 0;
}

/* --- programs that are sent --- */

size_t node_stage_put(uint8_t *to, const struct node_stage *v)
{
    struct cw_writer w = cw_writer(to, NODE_STAGE_MAX);

    cw_put_u32(&w, v->number);
    cw_put_u64(&w, v->program.size);
    cw_put_u64(&w, v->program.mtime_ns);
    cw_put_u32(&w, v->program.mode);
    cw_put_bytes(&w, v->program.hash, STAGE_HASH_BYTES);
    put_text(&w, v->program.dir);
    put_text(&w, v->program.name);
    return w.used;
}

bool node_stage_get(const uint8_t *from, size_t size, struct node_stage *v)
{
    struct cw_reader r = cw_reader(from, size);

    memset(v, 0, sizeof(*v));
    v->number = cw_get_u32(&r);
    v->program.size = cw_get_u64(&r);
    v->program.mtime_ns = cw_get_u64(&r);
    v->program.mode = cw_get_u32(&r);
    cw_get_copy(&r, v->program.hash, STAGE_HASH_BYTES);
    get_text(&r, v->program.dir, STAGE_DIR_MAX);
    get_text(&r, v->program.name, STAGE_NAME_MAX);
    return cw_reader_end(&r) && v->number < NODE_STAGES_MAX && stage_program_is_valid(&v->program);
}

/* --- reports --- */

void node_report_change(uint8_t *record, size_t size, const struct cw_report *report)
{
    uint8_t bytes[CW_SETUP_MAX];
    size_t changed = report->kind == CW_REPORT_FILE
                         ? cw_report_put_file(bytes, &report->opening, report->text)
                         : cw_report_put_image(bytes, report->kind, &report->image, report->text);

    if (changed == size)
        memcpy(record, bytes, size);
}

/* --- programs --- */

#define HEAD_TEXTS 4u /* path, working directory, device, restorer */
#define COUNTS 3u     /* arguments, environment of all, environment of this one */
#define MANNERS 2u    /* umask, niceness + 20 */
#define MANNER_NICE 20

static uint32_t argument_count(const struct launch_program *p)
{
    uint32_t count = 0;

    while (p->argv && p->argv[count])
        count++;
    return count;
}

static const char *text_or_none(const char *text)
{
    return text ? text : "";
}

/* Each text with its end. `w` may be one that only counts: of no size. */
static void put_texts(struct cw_writer *w, size_t *size, const char *const *texts, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        cw_put_bytes(w, texts[i], strlen(texts[i]) + 1);
        *size += strlen(texts[i]) + 1;
    }
}

static size_t put_program(uint8_t *to, size_t room, const struct launch_program *p,
                          const char *wdir)
{
    const char *head[HEAD_TEXTS] = {p->path, wdir, p->device_path, p->restore_path};
    struct cw_writer w = cw_writer(to, room);
    size_t size = (COUNTS + MANNERS) * sizeof(uint32_t);

    for (uint32_t i = 0; i < HEAD_TEXTS; i++)
        head[i] = text_or_none(head[i]);
    cw_put_u32(&w, argument_count(p));
    cw_put_u32(&w, p->env_count);
    cw_put_u32(&w, p->more_count);
    cw_put_u32(&w, p->umask);
    cw_put_u32(&w, (uint32_t)(p->niceness + MANNER_NICE));
    put_texts(&w, &size, head, HEAD_TEXTS);
    put_texts(&w, &size, (const char *const *)p->argv, argument_count(p));
    put_texts(&w, &size, p->env, p->env_count);
    put_texts(&w, &size, p->more, p->more_count);
    return size;
}

uint8_t *node_program_put(const struct launch_program *p, const char *wdir, size_t *size)
{
    uint8_t *bytes = NULL;

    *size = put_program(NULL, 0, p, wdir);
    if (*size <= NODE_BLOB_MAX)
        bytes = malloc(*size);
    if (bytes)
        put_program(bytes, *size, p, wdir);
    return bytes;
}

static const char *next_text(struct cw_reader *r)
{
    const char *text = (const char *)r->at;
    const char *end = r->left ? memchr(text, '\0', r->left) : NULL;

    if (!end)
        r->bad = true;
    return r->bad ? NULL : (cw_get_bytes(r, (size_t)(end - text) + 1), text);
}

/* Returns where the list is in p->lists, with NULL at its end. */
static const char **next_list(struct cw_reader *r, const char ***at, uint32_t count)
{
    const char **list = *at;

    for (uint32_t i = 0; i < count; i++)
        *(*at)++ = next_text(r);
    *(*at)++ = NULL;
    return list;
}

static const char *some(const char *text)
{
    return text && text[0] ? text : NULL;
}

int node_program_get(const uint8_t *bytes, size_t size, struct node_program *p, struct cw_err *err)
{
    struct cw_reader r = cw_reader(bytes, size);
    uint32_t count[COUNTS];
    uint32_t mask, niceness;
    uint64_t all = 0;
    const char **at;

    *p = (struct node_program){0};
    for (uint32_t i = 0; i < COUNTS; i++)
        all += count[i] = cw_get_u32(&r);
    mask = cw_get_u32(&r);
    niceness = cw_get_u32(&r);
    /* each text has an end at least */
    if (r.bad || size > NODE_BLOB_MAX || all > r.left || mask > 0777 || niceness >= 2 * MANNER_NICE)
        return cw_err_set(err, CW_EPROTO, "a program that is cut off");
    p->bytes = malloc(r.left + 1);
    p->lists = calloc(all + COUNTS, sizeof(*p->lists));
    if (!p->bytes || !p->lists) {
        node_program_free(p);
        return cw_err_set(err, CW_ENOMEM, "no memory for a program");
    }
    memcpy(p->bytes, r.at, r.left);
    r = cw_reader(p->bytes, r.left);
    p->of.path = next_text(&r);
    p->of.wdir = some(next_text(&r));
    p->of.device_path = next_text(&r);
    p->of.restore_path = some(next_text(&r));
    at = p->lists;
    p->of.argv = (char *const *)next_list(&r, &at, count[0]);
    p->of.env = next_list(&r, &at, count[1]);
    p->of.env_count = count[1];
    p->of.more = next_list(&r, &at, count[2]);
    p->of.more_count = count[2];
    p->of.umask = mask;
    p->of.niceness = (int32_t)niceness - MANNER_NICE;
    if (cw_reader_end(&r))
        return CW_OK;
    node_program_free(p);
    return cw_err_set(err, CW_EPROTO, "a program that is cut off");
}

void node_program_free(struct node_program *p)
{
    free(p->bytes);
    free(p->lists);
    *p = (struct node_program){0};
}

size_t node_part_put(uint8_t *to, const struct node_part *v)
{
    struct cw_writer w = cw_writer(to, NODE_PART_HEADER + NODE_BLOB_PART);

    cw_put_u32(&w, v->number);
    cw_put_u32(&w, v->size);
    cw_put_bytes(&w, v->bytes, v->part);
    return w.used;
}

bool node_part_get(const uint8_t *from, size_t size, struct node_part *v)
{
    struct cw_reader r = cw_reader(from, size);

    v->number = cw_get_u32(&r);
    v->size = cw_get_u32(&r);
    v->part = r.left;
    v->bytes = r.at;
    return !r.bad && v->number < NODE_BLOBS_MAX && v->size <= NODE_BLOB_MAX && v->part > 0 &&
           v->part <= v->size;
}
