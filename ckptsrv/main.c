/* `causeway ckptsrv`: one checkpoint server in the foreground. */
#include "ckptsrv/main.h"
#include "ckptsrv/imgdir.h"
#include "ckptsrv/server.h"
#include "common/keyfile.h"
#include "common/parse.h"
#include "common/secret.h"

#include <getopt.h>
#include <stdio.h>

static const char usage[] =
    "usage: causeway ckptsrv --dir DIR --listen ADDRESS --key-file FILE [options]\n"
    "\n"
    "Runs one checkpoint server in the foreground until SIGTERM or SIGINT: it keeps images of\n"
    "ranks, from which they can go on. ADDRESS is unix:PATH or tcp:HOST:PORT; --listen may be\n"
    "repeated.\n"
    "\n"
    "  --dir DIR            where the images are (made when missing); of this server alone. What\n"
    "                       a server has stored there, the next one finds\n"
    "  --listen ADDRESS     where dispatchers and images connect\n"
    "  --key-file FILE      the server's key (made when missing)\n"
    "  --max BYTES          how much of the disk images may take, like 200G (default: no bound)\n"
    "  --ephemeral          remove all images at the end\n"
    "  --help               this text\n";

enum {
    OPT_DIR = 1,
    OPT_LISTEN,
    OPT_KEY_FILE,
    OPT_KEY_FD,
    OPT_MAX,
    OPT_READY_FD,
    OPT_EPHEMERAL,
    OPT_EPHEMERAL_JOB,
    OPT_HELP
};

static const struct option options[] = {
    {"dir", required_argument, NULL, OPT_DIR},
    {"listen", required_argument, NULL, OPT_LISTEN},
    {"key-file", required_argument, NULL, OPT_KEY_FILE},
    {"key-fd", required_argument, NULL, OPT_KEY_FD}, /* for the dispatcher's own use */
    {"max", required_argument, NULL, OPT_MAX},
    {"ready-fd", required_argument, NULL, OPT_READY_FD},
    {"ephemeral", no_argument, NULL, OPT_EPHEMERAL},
    {"ephemeral-job", required_argument, NULL, OPT_EPHEMERAL_JOB}, /* likewise */
    {"help", no_argument, NULL, OPT_HELP},
    {0},
};

struct ckptsrv_options {
    struct ckptsrv_config config;
    const char *key_file; /* NULL: key_fd */
    int key_fd;
    uint8_t job[CW_ID_SIZE];
    bool told; /* why it does not listen: on ready_fd */
};

static int add_address(struct ckptsrv_config *config, const char *address, struct cw_err *err)
{
    if (config->address_count == CKPTSRV_LISTENERS_MAX)
        return cw_err_set(err, CW_EINVAL, "--listen %s: at most %d addresses", address,
                          CKPTSRV_LISTENERS_MAX);
    config->addresses[config->address_count++] = address;
    return CW_OK;
}

static int take_option(struct ckptsrv_options *o, int opt, const char *value, struct cw_err *err)
{
    switch (opt) {
    case OPT_DIR:
        o->config.dir = value;
        return CW_OK;
    case OPT_LISTEN:
        return add_address(&o->config, value, err);
    case OPT_KEY_FILE:
        o->key_file = value;
        return CW_OK;
    case OPT_KEY_FD:
        return cw_parse_descriptor(value, &o->key_fd, err);
    case OPT_MAX:
        return cw_parse_bytes("--max", value, &o->config.max_bytes, err);
    case OPT_READY_FD:
        return cw_parse_descriptor(value, &o->config.ready_fd, err);
    case OPT_EPHEMERAL_JOB:
        o->config.ephemeral = true;
        o->config.job = o->job;
        return imgdir_job_parse(value, o->job)
                   ? CW_OK
                   : cw_err_set(err, CW_EINVAL, "--ephemeral-job: '%s' is no job", value);
    default:
        o->config.ephemeral = true;
        return CW_OK;
    }
}

/* Returns -1 to go on, or an exit code. */
static int parse(struct ckptsrv_options *o, int argc, char **argv, struct cw_err *err)
{
    int opt;

    optind = 0;
    opterr = 0;
    while ((opt = getopt_long(argc, argv, "+:", options, NULL)) != -1) {
        if (opt == '?' || opt == ':') {
            cw_parse_option_error(opt, argv, "causeway ckptsrv", err);
            return 2;
        }
        if (opt == OPT_HELP) {
            fputs(usage, stdout);
            return 0;
        }
        if (take_option(o, opt, optarg, err) < 0)
            return 2;
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
