/* A line of /proc/self/maps or smaps. Pure; the restorer has it too. */
#ifndef RDEVICE_IMAGE_MAPS_LINE_H
#define RDEVICE_IMAGE_MAPS_LINE_H

#include "common/image.h"

#include <stdbool.h>
#include <stdint.h>

struct maps_region {
    uint64_t start, end, offset, inode;
    uint32_t major, minor; /* of the file's device, as the kernel has it for itself */
    uint64_t anonymous;    /* bytes of it that are the process's own, or swapped out; smaps only */
    uint32_t prot;         /* PROT_... */
    uint32_t flags;        /* enum cw_image_region_flag; smaps only */
    bool shared;
    bool keyed;   /* with a key of pkey_alloc(2); smaps only */
    bool device;  /* memory of a device, which nobody may copy; smaps only */
    bool kernel;  /* the kernel's own: vdso, vvar, ... */
    bool deleted; /* the path says that the file is gone */
    bool cut;     /* the path is longer than CW_IMAGE_PATH_MAX */
    char path[CW_IMAGE_PATH_MAX];
};

enum maps_line {
    MAPS_REGION, /* *region is another one */
    MAPS_FIELD,  /* of smaps: *region knows more, or it is a field that does not matter */
    MAPS_WRONG,
};

/* A line without its end. */
enum maps_line maps_parse(const char *line, size_t size, struct maps_region *region);

#endif
