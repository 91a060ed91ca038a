#include "dispatcher/cli/ckpt_images.h"
#include "ckptsrv/verify.h"
#include "dispatcher/status/json_value.h"
#include "dispatcher/status/table.h"

#include <stdlib.h>
#include <string.h>

#define LENGTH(array) (sizeof(array) / sizeof(*(array)))

struct finding {
    struct ckpt_images *images;
    const struct imgdir *dir;
    const struct ckpt_choice *choice;
};

/* --- finding -------------------------------------------------------------------------------------
 */

static bool is_chosen(const struct ckpt_choice *choice, const uint8_t *job, uint32_t rank,
                      uint32_t number)
{
    char text[IMGDIR_JOB_TEXT];

    imgdir_job_text(text, job);
    return (!choice->job || strncmp(text, choice->job, strlen(choice->job)) == 0) &&
           (!choice->has_rank || rank == choice->rank) &&
           (!choice->has_number || number == choice->number);
}

static struct ckpt_image *add(struct ckpt_images *images)
{
    struct ckpt_image *at = reallocarray(images->at, images->count + 1, sizeof(*at));

    if (!at)
        return NULL;
    images->at = at;
    return &images->at[images->count++];
}

static int visit(void *ctx, const uint8_t *job, enum imgdir_kind kind, uint32_t rank,
                 uint32_t number, const char *name, struct cw_err *err)
{
    struct finding *finding = ctx;
    struct ckpt_image *image;
    uint8_t *bytes;
    size_t size;

    if (!name || kind != IMGDIR_INDEX || !is_chosen(finding->choice, job, rank, number))
        return CW_OK;
    image = add(finding->images);
    if (!image)
        return cw_err_set(err, CW_ENOMEM, "no memory for a list of images");
    *image = (struct ckpt_image){.rank = rank, .number = number};
    memcpy(image->job, job, CW_ID_SIZE);
    if (verify_index(finding->dir, job, rank, number, &image->summary, &bytes, &size,
                     &image->damage) == CW_OK)
        free(bytes);
    if (image->damage.code == CW_ENOTFOUND)
        finding->images->count--; /* a server that runs has removed it */
    return CW_OK;
}

static int by_name(const void *a, const void *b)
{
    const struct ckpt_image *one = a;
    const struct ckpt_image *two = b;
    int order = memcmp(one->job, two->job, CW_ID_SIZE);

    if (order == 0)
        order = (one->rank > two->rank) - (one->rank < two->rank);
    if (order == 0)
        order = (one->number > two->number) - (one->number < two->number);
    return order;
}

int ckpt_images_find(struct ckpt_images *images, const struct imgdir *dir,
                     const struct ckpt_choice *choice, struct cw_err *err)
{
    struct finding finding = {images, dir, choice};

    *images = (struct ckpt_images){0};
    if (imgdir_each(dir, visit, &finding, err) == CW_OK && images->count > 0)
        qsort(images->at, images->count, sizeof(*images->at), by_name);
    if (err->code)
        ckpt_images_free(images);
    return err->code;
}

void ckpt_images_free(struct ckpt_images *images)
{
    free(images->at);
    *images = (struct ckpt_images){0};
}

/* --- telling -------------------------------------------------------------------------------------
 */

static json_t *count_of(uint64_t value)
{
    return json_integer((json_int_t)value);
}

static void add_summary(json_t *row, const struct index_summary *summary)
{
    const struct cw_stored *image = &summary->image;
    struct timespec taken = {(time_t)(summary->taken_ns / 1000000000u),
                             (long)(summary->taken_ns % 1000000000u)};

    json_object_set_new(row, "incarnation", count_of(image->incarnation));
    json_object_set_new(row, "ranks", count_of(summary->ranks));
    json_object_set_new(row, "program", json_value_text(summary->program));
    json_object_set_new(row, "taken", json_value_time(&taken));
    json_object_set_new(row, "event", count_of(image->point.event));
    json_object_set_new(row, "poll_clock", count_of(image->point.clock));
    json_object_set_new(row, "acts", count_of(image->point.acts));
    json_object_set_new(row, "memory_bytes", count_of(image->bytes));
    json_object_set_new(row, "new_bytes", count_of(image->stored));
    json_object_set_new(row, "stream_bytes", count_of(summary->stream));
    json_object_set_new(row, "regions", count_of(summary->regions));
    json_object_set_new(row, "blocks", count_of(summary->blocks));
}

