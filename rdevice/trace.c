#include "rdevice/trace.h"

#include <dlfcn.h>
#include <errno.h>
#include <execinfo.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define TRACE_ENV "CAUSEWAY_TRACE"
#define TRACE_RECORDS_MAX (1u << 20)
#define TRACE_FRAMES_MAX 24
#define TRACE_BYTES_MAX 64u /* the first of a message that are kept */
#define TRACE_DIFFERENCES_MAX 50
#define TRACE_PATH_MAX 512

/* Below the rings (arena.h): the program's own mappings lie where they would lie without. */
#define OWN_ADDRESS ((void *)0x4fe000000000)
#define EARLIER_ADDRESS ((void *)0x4fd000000000)

struct record {
    struct trace_operation operation;
    uint64_t bytes_hash; /* of all bytes */
    uint8_t bytes[TRACE_BYTES_MAX];
    void *stack[TRACE_FRAMES_MAX];
};

enum difference { SAME, ADDRESS, BYTES, STACK, OPERATION };

bool trace_on;
bool trace_repeating;
static struct record *own;
static const struct record *earlier; /* NULL: nothing to compare with, or no more */
static uint32_t used;
static uint32_t differences;
static int report_fd = -1;

/* Past files.c, which stands above the device: the trace is no file of the program's. */
static int open_past(const char *path, int flags)
{
    return (int)syscall(SYS_openat, AT_FDCWD, path, flags, 0600);
}

static struct record *map(const char *path, int flags, int protection, void *address)
{
    size_t size = TRACE_RECORDS_MAX * sizeof(struct record);
    int fd = open_past(path, flags | O_CLOEXEC);
    void *at = MAP_FAILED;
    struct stat s;

    if (fd >= 0 && (protection == PROT_READ || ftruncate(fd, (off_t)size) == 0) &&
        fstat(fd, &s) == 0 && (size_t)s.st_size == size)
        at = mmap(address, size, protection, MAP_SHARED | MAP_FIXED_NOREPLACE, fd, 0);
    if (fd >= 0)
        close(fd);
    return at == MAP_FAILED ? NULL : at;
}

int trace_begin(uint32_t rank, uint32_t incarnation, struct cw_err *err)
{
    const char *dir = getenv(TRACE_ENV);
    char path[TRACE_PATH_MAX];
    void *frame[1];

    if (!dir)
        return CW_OK;
    backtrace(frame, 1); /* the first call loads a library */
    snprintf(path, sizeof(path), "%s/rank.%u.%u", dir, rank, incarnation);
    own = map(path, O_RDWR | O_CREAT | O_TRUNC, PROT_READ | PROT_WRITE, OWN_ADDRESS);
    if (!own)
        return cw_err_set(err, CW_ESYS, "making the trace %s (" TRACE_ENV "): %s", path,
                          strerror(errno));
    trace_on = true;
    if (incarnation == 1)
        return CW_OK;
    snprintf(path, sizeof(path), "%s/rank.%u.%u", dir, rank, incarnation - 1);
    earlier = map(path, O_RDONLY, PROT_READ, EARLIER_ADDRESS);
    snprintf(path, sizeof(path), "%s/rank.%u.%u.difference", dir, rank, incarnation);
    report_fd = open_past(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC);
    return CW_OK;
}

/* FNV-1a. */
static uint64_t hash(uint64_t h, const uint8_t *bytes, size_t size)
{
    for (size_t i = 0; i < size; i++)
        h = (h ^ bytes[i]) * 0x100000001b3ull;
    return h;
}

static void put_bytes(struct record *r, const struct iovec *pieces, int count)
{
    size_t kept = 0;

    r->bytes_hash = 0xcbf29ce484222325ull;
    for (int i = 0; i < count; i++) {
        size_t left = TRACE_BYTES_MAX - kept;
        size_t n = pieces[i].iov_len < left ? pieces[i].iov_len : left;

        if (n)
            memcpy(r->bytes + kept, pieces[i].iov_base, n);
        kept += n;
        r->bytes_hash = hash(r->bytes_hash, pieces[i].iov_base, pieces[i].iov_len);
    }
}

