/* `causeway log`: looks at the logs of a relay that is away. */
#include "common/cred.h"
#include "common/keyfile.h"
#include "common/options.h"
#include "dispatcher/cli/commands.h"
#include "dispatcher/status/log_document.h"
#include "dispatcher/status/table.h"
#include "relay/inspect/files.h"
#include "relay/inspect/image.h"

#include <getopt.h>
#include <stdio.h>
#include <string.h>

#define SAID_MAX 1000u /* lines about damage; more is only counted */

static const char usage[] =
    "usage: causeway log show [--json] DIR\n"
    "       causeway log verify [--key-file FILE] DIR\n"
    "\n"
    "Looks at the logs of a relay with --log-safety sync that is not running. DIR is the\n"
    "directory that holds journal.0 and journal.1. Nothing in it is changed.\n"
    "\n"
    "show prints which journal counts, and the jobs, ranks and sessions in it. verify reads\n"
    "all of it, the segments on disk too, checks every sum and every record, and tries\n"
    "whether a relay can go on with it. A commit that had not ended is no damage.\n"
    "\n";

struct log_options {
    bool json;
    bool help;
    bool verify;
    const char *key_file; /* NULL: there is none */
    const char *dir;
};

static int parse_words(struct log_options *o, int count, char **words, struct cw_err *err)
{
    if (count == 0)
        return cw_err_set(err, CW_EINVAL, "expected show or verify; see causeway log --help");
    o->verify = strcmp(words[0], "verify") == 0;
    if (!o->verify && strcmp(words[0], "show") != 0)
        return cw_err_set(err, CW_EINVAL, "unknown command '%s'; expected show or verify",
                          words[0]);
    if (o->verify ? o->json : o->key_file != NULL)
        return cw_err_set(err, CW_EINVAL, "%s is no option of causeway log %s",
                          o->json ? "--json" : "--key-file", words[0]);
    if (count == 1)
        return cw_err_set(err, CW_EINVAL, "%s: no directory; see causeway log --help", words[0]);
    if (count > 2)
        return cw_err_set(err, CW_EINVAL, "unexpected argument '%s'; see causeway log --help",
                          words[2]);
    o->dir = words[1];
    return CW_OK;
}

#define AT(field) offsetof(struct log_options, field)

static const struct cw_option list[] = {
    {"json", .at = AT(json), .help = "show: the document as it is, on one line"},
    {"key-file", .argument = "FILE", CW_OPTION_TEXT, AT(key_file),
     .help = "verify: the key of the relay; needed to try jobs over several relays"},
    {"help", .at = AT(help), .help = "this text"},
    {0}};

static const struct cw_options options = {
    .command = "causeway log",
    .usage = usage,
    .groups = (const struct cw_option_group[]){{NULL, list, 0}, {0}},
    .end = "\n"
           "Exit code: 0; 1 when verify finds damage that loses something, or DIR cannot be read;\n"
           "2 bad usage.\n"};

/* Of the journal that counts. */
static int open_image(struct inspect_image *image, struct inspect_files *files, struct cw_err *err)
{
    const struct inspect_journal *journal = &files->journals[files->counts];

    if (inspect_image_open(image, journal->bytes, &journal->summary, inspect_files_segment, files,
                           err) == CW_OK)
        return CW_OK;
    return cw_err_wrap(err, "journal.%d", files->counts);
}

/* --- show ----------------------------------------------------------------------------------------
 */

static void print(const struct log_options *o, const json_t *document, uint64_t damaged)
{
    if (o->json)
        table_put_json(document);
    else
        log_table(stdout, document);
    if (damaged && !o->json)
        printf("\nlogs are damaged; see causeway log verify %s\n", o->dir);
}

static int show(const struct log_options *o, struct inspect_files *files, struct cw_err *err)
{
    json_t *document = log_document(o->dir, files);
    struct inspect_damage damage = {0};
    struct inspect_image image;
    int failed = document ? CW_OK : cw_err_set(err, CW_ENOMEM, "no memory");

    if (!failed && files->counts >= 0) {
        failed = open_image(&image, files, err);
        if (!failed) {
            json_object_set_new(document, "jobs", log_jobs(&image, &damage));
            inspect_image_close(&image);
        }
    }
    if (document)
        print(o, document, damage.count);
    json_decref(document);
    return failed;
}

/* --- verify --------------------------------------------------------------------------------------
 */

static void say(void *ctx, const char *what)
{
    const struct inspect_damage *damage = ctx;

    if (damage->count <= SAID_MAX)
        puts(what);
    if (damage->count == SAID_MAX)
        puts("... and more");
}

static int verify_tail(const struct inspect_files *files, struct inspect_damage *damage,
                       struct cw_err *err)
{
    struct inspect_tail tail;
    int failed = inspect_tail(files, &tail, err);

    if (!failed && tail.lost)
        inspect_damaged(damage,
                        "journal.%d is damaged at %llu: commits that had ended, up to one at %llu "
                        "at least, cannot be read",
                        tail.file, (unsigned long long)tail.broke, (unsigned long long)tail.at);
    return failed;
}

