/* What a rank decided whose log is in channel memory (common/decided.h), in a chain of its own: so
 * it is where its host is lost with that memory. What is found then to follow from what nobody has
 * is cut off; what is decided in its place comes behind that. docs/log-format.md. */
#ifndef RELAY_LOG_DECIDED_H
#define RELAY_LOG_DECIDED_H

#include "common/decided.h"
#include "relay/log/chain.h"

struct relay_log;

struct log_decided {
    struct chain chain;
    uint64_t count; /* those that count */
    uint64_t cut;   /* 1 + position of the last record that cut some off; 0: there is none */
};

/* What of it is saved. */
struct log_decided_left {
    struct chain_end end;
    uint64_t count;
    uint64_t cut;
};

/* One more. Both return 0 or CW_ENOMEM; then the log is to be given up. */
int log_decide(struct relay_log *log, const struct cw_piece *piece, const uint8_t *payload);
/* Only the first `count` count, of those that there are. */
int log_cut_decided(struct relay_log *log, uint64_t count);

/* A place among those that count. All zero: before the first. */
struct log_decided_reading {
    uint64_t position;
    uint64_t number; /* how many are before it */
    uint64_t most;   /* of those up to the next cut so many count */
    bool begun;
};

struct log_decision {
    struct cw_piece piece;
    const uint8_t *payload; /* piece.size bytes */
    const uint8_t *bytes;   /* all of it, as cw_decision_put() made it */
    size_t size;
};

/* The next one that counts, which points to memory of the chain: nothing is cut off while it is
 * read, and a reading is not used any more after that. False: there is none. */
bool log_next_decided(const struct log_decided *decided, struct log_decided_reading *reading,
                      struct log_decision *decision);

#endif
