/* A disk in memory for the store of a core's logs. Requests are carried out in an order that the
 * seed decides, one a call. It checks what a disk cannot: that nothing that is being written
 * changes, that nothing is read that was not written, and that no two requests meet at one place.
 */
#ifndef TESTS_FAKE_DISK_H
#define TESTS_FAKE_DISK_H

#include "relay/log/store.h"

struct fake_disk {
    uint64_t seed;
    uint64_t writes; /* carried out */
    uint64_t reads;
    uint64_t good_writes; /* the ones after so many fail; 0: none does */
    uint64_t good_reads;
    uint64_t right_reads; /* the ones after so many give a wrong bit; 0: none does */
    struct relay_log_io out[STORE_IO_MAX];
    uint64_t sums[STORE_IO_MAX];
    uint32_t count; /* requests that wait */
    uint8_t *bytes;
    uint64_t size;
    uint64_t high; /* the end of what was ever written */
};

void fake_disk_take(struct fake_disk *disk, const struct relay_log_io *io);
/* One request is carried out; false: there is none. */
bool fake_disk_done(struct fake_disk *disk, struct relay_log_done *done);
/* Those that wait are never carried out. */
void fake_disk_fini(struct fake_disk *disk);

#endif