static void tell_journal(const struct inspect_files *files)
{
    const struct inspect_journal *journal = &files->journals[files->counts];

    printf("journal %llu in journal.%d: %llu commits\n",
           (unsigned long long)journal->summary.journal, files->counts,
           (unsigned long long)journal->summary.commits);
    if (journal->summary.parts > journal->summary.committed)
        puts("a commit had not ended when the relay did; that is normal, and nothing is lost");
}

static void tell_totals(const struct inspect_totals *totals)
{
    char journal[TABLE_CELL_MAX];
    char disk[TABLE_CELL_MAX];

    table_bytes(totals->sizes.journal, journal, sizeof(journal));
    table_bytes(totals->sizes.disk, disk, sizeof(disk));
    printf("%u jobs, %u ranks, %u sessions; %s in the journal, %s in %u segments on disk\n",
           totals->jobs, totals->ranks, totals->sessions, journal, disk, totals->sizes.segments);
}

/* The key of the relay; zeros where none is given. */
static int load_key(const struct log_options *o, const struct journal_summary *summary,
                    uint8_t key[CW_KEY_SIZE], struct cw_err *err)
{
    memset(key, 0, CW_KEY_SIZE);
    if (!o->key_file)
        return CW_OK;
    if (cw_key_load(o->key_file, key, err) < 0)
        return err->code;
    if (cw_cred_mark(key) == summary->relay)
        return CW_OK;
    return cw_err_set(err, CW_EAUTH,
                      "%s is not the key of the relay that wrote these logs; give that key",
                      o->key_file);
}

/* A core takes it up. */
static int verify_trial(const struct log_options *o, const uint8_t key[CW_KEY_SIZE],
                        struct inspect_image *image, const struct inspect_totals *totals,
                        struct inspect_damage *damage, struct cw_err *err)
{
    struct relay_returned returned;

    if (!o->key_file && totals->linked > 0) {
        puts("not tried whether a relay can go on: that needs its key (--key-file)");
        return CW_OK;
    }
    if (inspect_trial(image, key, &returned, err) < 0)
        return err->code;
    if (returned.jobs < totals->jobs)
        inspect_damaged(damage, "a relay that comes back loses %u of %u jobs%s%s",
                        totals->jobs - returned.jobs, totals->jobs,
                        returned.lost ? "; the last: " : "", returned.why);
    return CW_OK;
}

static int verify_image(const struct log_options *o, struct inspect_files *files,
                        struct inspect_damage *damage, struct cw_err *err)
{
    uint8_t key[CW_KEY_SIZE];
    struct inspect_totals totals;
    struct inspect_image image;
    int failed = load_key(o, &files->journals[files->counts].summary, key, err);

    if (!failed)
        failed = open_image(&image, files, err);
    if (failed)
        return failed;
    inspect_states(&image, &totals, damage);
    tell_totals(&totals);
    failed = verify_trial(o, key, &image, &totals, damage, err);
    inspect_image_close(&image);
    return failed;
}

static int verify(const struct log_options *o, struct inspect_files *files, struct cw_err *err)
{
    struct inspect_damage damage = {.say = say, .ctx = &damage};
    int failed = verify_tail(files, &damage, err);

    if (!failed && files->counts < 0 && damage.count == 0)
        puts("no commit has ended: a relay that begins here begins anew");
    if (!failed && files->counts >= 0) {
        tell_journal(files);
        failed = verify_image(o, files, &damage, err);
    }
    if (failed)
        return failed;
    if (damage.count > 0)
        return cw_err_set(err, CW_EPROTO, "%llu faults; what is lost there cannot be restored",
                          (unsigned long long)damage.count);
    puts("whole");
    return CW_OK;
}

/* --- the command ---------------------------------------------------------------------------------
 */

static int run(const struct log_options *o, struct cw_err *err)
{
    struct inspect_files files;
    int failed = inspect_files_open(&files, o->dir, err);

    if (failed)
        return failed;
    failed = o->verify ? verify(o, &files, err) : show(o, &files, err);
    inspect_files_close(&files);
    if (failed)
        return cw_err_wrap(err, "%s", o->dir);
    if (fflush(stdout) == 0)
        return CW_OK;
    return cw_err_set(err, CW_ESYS, "standard output: %m");
}

int cmd_log(int argc, char **argv)
{
    struct log_options o = {0};
    struct cw_err err = {0};
    int code = 0;

    if (cw_options_parse(&options, argc, argv, &o, NULL, &err) < 0 ||
        (!o.help && parse_words(&o, argc - optind, argv + optind, &err) < 0))
        code = 2;
    else if (o.help)
        cw_options_help(&options, stdout);
    else if (run(&o, &err) < 0)
        code = 1;
    if (code) {
        fflush(stdout);
        fprintf(stderr, "causeway log: %s\n", err.text);
    }
    return code;
}