/* By dprintf alone, which takes no memory of the program's heap: its addresses stay as they were.
 */
static void print_stack(void *const *stack)
{
    for (int i = 0; i < TRACE_FRAMES_MAX && stack[i]; i++) {
        uintptr_t at = (uintptr_t)stack[i];
        Dl_info info = {0};

        dladdr(stack[i], &info);
        dprintf(report_fd, "    %s+%#" PRIxPTR, info.dli_fname ? info.dli_fname : "?",
                at - (uintptr_t)info.dli_fbase);
        if (info.dli_sname)
            dprintf(report_fd, " (%s+%#" PRIxPTR ")", info.dli_sname,
                    at - (uintptr_t)info.dli_saddr);
        dprintf(report_fd, "\n");
    }
}

static void print(const char *who, const struct record *r)
{
    static const char *const names[TRACE_KINDS] = {"nothing", "send",  "receive",
                                                   "cancel",  "probe", "event"};
    const struct trace_operation *o = &r->operation;

    dprintf(report_fd,
            "  %s: %s, rank %u, tag %#" PRIx64 ", %" PRIu64 " bytes at %#" PRIx64 ", poll %" PRIu64
            ", act %" PRIu64 ":",
            who, o->kind < TRACE_KINDS ? names[o->kind] : "?", o->peer, o->tag, o->size, o->address,
            o->polls, o->acts);
    for (size_t i = 0; i < TRACE_BYTES_MAX && i < o->size; i++)
        dprintf(report_fd, "%s%02x", i % 8 == 0 ? " " : "", r->bytes[i]);
    dprintf(report_fd, "\n");
    print_stack(r->stack);
}

static enum difference compare(const struct record *a, const struct record *b)
{
    const struct trace_operation *x = &a->operation;
    const struct trace_operation *y = &b->operation;

    if (x->kind != y->kind || x->peer != y->peer || x->tag != y->tag || x->size != y->size ||
        x->polls != y->polls || x->acts != y->acts)
        return OPERATION;
    if (memcmp(a->stack, b->stack, sizeof(a->stack)) != 0)
        return STACK;
    if (a->bytes_hash != b->bytes_hash)
        return BYTES;
    return x->address != y->address ? ADDRESS : SAME;
}

/* Addresses that differ do so from the first one on: it is said once. */
static void look(const struct record *r)
{
    static const char *const names[] = {[ADDRESS] = "the address",
                                        [BYTES] = "the bytes",
                                        [STACK] = "the stack",
                                        [OPERATION] = "the operation"};
    static bool address_said;
    const struct record *e = earlier + used;
    enum difference what;

    if (e->operation.kind == TRACE_NONE) {
        earlier = NULL;
        return;
    }
    what = compare(r, e);
    if (what == SAME || (what == ADDRESS && address_said))
        return;
    address_said |= what == ADDRESS;
    dprintf(report_fd, "%s of operation %u differs\n", names[what], used);
    print("earlier", e);
    print("now", r);
    if (what == OPERATION || ++differences == TRACE_DIFFERENCES_MAX)
        earlier = NULL;
}

void trace_add(const struct trace_operation *operation, const struct iovec *pieces, int count)
{
    struct record *r = own + used;

    if (used == TRACE_RECORDS_MAX - 1)
        return;
    put_bytes(r, pieces, count);
    backtrace(r->stack, TRACE_FRAMES_MAX);
    r->operation = *operation;
    if (earlier && trace_repeating)
        look(r);
    used++;
}

void trace_end(const char *text)
{
    void *stack[TRACE_FRAMES_MAX] = {0};

    if (!trace_repeating || report_fd < 0)
        return;
    dprintf(report_fd, "%s\n", text);
    if (earlier && used < TRACE_RECORDS_MAX)
        print("earlier came then", earlier + used);
    dprintf(report_fd, "  now:\n");
    backtrace(stack, TRACE_FRAMES_MAX);
    print_stack(stack);
}
