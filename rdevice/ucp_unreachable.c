/* The functions that MPICH imports and never reaches over this device. ucp_mem_map refuses, so RMA
 * goes by active messages, and nothing that needs a memory handle or a remote key is called. A call
 * would be a wrong assumption of ours: it ends the process with its name and why. */
#include "rdevice/fatal.h"

#include <string.h>
/* these, and nothing else, the library gives to the program */
#pragma GCC visibility push(default)
#include <ucp/api/ucp.h>
#pragma GCC visibility pop

ucs_status_t ucp_mem_map(ucp_context_h context, const ucp_mem_map_params_t *params,
                         ucp_mem_h *memh_p)
{
    (void)context;
    (void)params;
    (void)memh_p;
    return UCS_ERR_UNSUPPORTED;
}

#define UNREACHABLE(result, name, parameters)                                                      \
    __attribute__((noreturn)) result name parameters                                               \
    {                                                                                              \
        fatal_exit(CW_REPORT_FATAL,                                                                \
                   "MPICH called " #name ", which needs mapped memory; this device maps none");    \
    }

#pragma GCC diagnostic ignored "-Wunused-parameter"

UNREACHABLE(ucs_status_t, ucp_mem_unmap, (ucp_context_h context, ucp_mem_h memh))
UNREACHABLE(ucs_status_t, ucp_mem_query, (const ucp_mem_h memh, ucp_mem_attr_t *attr))
UNREACHABLE(ucs_status_t, ucp_rkey_pack,
            (ucp_context_h context, ucp_mem_h memh, void **rkey_buffer_p, size_t *size_p))
UNREACHABLE(void, ucp_rkey_buffer_release, (void *rkey_buffer))
UNREACHABLE(ucs_status_t, ucp_ep_rkey_unpack,
            (ucp_ep_h ep, const void *rkey_buffer, ucp_rkey_h *rkey_p))
UNREACHABLE(void, ucp_rkey_destroy, (ucp_rkey_h rkey))
UNREACHABLE(ucs_status_t, ucp_put,
            (ucp_ep_h ep, const void *buffer, size_t length, uint64_t remote, ucp_rkey_h rkey))
UNREACHABLE(ucs_status_t, ucp_put_nbi,
            (ucp_ep_h ep, const void *buffer, size_t length, uint64_t remote, ucp_rkey_h rkey))
UNREACHABLE(ucs_status_ptr_t, ucp_put_nb,
            (ucp_ep_h ep, const void *buffer, size_t length, uint64_t remote, ucp_rkey_h rkey,
             ucp_send_callback_t cb))
UNREACHABLE(ucs_status_t, ucp_get_nbi,
            (ucp_ep_h ep, void *buffer, size_t length, uint64_t remote, ucp_rkey_h rkey))
UNREACHABLE(ucs_status_ptr_t, ucp_get_nb,
            (ucp_ep_h ep, void *buffer, size_t length, uint64_t remote, ucp_rkey_h rkey,
             ucp_send_callback_t cb))
