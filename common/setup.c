#include "common/setup.h"

#define SETUP_MAGIC 0x50555357u /* "WSUP" */

size_t cw_setup_put(uint8_t *to, const struct cw_setup *v)
{
    struct cw_writer w = cw_writer(to, CW_SETUP_MAX);

    cw_put_u32(&w, SETUP_MAGIC);
    cw_put_u32(&w, CW_PROTOCOL_VERSION);
    cw_put_bytes(&w, v->job, sizeof(v->job));
    cw_put_u32(&w, v->rank);
    cw_put_u32(&w, v->ranks);
    cw_put_u32(&w, v->incarnation);
    cw_put_bytes(&w, v->key, sizeof(v->key));
    cw_put_u64(&w, v->spin_ns);
    cw_put_u32(&w, v->resume_ms);
    cw_put_u64(&w, v->fault_event);
    cw_put_bytes(&w, v->address, sizeof(v->address));
    cw_put_bytes(&w, v->image_address, sizeof(v->image_address));
    cw_put_bytes(&w, v->image_key, sizeof(v->image_key));
    cw_put_bytes(&w, v->mark, sizeof(v->mark));
    cw_put_u64(&w, v->input_inode);
    cw_put_u64(&w, v->output_inodes[0]);
    cw_put_u64(&w, v->output_inodes[1]);
    cw_put_u32(&w, v->flags);
    if (v->early_size)
        cw_put_bytes(&w, v->early, v->early_size);
    return w.used;
}

bool cw_setup_get(const uint8_t *from, size_t size, struct cw_setup *v)
{
    struct cw_reader r = cw_reader(from, size);
    bool known = cw_get_u32(&r) == SETUP_MAGIC && cw_get_u32(&r) == CW_PROTOCOL_VERSION;

    cw_get_copy(&r, v->job, sizeof(v->job));
    v->rank = cw_get_u32(&r);
    v->ranks = cw_get_u32(&r);
    v->incarnation = cw_get_u32(&r);
    cw_get_copy(&r, v->key, sizeof(v->key));
    v->spin_ns = cw_get_u64(&r);
    v->resume_ms = cw_get_u32(&r);
    v->fault_event = cw_get_u64(&r);
    cw_get_copy(&r, v->address, sizeof(v->address));
    cw_get_copy(&r, v->image_address, sizeof(v->image_address));
    cw_get_copy(&r, v->image_key, sizeof(v->image_key));
    cw_get_copy(&r, v->mark, sizeof(v->mark));
    v->input_inode = cw_get_u64(&r);
    v->output_inodes[0] = cw_get_u64(&r);
    v->output_inodes[1] = cw_get_u64(&r);
    v->flags = cw_get_u32(&r);
    v->early_size = (uint32_t)r.left;
    v->early = cw_get_bytes(&r, r.left);
    return known && cw_reader_end(&r) && v->early_size <= CW_EARLY_MAX &&
           memchr(v->address, '\0', sizeof(v->address)) &&
           memchr(v->image_address, '\0', sizeof(v->image_address)) && v->rank < v->ranks &&
           v->ranks <= CW_RANKS_MAX && v->resume_ms <= CW_RESUME_MAX_MS;
}

size_t cw_report_put(uint8_t *to, uint32_t kind, const void *bytes, size_t size)
{
    struct cw_writer w = cw_writer(to, CW_SETUP_MAX);

    cw_put_u32(&w, kind);
    cw_put_u32(&w, 0);
    cw_put_bytes(&w, bytes, size);
    return w.used;
}

size_t cw_report_put_file(uint8_t *to, const struct cw_opening *opening, const char *path)
{
    struct cw_writer w = cw_writer(to, CW_REPORT_FILE_MAX);
    size_t size = strlen(path);
    size_t told = size < CW_PATH_TOLD ? size : CW_PATH_TOLD;

    cw_put_u32(&w, CW_REPORT_FILE);
    cw_put_u32(&w, 0);
    cw_put_u64(&w, opening->device);
    cw_put_u64(&w, opening->inode);
    cw_put_u64(&w, opening->born_ns);
    cw_put_u64(&w, opening->opened_ns);
    cw_put_u64(&w, (uint64_t)opening->made << 1 | opening->writes);
    cw_put_u64(&w, opening->name);
    cw_put_bytes(&w, path + size - told, told);
    return w.used;
}

size_t cw_report_put_image(uint8_t *to, uint32_t kind, const struct cw_image_report *image,
                           const char *text)
{
    struct cw_writer w = cw_writer(to, CW_REPORT_HEADER + CW_IMAGE_REPORT_SIZE + CW_TEXT_MAX);
    size_t size = strlen(text);

    cw_put_u32(&w, kind);
    cw_put_u32(&w, 0);
    cw_put_u32(&w, image->number);
    cw_put_u32(&w, image->stored);
    cw_put_u64(&w, image->point.event);
    cw_put_u64(&w, image->point.clock);
    cw_put_u64(&w, image->point.acts);
    cw_put_u64(&w, image->unread);
    cw_put_u64(&w, image->stall_ns);
    cw_put_u64(&w, image->sent);
    cw_put_u64(&w, image->looked_from_ns);
    cw_put_u64(&w, image->looked_until_ns);
    cw_put_bytes(&w, text, size < CW_TEXT_MAX ? size : CW_TEXT_MAX);
    return w.used;
}

void cw_output_mark_put(uint8_t *to, const struct cw_output_mark *v)
{
    struct cw_writer w = cw_writer(to, CW_OUTPUT_MARK_SIZE);

    cw_put_bytes(&w, v->mark, sizeof(v->mark));
    cw_put_u32(&w, v->number);
    cw_put_u32(&w, v->check);
}

static void get_image(struct cw_reader *r, struct cw_image_report *v)
{
    v->number = cw_get_u32(r);
    v->stored = cw_get_u32(r);
    v->point.event = cw_get_u64(r);
    v->point.clock = cw_get_u64(r);
    v->point.acts = cw_get_u64(r);
    v->unread = cw_get_u64(r);
    v->stall_ns = cw_get_u64(r);
    v->sent = cw_get_u64(r);
    v->looked_from_ns = cw_get_u64(r);
    v->looked_until_ns = cw_get_u64(r);
}

static void get_opening(struct cw_reader *r, struct cw_opening *v)
{
    uint64_t flags;

    v->device = cw_get_u64(r);
    v->inode = cw_get_u64(r);
    v->born_ns = cw_get_u64(r);
    v->opened_ns = cw_get_u64(r);
    flags = cw_get_u64(r);
    v->writes = flags & 1;
    v->made = flags & 2;
    v->name = cw_get_u64(r);
}

bool cw_report_get(const uint8_t *from, size_t size, struct cw_report *v)
{
    struct cw_reader r = cw_reader(from, size);

    v->kind = cw_get_u32(&r);
    cw_get_u32(&r);
    v->early_size = r.left;
    v->early = from + CW_REPORT_HEADER;
    v->text[0] = '\0';
    if (size < CW_REPORT_HEADER)
        return false;
    if (v->kind == CW_REPORT_FILE)
        get_opening(&r, &v->opening);
    if (v->kind == CW_REPORT_IMAGE_TAKEN || v->kind == CW_REPORT_IMAGE_ENDED)
        get_image(&r, &v->image);
    if (v->kind != CW_REPORT_EARLY)
        cw_get_text(&r, v->text, CW_TEXT_MAX);
    return v->kind == CW_REPORT_EARLY ? size - CW_REPORT_HEADER <= CW_EARLY_MAX : cw_reader_end(&r);
}
