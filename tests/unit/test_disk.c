/* The file of a core's logs, in each of its kinds: what is read is what was written, and what goes
 * wrong is said. Where the system lacks something, in a process of its own whose system calls are
 * filtered. */
#include "relay/disk.h"
#include "relay/log/store.h"
#include "tests/lib/codec.h"
#include "tests/lib/scratch.h"
#include "tests/unit/suites.h"

#include <CUnit/CUnit.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/filter.h>
#include <linux/magic.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <unistd.h>

SUITE("disk", scratch_make, scratch_end);

#define SLOTS STORE_IO_MAX
#define EXTENTS 64u
#define STEPS 400u
#define PAGE 4096u
#define WAIT_MS 60000
#define SAID_MAX 4096
#define DIR_MAX 64

/* A request that is out, and its memory. */
struct slot {
    struct log_segment segment; /* only its address */
    uint8_t *bytes;
    bool out;
    bool write;
    uint32_t extent;
    uint64_t version;
};

static struct cw_err err;
static int file = -1; /* in place of one of its own */
static struct disk *disk;
static struct relay_disk ops;
static struct slot slots[SLOTS];
static uint8_t *memory;
static uint64_t written[EXTENTS]; /* the version that is there; 0: none */

static void use(struct disk *of)
{
    disk = of;
    ops = disk_ops(disk);
    memory = aligned_alloc(STORE_ALIGN, (size_t)SLOTS * RELAY_BLOCK_BYTES);
    memset(memory, 0xee, (size_t)SLOTS * RELAY_BLOCK_BYTES);
    memset(slots, 0, sizeof(slots));
    memset(written, 0, sizeof(written));
    for (uint32_t i = 0; i < SLOTS; i++)
        slots[i].bytes = memory + (size_t)i * RELAY_BLOCK_BYTES;
}

/* False: this system does not have the kind. */
static bool begin_in(const char *where, enum disk_kind kind)
{
    struct disk *of = disk_open_as(where, file, kind, &err);

    if (!of && err.code == CW_ENOTFOUND)
        return false;
    CU_ASSERT_PTR_NOT_NULL_FATAL(of);
    use(of);
    return true;
}

static bool begin(enum disk_kind kind)
{
    return begin_in(scratch_dir, kind);
}

static void end(void)
{
    disk_close(disk);
    free(memory);
}

static void ask(uint32_t slot, bool write, uint64_t offset)
{
    struct relay_log_io io = {.write = write,
                              .offset = offset,
                              .at = slots[slot].bytes,
                              .size = RELAY_BLOCK_BYTES,
                              .segment = &slots[slot].segment};

    slots[slot].out = true;
    ops.take(ops.ctx, &io);
}

static bool is_readable(int ms)
{
    struct pollfd p = {.fd = disk_listener(disk).fd, .events = POLLIN};

    return poll(&p, 1, ms) == 1 && p.revents == POLLIN;
}

/* As relay_accept does. */
static void empty(void)
{
    uint64_t count;

    while (read(disk_listener(disk).fd, &count, sizeof(count)) > 0)
        ;
}

/* The next result. False: none came. */
static bool await(struct relay_log_done *done)
{
    while (!ops.next_done(ops.ctx, done)) {
        if (!is_readable(WAIT_MS))
            return false;
        empty();
    }
    return true;
}

/* The error of the only request that is out, or -1. */
static int await_error(void)
{
    struct relay_log_done done;

    return await(&done) ? done.error : -1;
}

static int error_of(uint32_t slot, bool write, uint64_t offset)
{
    ask(slot, write, offset);
    return await_error();
}

/* --- what is read is what was written --------------------------------------------------------- */
static uint32_t free_slot(void)
{
    for (uint32_t i = 0; i < SLOTS; i++)
        if (!slots[i].out)
            return i;
    return SLOTS;
}

static bool extent_is_out(uint32_t extent)
{
    for (uint32_t i = 0; i < SLOTS; i++)
        if (slots[i].out && slots[i].extent == extent)
            return true;
    return false;
}

static void start_extent(uint32_t slot, uint32_t extent, bool write, uint64_t version)
{
    struct slot *s = &slots[slot];

    s->extent = extent;
    s->write = write;
    s->version = version;
    if (write)
        codec_pattern(s->bytes, version, 0, RELAY_BLOCK_BYTES);
    else
        memset(s->bytes, 0xee, RELAY_BLOCK_BYTES);
    ask(slot, write, (uint64_t)extent * RELAY_BLOCK_BYTES);
}

