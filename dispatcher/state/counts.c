#include "dispatcher/state/counts.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define BOOT_PATH "/proc/sys/kernel/random/boot_id"
#define BOOT_WORDS 5 /* its text, of 36 characters */

/* Words of the file. Of each stream there are two, PRINTED and SETTLED. */
enum { JOURNAL, PRINTING, BOOT, STREAMS = BOOT + BOOT_WORDS };
enum { PRINTED, SETTLED, WORDS_OF_STREAM };

static uint64_t *word_of(const struct counts *c, uint32_t rank, int stream, int which)
{
    size_t one = (size_t)rank * COUNTS_STREAMS + (size_t)stream;

    return &c->words[STREAMS + one * WORDS_OF_STREAM + (size_t)which];
}

static void set(struct counts *c, uint64_t *word, uint64_t value)
{
    __atomic_store_n(word, value, __ATOMIC_RELEASE);
    if (c->changed)
        c->changed(c->ctx, (uint64_t)(word - c->words), value);
}

void counts_tell(struct counts *c)
{
    for (size_t i = 0; c->words && i < c->bytes / sizeof(*c->words); i++)
        c->changed(c->ctx, i, c->words[i]);
}

/* Which kernel runs; where nobody says that, none is the same as another. */
static void read_boot(uint64_t boot[BOOT_WORDS])
{
    int fd = open(BOOT_PATH, O_RDONLY | O_CLOEXEC);

    memset(boot, 0, BOOT_WORDS * sizeof(*boot));
    if (fd < 0)
        return;
    if (read(fd, boot, BOOT_WORDS * sizeof(*boot)) <= 0)
        boot[0] = 0;
    close(fd);
}

void counts_adopt(struct counts *c)
{
    c->rebooted = false;
    read_boot(c->words + BOOT);
}

void counts_go_on(struct counts *c)
{
    if (!c->rebooted)
        return;
    for (uint32_t rank = 0; rank < c->ranks; rank++)
        for (int i = 0; i < COUNTS_STREAMS; i++)
            set(c, word_of(c, rank, i, PRINTED), *word_of(c, rank, i, SETTLED));
    set(c, c->words + PRINTING, 0);
    read_boot(c->words + BOOT);
}

static int map(struct counts *c, int fd, uint32_t ranks)
{
    uint64_t boot[BOOT_WORDS];
    void *mapped = mmap(NULL, c->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

    if (mapped == MAP_FAILED)
        return -1;
    c->words = mapped;
    c->ranks = ranks;
    read_boot(boot);
    c->rebooted = boot[0] == 0 || memcmp(boot, c->words + BOOT, sizeof(boot)) != 0;
    return 0;
}

static int open_file(struct counts *c, int dir, uint32_t ranks, int flags)
{
    *c = (struct counts){0};
    c->bytes = (STREAMS + (size_t)ranks * COUNTS_STREAMS * WORDS_OF_STREAM) * sizeof(*c->words);
    return openat(dir, COUNTS_NAME, O_RDWR | O_CLOEXEC | O_NOFOLLOW | flags, 0600);
}

static int close_keeping_errno(int fd, int failed)
{
    int error = errno;

    close(fd);
    errno = error;
    return failed;
}

int counts_make(struct counts *c, int dir, uint32_t ranks)
{
    int fd = open_file(c, dir, ranks, O_CREAT | O_EXCL);
    int failed;

    if (fd < 0)
        return -1;
    errno = posix_fallocate(fd, 0, (off_t)c->bytes);
    failed = errno || map(c, fd, ranks) < 0 ? -1 : 0;
    if (!failed) {
        counts_go_on(c);
        c->rebooted = false;
        failed = counts_sync(c) < 0 || fsync(fd) < 0 ? -1 : 0;
    }
    return close_keeping_errno(fd, failed);
}

int counts_find(struct counts *c, int dir, uint32_t ranks)
{
    int fd = open_file(c, dir, ranks, 0);
    struct stat st;
    int failed;

    if (fd < 0)
        return -1;
    failed = fstat(fd, &st);
    if (!failed && (!S_ISREG(st.st_mode) || (uint64_t)st.st_size != c->bytes)) {
        errno = EBADMSG;
        failed = -1;
    }
    if (!failed)
        failed = map(c, fd, ranks);
    return close_keeping_errno(fd, failed);
}

void counts_close(struct counts *c)
{
    if (c->words)
        munmap(c->words, c->bytes);
    c->words = NULL;
}

uint64_t counts_read_journal(int dir)
{
    int fd = openat(dir, COUNTS_NAME, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    uint64_t bytes = 0;

    if (fd < 0)
        return 0;
    if (pread(fd, &bytes, sizeof(bytes), JOURNAL * sizeof(bytes)) != sizeof(bytes))
        bytes = 0;
    close(fd);
    return bytes;
}

void counts_set_journal(struct counts *c, uint64_t bytes)
{
    if (c->words)
        set(c, c->words + JOURNAL, bytes);
}

/* --- streams ------------------------------------------------------------------------------------
 */

static bool has(const struct counts *c, uint32_t rank)
{
    return c && c->words && rank < c->ranks;
}

void counts_set_printed(struct counts *c, uint32_t rank, int stream, uint64_t printed)
{
    if (has(c, rank))
        set(c, word_of(c, rank, stream, PRINTED), printed);
}

uint64_t counts_printed(const struct counts *c, uint32_t rank, int stream)
{
    return has(c, rank) ? *word_of(c, rank, stream, PRINTED) : 0;
}

void counts_settle(struct counts *c, uint32_t rank, int stream)
{
    if (has(c, rank))
        set(c, word_of(c, rank, stream, SETTLED), *word_of(c, rank, stream, PRINTED));
}

void counts_begin_printing(struct counts *c, uint32_t rank)
{
    if (has(c, rank))
        set(c, c->words + PRINTING, (uint64_t)rank + 1);
}

void counts_end_printing(struct counts *c)
{
    if (c && c->words)
        set(c, c->words + PRINTING, 0);
}

bool counts_was_printing(const struct counts *c, uint32_t *rank)
{
    if (!c->words || c->words[PRINTING] == 0)
        return false;
    *rank = (uint32_t)(c->words[PRINTING] - 1);
    return true;
}

int counts_sync(const struct counts *c)
{
    return c->words ? msync(c->words, c->bytes, MS_SYNC) : 0;
}
