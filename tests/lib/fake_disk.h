/* A disk in memory for the store of a core's logs, and its journals. Requests are carried out in an
 * order that the seed decides, one a call. It checks what a disk cannot: that nothing that is being
 * written changes, that nothing is read that was not written, and that no two requests meet at one
 * place.
 */
#ifndef TESTS_FAKE_DISK_H
#define TESTS_FAKE_DISK_H

#include "relay/log/store.h"

#define FAKE_DISK_OUT (STORE_IO_MAX + 1) /* a part of the journal is one more */
#define FAKE_DISK_SECTOR 512u            /* is written, or not, when power is lost */

struct fake_file {
    uint8_t *bytes;
    uint8_t *durable; /* what is there of them when power is lost */
    uint64_t size;
    uint64_t high; /* the end of what was ever written */
};

struct fake_disk {
    uint64_t seed;
    uint64_t writes; /* carried out */
    uint64_t reads;
    uint64_t good_writes; /* the ones after so many fail; 0: none does */
    uint64_t good_reads;
    uint64_t right_reads; /* the ones after so many give a wrong bit; 0: none does */
    struct relay_log_io out[FAKE_DISK_OUT];
    uint64_t sums[FAKE_DISK_OUT];
    uint32_t count; /* requests that wait */
    struct fake_file files[STORE_FILES];
};

void fake_disk_take(struct fake_disk *disk, const struct relay_log_io *io);
/* One request is carried out; false: there is none. */
bool fake_disk_done(struct fake_disk *disk, struct relay_log_done *done);
/* Of requests that wait, and of what was written without being sync, any sectors get to the disk.
 * Nothing waits any more. */
void fake_disk_lose_power(struct fake_disk *disk);
/* Those that wait are never carried out. */
void fake_disk_fini(struct fake_disk *disk);

#endif
