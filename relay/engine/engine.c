#include "relay/engine/engine.h"

#include <string.h>

const struct relay_engine_ops *const relay_engines[] = {
    &relay_engine_poll, &relay_engine_thread, &relay_engine_pool, &relay_engine_pipeline, NULL};

const struct relay_engine_ops *relay_engine_auto(struct cw_err *why)
{
    int last = 0;

    while (relay_engines[last + 1])
        last++;
    why->code = CW_OK;
    while (last > 0 && relay_engines[last]->check && relay_engines[last]->check(why) < 0)
        last--;
    return relay_engines[last];
}

const struct relay_engine_ops *relay_engine_find(const char *name)
{
    for (int i = 0; relay_engines[i]; i++)
        if (strcmp(relay_engines[i]->name, name) == 0)
            return relay_engines[i];
    return NULL;
}
