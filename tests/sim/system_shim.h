/* Read before each file that the simulator compiles once more: the system that it calls is the
 * simulated one. Macros with arguments, for some of these names are those of members too. */
#ifndef SIM_SYSTEM_SHIM_H
#define SIM_SYSTEM_SHIM_H

#include <assert.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sodium.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "tests/sim/sizes.h"

/* What is asserted of constants is asserted where the real files are compiled. */
#undef static_assert
#define _Static_assert(...) struct sim_asserted_elsewhere

#include "common/channel.h"
#include "common/copy.h"
#include "common/secret.h"
#include "common/thread.h"
#include "common/transport.h"
#include "rdevice/arena.h"
#include "rdevice/image/system.h"

/* Room for a piece of what is noted at once, and no more: programs come to the next one. */
#undef CW_CHANNEL_BLOCK_MAX
#define CW_CHANNEL_BLOCK_MAX CW_CHANNEL_BLOCK_MIN

#pragma GCC visibility push(default)
ssize_t sim_send(int fd, const void *bytes, size_t size, int flags);
ssize_t sim_sendmsg(int fd, const struct msghdr *msg, int flags);
ssize_t sim_recv(int fd, void *to, size_t size, int flags);
ssize_t sim_recvmsg(int fd, struct msghdr *msg, int flags);
int sim_ppoll(struct pollfd *fds, nfds_t count, const struct timespec *timeout, const void *mask);
int sim_poll(struct pollfd *fds, nfds_t count, int timeout_ms);
int sim_close(int fd);
int sim_socket(int domain, int type, int protocol);
int sim_bind(int fd, const struct sockaddr *name, socklen_t size);
int sim_connect(const struct cw_address *address, struct cw_err *err);
int sim_connect_end(void);

int sim_memfd_create(const char *name, unsigned flags);
int sim_ftruncate(int fd, off_t size);
int sim_fcntl(int fd, int command, ...);
off_t sim_lseek(int fd, off_t offset, int whence);
void *sim_mmap(void *at, size_t size, int protection, int flags, int fd, off_t offset);
int sim_munmap(void *at, size_t size);
uint64_t sim_copy_ticks(void);

int sim_thread_start(pthread_t *to, size_t stack_bytes, void *(*run)(void *arg), void *arg);
int sim_cond_timedwait(pthread_cond_t *condition, const struct timespec *until);
int sim_cond_wait(pthread_cond_t *condition);
int sim_cond_broadcast(pthread_cond_t *condition);
int sim_shutdown(int fd, int how);

/* The channel memory of the host of the process that runs. */
void *sim_channel_memory(void);
long sim_call(long number, long a, long b, long c, long d, long e, long f);
int sim_fstat(int fd, struct stat *to);
/* Others may get their turn. */
void sim_give_way(void);

