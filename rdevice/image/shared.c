#include "rdevice/image/shared.h"

#include <stddef.h>

int shared_take(const struct image_setting *setting, struct cw_err *err)
{
    (void)setting;
    (void)err;
    return 0;
}
void shared_release(void)
{
}
const struct shared_copy *shared_get(uint32_t index)
{
    (void)index;
    return NULL;
}
