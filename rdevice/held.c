#include "rdevice/held.h"

#include "rdevice/image/image.h"
#include "rdevice/image/system.h"

#include <linux/futex.h>
#include <string.h>

#define HELD_MAX 64u
#define PAGE_BYTES 4096u
#define KIND_INHERIT 32 /* as libc has it in a mutex's kind */

struct held {
    void *lock;
    bool is_rwlock;
};

static _Thread_local struct {
    uint32_t count;
    uint32_t lost; /* for which there was no room */
    struct held held[HELD_MAX];
} mine __attribute__((tls_model("initial-exec")));

static uint32_t lost; /* of all threads */
static volatile uint32_t times;

static bool inherits(const pthread_mutex_t *mutex)
{
    return mutex->__data.__kind & KIND_INHERIT;
}

bool held_knows_owner(const pthread_mutex_t *mutex)
{
    int kind = mutex->__data.__kind & 3;

    return kind == PTHREAD_MUTEX_RECURSIVE || kind == PTHREAD_MUTEX_ERRORCHECK || inherits(mutex);
}

/* --- what the thread holds ---------------------------------------------------------------------
 */

static void add(void *lock, bool is_rwlock)
{
    if (mine.count == HELD_MAX) {
        mine.lost++;
        __atomic_add_fetch(&lost, 1, __ATOMIC_RELAXED);
        return;
    }
    mine.held[mine.count++] = (struct held){lock, is_rwlock};
}

void held_add_mutex(pthread_mutex_t *mutex)
{
    add(mutex, false);
}

void held_add_rwlock(pthread_rwlock_t *lock)
{
    add(lock, true);
}

/* Mostly the newest. */
bool held_drop(const void *lock)
{
    for (uint32_t i = mine.count; i-- > 0;)
        if (mine.held[i].lock == lock) {
            mine.count--;
            memmove(&mine.held[i], &mine.held[i + 1], (mine.count - i) * sizeof(struct held));
            return true;
        }
    if (mine.lost == 0)
        return false;
    mine.lost--;
    __atomic_sub_fetch(&lost, 1, __ATOMIC_RELAXED);
    return true;
}

const char *held_refusal(void)
{
    return __atomic_load_n(&lost, __ATOMIC_RELAXED) ? "a thread of the program holds more than 64 "
                                                      "locks that know their owner (recursive "
                                                      "or error-checking mutexes, for example)"
                                                    : NULL;
}

/* --- another number ----------------------------------------------------------------------------
 */

uint32_t held_times(void)
{
    return times;
}

static void rename_word(void *word, uint32_t former, uint32_t now)
{
    uint32_t value;

    memcpy(&value, word, sizeof(value));
    if ((value & FUTEX_TID_MASK) != former)
        return;
    value = (value & ~(uint32_t)FUTEX_TID_MASK) | now;
    memcpy(word, &value, sizeof(value));
}

static void rename_mutex(pthread_mutex_t *mutex, uint32_t former, uint32_t now)
{
    rename_word(&mutex->__data.__owner, former, now);
    if (inherits(mutex))
        rename_word(&mutex->__data.__lock, former, now);
}

/* libc has read the number before it slept. Of robust mutexes it is their value. */
void held_own_mutex(pthread_mutex_t *mutex)
{
    uint32_t own = (uint32_t)system_call(SYS_gettid);
    uint32_t owner = (uint32_t)mutex->__data.__owner;

    if (owner != own && (mutex->__data.__kind & 16))
        rename_word(&mutex->__data.__lock, owner, own);
    mutex->__data.__owner = (int)own;
}

void held_own_rwlock(pthread_rwlock_t *lock)
{
    lock->__data.__cur_writer = (int)system_call(SYS_gettid);
}

/* A program may free the memory of a lock that it still holds. */
static bool is_mapped(const void *address)
{
    unsigned char resident;

    return system_call(SYS_mincore, (uintptr_t)address & ~(uintptr_t)(PAGE_BYTES - 1), 1,
                       &resident) == 0;
}

void held_go_on(void)
{
    int32_t former, now;

    times++;
    for (uint32_t i = 0; image_thread(i, &former, &now); i++) {
        __typeof__(&mine) its = image_thread_local(i, &mine);

        for (uint32_t k = 0; k < its->count; k++) {
            const struct held *h = &its->held[k];

            if (!is_mapped(h->lock))
                continue;
            if (h->is_rwlock)
                rename_word(&((pthread_rwlock_t *)h->lock)->__data.__cur_writer, (uint32_t)former,
                            (uint32_t)now);
            else
                rename_mutex(h->lock, (uint32_t)former, (uint32_t)now);
        }
    }
}
