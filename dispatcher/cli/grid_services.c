#include "dispatcher/cli/grid_services.h"
#include "common/keyfile.h"
#include "common/secret.h"
#include "dispatcher/hosts/service_batch.h"
#include "dispatcher/status/table.h"

#include <errno.h>
#include <signal.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

struct session {
    const struct grid_services_options *options;
    struct service_batch batch;
    struct service_row *rows;
    int count;
    char *key; /* as the text of a file */
};

/* --- what is needed --- */

static int take_key(struct session *s, struct cw_err *err)
{
    uint8_t *key;

    s->key = cw_secret_alloc(CW_KEY_LINE + 1);
    key = cw_secret_alloc(CW_KEY_SIZE);
    if (!s->key || !key) {
        cw_err_set(err, CW_ENOMEM, "no memory for the key");
    } else if (grid_state_key(&s->batch.place.grid, key, err) == CW_OK) {
        sodium_bin2hex(s->key, CW_KEY_LINE, key, CW_KEY_SIZE);
        strcat(s->key, "\n");
    }
    cw_secret_free(key, CW_KEY_SIZE);
    return err->code;
}

/* A key that was made here would not be that of the other sites. Where nothing gets in, somebody
 * has to begin without it. */
static int take_key_if_there(struct session *s, struct cw_err *err)
{
    struct service_batch *b = &s->batch;
    const struct grid *grid = &b->place.grid;
    char path[PATH_MAX];

    if (grid_state_path(grid, GRID_STATE_KEY, path, err) < 0)
        return err->code;
    if (access(path, F_OK) == 0 || b->site == GRID_OUTSIDE || b->site != b->place.here ||
        grid->site[b->site].published_at == GRID_OUTSIDE)
        return take_key(s, err);
    fprintf(stderr,
            "%s: the key of grid %s is not on this machine (%s), so site %s is published, and no "
            "more: 'causeway up' where the key is starts its other services\n",
            s->options->command, grid->name, path, s->options->site);
    b->publish_only = true;
    return CW_OK;
}

static int prepare(struct session *s, struct cw_err *err)
{
    const struct grid_services_options *o = s->options;
    struct service_batch *b = &s->batch;

    b->op = o->op;
    b->file = o->file;
    b->site = GRID_OUTSIDE;
    if (readlink("/proc/self/exe", b->causeway, sizeof(b->causeway) - 1) < 0)
        return cw_err_set(err, CW_ESYS, "/proc/self/exe: %s", strerror(errno));
    if (grid_place_open(&b->place, o->file, o->here, err) < 0)
        return err->code;
    if (o->site && (b->site = grid_find(&b->place.grid, o->site)) == GRID_OUTSIDE)
        return cw_err_set(err, CW_EINVAL, "--site %s: grid %s has no such site", o->site,
                          b->place.grid.name);
    return strcmp(o->op, "start") == 0 ? take_key_if_there(s, err) : CW_OK;
}

static int work(struct session *s, struct cw_err *err)
{
    s->batch.plan = (struct plan){.grid = &s->batch.place.grid, .key = s->key};
    s->rows = calloc(BATCH_ROWS_MAX, sizeof(*s->rows));
    s->count = s->rows ? service_batch_run(&s->batch, s->rows, err)
                       : cw_err_set(err, CW_ENOMEM, "no memory");
    return s->count < 0 ? s->count : CW_OK;
}

/* --- what is shown --- */

static void cell_state(const json_t *row, char *to)
{
    unsigned long long pid = table_number(row, "pid");
    const char *note = table_text(row, "note");
    time_t since = (time_t)table_number(row, "since");
    char moment[32] = "";
    struct tm utc;
    int used;

    if (since > 0 && gmtime_r(&since, &utc))
        strftime(moment, sizeof(moment), " since %Y-%m-%d %H:%M:%SZ", &utc);
    used = snprintf(to, TABLE_CELL_MAX, "%s%s", table_text(row, "state"), pid ? moment : "");
    if (pid)
        used += snprintf(to + used, (size_t)(TABLE_CELL_MAX - used), ", pid %llu", pid);
    if (json_is_true(json_object_get(row, "well")) && note[0] && used < TABLE_CELL_MAX)
        snprintf(to + used, (size_t)(TABLE_CELL_MAX - used), ": %s", note);
}

