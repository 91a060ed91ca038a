#include "dispatcher/status/status_document.h"
#include "dispatcher/status/json_value.h"

#include <sodium.h>
#include <stdio.h>
#include <string.h>

/* null: there is none. */
static json_t *image_document(const struct status_rank *r)
{
    if (!r->image)
        return json_null();
    return json_pack("{s:I, s:f, s:I}", "number", (json_int_t)r->image, "age_s", r->image_age_s,
                     "bytes", (json_int_t)r->image_bytes);
}

/* json_pack takes the references of what it is given, and fails when one of them is NULL. */
static json_t *rank_document(const struct status_rank *r)
{
    return json_pack(
        "{s:I, s:I, s:o, s:I, s:I, s:o, s:I, s:I, s:I, s:I, s:I, s:I, s:o, s:o, s:I, s:o}", "rank",
        (json_int_t)r->rank, "pid", (json_int_t)r->pid, "host", json_value_text(r->host), "slot",
        (json_int_t)r->slot, "incarnation", (json_int_t)r->incarnation, "state",
        json_value_text(r->state), "events", (json_int_t)r->events, "taken", (json_int_t)r->taken,
        "replayed", (json_int_t)r->replayed, "to_replay", (json_int_t)r->to_replay, "acts",
        (json_int_t)r->acts, "log_bytes", (json_int_t)r->log_bytes, "unprotected_s",
        r->unprotected ? json_real(r->unprotected_s) : json_null(), "image", image_document(r),
        "restarts", (json_int_t)r->restarts, "program", json_value_text(r->program));
}

/* NULL without memory. */
static json_t *numbers(const uint32_t *number, uint32_t count)
{
    json_t *array = json_array();

    for (uint32_t i = 0; array && i < count; i++) {
        if (json_array_append_new(array, json_integer(number[i])) < 0) {
            json_decref(array);
            return NULL;
        }
    }
    return array;
}

static json_t *backups_document(const struct status_copies *c)
{
    json_t *array = json_array();

    for (uint32_t i = 0; array && i < c->backups; i++)
        if (json_array_append_new(array, json_value_text(c->backup[i])) < 0) {
            json_decref(array);
            return NULL;
        }
    return array;
}

/* NULL without memory. */
static json_t *copies_document(const struct status_job *job)
{
    json_t *array = json_array();

    for (uint32_t i = 0; array && i < job->copied; i++) {
        const struct status_copies *c = &job->copies[i];
        bool covered = strcmp(c->state, "covered") == 0;
        json_t *one =
            json_pack("{s:I, s:o, s:o, s:s, s:o}", "relay", (json_int_t)c->relay, "host",
                      json_value_text(c->host), "backups", backups_document(c), "state", c->state,
                      "uncovered_s", covered ? json_null() : json_real(c->uncovered_s));

        if (json_array_append_new(array, one) < 0) {
            json_decref(array);
            return NULL;
        }
    }
    return array;
}

json_t *status_document(const struct status_job *job)
{
    char id[2 * CW_ID_SIZE + 1];
    json_t *ranks = json_array();

    for (uint32_t i = 0; ranks && i < job->ranks; i++) {
        if (json_array_append_new(ranks, rank_document(&job->rank[i])) < 0) {
            json_decref(ranks);
            return NULL;
        }
    }
    sodium_bin2hex(id, sizeof(id), job->id, CW_ID_SIZE);
    return json_pack("{s:s, s:I, s:o, s:o, s:o, s:o, s:o, s:o}", "job", id, "pid",
                     (json_int_t)job->pid, "started", json_value_time(&job->started), "command",
                     json_value_text(job->command), "relay", json_value_text(job->relay),
                     "relay_restarts", numbers(job->relay_restarts, job->relays), "copies",
                     copies_document(job), "ranks", ranks);
}

static void add(char *command, const char *before, const char *text)
{
    size_t used = strlen(command);

    snprintf(command + used, STATUS_COMMAND_MAX - used, "%s%s", before, text);
}

void status_command(const struct run_options *options, char command[STATUS_COMMAND_MAX])
{
    char ranks[32];

    command[0] = '\0';
    for (uint32_t i = 0; i < options->segment_count; i++) {
        const struct run_segment *segment = &options->segments[i];

        snprintf(ranks, sizeof(ranks), "-n %u", segment->ranks);
        add(command, i ? " : " : "", ranks);
        for (char *const *arg = segment->argv; *arg; arg++)
            add(command, " ", *arg);
    }
}
