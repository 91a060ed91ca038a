/* Images of simulated processes, and what becomes of them: each holds all memory of one process at
 * one moment. A checkpoint server has it some time later, or never; then its rank's log is trimmed
 * to it, and the rank is started from it, or from another one that its relay still knows. */
#ifndef SIM_IMAGE_H
#define SIM_IMAGE_H

#include "common/frame.h"
#include "tests/sim/record.h"

#include <setjmp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct slot;
struct program;
struct sim_process;

enum sim_image_state {
    IMAGE_IS_COPIED, /* on its way to the server */
    IMAGE_IS_LOST,   /* ... and never came there */
    IMAGE_IS_STORED,
    IMAGE_IS_TRIMMED_TO, /* the relay was asked, and has not answered ... */
    IMAGE_IS_REFUSED,    /* ... does not know the point ... */
    IMAGE_IS_BEGIN,      /* ... and the log begins there */
};

struct sim_image {
    struct sim_image *next; /* of the rank: the newest first */
    uint32_t rank;
    uint32_t incarnation;
    uint32_t number;
    struct cw_point point;
    enum sim_image_state state;
    uint64_t stored_ns; /* COPIED: when it will be stored, or lost ... */
    bool will_be_lost;
    uint64_t asked_ns; /* TRIMMED_TO ... */
    uint32_t asked;    /* ... so often, without an answer */

    /* the process */
    struct slot *slot;
    jmp_buf at;
    uint8_t *library;
    uint8_t *heap;
    size_t heap_size;
    uint8_t *stack; /* its last bytes */
    size_t stack_size;
    struct program *program;
    struct record record;
};

/* --- of one process --- */
/* The memory of its slot, and what is recorded of it, become those of then. */
void image_put_back(const struct sim_image *image, struct sim_process *process);
/* It has ended: perhaps its copy ends with it. */
void image_owner_ended(struct sim_process *process);

/* --- those of all ranks --- */
/* The session with this relay goes on; what was said to it may be forgotten. */
void images_relay_resumed(uint32_t relay);
/* The rank's host is lost, and perhaps what its relay knew of images to which no log was trimmed.
 */
void images_host_lost(uint32_t rank);
/* One step has passed: time for something new. */
void images_step(void);
uint64_t images_deadline_ns(void);
/* TRIMMED */
void images_trimmed(const struct cw_trim *trimmed);
/* Whether it is known what the rank may be started from. */
bool images_are_settled(uint32_t rank);
/* One of those; NULL: the beginning. */
struct sim_image *images_choose(uint32_t rank);
void images_end(void);

#endif
