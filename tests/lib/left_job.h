/* A core with a job of two relays, over a disk of the caller's: its clients, and a script that
 * leaves messages that wait, are on their way, and are logged in memory and on disk. For those who
 * look at what a core leaves. There is one at a time. */
#ifndef TESTS_LEFT_JOB_H
#define TESTS_LEFT_JOB_H

#include "relay/core/core.h"

#define LEFT_JOB_RANKS 4 /* 2 is at home at relay 1 */
#define LEFT_JOB_CLIENTS (LEFT_JOB_RANKS + 2)
#define LEFT_JOB_SESSIONS (LEFT_JOB_CLIENTS - 1) /* rank 2 has none here */

/* A request to the disk. Returns 0 or an errno. */
typedef int left_job_disk(const struct relay_log_io *io);

extern const uint8_t left_job_key[]; /* of the relay */

/* Opens the core; the key is set here. */
void left_job_open(const struct relay_core_config *config, left_job_disk *disk);
/* The job, with `more` messages of LEFT_JOB_MESSAGE bytes that nobody has received, and `trimmed`
 * ones that were, and were let go of. */
#define LEFT_JOB_MESSAGE 100000u
void left_job_begin(uint32_t more, uint32_t trimmed);
/* Takes up what was left to the core that was opened, and says what came of it. */
void left_job_return(struct relay_returned *returned);
/* One of the clients does something, or comes back. */
struct cw_reader;
void left_job_act(struct cw_reader *how);
/* The process is gone: nobody of it says or frees anything any more. */
struct relay_core *left_job_leave(void);
/* All end in order. The core asserts that nothing leaked. */
void left_job_end(void);

#endif
