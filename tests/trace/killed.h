/* The fixture's core is killed, and another one takes its place with what it left. */
#ifndef TRACE_KILLED_H
#define TRACE_KILLED_H

#include "tests/trace/fixture.h"

/* All connections are gone. Returns what came of the jobs. */
struct relay_returned fixture_kill(struct fixture *f);
/* The client says what its codec holds, as one step, and the relay is killed before that is done
 * and before anybody is told anything. */
struct relay_returned fixture_kill_amid(struct client *c);
/* The same, but it is told nothing and the step is done. */
struct relay_returned fixture_kill_after(struct client *c);
/* A client resumes its session with the relay that is back. */
void fixture_come_back(struct client *c);
/* The dispatcher and so many ranks do. */
void fixture_all_come_back(struct fixture *f, uint32_t ranks);

/* The relay, whose one job has `ranks` ranks, is killed, takes all of it up, and all come back; the
 * story begins where they do. */
void fixture_kill_whole(struct fixture *f, uint32_t ranks);

/* A rank crashes, and its next incarnation goes on from this point; the story begins in between. */
void fixture_crash_from(struct client *c, const struct cw_point *point);

#endif
