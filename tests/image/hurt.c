/* hurt RESTORER IMAGE WHAT [ARGUMENT...]: starts the restorer with an image that is not as it was,
 * and tells how it ends. The restorer must report and exit with 113 unless the line says "goes on".
 *
 *   flip COUNT SEED   a bit anywhere, COUNT times; in compressed bytes it may be without effect
 *   cut COUNT SEED    ends anywhere, COUNT times
 *   swap              two blocks of the stream in the other order
 *   end               without its END
 *   version           of another version; with a right checksum
 *   features          of a processor that can more; with a right checksum
 *   vdso              of another kernel, goes on: bytes that nobody calls differ; with a right
 *                     checksum
 *   same              a block refers to another image
 *   empty, foreign    nothing; something else */
#include "common/image.h"

#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#define TEXT_MAX 400
#define LIMIT_S 20

static const char *restorer;
static uint8_t *bytes;
static size_t size;

struct ending {
    int status; /* as wait() says */
    uint32_t kind;
    char text[TEXT_MAX + 1];
};

/* --- running the restorer -------------------------------------------------------------------- */

static void run_restorer(int image, int control)
{
    int null = open("/dev/null", O_RDWR);
    char numbers[2][12];

    dup2(null, 0);
    if (control != 30)
        dup2(control, 30);
    if (image != 31)
        dup2(image, 31);
    closefrom(32);
    close_range(3, 29, 0);
    snprintf(numbers[0], sizeof(numbers[0]), "%d", 31);
    snprintf(numbers[1], sizeof(numbers[1]), "%d", 30);
    alarm(LIMIT_S);
    execl(restorer, restorer, numbers[0], numbers[1], "-1", "-1", "-1", NULL);
    _exit(127);
}

/* Signals are blocked in the restorer, also that of alarm(): it is killed. */
static void await_end(pid_t child, int *status)
{
    for (int i = 0; i < LIMIT_S * 1000; i++) {
        if (waitpid(child, status, WNOHANG) == child)
            return;
        usleep(1000);
    }
    kill(child, SIGKILL);
    waitpid(child, status, 0);
}

static struct ending restore(const uint8_t *from, size_t length)
{
    struct ending ending = {0};
    int pair[2], image = memfd_create("image", 0);
    char report[8 + TEXT_MAX];
    ssize_t n;
    pid_t child;

    if (image < 0 || socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0 ||
        write(image, from, length) != (ssize_t)length)
        exit(2);
    lseek(image, 0, SEEK_SET);
    child = fork();
    if (child == 0)
        run_restorer(image, pair[1]);
    close(pair[1]);
    close(image);
    await_end(child, &ending.status);
    n = recv(pair[0], report, sizeof(report), MSG_DONTWAIT);
    if (n >= 8) {
        memcpy(&ending.kind, report, 4);
        memcpy(ending.text, report + 8, (size_t)n - 8);
    }
    close(pair[0]);
    return ending;
}

static bool is_refused(const struct ending *ending)
{
    return WIFEXITED(ending->status) && WEXITSTATUS(ending->status) == 113 &&
           (ending->kind == 8 || ending->kind == 9) && ending->text[0] != '\0';
}

static int tell(struct ending ending)
{
    printf("%s %d: %s\n", WIFEXITED(ending.status) ? "code" : "signal",
           WIFEXITED(ending.status) ? WEXITSTATUS(ending.status) : WTERMSIG(ending.status),
           ending.text);
    return 0;
}

/* --- the stream ------------------------------------------------------------------------------ */

static struct cw_image_record record_at(size_t at)
{
    struct cw_image_record record;

    memcpy(&record, bytes + at, sizeof(record));
    return record;
}

static size_t after(size_t at)
{
    return at + sizeof(struct cw_image_record) + record_at(at).length;
}

/* Puts the checksum into the END that the stream has now. */
static void seal(void)
{
    XXH3_state_t *hash = XXH3_createState();
    struct cw_image_end end;
    XXH128_hash_t sum;
    size_t at = 0;

    XXH3_128bits_reset(hash);
    for (; record_at(at).type != CW_IMAGE_END; at = after(at)) {
        uint32_t type = record_at(at).type;
        size_t hashed = type == CW_IMAGE_HEADER || type == CW_IMAGE_REGION
                            ? record_at(at).length
                            : sizeof(struct cw_image_block);

        XXH3_128bits_update(hash, bytes + at + 8, hashed);
    }
    sum = XXH3_128bits_digest(hash);
    memcpy(&end, bytes + at + 8, sizeof(end));
    end.hash = (struct cw_image_hash){sum.low64, sum.high64};
    memcpy(bytes + at + 8, &end, sizeof(end));
    XXH3_freeState(hash);
}

static struct cw_image_header *header(void)
{
    return (struct cw_image_header *)(void *)(bytes + 8);
}

