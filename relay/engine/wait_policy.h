/* How an engine waits for its connections: the decisions alone. The engines gather the facts and
 * carry the decisions out. Pure: no clock, no system call, nothing remembered. Times are
 * nanoseconds. docs/tuning.md has each rule in words.
 *
 * Thread rule: none; everything is passed in. */
#ifndef RELAY_WAIT_POLICY_H
#define RELAY_WAIT_POLICY_H

#include <stdbool.h>
#include <stdint.h>

enum relay_wait_step {
    RELAY_WAIT_LOOK,  /* look again where bytes are seen without asking the kernel about all */
    RELAY_WAIT_ASK,   /* ask the kernel about all connections, without sleeping */
    RELAY_WAIT_SLEEP, /* until the kernel wakes the relay */
    RELAY_WAIT_COUNT, /* it depends on the clients: count them, and choose again */
};

struct relay_wait_facts {
    uint64_t spin_ns;  /* an engine looks again that long before it sleeps; 0: it sleeps at once */
    uint64_t idle_ns;  /* since a byte last moved */
    uint64_t asked_ns; /* since the kernel was last asked about all connections */
    bool looks;        /* the engine has not slept since then */
    bool counted;      /* the rest is known; counting the clients reads memory that they write */
    int cores;         /* that the relay may run on */
    int ranks;         /* clients with rings */
    int computing;     /* of these: they neither wait nor only exchange messages */
    bool beside;       /* one that computes was last seen on the relay's core */
};

enum relay_wait_step relay_wait_choose(const struct relay_wait_facts *facts);

/* Of engine `thread`: how long a thread looks again while `spinners` others do. */
uint64_t relay_wait_thread_ns(uint64_t spin_ns, int spinners);

#endif
