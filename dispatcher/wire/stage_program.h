/* A program that is sent to hosts (--stage): what it is known by, and the path that it has on each
 * of them, which is the same everywhere, since images of processes name it. */
#ifndef DISPATCHER_STAGE_PROGRAM_H
#define DISPATCHER_STAGE_PROGRAM_H

#include "common/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define STAGE_DIR "/var/tmp"               /* unless the user says otherwise */
#define STAGE_PROGRAM_BYTES_MAX (1u << 30) /* of a program */
#define STAGE_DIR_MAX 255u                 /* bytes of the path of its directory */
#define STAGE_NAME_MAX 255u                /* bytes of a program's name */
#define STAGE_HASH_BYTES 16u
#define STAGE_PATH_MAX (STAGE_DIR_MAX + STAGE_NAME_MAX + 2u) /* bytes of its path, terminated */
#define STAGE_DIR_PREFIX "causeway-stage-"

struct stage_program {
    char dir[STAGE_DIR_MAX + 1]; /* on each host, of this job alone, from "/" on */
    char name[STAGE_NAME_MAX + 1];
    uint64_t size;
    uint64_t mtime_ns;              /* since 1970 */
    uint32_t mode;                  /* permissions: none to write */
    uint8_t hash[STAGE_HASH_BYTES]; /* of its bytes */
};

/* The hash, as its bytes come. */
struct stage_sum;

struct stage_sum *stage_sum_new(void); /* NULL: no memory */
void stage_sum_free(struct stage_sum *sum);
void stage_sum_add(struct stage_sum *sum, const void *bytes, size_t size);
void stage_sum_end(struct stage_sum *sum, uint8_t hash[STAGE_HASH_BYTES]);

/* Whether what came from elsewhere makes sense. */
bool stage_program_is_valid(const struct stage_program *program);

/* Its path: DIR/NAME. */
void stage_program_path(const struct stage_program *program, char path[STAGE_PATH_MAX]);

/* Reads the file at `path`, which is to be in the directory `dir` of hosts. *fd: open to be read,
 * with its place anywhere. Errors: CW_ESYS, CW_ELIMIT, CW_EINVAL, CW_ENOMEM. */
int stage_program_read(struct stage_program *program, const char *path, const char *dir, int *fd,
                       struct cw_err *err);

#endif