/* One result, for a request that is out and had none. */
static void take_result(void)
{
    struct relay_log_done done;
    struct slot *s;

    CU_ASSERT_TRUE_FATAL(await(&done));
    CU_ASSERT_EQUAL(done.error, 0);
    s = (struct slot *)((char *)done.segment - offsetof(struct slot, segment));
    CU_ASSERT_TRUE_FATAL(s >= slots && s < slots + SLOTS && s->out);
    s->out = false;
    if (s->write)
        written[s->extent] = s->version;
    else
        CU_ASSERT_TRUE(codec_pattern_is(s->bytes, s->version, RELAY_BLOCK_BYTES));
}

static void take_results(void)
{
    for (uint32_t i = 0; i < SLOTS; i++)
        while (slots[i].out)
            take_result();
}

static void step(uint64_t version, uint64_t *seed)
{
    uint32_t extent = (uint32_t)codec_random_below(seed, EXTENTS);

    while (extent_is_out(extent) || free_slot() == SLOTS)
        take_result();
    if (!written[extent] || codec_random_below(seed, 2) == 0)
        start_extent(free_slot(), extent, true, version);
    else
        start_extent(free_slot(), extent, false, written[extent]);
}

TEST(what_was_written_is_read)
{
    struct relay_log_done done;

    for (int kind = DISK_RING; kind <= DISK_CACHED; kind++) {
        uint64_t seed = 7 + (uint64_t)kind;

        if (!begin(kind))
            continue;
        for (uint64_t version = 1; version <= STEPS; version++)
            step(version, &seed);
        take_results();
        CU_ASSERT_FALSE(ops.next_done(ops.ctx, &done));
        end();
    }
}

TEST(results_make_it_readable)
{
    struct relay_log_done done;

    for (int kind = DISK_RING; kind <= DISK_CACHED; kind++) {
        if (!begin(kind))
            continue;
        CU_ASSERT_TRUE(disk_listener(disk).wakes);
        CU_ASSERT_FALSE(ops.next_done(ops.ctx, &done));
        CU_ASSERT_FALSE(is_readable(0));
        for (uint32_t i = 0; i < SLOTS; i++) {
            ask(i, true, (uint64_t)i * RELAY_BLOCK_BYTES);
            CU_ASSERT_TRUE(is_readable(WAIT_MS));
            empty();
            CU_ASSERT_TRUE(ops.next_done(ops.ctx, &done)); /* at once */
            CU_ASSERT_PTR_EQUAL(done.segment, &slots[i].segment);
            CU_ASSERT_FALSE(is_readable(0));
            CU_ASSERT_FALSE(ops.next_done(ops.ctx, &done));
        }
        end();
    }
}

/* All that was asked for is there when it has been closed. */
TEST(closing_waits)
{
    for (int kind = DISK_RING; kind <= DISK_CACHED; kind++) {
        if (!begin(kind))
            continue;
        for (uint32_t i = 0; i < SLOTS; i++)
            start_extent(i, i, true, 1 + i);
        take_results();
        for (uint32_t i = 0; i < SLOTS; i++)
            start_extent(i, i, false, 1 + i);
        disk_close(disk);
        for (uint32_t i = SLOTS; i-- > 0;) /* the last ones first: they had the least time */
            CU_ASSERT_TRUE(codec_pattern_is(slots[i].bytes, 1 + i, RELAY_BLOCK_BYTES));
        free(memory);
    }
    disk_close(NULL);
    CU_ASSERT_PTR_NULL(disk_ops(NULL).take);
}

struct errand {
    uint32_t first; /* of as many extents as there are slots */
    bool write;
};

static void *run_errand(void *arg)
{
    const struct errand *errand = arg;

    for (uint32_t i = 0; i < SLOTS; i++)
        start_extent(i, errand->first + i, errand->write, 1 + errand->first + i);
    return NULL;
}

static void ask_and_end(struct errand errand)
{
    pthread_t thread;

    CU_ASSERT_EQUAL_FATAL(pthread_create(&thread, NULL, run_errand, &errand), 0);
    pthread_join(thread, NULL);
    take_results();
}

/* The kernel keeps what is under way with the thread that asked for it. */
TEST(threads_that_ask_may_end)
{
    for (int kind = DISK_RING; kind <= DISK_CACHED; kind++) {
        if (!begin(kind))
            continue;
        for (uint32_t first = 0; first < EXTENTS; first += SLOTS)
            ask_and_end((struct errand){.first = first, .write = true});
        for (uint32_t first = 0; first < EXTENTS; first += SLOTS)
            ask_and_end((struct errand){.first = first});
        end();
    }
}

