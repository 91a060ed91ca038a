/* `causeway ckpt`: looks at the images that a checkpoint server keeps, and removes some. */
#include "ckptsrv/vault.h"
#include "ckptsrv/verify.h"
#include "common/options.h"
#include "common/parse.h"
#include "dispatcher/cli/ckpt_images.h"
#include "dispatcher/cli/commands.h"
#include "dispatcher/state/state_file.h"
#include "dispatcher/status/status_client.h"
#include "dispatcher/status/table.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static const char usage[] =
    "usage: causeway ckpt list|show|verify|rm [options] --dir DIR [JOB [RANK [NUMBER]]]\n"
    "       causeway ckpt now [JOB]\n"
    "\n"
    "Looks at the images in the directory of a checkpoint server: all of them, those of a job,\n"
    "of a rank, or one. JOB is its identifier or how that begins.\n"
    "\n"
    "list prints a line for each image, show all that is known of it. verify reads all blocks,\n"
    "and compares them with their checksums. rm removes the images: JOB is needed, and no server\n"
    "may be using the directory. The others change nothing, and a server may run.\n"
    "\n"
    "now has an image taken of each rank of a running job, waits until it is stored, or failed, "
    "and\n"
    "prints a line for each rank. JOB is the pid of its causeway run, or how its identifier "
    "begins;\n"
    "without it: the job that runs.\n"
    "\n";

enum action { LIST, SHOW, VERIFY, REMOVE, NOW };

static const char *const actions[] = {"list", "show", "verify", "rm", "now"};
#define ACTIONS (sizeof(actions) / sizeof(*actions))

struct ckpt_options {
    enum action action;
    bool json;
    bool help;
    const char *dir;
    const char *running; /* of NOW: the job; NULL: that which runs */
    struct ckpt_choice choice;
};

static int parse_choice(struct ckpt_choice *choice, int count, char **words, struct cw_err *err)
{
    uint64_t value;

    if (count > 0) {
        choice->job = words[0];
        if (strspn(words[0], "0123456789abcdef") != strlen(words[0]) || !words[0][0])
            return cw_err_set(err, CW_EINVAL,
                              "'%s' is no job: give the hexadecimal digits that "
                              "'causeway ckpt list' prints, or the first of them",
                              words[0]);
    }
    if (count > 1) {
        if (cw_parse_number("rank", words[1], 0, CW_RANKS_MAX - 1, &value, err) < 0)
            return err->code;
        choice->rank = (uint32_t)value;
        choice->has_rank = true;
    }
    if (count > 2) {
        if (cw_parse_number("number", words[2], 1, UINT32_MAX, &value, err) < 0)
            return err->code;
        choice->number = (uint32_t)value;
        choice->has_number = true;
    }
    if (count > 3)
        return cw_err_set(err, CW_EINVAL, "unexpected argument '%s'; see causeway ckpt --help",
                          words[3]);
    return CW_OK;
}

static int parse_words(struct ckpt_options *o, int count, char **words, struct cw_err *err)
{
    size_t action = 0;

    if (count == 0)
        return cw_err_set(err, CW_EINVAL,
                          "expected list, show, verify, rm or now; see causeway ckpt --help");
    while (action < ACTIONS && strcmp(words[0], actions[action]) != 0)
        action++;
    if (action == ACTIONS)
        return cw_err_set(err, CW_EINVAL,
                          "unknown command '%s'; expected list, show, verify, rm or now", words[0]);
    o->action = (enum action)action;
    if (o->json && o->action >= VERIFY)
        return cw_err_set(err, CW_EINVAL, "--json is no option of causeway ckpt %s", words[0]);
    if (o->action == NOW) {
        o->running = words[1];
        return count > 2 || o->dir
                   ? cw_err_set(err, CW_EINVAL,
                                "unexpected argument '%s'; see causeway ckpt --help",
                                count > 2 ? words[2] : "--dir")
                   : CW_OK;
    }
    if (!o->dir)
        return cw_err_set(err, CW_EINVAL, "no --dir DIR; see causeway ckpt --help");
    if (parse_choice(&o->choice, count - 1, words + 1, err) < 0)
        return err->code;
    if (o->action == REMOVE && !o->choice.job)
        return cw_err_set(err, CW_EINVAL, "rm: which JOB? See causeway ckpt list --dir %s", o->dir);
    return CW_OK;
}

