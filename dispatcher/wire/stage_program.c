#include "dispatcher/wire/stage_program.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

#define READ_BYTES (64u << 10)

/* --- the hash --- */

struct stage_sum {
    XXH3_state_t state;
};

struct stage_sum *stage_sum_new(void)
{
    struct stage_sum *sum = aligned_alloc(_Alignof(struct stage_sum), sizeof(*sum));

    if (sum)
        XXH3_128bits_reset(&sum->state);
    return sum;
}

void stage_sum_free(struct stage_sum *sum)
{
    free(sum);
}

void stage_sum_add(struct stage_sum *sum, const void *bytes, size_t size)
{
    XXH3_128bits_update(&sum->state, bytes, size);
}

void stage_sum_end(struct stage_sum *sum, uint8_t hash[STAGE_HASH_BYTES])
{
    XXH128_canonical_t canonical;

    XXH128_canonicalFromHash(&canonical, XXH3_128bits_digest(&sum->state));
    memcpy(hash, canonical.digest, STAGE_HASH_BYTES);
}

/* --- names --- */

bool stage_program_is_valid(const struct stage_program *p)
{
    const char *last = strrchr(p->dir, '/');

    return p->dir[0] == '/' && strncmp(last + 1, STAGE_DIR_PREFIX, strlen(STAGE_DIR_PREFIX)) == 0 &&
           p->name[0] && !strchr(p->name, '/') && strcmp(p->name, ".") != 0 &&
           strcmp(p->name, "..") != 0 && p->size > 0 && p->size <= STAGE_PROGRAM_BYTES_MAX &&
           (p->mode & ~0555u) == 0 && (p->mode & 0500) == 0500;
}

void stage_program_path(const struct stage_program *p, char path[STAGE_PATH_MAX])
{
    snprintf(path, STAGE_PATH_MAX, "%s/%s", p->dir, p->name);
}

/* --- the file here --- */

static int describe(struct stage_program *p, const char *path, const char *dir, int fd,
                    struct cw_err *err)
{
    const char *name = strrchr(path, '/') + 1;
    struct stat st;

    if (fstat(fd, &st) < 0)
        return cw_err_set(err, CW_ESYS, "reading it: %s", strerror(errno));
    if (st.st_size > (off_t)STAGE_PROGRAM_BYTES_MAX)
        return cw_err_set(err, CW_ELIMIT,
                          "it has %lld bytes, and at most %u are sent: install it on the hosts",
                          (long long)st.st_size, STAGE_PROGRAM_BYTES_MAX);
    p->size = (uint64_t)st.st_size;
    p->mtime_ns = (uint64_t)st.st_mtim.tv_sec * 1000000000u + (uint64_t)st.st_mtim.tv_nsec;
    p->mode = (st.st_mode & 0555) | 0500;
    if (snprintf(p->name, sizeof(p->name), "%s", name) >= (int)sizeof(p->name) ||
        snprintf(p->dir, sizeof(p->dir), "%s", dir) >= (int)sizeof(p->dir))
        return cw_err_set(err, CW_EINVAL, "its name, or the path %.100s, is too long", dir);
    return CW_OK;
}

static int sum_up(struct stage_program *p, int fd, struct stage_sum *sum, struct cw_err *err)
{
    static uint8_t bytes[READ_BYTES];
    uint64_t all = 0;
    ssize_t n;

    while ((n = read(fd, bytes, sizeof(bytes))) > 0) {
        stage_sum_add(sum, bytes, (size_t)n);
        all += (uint64_t)n;
    }
    if (n < 0 || all != p->size)
        return cw_err_set(err, CW_ESYS, "reading it: %s",
                          n < 0 ? strerror(errno) : "it changes meanwhile");
    stage_sum_end(sum, p->hash);
    return CW_OK;
}

static int read_file(struct stage_program *p, const char *path, const char *dir, int fd,
                     struct cw_err *err)
{
    struct stage_sum *sum = stage_sum_new();

    if (!sum)
        return cw_err_set(err, CW_ENOMEM, "no memory");
    if (describe(p, path, dir, fd, err) == CW_OK)
        sum_up(p, fd, sum, err);
    stage_sum_free(sum);
    return err->code;
}

int stage_program_read(struct stage_program *p, const char *path, const char *dir, int *fd,
                       struct cw_err *err)
{
    err->code = CW_OK;
    *fd = open(path, O_RDONLY | O_CLOEXEC);
    if (*fd < 0)
        cw_err_set(err, CW_ESYS, "reading it: %s", strerror(errno));
    else
        read_file(p, path, dir, *fd, err);
    if (err->code == CW_OK)
        return CW_OK;
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
    return cw_err_wrap(err, "sending %.200s to hosts (--stage)", path);
}
