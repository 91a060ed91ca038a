/* Datagram sockets with names, which go with their process. What is sent has no contents: it is a
 * byte that wakes. */
#ifndef SIM_DATAGRAMS_H
#define SIM_DATAGRAMS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

struct sim_process;
struct sim_datagrams;

struct sim_datagrams *datagrams_new(struct sim_process *owner);
/* As the calls of libc: 0, or a negative errno. */
int datagrams_bind(struct sim_datagrams *at, const struct sockaddr *name, socklen_t size);
int datagrams_send(const struct sockaddr *name, socklen_t size);
int datagrams_recv(struct sim_datagrams *at);
bool datagrams_are_there(const struct sim_datagrams *at);

/* Whether this process has one with a name. */
bool datagrams_has(const struct sim_process *owner);
void datagrams_owner_ended(const struct sim_process *owner);
/* At the end of a run. */
void datagrams_fini(void);

#endif
