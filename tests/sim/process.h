/* A process that plays a rank: a coroutine with a device of its own. */
#ifndef SIM_PROCESS_H
#define SIM_PROCESS_H

#include "rdevice/readings.h"
#include "tests/sim/record.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PROCESS_NEWS_MAX 16
#define PROCESS_CONTROL_FD 101
#define PROCESS_RELAY_FD 5

struct sim_link;
struct program;

enum process_news_kind { NEWS_REPORT, NEWS_INITIALIZED, NEWS_FINALIZED };

/* Something that the process told the dispatcher, which has not looked yet. */
struct process_news {
    enum process_news_kind kind;
    uint8_t *bytes;
    size_t size;
};

/* See rdevice/clock.c, whose place this takes. */
struct process_readings {
    struct readings_writer written;
    struct readings_reader repeated;
    bool recording;
    bool attached;
    uint8_t *early; /* CW_EARLY_MAX bytes */
    size_t early_size;
    uint8_t *stream;    /* CW_READINGS_MAX bytes */
    uint8_t *repeating; /* likewise */
};

struct sim_process {
    struct sim_process *next;
    uint32_t rank;
    uint32_t incarnation;
    struct coroutine *coroutine; /* NULL: ended */
    struct device *device;
    struct sim_link *link;
    struct program *program;
    void *memory; /* all that it allocated */
    struct process_readings readings;
    struct record record;

    uint8_t *setup; /* waits on its descriptor; NULL: read */
    size_t setup_size;

    /* the scheduler's */
    bool waiting; /* in poll() */
    short events;
    uint64_t wake_ns;
    uint64_t stopped_ns; /* SIGSTOP: until then */
    uint32_t patience;   /* it gets its turn one time in so many */

    /* the dispatcher's */
    bool left; /* nobody listens to it any more */
    bool ended;
    bool reaped;
    int status;
    uint64_t news_ns; /* when its end is known */
    struct process_news news[PROCESS_NEWS_MAX];
    size_t news_count;
};

/* Who runs; NULL while the scheduler does. */
extern struct sim_process *process_now;

struct sim_process *process_start(uint32_t rank, uint32_t incarnation, uint64_t fault_event);
void process_resume(struct sim_process *p);
bool process_can_run(const struct sim_process *p);
uint64_t process_deadline_ns(const struct sim_process *p);
/* From outside; `status` is that of waitpid(2). */
void process_kill(struct sim_process *p, int status);
void processes_fini(void);

/* --- from inside --- */
void process_yield(void);
void process_end(int status) __attribute__((noreturn));
/* Waits for `events` of the relay's socket, or for the time. */
void process_wait(short events, uint64_t wake_ns);
void process_tell(enum process_news_kind kind, const void *bytes, size_t size);
void *process_alloc(size_t size);
void process_free(void *at);

/* readings.c: what the program's clock tells it; kinds of rdevice/readings.h. */
void readings_begin(struct sim_process *p, const uint8_t *early, size_t size);
void readings_fini(struct sim_process *p);
int64_t readings_ask(uint8_t kind);

#endif
