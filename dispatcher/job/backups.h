/* Which relay of a job keeps copies of which other one's log, and what is done when a host is lost:
 * the relay that stood there is started again where its copy is, with its ranks. Pure: no I/O, no
 * clock (times are given), no thread.
 *
 * A relay is known by its number, a host by its index. The ranks with the same home relay are a
 * group: they are on the host of that relay, and go where it goes. The relay of a spare host has no
 * ranks: it keeps copies of others, and nothing of its own. */
#ifndef DISPATCHER_BACKUPS_H
#define DISPATCHER_BACKUPS_H

#include "common/frame.h"

#define BACKUPS_NO_HOST UINT32_MAX

/* What the caller is to do next; each is asked for once. */
enum backups_action {
    BACKUPS_NOTHING,
    BACKUPS_COPY,  /* tell `relay` that these are its backups from now on */
    BACKUPS_CLOSE, /* tell `at` that it takes no more of the log of `relay`: backups_closed comes */
    BACKUPS_START, /* start `relay` from the copy at `at`, on its host: backups_is_up comes */
    BACKUPS_LOST,  /* the log of `relay` is lost, and so is the job */
};

struct backups_order {
    uint32_t relay;
    uint32_t at;          /* CLOSE, START */
    uint32_t host;        /* CLOSE, START: the one that its group goes to; LOST: that was lost */
    uint32_t incarnation; /* of its process that is told, shut out (CLOSE) or started (START) */
    uint32_t number;      /* COPY: how many orders of this kind it was given, with this one */
    uint32_t peers;       /* COPY */
    uint32_t peer[CW_COPIES_MAX];
    bool full;           /* LOST: there is a copy, on a host that has no room for the group */
    bool covered_before; /* LOST: it was covered once ... */
    uint64_t since_ns;   /* ... and is not since then, or since the beginning */
};

struct backup {
    uint32_t host;  /* where it is, or was */
    uint32_t group; /* ranks */
    uint32_t incarnation;
    enum {
        BACKUP_HERE,
        BACKUP_CLOSING,  /* its host is lost; the copy at `at` is being closed */
        BACKUP_STARTING, /* on the copy of `at` */
        BACKUP_GONE,     /* and does not come back */
    } state;
    uint32_t at;
    uint32_t peers;  /* bits: its backups */
    uint32_t valid;  /* ... those that have all of it that others can know of */
    uint32_t unfit;  /* bits: those that could not keep a copy */
    uint32_t told;   /* `peers` as it was told last ... */
    uint32_t number; /* ... in so many orders */
    bool is_told;    /* ... by its process of now */
    bool due;        /* the order of its state is to be given */
    bool covered_before;
    uint64_t since_ns; /* it is not covered since then */
};

struct backups {
    uint32_t relays;
    uint32_t copies; /* that are wanted of each log */
    bool begun;
    struct backup relay[CW_RELAYS_MAX];
    uint32_t hosts;
    struct {
        uint32_t host;
        uint32_t room; /* ranks that it may have */
        bool lost;
    } host[CW_RELAYS_MAX];
};

/* `copies`: at most CW_COPIES_MAX; 0: nothing is ever ordered. backups_add: one relay more, with
 * the next number and a group of so many, on `host`, which may have `room` ranks. */
void backups_init(struct backups *backups, uint32_t copies);
void backups_add(struct backups *backups, uint32_t host, uint32_t room, uint32_t group);
/* All were added, and run: they get backups. */
void backups_begin(struct backups *backups, uint64_t now_ns);

/* What its notices say: all that it has is at the backups of the order of this number; or one of
 * them cannot keep it. Of an order that is not the last one it is of no meaning. */
void backups_covered(struct backups *backups, uint32_t relay, uint64_t number);
void backups_uncovered(struct backups *backups, uint32_t relay, uint64_t number, uint64_t now_ns);

/* One that no relay is on is let pass, and one that was lost before. */
void backups_host_lost(struct backups *backups, uint32_t host, uint64_t now_ns);

/* The answer to CLOSE; one that nobody waits for any more is let pass. */
void backups_closed(struct backups *backups, uint32_t relay, uint32_t at, bool covered,
                    uint64_t now_ns);
/* The process of START listens, and was told of the other relays. */
void backups_is_up(struct backups *backups, uint32_t relay, uint64_t now_ns);

enum backups_action backups_next(struct backups *backups, struct backups_order *order);

/* --- questions --- */
/* The loss of its host would be survived now. */
bool backups_is_covered(const struct backups *backups, uint32_t relay);
/* It is not, and will be: it has ranks, and backups that are getting all of it. */
bool backups_is_awaited(const struct backups *backups, uint32_t relay);
/* Its host is lost, and it does not run elsewhere yet. */
bool backups_is_moving(const struct backups *backups, uint32_t relay);
/* Bits: its backups. */
uint32_t backups_peers(const struct backups *backups, uint32_t relay);
/* The host of its first backup, to which its group would go; BACKUPS_NO_HOST: it has none. */
uint32_t backups_host_of(const struct backups *backups, uint32_t relay);

#endif
