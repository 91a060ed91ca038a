/* A client of a checkpoint server, with images that it makes up:
 *
 *   image_tool put ADDRESS KEYFILE JOB RANK INCARNATION NUMBER BASE BLOCKS [OPTION...]
 *   image_tool fetch ADDRESS KEYFILE JOB RANK INCARNATION NUMBER BLOCKS
 *   image_tool list ADDRESS KEYFILE JOB
 *   image_tool drop ADDRESS KEYFILE JOB RANK NUMBER
 *   image_tool wait ADDRESS KEYFILE JOB COUNT
 *   image_tool garbage ADDRESS KEYFILE JOB COUNT
 *
 * JOB is 32 hexadecimal digits. fetch compares the image with the one that was put. RANK of drop
 * can be "all". wait waits for that many STORED. garbage sends that often what is no frame, or one
 * that is not for a checkpoint server.
 *
 * Options of put: plain (no block is compressed or zero), piece=N (bytes of a write), stop=N (ends
 * after N bytes of the stream), hang=N (waits there to be killed), flip=N (byte N of the stream is
 * another one), rank=N, number=N, version=N (in the stream's header), behind=N (N zeros follow the
 * end). */
#include "common/keyfile.h"
#include "common/transport.h"
#include "tests/lib/image_client.h"
#include "tests/lib/image_maker.h"

#include <inttypes.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define SEED 7