#define AT(field) offsetof(struct ckpt_options, field)

static const struct cw_option list[] = {
    {"dir", .argument = "DIR", CW_OPTION_TEXT, AT(dir), .help = "the directory"},
    {"json", .at = AT(json), .help = "list and show: a document, on one line"},
    {"help", .at = AT(help), .help = "this text"},
    {0}};

static const struct cw_options options = {
    .command = "causeway ckpt",
    .usage = usage,
    .groups = (const struct cw_option_group[]){{NULL, list, 0}, {0}},
    .end =
        "\n"
        "Exit code: 0; 1 when verify finds damage, now does not get all images, there is no such "
        "image\n"
        "or job, or something failed; 2 bad usage.\n"};

/* --- the commands --------------------------------------------------------------------------------
 */

static int tell(const struct ckpt_options *o, const struct ckpt_images *images, struct cw_err *err)
{
    json_t *document = ckpt_images_document(images, o->dir);

    if (!document)
        return cw_err_set(err, CW_ENOMEM, "no memory");
    if (o->json)
        table_put_json(document);
    else
        ckpt_images_print(stdout, document, o->action == SHOW);
    json_decref(document);
    return CW_OK;
}

/* A server that runs may remove an image meanwhile, and use its blocks for another: that is no
 * damage. */
static bool is_gone(const struct imgdir *dir, const struct ckpt_image *image)
{
    struct cw_err why = {0};
    uint8_t *bytes = NULL;
    size_t size;

    imgdir_get_index(dir, image->job, image->rank, image->number, &bytes, &size, &why);
    free(bytes);
    return why.code == CW_ENOTFOUND;
}

static int verify(const struct imgdir *dir, const struct ckpt_images *images, struct cw_err *err)
{
    unsigned damaged = 0;

    for (size_t i = 0; i < images->count; i++) {
        const struct ckpt_image *image = &images->at[i];
        char job[IMGDIR_JOB_TEXT];
        struct cw_err why = {0};

        imgdir_job_text(job, image->job);
        if (verify_image(dir, image->job, image->rank, image->number, &why) < 0 &&
            is_gone(dir, image))
            continue;
        printf("job %s, rank %u, image %u: %s\n", job, image->rank, image->number,
               why.code ? why.text : "whole");
        damaged += why.code != 0;
    }
    if (damaged == 0)
        return CW_OK;
    return cw_err_set(err, CW_EPROTO,
                      "%u of %zu images are damaged; ranks cannot go on from them: remove them "
                      "(causeway ckpt rm)",
                      damaged, images->count);
}

/* Those of several jobs are not removed by accident. */
static int check_one_job(const struct ckpt_images *images, struct cw_err *err)
{
    for (size_t i = 1; i < images->count; i++)
        if (memcmp(images->at[i].job, images->at[0].job, CW_ID_SIZE) != 0)
            return cw_err_set(err, CW_EINVAL, "several jobs begin so; give more digits");
    return CW_OK;
}

/* A job with --job-dir has its images there, beside its state: it can still be resumed. */
static void warn_if_kept(const char *dir)
{
    char path[STATE_DIR_MAX];
    struct stat st;

    if ((size_t)snprintf(path, sizeof(path), "%s/../%s", dir, STATE_NAME) < sizeof(path) &&
        stat(path, &st) == 0 && S_ISREG(st.st_mode))
        fprintf(stderr,
                "causeway ckpt: %s/.. keeps a job for causeway run --resume; ranks whose logs no "
                "longer reach back to the beginning need these images\n",
                dir);
}

/* Under one lock, so that no server begins before the blocks have gone, too. */
static int remove_all(const struct ckpt_options *o, const struct ckpt_images *images,
                      struct cw_err *err)
{
    struct cw_err blocks = {0};
    struct imgdir dir;
    struct vault *vault;
    size_t removed = 0;

