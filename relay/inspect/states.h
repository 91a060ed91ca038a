/* The states of an image: whose they are, and what they hold. */
#ifndef RELAY_INSPECT_STATES_H
#define RELAY_INSPECT_STATES_H

#include "relay/core/saved.h"
#include "relay/inspect/chain.h"

/* The log of one rank in an image: every record of it is read, and every byte is looked for. */
struct inspect_rank {
    uint64_t events;
    uint64_t taken; /* of them */
    uint64_t sends;
    uint64_t record_bytes;
    uint64_t payload_bytes;
    struct inspect_sizes sizes;
    bool whole;
};

/* Reads the log of the rank whose state is in `cell`, as far as it is whole. `who`: for who reads
 * of damage. */
void inspect_rank(struct inspect_image *image, uint32_t cell, const char *who,
                  struct inspect_rank *rank, struct inspect_damage *damage);

#define INSPECT_WHO_MAX 96 /* bytes of a name */

/* "rank 3 of job 0123..." or the like. Of a state that is there. */
void inspect_name(const struct inspect_image *image, uint32_t cell, char name[INSPECT_WHO_MAX]);
/* The job that a rank or a session is of; NULL: there is no such job. */
const struct saved_job *inspect_job_of(const struct inspect_image *image, uint32_t cell);
/* Whether a relay that comes back takes the session up. */
bool inspect_is_open(const struct saved_conn *saved);
static inline uint64_t inspect_queued(const struct saved_conn *saved)
{
    return saved->state == CONN_RANK ? 0 : saved->out.end - saved->out.front;
}

struct inspect_totals {
    uint32_t jobs;
    uint32_t linked; /* of them: over several relays */
    uint32_t ranks;
    uint32_t sessions;
    struct inspect_sizes sizes;
};

/* All of it: states that make no sense, chains that are not whole, records that cannot be read. */
void inspect_states(struct inspect_image *image, struct inspect_totals *totals,
                    struct inspect_damage *damage);

#endif