static json_t *row_of(const struct ckpt_image *image)
{
    json_t *row = json_object();
    char job[IMGDIR_JOB_TEXT];

    imgdir_job_text(job, image->job);
    json_object_set_new(row, "job", json_string(job));
    json_object_set_new(row, "rank", count_of(image->rank));
    json_object_set_new(row, "number", count_of(image->number));
    json_object_set_new(row, "whole", json_boolean(!image->damage.code));
    if (image->damage.code)
        json_object_set_new(row, "damage", json_value_text(image->damage.text));
    else
        add_summary(row, &image->summary);
    return row;
}

json_t *ckpt_images_document(const struct ckpt_images *images, const char *dir)
{
    json_t *document = json_object();
    json_t *rows = json_array();

    for (size_t i = 0; i < images->count; i++)
        json_array_append_new(rows, row_of(&images->at[i]));
    json_object_set_new(document, "dir", json_value_text(dir));
    json_object_set_new(document, "images", rows);
    return document;
}

static void cell_taken(const json_t *row, char *to)
{
    snprintf(to, TABLE_CELL_MAX, "%.19s", table_text(row, "taken"));
}

static void cell_index(const json_t *row, char *to)
{
    strcpy(to, json_is_true(json_object_get(row, "whole")) ? "whole" : "damaged");
}

static const struct table_column columns[] = {
    {"JOB", false, .text = "job"},
    {"RANK", true, .number = "rank"},
    {"NUMBER", true, .number = "number"},
    {"INCARNATION", true, .number = "incarnation"},
    {"MEMORY", true, .bytes = "memory_bytes"},
    {"NEW", true, .bytes = "new_bytes"},
    {"TAKEN (UTC)", false, .cell = cell_taken},
    {"INDEX", false, .cell = cell_index},
};

static void print_one(FILE *to, const json_t *row)
{
    char memory[TABLE_CELL_MAX];
    char fresh[TABLE_CELL_MAX];

    fprintf(to, "job %s, rank %llu, image %llu\n", table_text(row, "job"),
            table_number(row, "rank"), table_number(row, "number"));
    if (!json_is_true(json_object_get(row, "whole"))) {
        fprintf(to, "  damaged: %s\n", table_text(row, "damage"));
        return;
    }
    table_bytes(table_number(row, "memory_bytes"), memory, sizeof(memory));
    table_bytes(table_number(row, "new_bytes"), fresh, sizeof(fresh));
    fputs("  program      ", to);
    table_put_text(to, table_text(row, "program"));
    fprintf(to, "\n  incarnation  %llu\n  taken        %s\n", table_number(row, "incarnation"),
            table_text(row, "taken"));
    fprintf(to, "  point        event %llu, poll clock %llu, act %llu\n",
            table_number(row, "event"), table_number(row, "poll_clock"), table_number(row, "acts"));
    fprintf(to, "  memory       %s in %llu blocks of %llu regions; %s were new on disk\n", memory,
            table_number(row, "blocks"), table_number(row, "regions"), fresh);
}

void ckpt_images_print(FILE *to, const json_t *document, bool long_form)
{
    const json_t *rows = json_object_get(document, "images");
    const json_t *row;
    size_t i;

    if (json_array_size(rows) == 0)
        fputs("no images\n", to);
    else if (!long_form)
        table_put(to, columns, LENGTH(columns), rows);
    else
        json_array_foreach(rows, i, row) print_one(to, row);
}
