/* The device's library, loaded once for each process: as in a process of its own, what it keeps in
 * static memory is that process's alone. */
#ifndef SIM_LIBRARY_H
#define SIM_LIBRARY_H

#include "tests/sim/device_view.h"

#include <sys/random.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/times.h>
#include <time.h>
#include <ucp/api/ucp.h>

#define LIBRARY_FUNCTIONS(X)                                                                       \
    X(device_begin)                                                                                \
    X(device_call)                                                                                 \
    X(device_look)                                                                                 \
    X(device_was_not_woken)                                                                        \
    X(ucp_init_version)                                                                            \
    X(ucp_worker_create)                                                                           \
    X(ucp_worker_set_am_handler)                                                                   \
    X(ucp_worker_set_am_recv_handler)                                                              \
    X(ucp_worker_get_address)                                                                      \
    X(ucp_worker_progress)                                                                         \
    X(ucp_worker_destroy)                                                                          \
    X(ucp_ep_create)                                                                               \
    X(ucp_dt_create_generic)                                                                       \
    X(ucp_dt_destroy)                                                                              \
    X(ucp_tag_send_nbx)                                                                            \
    X(ucp_tag_send_sync_nbx)                                                                       \
    X(ucp_am_send_nb)                                                                              \
    X(ucp_am_send_nbx)                                                                             \
    X(ucp_am_recv_data_nbx)                                                                        \
    X(ucp_tag_recv_nbx)                                                                            \
    X(ucp_tag_msg_recv_nbx)                                                                        \
    X(ucp_tag_probe_nb)                                                                            \
    X(ucp_request_cancel)                                                                          \
    X(ucp_request_release)                                                                         \
    X(clock_gettime)                                                                               \
    X(gettimeofday)                                                                                \
    X(time)                                                                                        \
    X(times)                                                                                       \
    X(getrandom)                                                                                   \
    X(getrusage)

struct library {
    struct library *next; /* of those that are free */
    void *handle;
    int fd;         /* of its file */
    uint8_t *start; /* its static memory ... */
    size_t size;
    uint8_t *fresh; /* ... as it was when it was loaded */
#define X(name) __typeof__(name) *name;
    LIBRARY_FUNCTIONS(X)
#undef X
};

/* As if just loaded. Never NULL. */
struct library *library_take(void);
void library_renew(struct library *library);
/* Its static memory, to and from elsewhere. */
void library_save(const struct library *library, uint8_t *to);
void library_restore(struct library *library, const uint8_t *from);
void library_release(struct library *library);
void libraries_fini(void);

#endif
