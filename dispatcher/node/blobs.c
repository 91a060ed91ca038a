#include "dispatcher/node/blobs.h"

#include <stdlib.h>
#include <string.h>

extern char **environ;

void blobs_free(struct blobs *b)
{
    static char *none[] = {NULL};

    if (b->whole[0])
        environ = none;
    for (uint32_t i = 0; i < NODE_BLOBS_MAX; i++)
        if (b->whole[i]) {
            node_program_free(b->whole[i]);
            free(b->whole[i]);
        }
    free(b->bytes);
    *b = (struct blobs){0};
}

static int take_whole(struct blobs *b, struct cw_err *err)
{
    struct node_program *program = calloc(1, sizeof(*program));

    if (!program)
        return cw_err_set(err, CW_ENOMEM, "no memory for a program");
    if (node_program_get(b->bytes, b->size, program, err) < 0) {
        free(program);
        return err->code;
    }
    if (b->number > 0 && !program->of.argv[0]) {
        node_program_free(program);
        free(program);
        return cw_err_set(err, CW_EPROTO, "a program without a name");
    }
    b->whole[b->number] = program;
    if (b->number == 0)
        environ = (char **)program->of.env;
    free(b->bytes);
    b->bytes = NULL;
    return CW_OK;
}

int blobs_take(struct blobs *b, const uint8_t *body, size_t size, struct cw_err *err)
{
    struct node_part part;

    if (!node_part_get(body, size, &part) || b->whole[part.number] ||
        (b->bytes && (part.number != b->number || part.size != b->size)) ||
        part.part > part.size - (b->bytes ? b->used : 0))
        return cw_err_set(err, CW_EPROTO, "a part of a program that makes no sense");
    if (!b->bytes) {
        b->bytes = malloc(part.size);
        if (!b->bytes)
            return cw_err_set(err, CW_ENOMEM, "no memory for a program of %u bytes", part.size);
        b->number = part.number;
        b->size = part.size;
        b->used = 0;
    }
    memcpy(b->bytes + b->used, part.bytes, part.part);
    b->used += (uint32_t)part.part;
    return b->used == b->size ? take_whole(b, err) : CW_OK;
}

const struct launch_program *blobs_program(const struct blobs *b, uint32_t number)
{
    return b->whole[number] ? &b->whole[number]->of : NULL;
}
