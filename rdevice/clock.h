/* Readings of clocks and of randomness as determinants: what libc told the program's main thread
 * is recorded, and told again to a later incarnation. libc.c answers in place of libc; here is what
 * the device has to do with it. docs/protocol.md, "Readings".
 *
 * One thread's calls are recorded: that in which the program began. All functions here are for that
 * thread alone, but for clock_is_mine() and clock_attach(false). */
#ifndef RDEVICE_CLOCK_H
#define RDEVICE_CLOCK_H

#include "rdevice/readings.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* --- for the device --- */

/* The calling thread is the one whose readings are recorded. A device that is opened, or called,
 * by another one has a rank that cannot be restarted. */
bool clock_is_mine(void);

/* What libc is asked for from now on comes from the device itself and is no reading, until
 * clock_attach(). device_open() calls it first (libsodium's random numbers), and so does
 * device_close(): after it there is no relay to log anything. */
void clock_pause(void);

/* What was read before MPI_Init: recorded, or repeated of an earlier incarnation. `overflow`: there
 * was more than CW_EARLY_MAX bytes, so that it is not whole. */
const uint8_t *clock_early(size_t *size, bool *overflow);

/* After WELCOME: from now on readings go to the stream. log = false: recording is off for good; may
 * be called at any time. Ends the process when what was read before MPI_Init differs from what an
 * earlier incarnation read. */
void clock_attach(bool log);

/* The readings not yet at the relay. The device sends them as one READINGS frame (never more than
 * CW_READINGS_MAX bytes) before its next act, and says so. `size` 0: nothing to send. */
extern struct readings_writer clock_written; /* for clock_pending() alone */
static inline const uint8_t *clock_pending(size_t *size)
{
    *size = clock_written.used;
    return clock_written.bytes;
}
void clock_flushed(void);

/* A READINGS chunk of the log: answers come from it (a copy is made) until it is used up. */
void clock_repeat(const uint8_t *bytes, size_t size);

/* Bytes of that chunk that nothing has asked for yet. Before an act of a rank that replays it is 0,
 * or the re-execution has diverged. */
size_t clock_unrepeated(void);

/* --- what the device does for it --- */

/* A reading is wanted. True: the device was replaying, the next of its log was READINGS, and it has
 * called clock_repeat(). False: there is no more to repeat, the answer is a new one. Something else
 * being next in the log is a divergence and does not return. */
bool device_readings_wanted(void);

/* What is pending fills its buffer: send it now, and call clock_flushed(). */
void device_send_readings(void);

#endif
