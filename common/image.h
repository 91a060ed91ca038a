/* The stream of an image: all that is needed to go on with a process from one moment.
 * docs/image-format.md is the contract. Written by rdevice/image, kept by ckptsrv, read by the
 * restorer, which has no libc: image.c calls nothing. Integers
 * are little-endian, structs as x86-64 lays them out.
 *
 * A stream is records, each with its header: HEADER; then for each region of memory REGION and its
 * BLOCKs in the order of their addresses; END. */
#ifndef CW_IMAGE_H
#define CW_IMAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CW_IMAGE_MAGIC 0x31474d4959415743ull /* "CWAYIMG1" */
#define CW_IMAGE_VERSION 2u
#define CW_IMAGE_BLOCK 65536u /* bytes; a block lies within one window that is aligned to it */
#define CW_IMAGE_PAGE 4096u
#define CW_IMAGE_PATH_MAX 512u
#define CW_IMAGE_REGIONS_MAX 65536u
#define CW_IMAGE_SYSTEM_MAX 4u
#define CW_IMAGE_VDSO_MAX 16384u
#define CW_IMAGE_AUXV_MAX 64u               /* words */
#define CW_IMAGE_USER_END 0x7ffffffff000ull /* no address of a process is there or above */
#define CW_IMAGE_PROT_ALL 7u                /* PROT_READ | PROT_WRITE | PROT_EXEC */

enum cw_image_record_type {
    CW_IMAGE_HEADER = 1,
    CW_IMAGE_REGION = 2,
    CW_IMAGE_BLOCK_ZERO = 3, /* nothing follows */
    CW_IMAGE_BLOCK_SAME =
        4, /* nothing follows: as in the base; not in a stream that is read back */
    CW_IMAGE_BLOCK_DATA = 5, /* struct cw_image_block, and the bytes */
    CW_IMAGE_BLOCK_LZ4 = 6,  /* ... compressed, as LZ4's block format */
    CW_IMAGE_END = 7,
};

struct cw_image_record {
    uint32_t type;
    uint32_t length; /* bytes after this header; a multiple of 8 but for LZ4 and the header's end */
};

struct cw_image_hash {
    uint64_t low, high; /* XXH3-128 of the bytes, not compressed */
};

/* Of each kind of BLOCK: this, and for DATA and LZ4 the bytes. */
struct cw_image_block {
    uint64_t address;          /* a multiple of CW_IMAGE_PAGE */
    uint64_t size;             /* of memory: a multiple of CW_IMAGE_PAGE, at most CW_IMAGE_BLOCK */
    struct cw_image_hash hash; /* ZERO: zeros */
};

enum cw_image_region_kind {
    CW_IMAGE_ANONYMOUS = 1,
    CW_IMAGE_FILE_PRIVATE = 2, /* the file, and over it the BLOCKs */
    CW_IMAGE_FILE_SHARED = 3,  /* the file alone */
    CW_IMAGE_SHARED = 4,       /* shared memory without a file that could be opened again */
};

enum cw_image_region_flag {
    CW_IMAGE_GROWS_DOWN = 1,
    CW_IMAGE_HUGE_PAGES = 2,
    CW_IMAGE_NO_HUGE_PAGES = 4,
    CW_IMAGE_NO_RESERVE = 8,
};

struct cw_image_region {
    uint64_t start, end;
    uint64_t file_offset;
    uint64_t file_size;              /* FILE_PRIVATE: as it was, and what it began with: */
    struct cw_image_hash file_start; /* of the first page at most */
    uint64_t file_changed_ns;        /* when its content was changed last, as stat(2) says */
    uint32_t prot;                   /* PROT_READ, PROT_WRITE, PROT_EXEC */
    uint32_t kind;
    uint32_t flags;
    uint32_t reserved;
    char path[CW_IMAGE_PATH_MAX]; /* terminated */
};

/* END: `hash` is over the bodies of HEADER and REGION records and over the struct cw_image_block of
 * all BLOCKs, in their order; so it is the same whether blocks are SAME, compressed or neither. A
 * ZERO block counts with zeros for its hash. */
struct cw_image_end {
    uint64_t regions;
    uint64_t blocks;
    uint64_t bytes; /* of memory in blocks that are not ZERO */
    struct cw_image_hash hash;
};

/* The processor's registers that a function call keeps. */
struct cw_image_context {
    uint64_t rbx, rbp, r12, r13, r14, r15, rsp, rip;
    uint32_t mxcsr;
    uint16_t fcw;
    uint16_t reserved;
    uint64_t fs_base, gs_base;
};

/* As prctl(PR_SET_MM_MAP) takes it. */
struct cw_image_bounds {
    uint64_t start_code, end_code, start_data, end_data, start_brk, brk, start_stack, arg_start,
        arg_end, env_start, env_end;
};

/* vdso and its data pages. */
struct cw_image_system {
    uint64_t start, end;
    char name[32];
};

struct cw_image_header {
    uint64_t magic;
    uint32_t version;
    uint32_t size; /* of this struct */
    /* what it is an image of */
    uint8_t job[16];
    uint32_t rank, ranks, incarnation;
    uint32_t number;
    uint64_t event, clock, acts; /* the point: all before it in the rank's log is covered */
    uint64_t taken_ns;           /* CLOCK_REALTIME */
    char program[CW_IMAGE_PATH_MAX];
    char comm[16];
    /* what it needs */
    uint32_t features[8]; /* of the processor, words of CPUID */
    uint64_t xcr0;
    /* where it goes on */
    struct cw_image_context context;
    struct cw_image_bounds bounds;
    uint64_t handoff; /* where the restorer leaves a struct for the restored process */
    uint32_t systems;
    uint32_t auxv_size; /* bytes */
    uint32_t vdso_size;
    uint32_t reserved;
    struct cw_image_system system[CW_IMAGE_SYSTEM_MAX];
    uint64_t auxv[CW_IMAGE_AUXV_MAX];
    uint8_t vdso[CW_IMAGE_VDSO_MAX];
};

/* --- checks, of records that have come whole: NULL, or what is wrong (a constant string) --- */

/* Whether a record may be so long; the first thing to be asked. */
const char *cw_image_check_record(const struct cw_image_record *record);
const char *cw_image_check_header(const struct cw_image_header *header);

/* The order of a stream: one record after the other. All zero at first. */
struct cw_image_order {
    bool ended;
    uint64_t region_start, region_end; /* of the region at hand */
    uint64_t region_kind;
    uint64_t last_end; /* where the block before it, or the region, ended */
    uint64_t regions, blocks, bytes;
};
const char *cw_image_check_region(struct cw_image_order *order,
                                  const struct cw_image_region *region);
const char *cw_image_check_block(struct cw_image_order *order, uint32_t type, uint64_t length,
                                 const struct cw_image_block *block);
/* `hash` is the caller's own. */
const char *cw_image_check_end(struct cw_image_order *order, const struct cw_image_end *end,
                               const struct cw_image_hash *hash);

#endif