/* --- what is left behind ---------------------------------------------------------------------- */
/* The descriptor of the file that has lost its name, or -1. */
static int find_file(void)
{
    DIR *fds = opendir("/proc/self/fd");
    char target[PATH_MAX];
    struct dirent *entry;
    int found = -1;

    CU_ASSERT_PTR_NOT_NULL_FATAL(fds);
    while (found < 0 && (entry = readdir(fds))) {
        ssize_t size = readlinkat(dirfd(fds), entry->d_name, target, sizeof(target) - 1);

        target[size > 0 ? size : 0] = '\0';
        if (strncmp(target, scratch_dir, strlen(scratch_dir)) == 0 && strstr(target, " (deleted)"))
            found = atoi(entry->d_name);
    }
    closedir(fds);
    return found;
}

/* Pages of the file that are in the page cache. */
static uint32_t count_cached(size_t bytes)
{
    static unsigned char is_cached[EXTENTS * RELAY_BLOCK_BYTES / PAGE];
    uint32_t count = 0;
    void *at = mmap(NULL, bytes, PROT_READ, MAP_SHARED, find_file(), 0);

    CU_ASSERT_PTR_NOT_EQUAL_FATAL(at, MAP_FAILED);
    CU_ASSERT_EQUAL(mincore(at, bytes, is_cached), 0);
    for (size_t i = 0; i < bytes / PAGE; i++)
        count += is_cached[i] & 1;
    munmap(at, bytes);
    return count;
}

/* There sync_file_range(2) does nothing, and what is to be written stays. */
static bool is_overlay(void)
{
    struct statfs fs;

    return statfs(scratch_dir, &fs) == 0 && fs.f_type == OVERLAYFS_SUPER_MAGIC;
}

/* A few pages may stay, where the cache has several in one piece. */
TEST(page_cache_is_left_alone)
{
    const uint32_t few = SLOTS * RELAY_BLOCK_BYTES / PAGE / 8;

    for (int kind = DISK_RING; kind <= DISK_CACHED && !disk_in_memory(scratch_dir); kind++) {
        if ((kind == DISK_CACHED && is_overlay()) || !begin(kind))
            continue;
        for (uint32_t i = 0; i < SLOTS; i++)
            start_extent(i, i, true, 1 + i);
        take_results();
        CU_ASSERT_TRUE(count_cached((size_t)SLOTS * RELAY_BLOCK_BYTES) < few);
        for (uint32_t i = 0; i < SLOTS; i++)
            start_extent(i, i, false, 1 + i);
        take_results();
        CU_ASSERT_TRUE(count_cached((size_t)SLOTS * RELAY_BLOCK_BYTES) < few);
        end();
    }
}

static int count_entries(const char *of)
{
    DIR *entries = opendir(of);
    int count = -2; /* "." and ".." */

    CU_ASSERT_PTR_NOT_NULL_FATAL(entries);
    while (readdir(entries))
        count++;
    closedir(entries);
    return count;
}

TEST(file_has_no_name)
{
    int before = count_entries("/proc/self/fd");

    for (int kind = DISK_RING; kind <= DISK_CACHED; kind++) {
        if (!begin(kind))
            continue;
        CU_ASSERT_EQUAL(count_entries(scratch_dir), 0);
        end();
        CU_ASSERT_EQUAL(count_entries("/proc/self/fd"), before);
    }
}

/* --- what goes wrong -------------------------------------------------------------------------- */
TEST(reads_beyond_the_end)
{
    const uint64_t block = RELAY_BLOCK_BYTES;

    for (int kind = DISK_RING; kind <= DISK_CACHED; kind++) {
        if (!begin(kind))
            continue;
        CU_ASSERT_EQUAL(error_of(0, false, 0), EIO);
        codec_pattern(slots[0].bytes, 3, 0, block);
        CU_ASSERT_EQUAL(error_of(0, true, 0), 0);
        CU_ASSERT_EQUAL(error_of(1, false, STORE_ALIGN), EIO);
        CU_ASSERT_EQUAL(error_of(1, false, block), EIO);
        CU_ASSERT_EQUAL(error_of(1, false, 1ull << 42), EIO);
        CU_ASSERT_EQUAL(error_of(1, false, 0), 0);
        CU_ASSERT_TRUE(codec_pattern_is(slots[1].bytes, 3, block));
        end();
    }
}

