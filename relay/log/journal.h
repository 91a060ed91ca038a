/* The journal of a log that is to survive the loss of power: what the ledger, chains and places on
 * disk have become, one commit after another. This is its format alone, written and read:
 * docs/log-format.md, "The journal". commit.h makes it, restore.h makes memory of it again.
 *
 * A journal is a row of parts. A commit is one or more parts, the last of which says that it ends;
 * it counts when that one is whole. What follows the last commit is of no meaning: it was torn, or
 * is of a journal that was in the file before.
 *
 * Pure. Thread rule: that of the caller's memory. */
#ifndef RELAY_JOURNAL_H
#define RELAY_JOURNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define JOURNAL_MAGIC 0x4c4e524a57435743ull /* "CWCWJRNL" */
#define JOURNAL_VERSION 5u
#define JOURNAL_NUMBER_MAX (1u << 30) /* of a journal; there are never so many */
#define JOURNAL_ALIGN 4096u           /* of parts in the file */
#ifndef JOURNAL_PART_MAX
#define JOURNAL_PART_MAX (4u << 20) /* bytes of a part */
#endif
#define JOURNAL_BYTES_MAX (256u << 10) /* of one record */

struct journal_part {
    uint64_t magic;
    uint64_t sum;     /* XXH3 (64 bits) of the part's bytes, with 0 here */
    uint64_t journal; /* of the journals of a relay, from 1 */
    uint64_t number;  /* of the parts in it, from 0 */
    uint64_t relay;   /* whose it is: cw_cred_mark of its key */
    uint32_t version;
    uint32_t size;       /* bytes, this header included; then zeros until the next whole page */
    uint32_t ends;       /* 1: the commit is complete with this part */
    uint32_t generation; /* of the ledger */
};

enum journal_type {
    JOURNAL_CELL = 1, /* a state: number (cell), chain (generation), kind; its bytes */
    JOURNAL_BYTES,    /* bytes of a segment: chain, number, from */
    JOURNAL_PLACE,    /* a segment is whole on disk: chain, number, extent, used, sum */
    JOURNAL_DROP,     /* a segment is gone: chain, number */
    JOURNAL_TYPES
};

/* Fields that a type does not name are 0. */
struct journal_record {
    uint32_t type;
    uint32_t size; /* bytes that follow, then zeros until a multiple of 8 */
    uint64_t chain;
    uint64_t sum;
    uint32_t number;
    uint32_t kind;
    uint32_t from;
    uint32_t used;
    uint32_t extent;
    uint32_t zero;
};

/* --- writing: a part in memory of the caller's */
struct journal_writer {
    uint8_t *at;
    uint32_t room;
    uint32_t size;
};

/* `room`: a multiple of JOURNAL_ALIGN, at most JOURNAL_PART_MAX. */
void journal_start(struct journal_writer *writer, uint8_t *at, uint32_t room);
/* Bytes that one more record may carry. */
uint32_t journal_room(const struct journal_writer *writer);
/* There is room. Returns where record->size bytes go. */
uint8_t *journal_add(struct journal_writer *writer, const struct journal_record *record);
/* Nothing was added. */
static inline bool journal_is_empty(const struct journal_writer *writer)
{
    return writer->size == sizeof(struct journal_part);
}
/* Of `part` journal, number, ends and generation are set. Returns its bytes. */
uint32_t journal_seal(struct journal_writer *writer, const struct journal_part *part);
/* The same; returns the bytes to be written to a file, whole pages. */
uint32_t journal_finish(struct journal_writer *writer, const struct journal_part *part);

/* --- reading: a whole file in memory, all of it hostile */
struct journal_reader {
    const uint8_t *bytes;
    uint64_t size;
    uint64_t next; /* where the next part begins */
    uint64_t at;   /* in the present part: the next record */
    uint64_t end;
    struct journal_part part; /* the present one; its journal is 0 before the first */
};

static inline struct journal_reader journal_read(const uint8_t *bytes, uint64_t size)
{
    return (struct journal_reader){.bytes = bytes, .size = size};
}
/* Whether a whole part begins there, of any journal, and which. */
bool journal_part_at(const uint8_t *bytes, uint64_t size, struct journal_part *part);
/* A reader that is at this one part, which is whole. */
struct journal_reader journal_read_part(const uint8_t *bytes, const struct journal_part *part);
/* Goes on to the next part, in `part`; false: there is none that is whole and of this journal. */
bool journal_next_part(struct journal_reader *reader);
/* The next record of the present part, and where its bytes are; false: there is none, or it makes
 * no sense, which *sense then says. */
bool journal_next_record(struct journal_reader *reader, struct journal_record *record,
                         const uint8_t **bytes, bool *sense);

/* What a file holds. */
struct journal_summary {
    uint64_t journal;   /* 0: there is no journal in it */
    uint64_t relay;     /* whose it is */
    uint64_t parts;     /* that are whole */
    uint64_t commits;   /* that count ... */
    uint64_t end;       /* ... and how many bytes and ... */
    uint64_t committed; /* ... parts of the file they are */
    uint32_t version;   /* of the first part, which may be one that this program cannot read */
};
void journal_look(const uint8_t *bytes, uint64_t size, struct journal_summary *summary);
/* Of the two files: the one that counts, if any does. */
unsigned journal_newest(const struct journal_summary found[2]);
/* A number that no journal there has had. */
uint64_t journal_next_number(const struct journal_summary found[2]);

#endif
