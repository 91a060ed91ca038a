#include "dispatcher/doctor/report.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const struct {
    const char *key;
    size_t at; /* in struct report */
} texts[] = {
    {"version", offsetof(struct report, version)}, {"path", offsetof(struct report, path)},
    {"name", offsetof(struct report, name)},       {"machine", offsetof(struct report, machine)},
    {"mpich", offsetof(struct report, mpich)},     {"peer", offsetof(struct report, peer)},
    {"own", offsetof(struct report, own)},         {"system", offsetof(struct report, system)},
};

void report_init(struct report *r)
{
    *r = (struct report){0};
    marker_init(&r->marker, REPORT_MARKER);
}

void report_free(struct report *r)
{
    findings_free(&r->findings);
}

/* --- parts of a line --- */

static void take_text(char to[REPORT_TEXT_MAX + 1], const char *text)
{
    size_t size = strnlen(text, REPORT_TEXT_MAX);

    memcpy(to, text, size);
    to[size] = '\0';
}

/* The next word of *at, as a number. */
static bool take_number(const char **at, int base, uint64_t max, uint64_t *value)
{
    char *end;

    *at += strspn(*at, " ");
    if (!isxdigit((unsigned char)**at))
        return false;
    errno = 0;
    *value = strtoull(*at, &end, base);
    if (errno || *value > max || end == *at || (*end && *end != ' '))
        return false;
    *at = end;
    return true;
}

static void take_features(struct report_features *f, const char *text)
{
    uint64_t value;

    *f = (struct report_features){.known = true};
    for (int i = 0; i < REPORT_FEATURE_WORDS; i++) {
        f->known &= take_number(&text, 16, UINT32_MAX, &value);
        f->word[i] = f->known ? (uint32_t)value : 0;
    }
    f->known &= take_number(&text, 16, UINT64_MAX, &f->xcr0);
}

/* Nobody asks for what is well: there is much of it. */
static void take_finding(struct report *r, const char *text)
{
    size_t size = strcspn(text, " ");
    enum doctor_level level;

    if (doctor_level_of(text, size, &level) && level != DOCTOR_OK)
        findings_add(&r->findings, level, "%s", text + size + strspn(text + size, " "));
}

static void take_answer(struct report *r, bool well, const char *text)
{
    r->answer = (struct report_answer){.well = well};
    r->answers++;
    if (!well)
        take_text(r->answer.text, text);
    else
        take_number(&text, 10, UINT64_MAX, &r->answer.value);
}

/* --- lines --- */

static bool is_key(const char *line, size_t size, const char *key)
{
    return strlen(key) == size && memcmp(line, key, size) == 0;
}

/* One of another key is of another version. */
static void take_line(struct report *r)
{
    size_t size = strcspn(r->line, " ");
    const char *rest = r->line + size + strspn(r->line + size, " ");

    for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++)
        if (is_key(r->line, size, texts[i].key))
            take_text((char *)r + texts[i].at, rest);
    if (is_key(r->line, size, "cores"))
        take_number(&rest, 10, UINT32_MAX, &r->cores);
    else if (is_key(r->line, size, "memory"))
        take_number(&rest, 10, UINT64_MAX, &r->memory_mb);
    else if (is_key(r->line, size, "features"))
        take_features(&r->features, rest);
    else if (is_key(r->line, size, "finding"))
        take_finding(r, rest);
    else if (is_key(r->line, size, "ready"))
        r->ready = true;
    else if (is_key(r->line, size, "done"))
        take_answer(r, true, rest);
    else if (is_key(r->line, size, "failed"))
        take_answer(r, false, rest);
}

static void take_byte(struct report *r, char byte)
{
    if (byte == '\n') {
        r->line[r->used] = '\0';
        r->used = 0;
        take_line(r);
    } else if (r->used < REPORT_LINE_MAX) {
        r->line[r->used++] = byte >= ' ' && byte <= '~' ? byte : '?';
    }
}

int report_take(struct report *r, const void *bytes, size_t size, struct cw_err *err)
{
    const char *at = bytes;

    for (; size > 0 && !r->begun; at++, size--) {
        r->begun = marker_take(&r->marker, (uint8_t)*at);
        if (r->marker.noise > MARKER_NOISE_MAX)
            return cw_err_set(err, CW_EPROTO, "more than %u bytes came, none of them of Causeway",
                              MARKER_NOISE_MAX);
    }
    if (size > REPORT_BYTES_MAX - r->bytes)
        return cw_err_set(err, CW_EPROTO, "its report is longer than %u bytes", REPORT_BYTES_MAX);
    r->bytes += size;
    for (size_t i = 0; i < size; i++)
        take_byte(r, at[i]);
    return CW_OK;
}