/* Files of this process are no longer than that; what is written beyond ends the process, unless
 * the signal is ignored. */
static void limit_files(rlim_t bytes, struct rlimit *before)
{
    struct rlimit limit;

    CU_ASSERT_EQUAL_FATAL(getrlimit(RLIMIT_FSIZE, &limit), 0);
    if (before)
        *before = limit;
    limit.rlim_cur = bytes;
    signal(SIGXFSZ, SIG_IGN);
    CU_ASSERT_EQUAL_FATAL(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

static void unlimit_files(const struct rlimit *before)
{
    CU_ASSERT_EQUAL(setrlimit(RLIMIT_FSIZE, before), 0);
    signal(SIGXFSZ, SIG_DFL);
}

#define FAR ((uint64_t)EXTENTS * RELAY_BLOCK_BYTES) /* other files of this process are smaller */
#define HALF_MORE (FAR + RELAY_BLOCK_BYTES / 2)

/* --- a file that another disk has used -------------------------------------------------------- */
static off_t file_size(void)
{
    struct stat st;

    return fstat(file, &st) == 0 ? st.st_size : -1;
}

/* This kind, if this system has it, finds what was written before it, and writes something else. */
static void go_on(enum disk_kind kind, uint64_t *seed)
{
    off_t size = file_size();

    if (!begin(kind))
        return;
    CU_ASSERT_TRUE(disk_held(disk) >= RELAY_BLOCK_BYTES);
    CU_ASSERT_EQUAL(file_size(), size);
    CU_ASSERT_EQUAL(error_of(0, false, 0), 0);
    CU_ASSERT_TRUE(codec_pattern_is(slots[0].bytes, *seed, RELAY_BLOCK_BYTES));
    codec_pattern(slots[1].bytes, ++*seed, 0, RELAY_BLOCK_BYTES);
    CU_ASSERT_EQUAL(error_of(1, true, 0), 0);
    end();
}

/* In all orders: O_DIRECT is of the file, not of the descriptor. */
TEST(a_file_is_taken_over)
{
    static const enum disk_kind kinds[] = {DISK_RING,    DISK_CACHED,  DISK_THREADS,
                                           DISK_CACHED,  DISK_RING,    DISK_RING,
                                           DISK_THREADS, DISK_THREADS, DISK_CACHED};
    int entries = count_entries("/proc/self/fd");
    uint64_t seed = 31;

    file = disk_make_file(scratch_dir);
    CU_ASSERT_TRUE_FATAL(file >= 0);
    CU_ASSERT_EQUAL_FATAL(begin(DISK_CACHED), true);
    codec_pattern(slots[0].bytes, seed, 0, RELAY_BLOCK_BYTES);
    CU_ASSERT_EQUAL(error_of(0, true, 0), 0);
    end();
    for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++)
        go_on(kinds[i], &seed);
    CU_ASSERT_EQUAL(count_entries(scratch_dir), 0);
    CU_ASSERT_EQUAL(close(file), 0);
    file = -1;
    CU_ASSERT_EQUAL(count_entries("/proc/self/fd"), entries);
}

/* One that ends in the middle of a page, as no disk leaves it: what is whole can be read. */
TEST(a_file_with_part_of_a_page)
{
    file = disk_make_file(scratch_dir);
    CU_ASSERT_TRUE_FATAL(file >= 0);
    CU_ASSERT_EQUAL(ftruncate(file, RELAY_BLOCK_BYTES + 100), 0);
    CU_ASSERT_EQUAL_FATAL(begin(DISK_CACHED), true);
    CU_ASSERT_EQUAL(error_of(0, false, 0), 0);
    CU_ASSERT_EQUAL(error_of(0, false, RELAY_BLOCK_BYTES), EIO);
    end();
    close(file);
    file = -1;
}

TEST(no_room)
{
    struct rlimit before;

    for (int kind = DISK_RING; kind <= DISK_CACHED; kind++) {
        if (!begin(kind))
            continue;
        limit_files(HALF_MORE, &before);
        CU_ASSERT_EQUAL(error_of(0, true, FAR - RELAY_BLOCK_BYTES), 0);
        CU_ASSERT_EQUAL(error_of(0, true, FAR), EFBIG); /* half of it was written */
        CU_ASSERT_EQUAL(error_of(0, true, FAR + RELAY_BLOCK_BYTES), EFBIG);
        CU_ASSERT_EQUAL(error_of(0, false, FAR - RELAY_BLOCK_BYTES), 0);
        unlimit_files(&before);
        CU_ASSERT_EQUAL(error_of(0, true, FAR), 0);
        end();
    }
}

/* The second half is asked for when the first one is there. */
TEST(short_writes_go_on)
{
    struct rlimit before;

    if (!begin(DISK_RING))
        return;
    codec_pattern(slots[0].bytes, 5, 0, RELAY_BLOCK_BYTES);
    limit_files(HALF_MORE, &before);
    ask(0, true, FAR);
    CU_ASSERT_TRUE(is_readable(WAIT_MS));
    unlimit_files(&before);
    CU_ASSERT_EQUAL(await_error(), 0);
    CU_ASSERT_EQUAL(error_of(1, false, FAR), 0);
    CU_ASSERT_TRUE(codec_pattern_is(slots[1].bytes, 5, RELAY_BLOCK_BYTES));
    end();
}

static void refused(const char *where, const char *cause, const char *what_to_do)
{
    for (int kind = DISK_RING; kind <= DISK_CACHED; kind++) {
        CU_ASSERT_PTR_NULL(disk_open_as(where, -1, kind, &err));
        CU_ASSERT_EQUAL(err.code, CW_ESYS);
    }
    CU_ASSERT_PTR_NULL(disk_open(where, -1, &err));
    CU_ASSERT_EQUAL(err.code, CW_ESYS);
    CU_ASSERT_EQUAL(strncmp(err.text, "--log-dir ", 10), 0);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, where));
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, cause));
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, what_to_do));
}

