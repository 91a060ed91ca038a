/* A relay core in memory, and its clients. A test fires one event a step: a client says one frame,
 * a connection ends, time passes. Each thing that happens adds a line to the story, which the test
 * asserts:
 *
 *     1 < RECV req 7 tag 5                                        rank 1 says this to the relay
 *     1 > MESSAGE req 7 tag 5 total 3 FIRST LAST event 1 'abc'    and is told this
 *     1 is closed                                                 the relay is done with it
 */
#ifndef TRACE_FIXTURE_H
#define TRACE_FIXTURE_H

#include "relay/core/core.h"
#include "tests/lib/codec.h"
#include "tests/lib/fake_disk.h"
#include "tests/lib/left.h"

#define FIXTURES 4 /* at a time */
#define FIXTURE_RANKS 8
#define FIXTURE_OTHERS 4
#define FIXTURE_CLIENTS (1 + FIXTURE_RANKS + FIXTURE_OTHERS)
#define FIXTURE_STORY_MAX (64u << 10)
#define FIXTURE_DIALS 2 /* taken; one more is one too many */
#define FIXTURE_MEMORY (256u << 20)

/* How a client's bytes reach the core. */
enum fixture_feed { FEED_WHOLE, FEED_BYTES, FEED_RANDOM };

struct fixture;

struct client {
    struct fixture *fixture;
    char name[8];
    struct relay_conn *conn; /* NULL while not connected */
    struct codec codec;
    struct codec_inbox inbox;
    struct cw_challenge challenge;
    struct cw_hello hello;
    uint8_t key[CW_KEY_SIZE];
    uint64_t event; /* of the last event it was told */
    struct cw_welcome welcome;
    bool stalled; /* does not read */
    bool deaf;    /* what it is told is lost on the way */

    /* its session, which outlives its connection */
    bool open;              /* WELCOME was received */
    uint64_t received;      /* bytes of the relay's stream */
    struct codec_bytes log; /* all bytes of its own stream that left it */
    struct codec saved;     /* the session's, while a handshake resumes it */
    uint64_t saved_event;
    uint64_t saved_received;
    bool resuming;
};

struct fixture {
    struct relay_core *core;
    struct relay_core_config config; /* of the core */
    struct ledger_memory *left;      /* what outlives the core; NULL: nothing does */
    enum fixture_feed feed;
    bool log;           /* jobs keep what is needed to restart ranks */
    bool merged;        /* the story tells of messages once they are whole */
    bool mute;          /* no story */
    bool channel;       /* ranks of jobs are their own mailboxes */
    bool images;        /* the dispatcher says that images are taken */
    bool cuts;          /* payload goes past the core's blocks where it may */
    uint32_t resume_ms; /* of jobs */
    uint64_t orphan_ms; /* ... of its dispatcher, where that is longer */
    bool lazy;          /* connections that are done stay until the test closes them */
    uint64_t seed;
    uint64_t memory_max;
    uint64_t now_ns;
    uint8_t relay_key[CW_KEY_SIZE];
    uint8_t job[CW_ID_SIZE];
    void (*on_frame)(struct client *c, const struct codec_frame *frame);
    struct relay_dial dial; /* the last that the core asked for */
    uint32_t dials;
    struct cw_trim trimmed;   /* the last one */
    uint32_t trims;           /* that were answered */
    uint32_t cancels;         /* jobs whose links it wants no more */
    struct fake_disk disk;    /* of the core's logs */
    bool disk_waits;          /* its requests wait until the test carries them out */
    struct client dispatcher; /* "d" */
    struct client rank[FIXTURE_RANKS];
    struct client other[FIXTURE_OTHERS]; /* named by the test */
    size_t story_size;
    char story[FIXTURE_STORY_MAX];
};

/* A core without connections. The other fields of the fixture are reset. */
void fixture_init(struct fixture *f, uint64_t memory_max);
/* The same; its jobs keep logs, of at most `log_memory` bytes. */
void fixture_init_log(struct fixture *f, uint64_t memory_max, uint64_t log_memory);
/* The same; beyond that they are on a disk of `log_disk` bytes. */
void fixture_init_log_disk(struct fixture *f, uint64_t memory_max, uint64_t log_memory,
                           uint64_t log_disk);
