/* The payload of an event: in its record, in those of its parts, or beside them. */
#include "relay/log/log.h"

/* Up to a whole frame of what the last record has beside it. */
static enum chain_found placed_piece(const struct relay_log *log, struct log_reading *reading,
                                     struct log_piece *piece)
{
    uint64_t size = reading->placed < reading->left ? reading->placed : reading->left;
    struct chain_bytes bytes;
    enum chain_found found = chain_read(&log->payload, &reading->at, &bytes);

    if (found != CHAIN_HERE)
        return found;
    if (size > bytes.size)
        size = bytes.size;
    if (size > CW_FRAME_DATA_MAX)
        size = CW_FRAME_DATA_MAX;
    *piece = (struct log_piece){bytes.at, (uint32_t)size, bytes.block};
    reading->at += size;
    reading->placed -= size;
    reading->left -= size;
    return CHAIN_HERE;
}

/* The record of a message that is read. */
static enum chain_found first_part(const struct relay_log *log, struct log_reading *reading,
                                   struct log_record *record)
{
    enum chain_found found = log_look(log, &reading->position, record);

    if (found != CHAIN_HERE)
        return found;
    reading->begun = true;
    reading->src = (uint32_t)record->src;
    reading->held = record->type == LOG_HELD;
    return CHAIN_HERE;
}

/* The next record that has bytes of the message: in a snapshot they follow it, else they stand
 * among those of others. */
static enum chain_found next_part(const struct relay_log *log, struct log_reading *reading,
                                  struct log_record *record)
{
    enum chain_found found;

    if (!reading->begun) {
        found = first_part(log, reading, record);
        if (found != CHAIN_HERE || record->type == LOG_PASSED)
            return found;
    }
    while (reading->held) {
        found = log_look(log, &reading->position, record);
        if (found != CHAIN_HERE || record->type == LOG_HELD_PART)
            return found;
        reading->held = false;
    }
    do
        found = log_look(log, &reading->position, record);
    while (found == CHAIN_HERE && (record->type != LOG_PART || record->src != reading->src));
    return found;
}

enum chain_found log_read_piece(const struct relay_log *log, struct log_reading *reading,
                                struct log_piece *piece)
{
    struct log_record record;
    enum chain_found found;

    copies_pay_all(log->copies);
    while (reading->placed == 0) {
        found = next_part(log, reading, &record);
        if (found != CHAIN_HERE)
            return found;
        if (!record.placed) {
            uint64_t size = record.size < reading->left ? record.size : reading->left;

            *piece = (struct log_piece){record.bytes, (uint32_t)size, NULL};
            reading->left -= size;
            return CHAIN_HERE;
        }
        reading->at = record.at;
        reading->placed = record.size;
    }
    return placed_piece(log, reading, piece);
}
