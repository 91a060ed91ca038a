#include "rdevice/image/files.h"
int files_read(const struct image_setting *setting, struct cw_err *err)
{
    (void)setting;
    (void)err;
    return 0;
}
void files_release(void)
{
}
int files_restore(const struct image_setting *setting, const int *given, struct cw_err *err)
{
    (void)setting;
    (void)given;
    (void)err;
    return 0;
}
