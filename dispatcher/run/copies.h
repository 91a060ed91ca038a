/* Copies of the logs of a job's relays at relays on other hosts: what dispatcher/job/backups.h
 * orders is carried out, and what is heard of it is told there. When a host is lost, its relay is
 * started again where its copy is, and its ranks with it. */
#ifndef DISPATCHER_COPIES_H
#define DISPATCHER_COPIES_H

#include "dispatcher/job/backups.h"
#include "dispatcher/job/job.h"
#include "dispatcher/run/parts.h"

#define COPIES_START_NS 15000000000ull /* for the first copies, which hold nothing yet */

struct copies {
    struct parts *parts; /* borrowed, as the next one */
    struct job *job;
    struct backups core;
    uint32_t covered;        /* bits: the relays that are, as was told */
    uint32_t alone;          /* bits: those of which it was said that they have no backup */
    bool shares;             /* it was said that ranks share slots */
    bool begun;              /* there are copies */
    bool settled;            /* ... whose first ones are made */
    bool logs;               /* events are written */
    struct loop_timer timer; /* until then */
};

/* The job has no copies: nothing of all this has a meaning, and nothing happens. */
void copies_open(struct copies *copies, struct parts *parts, struct job *job);
void copies_close(struct copies *copies); /* zeroed is allowed */

/* The relays are linked, and no rank has started: copies are made; copies_are_settled() once they
 * are, or cannot be. */
void copies_begin(struct copies *copies);
bool copies_are_settled(const struct copies *copies);
/* Events can be written from now on. */
void copies_begin_events(struct copies *copies);

/* --- what is heard --- */
/* COVERED, or UNCOVERED, of the relay that it names. */
void copies_notice(struct copies *copies, const struct cw_notice_body *notice);
void copies_closed(struct copies *copies, uint32_t at, const struct cw_copy_closed *closed);
/* The relay's process is lost with its host, which copies_host_lost tells soon. False: the job has
 * no copies of its log. */
bool copies_relay_lost(struct copies *copies, uint32_t relay);
/* Before the job core hears of it. */
void copies_host_lost(struct copies *copies, uint32_t host);
/* A relay listens again, maybe elsewhere. */
void copies_relay_back(struct copies *copies, uint32_t relay);

/* The order to start that relay's process is made complete. False: there is no room for that. */
bool copies_order(const struct copies *copies, struct node_unit *order);

#endif
