#include "relay/inspect/files.h"
#include "common/fd.h"
#include "relay/log_dir.h"
#include "relay/memory/block.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define READ_AHEAD JOURNAL_PART_MAX /* bytes that are read at once: a part fits them */

static const char *const journal_names[INSPECT_JOURNALS] = {"journal.0", "journal.1"};

/* --- opening -------------------------------------------------------------------------------------
 */

static int open_failed(const char *path, const char *name, struct cw_err *err)
{
    const char *what = errno == EACCES ? "; run this as the user whose relay wrote it" : "";

    return cw_err_set(err, CW_ESYS, "%s/%s: %s%s", path, name, strerror(errno), what);
}

/* A file of the directory, in *fd; -1 where there is none. */
static int open_file(const struct inspect_files *files, const char *path, const char *name, int *fd,
                     struct cw_err *err)
{
    struct stat st;

    *fd = openat(files->dir, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (*fd < 0)
        return errno == ENOENT ? CW_OK : open_failed(path, name, err);
    if (fstat(*fd, &st) < 0)
        return open_failed(path, name, err);
    if (!S_ISREG(st.st_mode))
        return cw_err_set(err, CW_EPROTO, "%s/%s is no file; name a relay's directory of logs",
                          path, name);
    if (st.st_uid != geteuid() && geteuid() != 0)
        return cw_err_set(err, CW_ESYS, "%s/%s belongs to user %u; run this as that user", path,
                          name, (unsigned)st.st_uid);
    return CW_OK;
}

/* While it is shared here no relay takes it. */
static int take_lock(struct inspect_files *files, const char *path, struct cw_err *err)
{
    int failed = open_file(files, path, "lock", &files->lock, err);

    if (failed || files->lock < 0 || flock(files->lock, LOCK_SH | LOCK_NB) == 0)
        return failed;
    if (errno != EWOULDBLOCK)
        return open_failed(path, "lock", err);
    return cw_err_set(err, CW_EBUSY,
                      "%s: a relay uses these logs now, and its files change; stop it first", path);
}

/* --- journals ------------------------------------------------------------------------------------
 */

/* More of the file; at its end there is no more. */
static int read_more(struct inspect_journal *journal)
{
    uint64_t size = journal->mapped - journal->here;
    int failed;

    if (size > READ_AHEAD)
        size = READ_AHEAD;
    failed = log_dir_read_at(journal->fd, journal->bytes + journal->here, size, journal->here);
    if (!failed)
        journal->here += size;
    return failed;
}

/* All of its parts that are whole are here then. */
static int read_parts(struct inspect_journal *journal)
{
    struct journal_reader reader = journal_read(journal->bytes, 0);
    int failed = 0;

    while (!failed) {
        reader.size = journal->here;
        if (journal_next_part(&reader))
            continue;
        if (journal->here == journal->mapped || journal->here - reader.next >= JOURNAL_PART_MAX)
            break;
        failed = read_more(journal);
    }
    if (!failed)
        journal_look(journal->bytes, journal->here, &journal->summary);
    return failed;
}

static int read_journal(struct inspect_files *files, const char *path, int number,
                        struct cw_err *err)
{
    struct inspect_journal *journal = &files->journals[number];
    const char *name = journal_names[number];
    int failed = open_file(files, path, name, &journal->fd, err);
    struct stat st;
    void *at;

