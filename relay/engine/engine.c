#include "relay/engine/engine.h"

#include <string.h>

const struct relay_engine_ops *const relay_engines[] = {&relay_engine_poll, NULL};

const struct relay_engine_ops *relay_engine_find(const char *name)
{
    for (int i = 0; relay_engines[i]; i++)
        if (strcmp(relay_engines[i]->name, name) == 0)
            return relay_engines[i];
    return NULL;
}
