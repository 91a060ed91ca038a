#include "rdevice/tally.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define LEFT_OUT_SIZE 5u /* of ", ..." */

/* MPICH has the context, the sender's rank in the communicator, and the program's tag in a tag.
 * This bit of the context says that the message is part of a collective operation. */
#define COLLECTIVE (1ull << 48)
#define SOURCE (0xffffull << 32)

void tally_message(struct tally *tally, uint64_t tag)
{
    if (tag & COLLECTIVE)
        tag &= COLLECTIVE | SOURCE;
    for (size_t i = 0; i < TALLY_SENDERS_MAX; i++) {
        if (tally->senders[i].messages == 0)
            tally->senders[i].tag = tag;
        if (tally->senders[i].tag == tag) {
            tally->senders[i].messages++;
            return;
        }
    }
    tally->messages++;
}

void tally_readings(struct tally *tally, const uint8_t *bytes, size_t size)
{
    struct readings_reader reader = {.bytes = bytes, .left = size};
    uint64_t count;
    uint8_t kind;

    if (tally->read + reader.left <= TALLY_READ_MAX) {
        tally->read += reader.left;
        while (readings_skip(&reader, &kind, &count) == READINGS_OK)
            tally->readings[reading_group(kind)] += count;
    }
    tally->unread += reader.left;
}

/* --- as text ----------------------------------------------------------------------------------
 */

struct list {
    char *to;
    size_t size;
    size_t used;
    bool full;
};

__attribute__((format(printf, 2, 3))) static void add(struct list *list, const char *fmt, ...)
{
    size_t left = list->size - list->used - LEFT_OUT_SIZE;
    const char *comma = list->used ? ", " : "";
    char item[96];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(item, sizeof(item), fmt, ap);
    va_end(ap);
    if (list->full || strlen(comma) + strlen(item) >= left) {
        list->full = true;
        return;
    }
    list->used += (size_t)snprintf(list->to + list->used, left, "%s%s", comma, item);
}

static void add_some(struct list *list, uint64_t count, const char *one, const char *many)
{
    if (count)
        add(list, "%" PRIu64 " %s", count, count == 1 ? one : many);
}

static void add_sender(struct list *list, uint64_t count, uint64_t tag)
{
    const char *messages = count == 1 ? "message" : "messages";
    unsigned source = (tag & SOURCE) >> 32;

    if (tag & COLLECTIVE)
        add(list, "%" PRIu64 " %s of collectives from rank %u", count, messages, source);
    else
        add(list, "%" PRIu64 " %s from rank %u with tag %u", count, messages, source,
            (uint32_t)tag);
}

static size_t add_since(const struct tally *tally, char *to, size_t size)
{
    if (tally->act == 0)
        return (size_t)snprintf(to, size, "; since its start: ");
    return (size_t)snprintf(to, size, "; since act %" PRIu64 " at poll %" PRIu64 ", which agreed: ",
                            tally->act, tally->poll);
}

void tally_append(const struct tally *tally, char *text, size_t size)
{
    size_t used = strlen(text);
    struct list list = {0};

    if (size < used + TALLY_TEXT_MIN)
        return;
    used += add_since(tally, text + used, size - used);
    list = (struct list){.to = text + used, .size = size - used};
    for (int group = 0; group < READING_GROUPS; group++)
        add_some(&list, tally->readings[group], reading_group_name(group, 1),
                 reading_group_name(group, 2));
    add_some(&list, tally->answers, "probe", "probes");
    for (size_t i = 0; i < TALLY_SENDERS_MAX && tally->senders[i].messages > 0; i++)
        add_sender(&list, tally->senders[i].messages, tally->senders[i].tag);
    add_some(&list, tally->messages, "other message", "other messages");
    add_some(&list, tally->active, "active message", "active messages");
    add_some(&list, tally->done, "end of a request", "ends of requests");
    add_some(&list, tally->unread, "more byte of readings", "more bytes of readings");
    if (list.full)
        snprintf(list.to + list.used, list.size - list.used, "%s...", list.used ? ", " : "");
    else if (list.used == 0)
        snprintf(list.to, list.size, "no input");
}