    if (check_one_job(images, err) < 0 || imgdir_open(&dir, o->dir, err) < 0)
        return err->code;
    warn_if_kept(o->dir);
    for (; removed < images->count; removed++)
        if (imgdir_remove_index(&dir, images->at[removed].job, images->at[removed].rank,
                                images->at[removed].number, err) < 0)
            break;
    /* what a server does at its start: blocks that no image needs go */
    vault = vault_open_in(&dir, 0, &blocks);
    vault_close(vault, false, NULL);
    printf("removed %zu images\n", removed);
    if (!vault && !err->code)
        cw_err_set(err, blocks.code, "their blocks may still be there: %s", blocks.text);
    return err->code;
}

static int act(const struct ckpt_options *o, const struct imgdir *dir,
               const struct ckpt_images *images, struct cw_err *err)
{
    if (o->choice.job && images->count == 0)
        return cw_err_set(err, CW_ENOTFOUND, "no such image; see causeway ckpt list --dir %s",
                          o->dir);
    if (o->action == VERIFY)
        return verify(dir, images, err);
    return o->action == REMOVE ? remove_all(o, images, err) : tell(o, images, err);
}

static void run(const struct ckpt_options *o, struct cw_err *err)
{
    struct ckpt_images images;
    struct imgdir dir;

    if (imgdir_open_to_read(&dir, o->dir, err) < 0)
        return;
    if (ckpt_images_find(&images, &dir, &o->choice, err) == CW_OK) {
        act(o, &dir, &images, err);
        ckpt_images_free(&images);
    }
    imgdir_close(&dir, false);
}

/* --- now --- */

/* Returns whether the image is stored. */
static bool tell_rank(const json_t *rank)
{
    const char *state = table_text(rank, "state");
    bool stored = strcmp(state, "stored") == 0;
    char bytes[TABLE_CELL_MAX];

    printf("rank %llu: ", table_number(rank, "rank"));
    if (stored) {
        table_bytes(table_number(rank, "bytes"), bytes, sizeof(bytes));
        printf("image %llu is stored (%s)\n", table_number(rank, "image"), bytes);
    } else if (strcmp(state, "failed") == 0) {
        fputs("no image: ", stdout);
        table_put_text(stdout, table_text(rank, "cause"));
        putchar('\n');
    } else {
        puts("no image came in time");
    }
    return stored;
}

static int tell_images(const json_t *document)
{
    const json_t *rank;
    int code = 0;
    size_t i;

    json_array_foreach(json_object_get(document, "ranks"), i, rank)
    {
        if (!tell_rank(rank))
            code = 1;
    }
    return code;
}

/* Returns 1 when an image is not stored. */
static int ask_images(const char *job, struct cw_err *err)
{
    struct status_found found[STATUS_JOBS_MAX];
    json_t *document = NULL;
    int count = status_find(found);
    int chosen = status_choose(found, count, job, err), code = 0;

    if (chosen >= 0)
        document = status_ask_images(found[chosen].dir, err);
    if (document)
        code = tell_images(document);
    else if (chosen >= 0 && err->code == CW_ENOTFOUND)
        cw_err_set(err, CW_ENOTFOUND,
                   "that job takes no images: it was started with --no-ckpt or --no-log");
    json_decref(document);
    status_forget(found, count);
    return code;
}

int cmd_ckpt(int argc, char **argv)
{
    struct ckpt_options o = {0};
    struct cw_err err = {0};
    int code = 0;

    if (cw_options_parse(&options, argc, argv, &o, NULL, &err) < 0 ||
        (!o.help && parse_words(&o, argc - optind, argv + optind, &err) < 0))
        code = 2;
    else if (o.help)
        cw_options_help(&options, stdout);
    else if (o.action == NOW)
        code = ask_images(o.running, &err);
    else
        run(&o, &err);
    if (!err.code && fflush(stdout) != 0)
        cw_err_set(&err, CW_ESYS, "standard output: %m");
    if (err.code) {
        fflush(stdout);
        fprintf(stderr, "causeway ckpt: %s\n", err.text);
    }
    return err.code && code == 0 ? 1 : code;
}
