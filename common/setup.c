#include "common/setup.h"

#define FIXED offsetof(struct cw_setup, local_rank)

_Static_assert(FIXED == 5560, "it is sent as it stands");

size_t cw_setup_put(uint8_t *to, const struct cw_setup *v)
{
    struct cw_setup fixed = *v;
    struct cw_writer w = cw_writer(to, CW_SETUP_MAX);

    fixed.magic = CW_SETUP_MAGIC;
    fixed.version = CW_SETUP_VERSION;
    cw_put_bytes(&w, &fixed, FIXED);
    cw_put_bytes(&w, v->early, v->early_size);
    return w.used;
}

/* Whether the ranks that share its memory are some. */
static bool shares_well(const struct cw_setup *v)
{
    bool own = false;

    if (!(v->flags & CW_SETUP_CHANNEL))
        return true;
    if (v->channel_ranks > CW_CHANNEL_RANKS_MAX || v->channel_group >= CW_RELAYS_MAX)
        return false;
    for (uint32_t i = 0; i < v->channel_ranks; i++) {
        if (v->channel_rank[i] >= v->ranks ||
            (i > 0 && v->channel_rank[i] <= v->channel_rank[i - 1]))
            return false;
        own |= v->channel_rank[i] == v->process.rank;
    }
    return own;
}

static bool has_servers(const struct cw_setup *v)
{
    for (uint32_t i = 0; i < CW_IMAGE_SERVERS_MAX; i++)
        if (!memchr(v->image_address[i], '\0', CW_SETUP_ADDRESS_MAX))
            return false;
    return v->image_servers <= CW_IMAGE_SERVERS_MAX;
}

bool cw_setup_get(const uint8_t *from, size_t size, struct cw_setup *v)
{
    struct cw_reader r = cw_reader(from, size);

    cw_get_copy(&r, v, FIXED);
    v->early_size = (uint32_t)r.left;
    v->early = cw_get_bytes(&r, r.left);
    return cw_reader_end(&r) && v->magic == CW_SETUP_MAGIC && v->version == CW_SETUP_VERSION &&
           v->early_size <= CW_EARLY_MAX && memchr(v->address, '\0', sizeof(v->address)) &&
           has_servers(v) && v->process.rank < v->ranks && v->ranks <= CW_RANKS_MAX &&
           v->resume_ms <= CW_RESUME_MAX_MS && shares_well(v);
}

static size_t put(uint8_t *to, uint64_t kind, const void *fixed, size_t fixed_size,
                  const void *more, size_t size)
{
    struct cw_writer w = cw_writer(to, CW_SETUP_MAX);

    cw_put_u64(&w, kind);
    cw_put_bytes(&w, fixed, fixed_size);
    cw_put_bytes(&w, more, size);
    return w.used;
}

size_t cw_report_put(uint8_t *to, uint32_t kind, const void *bytes, size_t size)
{
    return put(to, kind, NULL, 0, bytes, size);
}

size_t cw_report_put_file(uint8_t *to, const struct cw_opening *opening, const char *path)
{
    size_t size = strlen(path);
    size_t told = size < CW_PATH_TOLD ? size : CW_PATH_TOLD;

    return put(to, CW_REPORT_FILE, opening, sizeof(*opening), path + size - told, told);
}

size_t cw_report_put_image(uint8_t *to, uint32_t kind, const struct cw_image_report *image,
                           const char *text)
{
    return put(to, kind, image, sizeof(*image), text, strnlen(text, CW_TEXT_MAX));
}

bool cw_report_get(const uint8_t *from, size_t size, struct cw_report *v)
{
    struct cw_reader r = cw_reader(from, size);

    v->kind = (uint32_t)cw_get_u64(&r);
    v->early_size = r.left;
    v->early = from + CW_REPORT_HEADER;
    v->text[0] = '\0';
    if (size < CW_REPORT_HEADER)
        return false;
    if (v->kind == CW_REPORT_FILE)
        cw_get_copy(&r, &v->opening, sizeof(v->opening));
    if (v->kind == CW_REPORT_IMAGE_TAKEN || v->kind == CW_REPORT_IMAGE_ENDED)
        cw_get_copy(&r, &v->image, sizeof(v->image));
    if (v->kind != CW_REPORT_EARLY)
        cw_get_text(&r, v->text, CW_TEXT_MAX);
    return v->kind == CW_REPORT_EARLY ? size - CW_REPORT_HEADER <= CW_EARLY_MAX : cw_reader_end(&r);
}