/* The same; and what it needs outlives the core: killed.h. */
void fixture_init_left(struct fixture *f, uint64_t log_memory, uint64_t log_disk);
/* The same; and it survives the loss of power: it has a journal on the fixture's disk. */
void fixture_init_journal(struct fixture *f);
/* The same; and its ranks are their own mailboxes, in a channel memory that the core reads. */
void fixture_init_channel(struct fixture *f, const struct relay_channel *channel);
/* The same as _left; its log can be copied to others, and it has memory for `copies` of theirs,
 * with regions of so many bytes (at most LEFT_REGION). */
void fixture_init_copies(struct fixture *f, uint32_t copies, uint64_t region);
/* The same, where another relay of which this is the copy was: this incarnation of it. Owns `left`.
 * Returns what came of the jobs. */
struct relay_returned fixture_init_successor(struct fixture *f, struct ledger_memory *left,
                                             uint32_t incarnation);
/* A job of `ranks` ranks, all connected; the story starts afterwards. */
void fixture_start(struct fixture *f, uint32_t ranks);
/* The story begins anew. */
void fixture_forget(struct fixture *f);
/* Frees the core, which asserts that nothing leaked. */
void fixture_fini(struct fixture *f);
/* Those that were not. For SUITE_AFTER_EACH. */
void fixture_end(void);

/* Takes all memory but for `room` bytes, and the blocks that the core keeps for later; returns how
 * much, to be subtracted from memory_now later. */
uint64_t fixture_spend(struct fixture *f, uint64_t room);

/* The connection is accepted; false when the core had no memory for it. */
bool fixture_connect(struct fixture *f, struct client *c, const char *name);
void fixture_hello_rank(struct client *c, uint32_t rank, uint32_t incarnation);
void fixture_hello_dispatcher(struct client *c, uint32_t ranks);
/* With whatever the client's hello and key say. */
void fixture_hello(struct client *c);
void fixture_rank_key(struct client *c, uint32_t rank, uint32_t incarnation);
/* The connection breaks. */
void fixture_close(struct client *c, const char *why);
/* The client connects again to resume its session, and says that it has received so many bytes.
 * What the relay has not received of what it said is said again. */
void fixture_resume(struct client *c, uint64_t received);
void fixture_tick(struct fixture *f, uint64_t ns);
/* The clients that are not stalled read what there is for them. */
void fixture_collect(struct fixture *f);
/* A stalled client reads what there is for it. */
void fixture_read(struct client *c);

/* One request to the disk is carried out, and what follows from it happens; false: there is none.
 */
bool fixture_disk_one(struct fixture *f);
/* One after the other, until there is none. */
void fixture_disk_all(struct fixture *f);

/* The next incarnation of the rank, on a new connection. */
void fixture_again(struct client *c);
/* The same, from an image that was taken at this point. */
void fixture_again_from(struct client *c, const struct cw_point *point);

/* Gives the core what the client's codec holds; tells the story of it. Where the disk waits, it
 * gives no more than the core wants now. */
void fixture_feed(struct client *c);
/* The same, but only the first `size` bytes; the rest waits for another step. */
void fixture_feed_some(struct client *c, size_t size);
void fixture_tell(struct fixture *f, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* The story since the last look must be `text`. */
#define expect(f, text) fixture_expect((f), (text), __FILE__, __LINE__)
/* It must contain `text`. */
#define expect_has(f, text) fixture_expect_has((f), (text), __FILE__, __LINE__)
bool fixture_expect(struct fixture *f, const char *text, const char *file, unsigned line);
bool fixture_expect_has(struct fixture *f, const char *text, const char *file, unsigned line);

/* The message of this request is whole, and has `size` bytes of the pattern of its tag. */
bool fixture_received(const struct client *c, uint32_t req, uint64_t tag, size_t size);

#endif
