#include "common/tree.h"

#include <ftw.h>
#include <stdio.h>

#define TREE_DESCRIPTORS 8 /* that are open meanwhile */

static int remove_one(const char *path, const struct stat *st, int kind, struct FTW *at)
{
    (void)st;
    (void)kind;
    (void)at;
    remove(path);
    return 0;
}

void cw_tree_remove(const char *path)
{
    nftw(path, remove_one, TREE_DESCRIPTORS, FTW_DEPTH | FTW_PHYS | FTW_MOUNT);
}
