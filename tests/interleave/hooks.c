/* What gcc calls in code that it compiled with -fsanitize=thread: each access to memory that others
 * may have, with its order. Here these are the steps of schedules. No other part of that sanitizer
 * is used. */
#include "common/copy.h"
#include "tests/interleave/explore.h"

#include <string.h>

/* the compiler's own names, which no header declares */
#pragma GCC visibility push(default)

void __tsan_init(void);
void __tsan_func_entry(void *caller);
void __tsan_func_exit(void);

void __tsan_init(void)
{
}

void __tsan_func_entry(void *caller)
{
    (void)caller;
}

void __tsan_func_exit(void)
{
}

#define PLAIN(name, size, writes)                                                                  \
    void __tsan_##name##size(const void *at);                                                      \
    void __tsan_##name##size(const void *at)                                                       \
    {                                                                                              \
        explore_access(at, size, writes);                                                          \
    }

PLAIN(read, 1, false)
PLAIN(read, 2, false)
PLAIN(read, 4, false)
PLAIN(read, 8, false)
PLAIN(read, 16, false)
PLAIN(unaligned_read, 2, false)
PLAIN(unaligned_read, 4, false)
PLAIN(unaligned_read, 8, false)
PLAIN(unaligned_read, 16, false)
PLAIN(write, 1, true)
PLAIN(write, 2, true)
PLAIN(write, 4, true)
PLAIN(write, 8, true)
PLAIN(write, 16, true)
PLAIN(unaligned_write, 2, true)
PLAIN(unaligned_write, 4, true)
PLAIN(unaligned_write, 8, true)
PLAIN(unaligned_write, 16, true)

void __tsan_read_range(const void *at, unsigned long size);
void __tsan_write_range(const void *at, unsigned long size);

void __tsan_read_range(const void *at, unsigned long size)
{
    explore_access(at, size, false);
}

void __tsan_write_range(const void *at, unsigned long size)
{
    explore_access(at, size, true);
}

static uint64_t go(enum model_kind kind, volatile void *at, unsigned bits, uint64_t value,
                   int order)
{
    return explore_do(&(struct model_op){.kind = kind,
                                         .at = (void *)at,
                                         .size = bits / 8,
                                         .value = value,
                                         .order = order})
        .value;
}

#define ATOMIC(bits)                                                                               \
    uint##bits##_t __tsan_atomic##bits##_load(const volatile void *at, int order);                 \
    void __tsan_atomic##bits##_store(volatile void *at, uint##bits##_t value, int order);          \
    uint##bits##_t __tsan_atomic##bits##_exchange(volatile void *at, uint##bits##_t value,         \
                                                  int order);                                      \
    int __tsan_atomic##bits##_compare_exchange_weak(volatile void *at, uint##bits##_t *expected,   \
                                                    uint##bits##_t value, int order,               \
                                                    int order_failed);                             \
                                                                                                   \
    uint##bits##_t __tsan_atomic##bits##_load(const volatile void *at, int order)                  \
    {                                                                                              \
        return (uint##bits##_t)go(MODEL_LOAD, (volatile void *)at, bits, 0, order);                \
    }                                                                                              \
                                                                                                   \
    void __tsan_atomic##bits##_store(volatile void *at, uint##bits##_t value, int order)           \
    {                                                                                              \
        go(MODEL_STORE, at, bits, value, order);                                                   \
    }                                                                                              \
                                                                                                   \
    uint##bits##_t __tsan_atomic##bits##_exchange(volatile void *at, uint##bits##_t value,         \
                                                  int order)                                       \
    {                                                                                              \
        return (uint##bits##_t)go(MODEL_EXCHANGE, at, bits, value, order);                         \
    }                                                                                              \
                                                                                                   \
    int __tsan_atomic##bits##_compare_exchange_weak(volatile void *at, uint##bits##_t *expected,   \
                                                    uint##bits##_t value, int order,               \
                                                    int order_failed)                              \
    {                                                                                              \
        struct model_result r = explore_do(&(struct model_op){.kind = MODEL_COMPARE,               \
                                                              .at = (void *)at,                    \
                                                              .size = bits / 8,                    \
                                                              .value = value,                      \
                                                              .expected = *expected,               \
                                                              .order = order,                      \
                                                              .order_failed = order_failed});      \
                                                                                                   \
        *expected = (uint##bits##_t)r.value;                                                       \
        return r.done;                                                                             \
    }

ATOMIC(32)
ATOMIC(64)

void __tsan_atomic_thread_fence(int order);

void __tsan_atomic_thread_fence(int order)
{
    explore_do(&(struct model_op){.kind = MODEL_FENCE, .order = order});
}

#pragma GCC visibility pop

/* In place of common/copy.c. */
void cw_copy(uint8_t *to, const uint8_t *from, size_t size)
{
    explore_access(from, size, false);
    explore_access(to, size, true);
    memcpy(to, from, size);
}
