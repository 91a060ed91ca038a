#include "dispatcher/agent/input_log.h"

void input_log_add(struct input_log *log, size_t size, uint64_t from_ns, uint64_t until_ns)
{
    uint64_t before = log->count ? log->write[(log->count - 1) % INPUT_LOG_WRITES_MAX].all : 0;
    uint32_t at = (uint32_t)(log->count % INPUT_LOG_WRITES_MAX);

    log->write[at].from_ns = from_ns;
    log->write[at].until_ns = until_ns;
    log->write[at].all = before + size;
    log->count++;
}

uint64_t input_log_at(const struct input_log *log, uint64_t from_ns, uint64_t until_ns)
{
    uint64_t known = log->count < INPUT_LOG_WRITES_MAX ? log->count : INPUT_LOG_WRITES_MAX;

    for (uint64_t i = 1; i <= known; i++) {
        uint32_t at = (uint32_t)((log->count - i) % INPUT_LOG_WRITES_MAX);

        if (log->write[at].until_ns < from_ns)
            return log->write[at].all;
        if (log->write[at].from_ns <= until_ns)
            return INPUT_LOG_UNKNOWN;
    }
    return known == log->count ? 0 : INPUT_LOG_UNKNOWN;
}
