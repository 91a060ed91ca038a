#include "common/tree.h"

#include <fts.h>
#include <ftw.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

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

uint64_t cw_tree_bytes(const char *path)
{
    char *const paths[] = {(char *)path, NULL};
    FTS *tree = fts_open(paths, FTS_PHYSICAL | FTS_NOCHDIR | FTS_XDEV, NULL);
    const FTSENT *entry;
    uint64_t bytes = 0;

    while (tree && (entry = fts_read(tree)))
        if (entry->fts_info == FTS_F)
            bytes += (uint64_t)entry->fts_statp->st_blocks * 512;
    if (tree)
        fts_close(tree);
    return bytes;
}

struct cw_names cw_names(const char *path, const char *prefix)
{
    return (struct cw_names){.dir = opendir(path), .prefix = prefix};
}

const char *cw_names_next(struct cw_names *names)
{
    const struct dirent *entry;

    while (names->dir && names->seen++ < TREE_NAMES_MAX && (entry = readdir(names->dir)))
        if (strncmp(entry->d_name, names->prefix, strlen(names->prefix)) == 0 &&
            strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            return entry->d_name;
    if (names->dir)
        closedir(names->dir);
    names->dir = NULL;
    return NULL;
}
