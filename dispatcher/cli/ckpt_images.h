/* The images in the directory of a checkpoint server, for `causeway ckpt`. */
#ifndef DISPATCHER_CKPT_IMAGES_H
#define DISPATCHER_CKPT_IMAGES_H

#include "ckptsrv/imgdir.h"
#include "ckptsrv/index.h"

#include <jansson.h>

/* Which of them: those of a job whose identifier begins so, of a rank, of a number. */
struct ckpt_choice {
    const char *job; /* NULL: all */
    uint32_t rank, number;
    bool has_rank, has_number;
};

struct ckpt_image {
    uint8_t job[CW_ID_SIZE];
    uint32_t rank, number;
    struct cw_err damage; /* code 0: the index is whole, and `summary` says what it is of */
    struct index_summary summary;
};

struct ckpt_images {
    struct ckpt_image *at; /* by job, rank and number */
    size_t count;
};

/* Errors: CW_ESYS, CW_ENOMEM. */
int ckpt_images_find(struct ckpt_images *images, const struct imgdir *dir,
                     const struct ckpt_choice *choice, struct cw_err *err);
void ckpt_images_free(struct ckpt_images *images);

/* The document: "dir", "images". NULL without memory. */
json_t *ckpt_images_document(const struct ckpt_images *images, const char *dir);
/* For a person: one line each; `long_form`: all that is known. */
void ckpt_images_print(FILE *to, const json_t *document, bool long_form);

#endif