TEST(directories_of_no_use)
{
    int before = count_entries("/proc/self/fd");
    char path[DIR_MAX + 8];

    snprintf(path, sizeof(path), "%s", scratch_path("none"));
    refused(path, strerror(ENOENT), "a directory that exists");
    CU_ASSERT_EQUAL(disk_free(path), 0);
    CU_ASSERT_FALSE(disk_in_memory(path));
    scratch_put("none", "", 0, 0600);
    refused(path, strerror(ENOTDIR), "a directory that exists");
    unlink(path);
    if (geteuid() != 0) { /* who may write everywhere */
        chmod(scratch_dir, 0500);
        refused(scratch_dir, strerror(EACCES), "this user can write to");
        chmod(scratch_dir, 0700);
    }
    CU_ASSERT_EQUAL(count_entries("/proc/self/fd"), before);
}

/* --- other file systems ----------------------------------------------------------------------- */
TEST(files_in_memory)
{
    static const char *const place = "/dev/shm";
    struct relay_log_done done;

    CU_ASSERT_FALSE(disk_in_memory("/proc"));
    CU_ASSERT_TRUE(disk_free(scratch_dir) > 0);
    if (!disk_in_memory(place) || disk_free(place) < 2 * FAR)
        return;
    for (int kind = DISK_RING; kind <= DISK_CACHED; kind++) {
        uint64_t seed = 19 + (uint64_t)kind;

        if (!begin_in(place, kind))
            continue;
        for (uint64_t version = 1; version <= STEPS; version++)
            step(version, &seed);
        take_results();
        CU_ASSERT_EQUAL(error_of(0, false, FAR), EIO);
        CU_ASSERT_FALSE(ops.next_done(ops.ctx, &done));
        end();
    }
}

/* --- what the system does not have ------------------------------------------------------------ */
/* A system call fails when an argument of it has one of these bits. */
struct refusal {
    int system_call;
    uint32_t argument;
    uint32_t bits;
    int error;
};

static char said[SAID_MAX]; /* to stderr, by the process */

static bool refuse(const struct refusal *what)
{
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)what->system_call, 0, 3),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
                 (uint32_t)offsetof(struct seccomp_data, args) + 8 * what->argument),
        BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, what->bits, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (uint32_t)what->error),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {.len = sizeof(code) / sizeof(*code), .filter = code};

    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
           prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

/* Returns an exit code: 0 when a segment was written and read, and the directory stayed empty. */
static int use_disk(void)
{
    struct disk *of = disk_open(scratch_dir, -1, &err);
    int failed;

    if (!of) {
        dprintf(STDERR_FILENO, "%s\n", err.text);
        return 3;
    }
    use(of);
    codec_pattern(slots[0].bytes, 9, 0, RELAY_BLOCK_BYTES);
    failed = error_of(0, true, 0) != 0 || error_of(1, false, 0) != 0 ||
             !codec_pattern_is(slots[1].bytes, 9, RELAY_BLOCK_BYTES) ||
             count_entries(scratch_dir) != 0;
    end();
    return failed;
}