    if (failed || journal->fd < 0)
        return failed;
    if (fstat(journal->fd, &st) < 0)
        return open_failed(path, name, err);
    journal->size = (uint64_t)st.st_size;
    if (journal->size == 0)
        return CW_OK;
    at = mmap(NULL, journal->size, PROT_READ | PROT_WRITE,
              MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (at == MAP_FAILED)
        return cw_err_set(err, CW_ENOMEM, "%s/%s: no addresses for its %llu bytes (ulimit -v)",
                          path, name, (unsigned long long)journal->size);
    journal->bytes = at;
    journal->mapped = journal->size;
    failed = read_parts(journal);
    if (!failed)
        return CW_OK;
    return cw_err_set(err, CW_ESYS, "reading %s/%s at %llu: %s", path, name,
                      (unsigned long long)journal->here, strerror(failed));
}

/* The first sector of a journal is there, or nothing of it is. */
static bool is_none(const struct inspect_journal *journal)
{
    uint64_t first = 0;

    if (journal->here >= sizeof(first))
        memcpy(&first, journal->bytes, sizeof(first));
    else if (journal->here > 0)
        memcpy(&first, journal->bytes, journal->here);
    return first != 0 && first != JOURNAL_MAGIC;
}

static int check_journal(const struct inspect_journal *journal, const char *path, const char *name,
                         struct cw_err *err)
{
    if (journal->summary.version != 0 && journal->summary.version != JOURNAL_VERSION)
        return cw_err_set(err, CW_EPROTO,
                          "%s/%s: the journal is of version %u, this program reads version %u; use "
                          "the program that wrote it",
                          path, name, journal->summary.version, JOURNAL_VERSION);
    if (is_none(journal))
        return cw_err_set(err, CW_EPROTO,
                          "%s/%s is no journal of a relay, or its beginning is damaged", path,
                          name);
    return CW_OK;
}

static void choose(struct inspect_files *files)
{
    uint64_t newest = 0;

    for (int i = 0; i < INSPECT_JOURNALS; i++) {
        const struct journal_summary *summary = &files->journals[i].summary;

        if (summary->commits == 0 || summary->journal <= newest)
            continue;
        newest = summary->journal;
        files->counts = i;
    }
}

static int open_all(struct inspect_files *files, const char *path, struct cw_err *err)
{
    bool any = false;
    int failed;

    files->dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (files->dir < 0)
        return cw_err_set(err, errno == ENOENT ? CW_ENOTFOUND : CW_ESYS,
                          "%s: %s; name a relay's directory of logs", path, strerror(errno));
    failed = take_lock(files, path, err);
    for (int i = 0; i < INSPECT_JOURNALS && !failed; i++) {
        failed = read_journal(files, path, i, err);
        any |= files->journals[i].fd >= 0;
    }
    if (!failed)
        failed = open_file(files, path, "segments", &files->segments, err);
    if (!failed && !any)
        failed =
            cw_err_set(err, CW_ENOTFOUND,
                       "%s is no directory of logs: it has neither journal.0 nor journal.1", path);
    for (int i = 0; i < INSPECT_JOURNALS && !failed; i++)
        failed = check_journal(&files->journals[i], path, journal_names[i], err);
    return failed;
}

int inspect_files_open(struct inspect_files *files, const char *path, struct cw_err *err)
{
    int failed;

    *files = (struct inspect_files){.dir = -1, .lock = -1, .segments = -1, .counts = -1};
    for (int i = 0; i < INSPECT_JOURNALS; i++)
        files->journals[i].fd = -1;
    failed = open_all(files, path, err);
    if (failed)
        inspect_files_close(files);
    else
        choose(files);
    return failed;
}

void inspect_files_close(struct inspect_files *files)
{
    for (int i = 0; i < INSPECT_JOURNALS; i++) {
        if (files->journals[i].bytes)
            munmap(files->journals[i].bytes, files->journals[i].mapped);
        cw_close(&files->journals[i].fd);
    }
    cw_close(&files->segments);
    cw_close(&files->lock);
    cw_close(&files->dir);
}

int inspect_files_segment(void *of, uint32_t extent, uint8_t *to, uint32_t size)
{
    const struct inspect_files *files = of;

    if (files->segments < 0)
        return ENODATA;
    return log_dir_read_at(files->segments, to, size, (uint64_t)extent * RELAY_BLOCK_BYTES);
}

/* --- behind the last commit ----------------------------------------------------------------------
 */

#define HOLE_STEP (1u << 20) /* so often it is asked whether a hole begins */

struct search {
    const struct inspect_journal *in;
    uint64_t journal; /* the one that counts ... */
    uint64_t parts;   /* ... and how many of its parts do */
    uint8_t *buffer;  /* of a part */
    uint32_t tried;
};

/* A header that is of such a commit, if its part is whole. */
static bool may_be_later(const struct search *s, const struct journal_part *part)
{
    return part->magic == JOURNAL_MAGIC && part->ends && part->size <= JOURNAL_PART_MAX &&
           (part->journal > s->journal ||
            (part->journal == s->journal && part->number >= s->parts));
}

static bool is_later(struct search *s, uint64_t at)
{
    struct journal_part part;
    ssize_t n = pread(s->in->fd, &part, sizeof(part), (off_t)at);

    if (n != (ssize_t)sizeof(part) || !may_be_later(s, &part) || s->tried++ >= INSPECT_PARTS_MAX)
        return false;
    n = pread(s->in->fd, s->buffer, part.size, (off_t)at);
    return n > 0 && journal_part_at(s->buffer, (uint64_t)n, &part) && may_be_later(s, &part);
}

/* Where the file has bytes next, from a whole page on: a file may be all hole. */
static uint64_t skip_hole(const struct inspect_journal *in, uint64_t at)
{
    off_t data = lseek(in->fd, (off_t)at, SEEK_DATA);

    if (data < 0)
        return errno == ENXIO ? in->size : at;
    return (uint64_t)data / JOURNAL_ALIGN * JOURNAL_ALIGN;
}

/* Parts begin at whole pages. */
static bool find(struct search *s, uint64_t from, uint64_t *at)
{
    for (*at = from; *at < s->in->size; *at += JOURNAL_ALIGN) {
        if (*at == from || *at % HOLE_STEP == 0)
            *at = skip_hole(s->in, *at);
        if (*at < s->in->size && is_later(s, *at))
            return true;
    }
    return false;
}

int inspect_tail(const struct inspect_files *files, struct inspect_tail *tail, struct cw_err *err)
{
    struct search s = {.buffer = malloc(JOURNAL_PART_MAX)};

    *tail = (struct inspect_tail){0};
    if (!s.buffer)
        return cw_err_set(err, CW_ENOMEM, "no memory");
    if (files->counts >= 0) {
        s.journal = files->journals[files->counts].summary.journal;
        s.parts = files->journals[files->counts].summary.committed;
    }
    for (int i = 0; i < INSPECT_JOURNALS && !tail->lost; i++) {
        uint64_t broke = i == files->counts ? files->journals[i].summary.end : 0;

        s.in = &files->journals[i];
        if (s.in->fd < 0 || !find(&s, broke, &tail->at))
            continue;
        tail->lost = true;
        tail->file = i;
        tail->broke = broke;
    }
    free(s.buffer);
    return CW_OK;
}
