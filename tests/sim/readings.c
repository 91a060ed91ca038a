/* The simulator's place of rdevice/clock.c: the same rules, without libc. */
#include "tests/sim/device_shim.h"
#undef device
#include "tests/sim/sim.h"

static void *must(void *at)
{
    if (!at)
        abort();
    return at;
}

void readings_begin(struct sim_process *p, const uint8_t *early, size_t size)
{
    struct process_readings *r = &p->readings;

    r->early = must(malloc(CW_EARLY_MAX));
    r->stream = must(malloc(CW_READINGS_MAX));
    r->repeating = must(malloc(CW_READINGS_MAX));
    if (size)
        memcpy(r->early, early, size);
    r->written = (struct readings_writer){.bytes = r->early, .used = size, .size = CW_EARLY_MAX};
    r->repeated = (struct readings_reader){.bytes = r->early, .left = size};
    r->recording = size == 0;
}

void readings_fini(struct sim_process *p)
{
    free(p->readings.early);
    free(p->readings.stream);
    free(p->readings.repeating);
    p->readings = (struct process_readings){0};
}

static void go_live(struct process_readings *r)
{
    memcpy(r->written.last, r->repeated.last, sizeof(r->written.last));
    r->recording = true;
}

static bool repeat(struct process_readings *r, uint8_t kind, int64_t *number)
{
    enum readings_result result = readings_get_number(&r->repeated, kind, number);

    while (result == READINGS_END) {
        if (!r->attached || !device_readings_wanted()) {
            go_live(r);
            return false;
        }
        result = readings_get_number(&r->repeated, kind, number);
    }
    if (result != READINGS_OK)
        device_fatal(CW_REPORT_FATAL, "the re-execution diverged: it calls %s",
                     readings_kind_name(kind));
    return true;
}

int64_t readings_ask(uint8_t kind)
{
    struct process_readings *r = &process_now->readings;
    int64_t number;

    if (!r->recording && repeat(r, kind, &number))
        return number;
    number = (int64_t)(sim.now_ns ^ sim_below(1000));
    if (!readings_put_number(&r->written, kind, number)) {
        device_send_readings();
        if (!readings_put_number(&r->written, kind, number))
            sim_fail("no room for a reading");
    }
    return number;
}

bool clock_is_mine(void)
{
    return true;
}

void clock_pause(void)
{
}

const uint8_t *clock_early(size_t *size, bool *overflow)
{
    struct process_readings *r = &process_now->readings;

    *size = r->attached ? r->early_size : r->written.used;
    *overflow = false;
    return r->early;
}

void clock_attach(bool log)
{
    struct process_readings *r = &process_now->readings;

    (void)log;
    if (!r->recording && r->repeated.left > 0)
        device_fatal(CW_REPORT_FATAL, "the re-execution diverged before MPI_Init");
    r->early_size = r->written.used;
    r->written = (struct readings_writer){.bytes = r->stream, .size = CW_READINGS_MAX};
    r->repeated = (struct readings_reader){.bytes = r->repeating};
    r->attached = true;
    r->recording = false;
}

void clock_flushed(void)
{
    process_now->readings.written.used = 0;
}

void clock_repeat(const uint8_t *bytes, size_t size)
{
    struct process_readings *r = &process_now->readings;

    if (r->recording || r->repeated.left > 0 || size > CW_READINGS_MAX)
        device_fatal(CW_REPORT_FATAL, "the re-execution diverged: readings were not repeated");
    memcpy(r->repeating, bytes, size);
    r->repeated.bytes = r->repeating;
    r->repeated.left = size;
}

size_t clock_unrepeated(void)
{
    return process_now->readings.attached ? process_now->readings.repeated.left : 0;
}
