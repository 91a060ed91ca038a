/* Stands in for ckptsrv/ until that is in the tree. */
#include "ckptsrv/server.h"

__attribute__((weak)) int ckptsrv_child_start(const struct ckptsrv_config *config,
                                              struct ckptsrv_child *child, struct cw_err *err)
{
    (void)config;
    *child = (struct ckptsrv_child){.listens_fd = -1, .life_fd = -1};
    return cw_err_set(err, CW_ESYS, "there is no checkpoint server yet");
}

__attribute__((weak)) bool ckptsrv_child_listens(int listens_fd)
{
    (void)listens_fd;
    return false;
}
