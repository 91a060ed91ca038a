/* Waiting at PMI. */
#ifndef RDEVICE_PMI_H
#define RDEVICE_PMI_H

/* Before a read() of `fd`, which may be PMI's: returns when there is something to read, and keeps
 * the session with the relay meanwhile. The thread that calls MPI. */
void pmi_before_read(int fd);

#endif