/* What a process says to stderr, which uses a disk under the filter. Returns its exit code. */
static int use_without(const struct refusal *what)
{
    size_t size = 0;
    int status = -1;
    int ends[2];
    ssize_t n;
    pid_t pid;

    CU_ASSERT_EQUAL_FATAL(pipe(ends), 0);
    pid = fork();
    CU_ASSERT_TRUE_FATAL(pid >= 0);
    if (pid == 0) {
        dup2(ends[1], STDERR_FILENO);
        close(ends[0]);
        close(ends[1]);
        _exit(refuse(what) ? use_disk() : 125);
    }
    close(ends[1]);
    while (size < SAID_MAX - 1 && (n = read(ends[0], said + size, SAID_MAX - 1 - size)) > 0)
        size += (size_t)n;
    said[size] = '\0';
    close(ends[0]);
    CU_ASSERT_EQUAL_FATAL(waitpid(pid, &status, 0), pid);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* One line, once. */
static bool said_line_with(const char *text)
{
    char beginning[DIR_MAX + 64];

    snprintf(beginning, sizeof(beginning), "causeway relay: --log-dir %s: ", scratch_dir);
    return strncmp(said, beginning, strlen(beginning)) == 0 && strstr(said, text) &&
           strchr(said, '\n') == said + strlen(said) - 1;
}

static bool has_ring(void)
{
    if (!begin(DISK_RING))
        return false;
    end();
    return true;
}

TEST(without_rings)
{
    static const struct refusal refusals[] = {{SYS_io_uring_setup, 0, ~0u, EPERM},
                                              {SYS_io_uring_enter, 1, ~0u, EACCES},
                                              {SYS_io_uring_register, 1, ~0u, EPERM}};
    static const char *const doing[] = {
        "io_uring_setup: ", "io_uring_enter: ", "io_uring_register of an eventfd: "};

    for (size_t i = 0; i < sizeof(refusals) / sizeof(*refusals) && has_ring(); i++) {
        CU_ASSERT_EQUAL(use_without(&refusals[i]), 0);
        CU_ASSERT_TRUE(said_line_with(doing[i]));
        CU_ASSERT_TRUE(said_line_with("threads write and read instead\n"));
    }
}

TEST(without_a_way_past_the_cache)
{
    static const struct refusal refusals[] = {{SYS_fcntl, 2, O_DIRECT, EINVAL},
                                              {SYS_pwrite64, 2, ~0u, EINVAL}};

    CU_ASSERT_EQUAL(use_without(&refusals[0]), 0);
    CU_ASSERT_TRUE(said_line_with(": this file system cannot be written past the page cache; what "
                                  "is written is dropped from it again\n"));
    /* and what cannot be written at all */
    CU_ASSERT_EQUAL(use_without(&refusals[1]), 3);
    CU_ASSERT_PTR_NOT_NULL(strstr(said, strerror(EINVAL)));
    CU_ASSERT_PTR_NULL(strstr(said, "causeway relay"));
}

TEST(without_files_that_have_no_name)
{
    static const struct refusal refusals[] = {{SYS_openat, 2, O_TMPFILE & ~O_DIRECTORY, EOPNOTSUPP},
                                              {SYS_openat, 2, O_TMPFILE & ~O_DIRECTORY, EISDIR}};

    for (size_t i = 0; i < sizeof(refusals) / sizeof(*refusals); i++) {
        CU_ASSERT_EQUAL(use_without(&refusals[i]), 0);
        CU_ASSERT_TRUE(said[0] == '\0' || !has_ring());
    }
}

TEST(disks_that_are_full)
{
    static const struct refusal refusal = {SYS_pwrite64, 2, ~0u, ENOSPC};

    CU_ASSERT_EQUAL(use_without(&refusal), 3);
    CU_ASSERT_PTR_NOT_NULL(strstr(said, scratch_dir));
    CU_ASSERT_PTR_NOT_NULL(strstr(said, strerror(ENOSPC)));
    CU_ASSERT_PTR_NOT_NULL(strstr(said, "make room there"));
}

/* Whatever this system has. */
TEST(disk_is_chosen)
{
    CU_ASSERT_EQUAL(use_disk(), 0);
}