static double seconds(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static uint32_t number_of(const char *text)
{
    return (uint32_t)strtoull(text, NULL, 0);
}

/* The value of NAME=VALUE, or `otherwise`. */
static uint64_t option(char **options, const char *name, uint64_t otherwise)
{
    size_t size = strlen(name);

    for (; *options; options++)
        if (strncmp(*options, name, size) == 0 && (*options)[size] == '=')
            return strtoull(*options + size + 1, NULL, 0);
        else if (strcmp(*options, name) == 0)
            return 1;
    return otherwise;
}

struct place {
    const char *address;
    uint8_t key[CW_KEY_SIZE];
    uint8_t job[CW_ID_SIZE];
};

static int find(struct place *place, char **words, struct cw_err *err)
{
    place->address = words[0];
    for (int i = 0; i < CW_ID_SIZE; i++)
        sscanf(words[2] + (ptrdiff_t)2 * i, "%2hhx", &place->job[i]);
    return cw_key_load(words[1], place->key, err);
}

static int open_as(struct image_client *client, const struct place *place, uint16_t role,
                   uint32_t rank, uint32_t incarnation, struct cw_err *err)
{
    struct cw_hello hello = {.role = role, .rank = rank, .incarnation = incarnation};

    memcpy(hello.job, place->job, CW_ID_SIZE);
    return image_client_open(client, place->address, place->key, &hello, err);
}

static void change(struct image_stream *stream, char **options)
{
    struct cw_image_header *header =
        (struct cw_image_header *)(stream->bytes + sizeof(struct cw_image_record));
    uint64_t flip = option(options, "flip", UINT64_MAX);
    size_t behind = option(options, "behind", 0);

    header->rank = (uint32_t)option(options, "rank", header->rank);
    header->number = (uint32_t)option(options, "number", header->number);
    header->version = (uint32_t)option(options, "version", header->version);
    if (flip < stream->size)
        stream->bytes[flip] ^= 4;
    stream->bytes = realloc(stream->bytes, stream->size + behind);
    if (!stream->bytes)
        abort();
    memset(stream->bytes + stream->size, 0, behind);
    stream->size += behind;
}

static int send_stream(struct image_client *client, const struct image_stream *stream,
                       char **options, struct cw_err *err)
{
    uint64_t hang = option(options, "hang", UINT64_MAX);
    uint64_t stop = option(options, "stop", hang);
    size_t piece = option(options, "piece", 1 << 20);
    size_t size = stop < stream->size ? stop : stream->size;

    for (size_t at = 0; at < size && !err->code; at += piece)
        image_client_write(client, stream->bytes + at, size - at < piece ? size - at : piece, err);
    if (size == stream->size)
        return CW_OK; /* what is wrong is read */
    if (hang != UINT64_MAX) {
        puts("hangs");
        fflush(stdout);
        pause();
    }
    exit(0);
}

static int put(char **words, struct cw_err *err)
{
    struct image_plan plan = {.rank = number_of(words[3]),
                              .incarnation = number_of(words[4]),
                              .number = number_of(words[5]),
                              .base = number_of(words[6]),
                              .blocks = number_of(words[7]),
                              .seed = SEED,
                              .plain = option(words + 8, "plain", 0)};
    struct image_stream stream = {0};
    struct image_client client;
    struct cw_stored stored;
    struct place place;
    struct cw_put ask;
    double begun;

    if (find(&place, words, err) < 0 ||
        open_as(&client, &place, CW_ROLE_IMAGE, plan.rank, plan.incarnation, err) < 0)
        return err->code;
    memcpy(plan.job, place.job, CW_ID_SIZE);
    image_make(&plan, &stream);
    ask = image_put(&plan);
    if (image_client_begin(&client, &ask, &plan.base, err) < 0)
        return err->code;
    if (plan.base != ask.base)
        image_make(&plan, &stream);
    change(&stream, words + 8);
    begun = seconds();
    send_stream(&client, &stream, words + 8, err);
    *err = (struct cw_err){0};
    if (image_client_stored(&client, &stored, err) < 0)
        return err->code;
    begun = seconds() - begun;
    printf("stored rank %u number %u base %u bytes %" PRIu64 " new %" PRIu64 " stream %zu\n",
           stored.rank, stored.number, plan.base, stored.bytes, stored.stored, stream.size);
    fprintf(stderr, "%.3f s, %.0f MB/s\n", begun, (double)stream.size / begun / 1e6);
    return CW_OK;
}

static int compare(struct image_client *client, const struct image_stream *stream, uint64_t size,
                   struct cw_err *err)
{
    uint8_t *bytes = malloc(1 << 20);

    if (size != stream->size)
        cw_err_set(err, CW_EPROTO, "a stream of %" PRIu64 " bytes, expected %zu", size,
                   stream->size);
    for (size_t at = 0; at < stream->size && !err->code; at += 1 << 20) {
        size_t n = stream->size - at < 1 << 20 ? stream->size - at : 1 << 20;

        if (image_client_read(client, bytes, n, err) == CW_OK &&
            memcmp(bytes, stream->bytes + at, n) != 0)
            cw_err_set(err, CW_EPROTO, "another stream from about byte %zu on", at);
    }
    free(bytes);
    return err->code;
}

static int fetch(char **words, struct cw_err *err)
{
    struct image_plan plan = {.rank = number_of(words[3]),
                              .incarnation = number_of(words[4]),
                              .number = number_of(words[5]),
                              .blocks = number_of(words[6]),
                              .seed = SEED,
                              .plain = option(words + 7, "plain", 0)};
    struct image_stream stream = {0};
    struct image_client client;
    struct place place;
    uint64_t size;
    double begun;

    if (find(&place, words, err) < 0 || open_as(&client, &place, CW_ROLE_DISPATCHER, 1, 0, err) < 0)
        return err->code;
    memcpy(plan.job, place.job, CW_ID_SIZE);
    image_make(&plan, &stream);
    begun = seconds();
    if (image_client_list(&client, NULL, NULL, err) < 0 ||
        image_client_fetch(&client, plan.rank, plan.number, &size, err) < 0 ||
        compare(&client, &stream, size, err) < 0)
        return err->code;
    begun = seconds() - begun;
    printf("fetched rank %u number %u stream %" PRIu64 "\n", plan.rank, plan.number, size);
    fprintf(stderr, "%.3f s, %.0f MB/s\n", begun, (double)size / begun / 1e6);
    return CW_OK;
}

static void print_held(void *ctx, const struct cw_stored *s)
{
    (void)ctx;
    printf("held rank %u incarnation %u number %u bytes %" PRIu64 "\n", s->rank, s->incarnation,
           s->number, s->bytes);
}

static int list(char **words, struct cw_err *err)
{
    struct image_client client;
    struct place place;

    if (find(&place, words, err) < 0 || open_as(&client, &place, CW_ROLE_DISPATCHER, 1, 0, err) < 0)
        return err->code;
    return image_client_list(&client, print_held, NULL, err);
}

/* The second connection sees what the first one has done. */
static int drop(char **words, struct cw_err *err)
{
    uint32_t rank = strcmp(words[3], "all") == 0 ? CW_EVERY_RANK : number_of(words[3]);
    struct image_client client;
    struct cw_header header;
    uint8_t body[CW_FRAME_BODY_MAX];
    struct cw_err over = {0};
    struct place place;

    if (find(&place, words, err) < 0 ||
        open_as(&client, &place, CW_ROLE_DISPATCHER, 1, 0, err) < 0 ||
        image_client_list(&client, NULL, NULL, err) < 0 ||
        image_client_drop(&client, rank, number_of(words[4]), err) < 0)
        return err->code;
    /* an image that is not there is refused once DROP is done */
    cw_image_ref_put(body, &(struct cw_image_ref){CW_RANKS_MAX, UINT32_MAX});
    if (image_client_send(&client, CW_FRAME_FETCH, body, CW_IMAGE_REF_SIZE, err) == CW_OK)
        image_client_next(&client, &header, body, &over);
    return err->code;
}

static int wait_for(char **words, struct cw_err *err)
{
    struct image_client client;
    struct cw_stored stored;
    struct place place;

    if (find(&place, words, err) < 0 ||
        open_as(&client, &place, CW_ROLE_DISPATCHER, 1, 0, err) < 0 ||
        image_client_list(&client, print_held, NULL, err) < 0)
        return err->code;
    puts("waits");
    fflush(stdout);
    for (uint32_t i = number_of(words[3]); i > 0; i--) {
        if (image_client_stored(&client, &stored, err) < 0)
            return err->code;
        printf("told rank %u number %u\n", stored.rank, stored.number);
        fflush(stdout);
    }
    return CW_OK;
}

/* Says what is no frame; after HELLO a frame of another kind. The server has to end it. */
static int garbage_once(const struct place *place, bool welcome, struct cw_err *err)
{
    struct image_client client = {.fd = -1};
    uint8_t bytes[CW_FRAME_BODY_MAX];
    struct cw_header header;
    struct cw_address at;
    struct cw_err over = {0};

    for (size_t i = 0; i < sizeof(bytes); i++)
        bytes[i] = (uint8_t)rand();
    if (welcome) {
        if (open_as(&client, place, CW_ROLE_IMAGE, 0, 1, err) < 0 ||
            image_client_send(&client, CW_FRAME_SEND, bytes, CW_SEND_SIZE, err) < 0)
            return err->code;
        if (image_client_next(&client, &header, bytes, &over) != CW_EAUTH)
            cw_err_set(err, CW_EPROTO, "a frame that is not for here is not refused");
    } else {
        if (cw_address_parse(&at, place->address, err) < 0 ||
            (client.fd = cw_connect(&at, err)) < 0)
            return err->code;
        image_client_write(&client, bytes, 1 + (size_t)rand() % 400, &over);
        shutdown(client.fd, SHUT_WR);
        for (over.code = 0; over.code == 0;)
            image_client_read(&client, bytes, 1, &over);
        if (over.code != CW_ECLOSED)
            cw_err_set(err, CW_EPROTO, "what is no frame does not end the connection");
    }
    image_client_close(&client);
    return err->code;
}

static int garbage(char **words, struct cw_err *err)
{
    struct place place;

    if (find(&place, words, err) < 0)
        return err->code;
    for (uint32_t i = 0; i < number_of(words[3]) && !err->code; i++)
        garbage_once(&place, i % 2, err);
    return err->code;
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        int words;
        int (*run)(char **words, struct cw_err *err);
    } commands[] = {{"put", 8, put},   {"fetch", 7, fetch},   {"list", 3, list},
                    {"drop", 5, drop}, {"wait", 4, wait_for}, {"garbage", 4, garbage}};
    struct cw_err err = {0};

    signal(SIGPIPE, SIG_IGN);
    for (size_t i = 0; argc > 1 && i < sizeof(commands) / sizeof(*commands); i++)
        if (strcmp(argv[1], commands[i].name) == 0 && argc - 2 >= commands[i].words) {
            if (commands[i].run(argv + 2, &err) == CW_OK)
                return 0;
            fprintf(stderr, "image_tool: %s\n", err.text);
            return 1;
        }
    fprintf(stderr, "usage: see the source\n");
    return 2;
}
