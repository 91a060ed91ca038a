#include "relay/log/inputs.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define LEFT_OUT_SIZE 5u /* of ", ..." */

/* MPICH has the context, the sender's rank in the communicator, and the program's tag in a tag.
 * This bit of the context says that the message is part of a collective operation. */
#define COLLECTIVE (1ull << 48)
#define SOURCE (0xffffull << 32)

void inputs_begin(struct log_inputs *inputs)
{
    *inputs = (struct log_inputs){.before = inputs->event, .event = inputs->event};
}

void inputs_add_message(struct log_inputs *inputs, uint64_t tag)
{
    if (tag & COLLECTIVE)
        tag &= COLLECTIVE | SOURCE;
    for (size_t i = 0; i < INPUTS_SENDERS_MAX; i++) {
        if (inputs->senders[i].messages == 0)
            inputs->senders[i].tag = tag;
        if (inputs->senders[i].tag == tag) {
            inputs->senders[i].messages++;
            return;
        }
    }
    inputs->messages++;
}

void inputs_add_readings(struct log_inputs *inputs, const uint8_t *bytes, size_t size)
{
    size_t head = size < READINGS_HEAD ? size : READINGS_HEAD;
    struct readings_reader reader = {.bytes = bytes + head, .left = size - head};
    uint64_t count;
    uint8_t kind;

    if (inputs->read + reader.left <= INPUTS_READ_MAX) {
        inputs->read += reader.left;
        while (readings_skip(&reader, &kind, &count) == READINGS_OK)
            inputs->readings[reading_group(kind)] += count;
    }
    inputs->unread += reader.left;
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

void inputs_describe(const struct log_inputs *inputs, char *to, size_t size)
{
    struct list list = {.to = to, .size = size};

    for (int group = 0; group < READING_GROUPS; group++)
        add_some(&list, inputs->readings[group], reading_group_name(group, 1),
                 reading_group_name(group, 2));
    add_some(&list, inputs->answers, "probe", "probes");
    for (size_t i = 0; i < INPUTS_SENDERS_MAX && inputs->senders[i].messages > 0; i++)
        add_sender(&list, inputs->senders[i].messages, inputs->senders[i].tag);
    add_some(&list, inputs->messages, "other message", "other messages");
    add_some(&list, inputs->active, "active message", "active messages");
    add_some(&list, inputs->done, "end of a request", "ends of requests");
    add_some(&list, inputs->unread, "more byte of readings", "more bytes of readings");
    if (list.full)
        snprintf(to + list.used, size - list.used, "%s...", list.used ? ", " : "");
    else if (list.used == 0)
        snprintf(to, size, "no input");
}
