/* The one function of libucs.so.0 that MPICH calls. */
/* these, and nothing else, the library gives to the program */
#pragma GCC visibility push(default)
#include <ucs/type/status.h>
#pragma GCC visibility pop

const char *ucs_status_string(ucs_status_t status)
{
    switch (status) {
    case UCS_OK:
        return "Success";
    case UCS_INPROGRESS:
        return "Operation in progress";
    case UCS_ERR_NO_MEMORY:
        return "Out of memory";
    case UCS_ERR_INVALID_PARAM:
        return "Invalid parameter";
    case UCS_ERR_UNSUPPORTED:
        return "Unsupported operation";
    case UCS_ERR_MESSAGE_TRUNCATED:
        return "Message truncated";
    case UCS_ERR_CANCELED:
        return "Request canceled";
    default:
        return "Unknown error (Causeway R-device)";
    }
}