static const struct table_column columns[] = {
    {.title = "SITE", .text = "site"},      {.title = "SERVICE", .text = "service"},
    {.title = "HOST", .text = "host"},      {.title = "ADDRESS", .text = "address"},
    {.title = "STATE", .cell = cell_state},
};

static json_t *row_json(const struct session *s, const struct service_row *r)
{
    const struct grid_site *site = &s->batch.place.grid.site[r->site];
    json_t *answer = service_answer_put(&r->answer), *row;
    char address[CW_ADDRESS_MAX];

    plan_address(&s->batch.plan, r->site, r->service, address);
    row = json_pack("{s:s, s:s, s:s, s:s}", "site", site->name, "service", plan_names[r->service],
                    "host", site->host[r->host].name, "address", address);
    if (!r->reached)
        json_object_update_new(
            row, json_pack("{s:s, s:b, s:s}", "state", "unreachable", "well", 0, "why", r->why));
    json_object_update_missing(row, answer);
    json_decref(answer);
    return row;
}

static bool is_as_asked(const struct session *s, const struct service_row *r)
{
    bool look = strcmp(s->options->op, "look") == 0;

    return r->reached && r->answer.well && (!look || r->answer.state == SERVICE_RUNS);
}

/* Of the services of one host that cannot be asked, one line is enough. */
static bool is_said(const struct session *s, int i)
{
    const struct service_row *r = &s->rows[i];

    for (int j = 0; j < i && !r->reached; j++)
        if (!s->rows[j].reached && s->rows[j].site == r->site && s->rows[j].host == r->host)
            return true;
    return false;
}

static void complain(const struct session *s, const struct service_row *r)
{
    const struct grid_site *site = &s->batch.place.grid.site[r->site];
    const char *command = s->options->command, *host = site->host[r->host].name;
    const struct service_answer *a = &r->answer;

    if (!r->reached) {
        fprintf(stderr, "%s: site %s, host %s: %s\n", command, site->name, host, r->why);
        return;
    }
    fprintf(stderr, "%s: site %s, %s on %s: %s\n", command, site->name, plan_names[r->service],
            host,
            a->note[0]  ? a->note
            : a->why[0] ? a->why
                        : "it does not run");
    for (uint32_t i = 0; i < a->log_lines; i++)
        fprintf(stderr, "  %s\n", a->log[i]);
}

static void show(const struct session *s, const json_t *rows)
{
    if (!s->options->json) {
        table_put(stdout, columns, sizeof(columns) / sizeof(*columns), rows);
    } else {
        json_t *document =
            json_pack("{s:s, s:O}", "grid", s->batch.place.grid.name, "services", rows);

        table_put_json(document);
        json_decref(document);
    }
    fflush(stdout);
}

static int tell(const struct session *s)
{
    json_t *rows = json_array();
    int code = 0;

    for (int i = 0; i < s->count; i++)
        json_array_append_new(rows, row_json(s, &s->rows[i]));
    show(s, rows);
    json_decref(rows);
    for (int i = 0; i < s->count; i++)
        if (!is_as_asked(s, &s->rows[i])) {
            code = 1;
            if (!is_said(s, i))
                complain(s, &s->rows[i]);
        }
    return code;
}

int grid_services(const struct grid_services_options *options)
{
    struct session s = {.options = options};
    struct cw_err err = {0};
    int code = 1;

    signal(SIGPIPE, SIG_IGN); /* a launcher may have ended when it is asked */
    if (prepare(&s, &err) == CW_OK && work(&s, &err) == CW_OK)
        code = tell(&s);
    else
        fprintf(stderr, "%s: %s\n", options->command, err.text);
    if (err.code == CW_EINVAL)
        code = 2;
    cw_secret_free(s.key, CW_KEY_LINE + 1);
    free(s.rows);
    grid_free(&s.batch.place.grid);
    return code;
}
