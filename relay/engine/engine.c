#include "relay/engine/engine.h"

#include <string.h>

const struct relay_engine_ops *const relay_engines[] = {&relay_engine_poll,  &relay_engine_thread,
                                                        &relay_engine_pool,  &relay_engine_pipeline,
                                                        &relay_engine_uring, NULL};

const struct relay_engine_ops *relay_engine_auto(struct cw_err *why)
{
    why->code = CW_OK;
    for (int i = 0; relay_engines[i]; i++)
        if (relay_engines[i]->check && relay_engines[i]->check(why) == CW_OK)
            return relay_engines[i];
    return relay_engine_find(RELAY_ENGINE_DEFAULT);
}

const struct relay_engine_ops *relay_engine_find(const char *name)
{
    for (int i = 0; relay_engines[i]; i++)
        if (strcmp(relay_engines[i]->name, name) == 0)
            return relay_engines[i];
    return NULL;
}