static bool is_block(size_t at)
{
    uint32_t type = record_at(at).type;

    return type == CW_IMAGE_BLOCK_DATA || type == CW_IMAGE_BLOCK_LZ4;
}

/* The first two blocks that follow each other. */
static int swap(void)
{
    for (size_t at = 0, next; record_at(at).type != CW_IMAGE_END; at = next) {
        next = after(at);
        if (is_block(at) && is_block(next)) {
            size_t first = next - at, second = after(next) - next;
            uint8_t *kept = malloc(first);

            memcpy(kept, bytes + at, first);
            memmove(bytes + at, bytes + next, second);
            memcpy(bytes + at + second, kept, first);
            seal();
            free(kept);
            return tell(restore(bytes, size));
        }
    }
    return 2;
}

/* Takes a block's bytes away. */
static int same(void)
{
    for (size_t at = 0; record_at(at).type != CW_IMAGE_END; at = after(at))
        if (is_block(at)) {
            struct cw_image_record record = {CW_IMAGE_BLOCK_SAME, sizeof(struct cw_image_block)};
            size_t next = after(at), kept = at + 8 + sizeof(struct cw_image_block);

            memcpy(bytes + at, &record, sizeof(record));
            memmove(bytes + kept, bytes + next, size - next);
            size -= next - kept;
            return tell(restore(bytes, size));
        }
    return 2;
}

/* LZ4 has more than one way to say the same; what counts is the checksum of what comes out. */
static bool is_packed(size_t byte)
{
    size_t at = 0;

    while (at + 8 <= size && after(at) <= byte)
        at = after(at);
    return record_at(at).type == CW_IMAGE_BLOCK_LZ4 &&
           byte >= at + 8 + sizeof(struct cw_image_block);
}

/* --- what there is to do --------------------------------------------------------------------- */

static int flip(int count, unsigned seed)
{
    srandom(seed);
    for (int i = 0; i < count; i++) {
        /* every second one in what is no block's bytes, mostly */
        size_t at = (size_t)random() % (i % 2 ? size : size < 40000 ? size : 40000);
        uint8_t bit = (uint8_t)(1u << random() % 8);
        struct ending ending;

        bytes[at] ^= bit;
        ending = restore(bytes, size);
        bytes[at] ^= bit;
        if (!is_refused(&ending) && !is_packed(at)) {
            printf("bit %x of byte %zu: status %x, kind %u, %s\n", bit, at, (unsigned)ending.status,
                   ending.kind, ending.text);
            return 1;
        }
    }
    printf("%d refused\n", count);
    return 0;
}

static int cut(int count, unsigned seed)
{
    srandom(seed);
    for (int i = 0; i < count; i++) {
        size_t length = (size_t)random() % size;
        struct ending ending = restore(bytes, length);

        if (!is_refused(&ending)) {
            printf("%zu bytes: status %x, kind %u, %s\n", length, (unsigned)ending.status,
                   ending.kind, ending.text);
            return 1;
        }
    }
    printf("%d refused\n", count);
    return 0;
}

static int load(const char *path)
{
    int fd = open(path, O_RDONLY);
    struct stat st;

    if (fd < 0 || fstat(fd, &st) < 0)
        return -1;
    size = (size_t)st.st_size;
    bytes = malloc(size + 8);
    return read(fd, bytes, size) == (ssize_t)size ? close(fd) : -1;
}

static int change(const char *what)
{
    if (!strcmp(what, "version"))
        header()->version = 77;
    else if (!strcmp(what, "features"))
        header()->features[7] = ~0u;
    else if (!strcmp(what, "vdso"))
        header()->vdso[8] ^= 1; /* padding of ELF's identification */
    else if (strcmp(what, "whole") != 0)
        return 2;
    seal();
    return tell(restore(bytes, size));
}

int main(int argc, char **argv)
{
    const char *what = argc > 3 ? argv[3] : "";

    if (argc < 4 || load(argv[2]) < 0)
        return 2;
    restorer = argv[1];
    if (!strcmp(what, "flip") && argc == 6)
        return flip(atoi(argv[4]), (unsigned)atoi(argv[5]));
    if (!strcmp(what, "cut") && argc == 6)
        return cut(atoi(argv[4]), (unsigned)atoi(argv[5]));
    if (!strcmp(what, "swap"))
        return swap();
    if (!strcmp(what, "same"))
        return same();
    if (!strcmp(what, "end"))
        return tell(restore(bytes, size - 8 - sizeof(struct cw_image_end)));
    if (!strcmp(what, "empty"))
        return tell(restore(bytes, 0));
    if (!strcmp(what, "foreign"))
        return tell(restore((const uint8_t *)"something else, long enough to be a header", 42));
    return change(what);
}
