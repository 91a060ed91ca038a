/* A process that plays a rank: a coroutine with a device of its own. */
#ifndef SIM_PROCESS_H
#define SIM_PROCESS_H

#include "tests/sim/library.h"
#include "tests/sim/record.h"
#include "tests/sim/task.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PROCESS_NEWS_MAX 256

struct socket;
struct program;
struct slot;
struct sim_image;

enum process_news_kind { NEWS_REPORT, NEWS_INITIALIZED, NEWS_FINALIZED, NEWS_LINE };

/* NEWS_LINE */
struct process_line {
    uint64_t number;
    uint64_t line;
};

/* What the dispatcher has heard may wait at a gate: dispatcher/wire/gate.h. */
struct process_wait {
    bool waits;
    uint64_t token; /* for this one */
};

/* Something that the process told the dispatcher, which has not looked yet. */
struct process_news {
    enum process_news_kind kind;
    uint8_t *bytes;
    size_t size;
    struct process_wait wait;
};

struct sim_process {
    struct task task;
    struct sim_process *next;
    uint32_t rank;
    uint32_t incarnation;
    uint32_t host;
    struct library *library;     /* NULL: ended */
    struct socket *relay_socket; /* NULL: it has none */
    int control_fd;
    struct program *program;
    struct slot *slot;       /* its memory; NULL: it is not copied, and is anywhere: */
    void *memory;            /* all that it allocated */
    struct sim_image *image; /* that it has begun, and not heard of since */
    struct record record;

    uint8_t *setup; /* waits on its descriptor; NULL: read */
    size_t setup_size;

    uint64_t stopped_ns; /* SIGSTOP: until then */

    /* the dispatcher's */
    bool left; /* nobody listens to it any more ... */
    bool lost; /* ... for its host is lost; it may run on there */
    bool ended;
    bool reaped;
    int status;
    uint64_t news_ns; /* when its end is known */
    struct process_news news[PROCESS_NEWS_MAX];
    size_t news_count;
    struct process_wait end_wait;
};

/* Which of them runs; NULL while none does. */
static inline struct sim_process *process_now(void)
{
    return task_now ? task_now->process : NULL;
}

struct sim_process *process_start(uint32_t rank, uint32_t incarnation, uint64_t fault_event);
/* One that goes on from an image. */
struct sim_process *process_go_on(const struct sim_image *image, uint32_t incarnation);
void process_resume(struct sim_process *p);
bool process_can_run(const struct sim_process *p);
/* Some that can run do so, amid what a relay does. */
void processes_go_on(void);
uint64_t process_deadline_ns(const struct sim_process *p);
/* While nobody runs: whoever sleeps has nothing to do, or the run has failed. */
void processes_check_sleep(void);
/* From outside; `status` is that of waitpid(2). */
void process_kill(struct sim_process *p, int status);
void processes_fini(void);

/* --- from inside --- */
void process_end(int status) __attribute__((noreturn));
void process_tell(enum process_news_kind kind, const void *bytes, size_t size);
/* A line of output, the one of this number; what is written while nobody reads is lost. */
void process_print(uint64_t number, uint64_t line);
void *process_alloc(size_t size);
void process_free(void *at);

#endif
