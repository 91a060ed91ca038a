/* A generic datatype: a buffer that is packed and unpacked piece by piece. */
#ifndef SIM_TYPED_H
#define SIM_TYPED_H

#include <stddef.h>
#include <stdint.h>
#include <ucp/api/ucp.h>

struct typed {
    uint8_t *at;
    size_t size;
};

/* Needed until the message is through; goes with the process. */
ucp_datatype_t typed_datatype(void);

/* What is to be given as the buffer; taken back when the message is through. */
struct typed *typed_new(const void *at, size_t size);

#endif
