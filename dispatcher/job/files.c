#include "dispatcher/job/files.h"

#include <stdlib.h>

#define BUCKETS 16384u
#define WORD_BITS 64u

struct file {
    struct file *next;
    uint64_t device, inode, born_ns; /* which it is */
    uint64_t first_ns;               /* its first opening */
    uint64_t written_ns;             /* its last opening to write ... */
    uint32_t writer;                 /* ... and by whom; FILES_NO_RANK: none yet */
    bool made;                       /* that one made it, ... */
    uint64_t made_as;                /* ... under this name */
    uint64_t read_as;                /* the last opening to read it; 0: none */
    uint64_t opened[];               /* a bit for each rank */
};

struct files {
    uint32_t ranks;
    uint32_t words; /* of a file's bits */
    uint32_t count;
    uint32_t max;
    struct file *buckets[BUCKETS];
};

static size_t file_bytes(const struct files *files)
{
    return sizeof(struct file) + files->words * sizeof(uint64_t);
}

struct files *files_new(uint32_t ranks)
{
    struct files *files = calloc(1, sizeof(*files));

    if (!files)
        return NULL;
    files->ranks = ranks;
    files->words = (ranks + WORD_BITS - 1) / WORD_BITS;
    files->max = (uint32_t)(FILES_BYTES_MAX / file_bytes(files));
    if (files->max > FILES_MAX)
        files->max = FILES_MAX;
    return files;
}

void files_free(struct files *files)
{
    for (uint32_t i = 0; files && i < BUCKETS; i++)
        for (struct file *file = files->buckets[i], *next; file; file = next) {
            next = file->next;
            free(file);
        }
    free(files);
}

static struct file **bucket_of(struct files *files, const struct cw_opening *o)
{
    uint64_t hash = (o->inode ^ o->device << 32 ^ o->born_ns) * 0x9e3779b97f4a7c15u;

    return &files->buckets[(hash >> 32) % BUCKETS];
}

/* NULL: it is a new one, and there is no room. */
static struct file *find_or_add(struct files *files, const struct cw_opening *o)
{
    struct file **bucket = bucket_of(files, o);
    struct file *file = *bucket;

    while (file &&
           (file->inode != o->inode || file->device != o->device || file->born_ns != o->born_ns))
        file = file->next;
    if (file || files->count == files->max)
        return file;
    file = calloc(1, file_bytes(files));
    if (!file)
        return NULL;
    file->device = o->device;
    file->inode = o->inode;
    file->born_ns = o->born_ns;
    file->first_ns = o->opened_ns;
    file->writer = FILES_NO_RANK;
    file->next = *bucket;
    *bucket = file;
    files->count++;
    return file;
}

/* The first rank from `from` on that has opened it, but for `but`; FILES_NO_RANK: none. */
static uint32_t opener(const struct files *files, const struct file *file, uint32_t from,
                       uint32_t but)
{
    for (uint32_t rank = from; rank < files->ranks; rank++) {
        if (!(file->opened[rank / WORD_BITS] >> rank % WORD_BITS))
            rank |= WORD_BITS - 1; /* no more in this word */
        else if (rank != but && (file->opened[rank / WORD_BITS] >> rank % WORD_BITS & 1))
            return rank;
    }
    return FILES_NO_RANK;
}

/* A re-execution that makes a file anew gets another one, if it was renamed since; then that one is
 * renamed, whole as this one was. So Python keeps what it has compiled. */
static bool is_renamed(const struct file *file)
{
    return file->made && file->read_as && file->read_as != file->made_as;
}

static void written(const struct files *files, struct file *file, uint32_t rank,
                    const struct cw_opening *o, files_unsafe_fn *tell, void *ctx)
{
    uint32_t other = opener(files, file, 0, rank);
    uint64_t opened_ns = o->opened_ns;
    uint32_t writer = file->writer;

    if (opened_ns >= file->written_ns) {
        file->writer = rank;
        file->written_ns = opened_ns;
        file->made = o->made;
        file->made_as = o->name;
    }
    if (other == FILES_NO_RANK || (file->writer == rank && is_renamed(file)))
        return;
    tell(ctx, &(struct files_unsafe){.rank = rank, .other = other, .writes = true});
    if (writer != FILES_NO_RANK && writer != rank)
        tell(ctx, &(struct files_unsafe){.rank = writer, .other = rank, .writes = true});
    if (opened_ns < file->first_ns)
        return; /* it is heard of late: the others came after it */
    for (; other != FILES_NO_RANK; other = opener(files, file, other + 1, rank))
        tell(ctx, &(struct files_unsafe){.rank = other, .other = rank});
}

static void was_read(struct file *file, uint32_t rank, const struct cw_opening *o,
                     files_unsafe_fn *tell, void *ctx)
{
    if (file->writer == rank)
        return;
    file->read_as = o->name;
    if (file->writer == FILES_NO_RANK || is_renamed(file))
        return;
    if (o->opened_ns < file->written_ns) /* heard of late */
        tell(ctx, &(struct files_unsafe){.rank = rank, .other = file->writer});
    tell(ctx, &(struct files_unsafe){.rank = file->writer, .other = rank, .writes = true});
}

void files_open(struct files *files, uint32_t rank, const struct cw_opening *opening,
                files_unsafe_fn *tell, void *ctx)
{
    struct file *file = find_or_add(files, opening);

    if (!file) {
        if (opening->writes)
            tell(ctx, &(struct files_unsafe){.rank = rank, .other = FILES_NO_RANK, .writes = true});
        return;
    }
    if (opening->writes)
        written(files, file, rank, opening, tell, ctx);
    else
        was_read(file, rank, opening, tell, ctx);
    if (opening->opened_ns < file->first_ns)
        file->first_ns = opening->opened_ns;
    file->opened[rank / WORD_BITS] |= 1ull << rank % WORD_BITS;
}
