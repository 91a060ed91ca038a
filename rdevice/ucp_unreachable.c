/* The functions that MPICH imports and never reaches over this device. ucp_mem_map refuses, so RMA
 * goes by active messages, and nothing that needs a memory handle or a remote key is called. A call
 * would be a wrong assumption of ours: it ends the process with its name and why, whatever its
 * arguments are. */
#include "rdevice/fatal.h"
#include "rdevice/next.h"

#define UNREACHABLE(name)                                                                          \
    PUBLIC __attribute__((noreturn)) void name(void)                                               \
    {                                                                                              \
        fatal_exit(CW_REPORT_FATAL,                                                                \
                   "MPICH called " #name ", which needs mapped memory; this device maps none");    \
    }

UNREACHABLE(ucp_mem_unmap)
UNREACHABLE(ucp_mem_query)
UNREACHABLE(ucp_rkey_pack)
UNREACHABLE(ucp_rkey_buffer_release)
UNREACHABLE(ucp_ep_rkey_unpack)
UNREACHABLE(ucp_rkey_destroy)
UNREACHABLE(ucp_put)
UNREACHABLE(ucp_put_nbi)
UNREACHABLE(ucp_put_nb)
UNREACHABLE(ucp_get_nbi)
UNREACHABLE(ucp_get_nb)
