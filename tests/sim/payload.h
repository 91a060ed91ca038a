/* The bytes of messages: cut from one table, at a place that sender and number give. */
#ifndef SIM_PAYLOAD_H
#define SIM_PAYLOAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PAYLOAD_MAX (1u << 20)

void payload_init(void);
/* `size` at most PAYLOAD_MAX. */
const uint8_t *payload_of(uint64_t tag);
bool payload_is(const uint8_t *at, uint64_t tag, size_t size);

#endif
