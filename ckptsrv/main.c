/* `causeway ckptsrv`: one checkpoint server in the foreground. */
#include "ckptsrv/main.h"
#include "ckptsrv/imgdir.h"
#include "ckptsrv/server.h"
#include "common/keyfile.h"
#include "common/options.h"
#include "common/secret.h"

#include <getopt.h>
#include <stdio.h>

static const char usage[] =
    "usage: causeway ckptsrv --dir DIR --listen ADDRESS --key-file FILE [options]\n"
    "\n"
    "Runs one checkpoint server in the foreground until SIGTERM or SIGINT: it keeps images of\n"
    "ranks, from which they can go on. ADDRESS is unix:PATH or tcp:HOST:PORT; --listen may be\n"
    "repeated.\n"
    "\n";

struct ckptsrv_options {
    struct ckptsrv_config config;
    const char *key_file; /* NULL: key_fd */
    int key_fd;
    uint8_t job[CW_ID_SIZE];
    bool help;
    bool told; /* why it does not listen: on ready_fd */
};

static int add_address(void *to, const char *address, struct cw_err *err)
{
    struct ckptsrv_config *config = to;

    if (config->address_count == CKPTSRV_LISTENERS_MAX)
        return cw_err_set(err, CW_EINVAL, "--listen %s: at most %d addresses", address,
                          CKPTSRV_LISTENERS_MAX);
    config->addresses[config->address_count++] = address;
    return CW_OK;
}

static int take_job(void *to, const char *text, struct cw_err *err)
{
    struct ckptsrv_options *o = to;

    o->config.ephemeral = true;
    o->config.job = o->job;
    return imgdir_job_parse(text, o->job)
               ? CW_OK
               : cw_err_set(err, CW_EINVAL, "--ephemeral-job: '%s' is no job", text);
}

#define AT(field) offsetof(struct ckptsrv_options, field)

/* Descriptors and --ephemeral-job are for the dispatcher's own use. */
static const struct cw_option list[] = {
    {"dir", .argument = "DIR", CW_OPTION_TEXT, AT(config.dir),
     .help = "where the images are (made when missing); of this server alone. What a server has "
             "stored there, the next one finds"},
    {"listen", .argument = "ADDRESS", CW_OPTION_CALL, AT(config), .take = add_address,
     .help = "where dispatchers and images connect"},
    {"key-file", .argument = "FILE", CW_OPTION_TEXT, AT(key_file),
     .help = "the server's key (made when missing)"},
    {"key-fd", .argument = "FD", CW_OPTION_FD, AT(key_fd)},
    {"max", .argument = "BYTES", CW_OPTION_BYTES, AT(config.max_bytes), .min = 1,
     .help = "how much of the disk images may take, like 200G (default: no bound)"},
    {"ready-fd", .argument = "FD", CW_OPTION_FD, AT(config.ready_fd)},
    {"ephemeral", .kind = CW_OPTION_FLAG, .at = AT(config.ephemeral),
     .help = "remove all images at the end"},
    {"ephemeral-job", .argument = "JOB", CW_OPTION_CALL, .take = take_job},
    {"help", .kind = CW_OPTION_FLAG, .at = AT(help), .help = "this text"},
    {0}};

static const struct cw_options options = {
    .command = "causeway ckptsrv",
    .usage = usage,
    .groups = (const struct cw_option_group[]){{NULL, list, 0}, {0}}};

/* Returns -1 to go on, or an exit code. */
static int parse(struct ckptsrv_options *o, int argc, char **argv, struct cw_err *err)
{
    if (cw_options_parse(&options, argc, argv, o, NULL, err) < 0)
        return 2;
    if (o->help) {
        cw_options_help(&options, stdout);
        return 0;
    }
    if (optind < argc)
        cw_err_set(err, CW_EINVAL, "unexpected argument '%s'; see causeway ckptsrv --help",
                   argv[optind]);
    else if (!o->config.dir)
        cw_err_set(err, CW_EINVAL, "no --dir DIR; see causeway ckptsrv --help");
    else if (o->config.address_count == 0)
        cw_err_set(err, CW_EINVAL, "no --listen ADDRESS; see causeway ckptsrv --help");
    else if (!o->key_file && o->key_fd < 0)
        cw_err_set(err, CW_EINVAL, "no --key-file FILE; see causeway ckptsrv --help");
    else
        return -1;
    return 2;
}

static int run(struct ckptsrv_options *o, struct cw_err *err)
{
    uint8_t *key = cw_secret_alloc(CW_KEY_SIZE);
    bool made;

    if (!key)
        return cw_err_set(err, CW_ENOMEM, "no memory for a checkpoint server");
    o->config.key = key;
    if ((o->key_fd >= 0 ? cw_key_read_fd(o->key_fd, key, err)
                        : cw_key_load_or_make(o->key_file, key, &made, err)) == CW_OK)
        o->told = ckptsrv_run(&o->config, err) < 0 && o->config.ready_fd >= 0;
    cw_secret_free(key, CW_KEY_SIZE);
    return err->code;
}

int cmd_ckptsrv(int argc, char **argv)
{
    struct ckptsrv_options o = {.config = {.ready_fd = -1}, .key_fd = -1};
    struct cw_err err = {0};
    int code = parse(&o, argc, argv, &err);

    if (code < 0)
        code = run(&o, &err) < 0 ? 1 : 0;
    if (err.code && !o.told)
        fprintf(stderr, "causeway ckptsrv: %s\n", err.text);
    return code;
}
