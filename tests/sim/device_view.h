/* What the simulator wants of the device's library beside the functions that programs call. */
#ifndef SIM_DEVICE_VIEW_H
#define SIM_DEVICE_VIEW_H

#include <stdbool.h>
#include <stdint.h>

struct device_view {
    uint64_t polls; /* the poll clock */
    uint64_t acts;
    bool repeats;            /* what an earlier incarnation did */
    uint64_t acts_to_repeat; /* of those */
};
struct device_view device_look(void);

/* Whether a rank that sleeps should not: another one, *by, has put or taken something for it. */
bool device_was_not_woken(uint32_t *by);

/* As when the library is loaded. */
void device_begin(void);
/* The program calls a function of MPI. */
void device_call(void);

#endif