int sim_sched_yield(void);
int sim_raise(int number);
void sim_exit(int code) __attribute__((noreturn));
void sim_say(int fd, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
char *sim_getenv(const char *name);
void sim_random_bytes(void *to, size_t size);
/* What libc has under this name: the simulated clocks. */
void *sim_libc(const char *name);
void *sim_alloc(size_t size);
void sim_free(void *at);
#pragma GCC visibility pop

#define send(...) sim_send(__VA_ARGS__)
#define sendmsg(...) sim_sendmsg(__VA_ARGS__)
#define recv(...) sim_recv(__VA_ARGS__)
#define recvmsg(...) sim_recvmsg(__VA_ARGS__)
#define ppoll(...) sim_ppoll(__VA_ARGS__)
#define poll(...) sim_poll(__VA_ARGS__)
#define close(...) sim_close(__VA_ARGS__)
#define socket(...) sim_socket(__VA_ARGS__)
#define bind(...) sim_bind(__VA_ARGS__)
#define cw_connect(...) sim_connect(__VA_ARGS__)
#define cw_connect_begin(address, place, err) ((void)(place), sim_connect(address, err))
#define cw_connect_end(...) sim_connect_end()
#define cw_secret_alloc(...) sim_alloc(__VA_ARGS__)
#define cw_secret_free(secret, size) sim_free(secret)

#define memfd_create(...) sim_memfd_create(__VA_ARGS__)
#define ftruncate(...) sim_ftruncate(__VA_ARGS__)
#define fcntl(...) sim_fcntl(__VA_ARGS__)
#define lseek(...) sim_lseek(__VA_ARGS__)
#define mmap(...) sim_mmap(__VA_ARGS__)
#define munmap(...) sim_munmap(__VA_ARGS__)
#define madvise(...) sim_nothing_at(__VA_ARGS__)
#define cw_copy_ticks sim_copy_ticks

#undef ARENA_CHANNEL
#define ARENA_CHANNEL sim_channel_memory()
#undef SYSTEM_CALL_
#define SYSTEM_CALL_(number, a, b, c, d, e, f, ...)                                                \
    sim_call(number, (long)(a), (long)(b), (long)(c), (long)(d), (long)(e), (long)(f))
#define system_map(at, size, protection, flags, fd, offset)                                        \
    sim_mmap((void *)(at), size, protection, flags, fd, offset)
#define fstat(...) sim_fstat(__VA_ARGS__)

#define sched_yield(...) sim_sched_yield(__VA_ARGS__)
/* A rank of the simulator has no policy. */
#define sched_getscheduler(...) sim_no()
#define raise(...) sim_raise(__VA_ARGS__)
#define _exit(...) sim_exit(__VA_ARGS__)
#define dprintf(...) sim_say(__VA_ARGS__)
#define getenv(...) sim_getenv(__VA_ARGS__)
#define randombytes_buf(...) sim_random_bytes(__VA_ARGS__)

#define shutdown(...) sim_shutdown(__VA_ARGS__)

/* A thread yields only where it calls the system. There is no UCX. */
#define cw_thread_start(...) sim_thread_start(__VA_ARGS__)
#define pthread_detach(thread) ((void)(thread))
#define pthread_cond_timedwait(condition, mutex, until) sim_cond_timedwait(condition, until)
#define pthread_cond_wait(condition, mutex) sim_cond_wait(condition)
#define pthread_cond_broadcast(condition) sim_cond_broadcast(condition)
#define pthread_mutex_lock(...) sim_nothing(__VA_ARGS__)
#define pthread_mutex_unlock(...) sim_nothing(__VA_ARGS__)
#define pthread_sigmask(how, set, old) sim_nothing_for(set, old)
#define pthread_atfork(prepare, parent, child) sim_no_fork(child)
#define dlsym(handle, name) sim_libc(name)
#define _dl_find_object(address, found) ((void)(address), (void)(found), -1)

/* What runs when a library is loaded runs when a simulated process begins: sim_begin(). */
#define constructor section("sim_begin"), used

/* Between two of its stores a process may die, or others see the first. */
#if defined(SIM_STORES_GIVE_WAY)
#undef atomic_store_explicit
#undef atomic_exchange_explicit
#undef atomic_compare_exchange_weak_explicit
#define atomic_store_explicit(at, value, order) (sim_give_way(), __atomic_store_n(at, value, order))
#define atomic_exchange_explicit(at, value, order)                                                 \
    (sim_give_way(), __atomic_exchange_n(at, value, order))
#define atomic_compare_exchange_weak_explicit(at, expected, value, order, order_failed)            \
    (sim_give_way(), __atomic_compare_exchange_n(at, expected, value, true, order, order_failed))
#endif

static inline int sim_no(void)
{
    return -1;
}
static inline int sim_no_fork(void (*child)(void))
{
    (void)child;
    return 0;
}
static inline int sim_nothing_for(const sigset_t *set, const sigset_t *old)
{
    (void)set;
    (void)old;
    return 0;
}
static inline int sim_nothing(const void *at)
{
    (void)at;
    return 0;
}
static inline int sim_nothing_at(const void *at, size_t size, int advice)
{
    (void)at;
    (void)size;
    (void)advice;
    return 0;
}

#endif
