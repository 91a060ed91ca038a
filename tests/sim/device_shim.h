/* Read before each file of rdevice/ that the simulator compiles once more: the device is that of
 * the process at hand, and the system is the simulator. Macros with arguments, for some of these
 * names are those of variables too. */
#ifndef SIM_DEVICE_SHIM_H
#define SIM_DEVICE_SHIM_H

#define clock_written (*sim_written)
#define DEVICE_MANY
#include "rdevice/clock.h"
#include "rdevice/device.h"

#include "common/clock.h"
#include "common/hello.h"
#include "common/transport.h"
#include "rdevice/arena.h"

#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

ssize_t sim_send(int fd, const void *bytes, size_t size, int flags);
ssize_t sim_sendmsg(int fd, const struct msghdr *msg, int flags);
ssize_t sim_recv(int fd, void *to, size_t size, int flags);
ssize_t sim_recvmsg(int fd, struct msghdr *msg, int flags);
int sim_ppoll(struct pollfd *fds, nfds_t count, const struct timespec *timeout, const void *mask);
int sim_poll(struct pollfd *fds, nfds_t count, int timeout_ms);
int sim_sched_yield(void);
int sim_close(int fd);
int sim_raise(int number);
void sim_exit(int code) __attribute__((noreturn));
void sim_say(int fd, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
char *sim_getenv(const char *name);
int sim_getrusage(int who, struct rusage *usage);
int sim_connect(const struct cw_address *address, struct cw_err *err);
void sim_random_bytes(void *to, size_t size);

#define send(...) sim_send(__VA_ARGS__)
#define sendmsg(...) sim_sendmsg(__VA_ARGS__)
#define recv(...) sim_recv(__VA_ARGS__)
#define recvmsg(...) sim_recvmsg(__VA_ARGS__)
#define ppoll(...) sim_ppoll(__VA_ARGS__)
#define poll(...) sim_poll(__VA_ARGS__)
#define sched_yield(...) sim_sched_yield(__VA_ARGS__)
#define close(...) sim_close(__VA_ARGS__)
#define raise(...) sim_raise(__VA_ARGS__)
#define _exit(...) sim_exit(__VA_ARGS__)
#define dprintf(...) sim_say(__VA_ARGS__)
#define getenv(...) sim_getenv(__VA_ARGS__)
#define getrusage(...) sim_getrusage(__VA_ARGS__)
#define cw_connect(...) sim_connect(__VA_ARGS__)
#define randombytes_buf(...) sim_random_bytes(__VA_ARGS__)

#endif
