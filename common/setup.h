/* The records between a dispatcher and the R-device of a rank that it starts, over a socket that
 * the process inherits (environment variable CAUSEWAY_FD): one SETUP to the device, REPORTs to the
 * dispatcher. docs/protocol.md, "Setup". */
#ifndef CW_SETUP_H
#define CW_SETUP_H

#include "common/channel.h"
#include "common/frame.h"

#define CW_SETUP_ENV "CAUSEWAY_FD"
#define CW_CHANNEL_ENV "CAUSEWAY_CHANNEL" /* descriptor of the channel memory, if any */
#define CW_INSIDE_ENV "CAUSEWAY_INSIDE"   /* 0; in what a rank that has called MPI_Init starts, 1 */

/* Where the ranks of the job are at home, for collectives that know sites: a character for each
 * rank, the number of its relay in base 16. Not set where MPICH's own collectives are wanted. */
#define CW_SITES_ENV "CAUSEWAY_SITES"
#define CW_SETUP_ADDRESS_MAX 300
#define CW_EARLY_MAX                                                                               \
    (64u << 10) /* bytes of readings before MPI_Init; docs/protocol.md, "Readings" */
#define CW_IMAGE_SERVERS_MAX 16u /* checkpoint servers of a job ... */
#define CW_IMAGE_COPIES_MAX 2u   /* ... that keep one image */
#define CW_SETUP_MAX (5784u + CW_EARLY_MAX)
#define CW_MARK_SIZE 16    /* bytes of a secret that marks a place in a rank's output */
#define CW_PATH_TOLD 200   /* bytes of a file's path in a report: its end */
#define CW_EXIT_DEVICE 113 /* exit code after a report RELAY_LOST or FATAL */

#define CW_SETUP_MAGIC 0x50555357u /* "WSUP" */
#define CW_SETUP_VERSION 16

/* A process of a rank. */
struct cw_process {
    uint32_t rank;
    uint32_t replica;     /* which copy of the rank it plays; 0: there is one */
    uint32_t incarnation; /* of that copy, from 1 */
};

#define CW_REPLICAS 1u /* copies of each rank that a job has at a time */

/* Where a process, whichever incarnation, is in a table of ranks * CW_REPLICAS entries. What
 * outlives it (images, what it was told, read and printed) is its rank's. */
static inline size_t cw_process_index(struct cw_process process)
{
    return (size_t)process.rank * CW_REPLICAS + process.replica;
}

/* As it is sent, up to its flags; then come the early readings. */
struct cw_setup {
    uint32_t magic;
    uint32_t version;
    uint8_t job[CW_ID_SIZE];
    struct cw_process process;
    uint32_t ranks;
    uint32_t resume_ms;       /* the resume time-out; at most CW_RESUME_MAX_MS; 0: the session ends
                               * with its connection */
    uint32_t flags;           /* enum cw_setup_flag */
    uint8_t key[CW_KEY_SIZE]; /* of this rank and incarnation */
    uint64_t spin_ns;         /* how long to poll before sleeping */
    uint64_t fault_event; /* a drill: the process kills itself when it takes this event; 0: none */
    char address[CW_SETUP_ADDRESS_MAX]; /* of the home relay */
    uint32_t image_servers;             /* entries of: */
    /* Of checkpoint servers, which CHECKPOINT names by their places here; "": there is none. */
    char image_address[CW_IMAGE_SERVERS_MAX][CW_SETUP_ADDRESS_MAX];
    uint8_t image_key[CW_KEY_SIZE]; /* the rank key at each of them */
    uint8_t mark[CW_MARK_SIZE];
    uint64_t input_inode;      /* of the pipe that is stdin; 0: no pipe */
    uint64_t output_inodes[2]; /* of the pipes that are stdout and stderr; 0: no pipe */
    uint64_t channel_bytes;    /* of the channel memory, with CW_SETUP_CHANNEL */
    uint64_t channel_disk;     /* at most, of a file behind it; likewise */
    uint64_t mailbox_bytes;    /* of messages that its rank has not received, likewise */
    uint32_t channel_ranks; /* that share the memory, likewise; ascending, this one among them: */
    uint16_t channel_rank[CW_CHANNEL_RANKS_MAX];
    uint32_t channel_group; /* which memory of its node, likewise: of its home relay, or 0 */
    /* For its environment, and no part of the datagram: its number among the ranks that were first
     * placed on the host where it was, and how many these are. In each incarnation the same. */
    uint32_t local_rank;
    uint32_t local_ranks;
    const uint8_t *early; /* early readings of an earlier incarnation; borrowed */
    uint32_t early_size;
};

enum cw_setup_flag {
    CW_SETUP_SHARES_FILES = 1, /* others write files of this rank: none is cut */
    /* How much of what messages carry is hashed; samples of what is large without any of these. */
    CW_SETUP_CONTENTS_ALL = 4,
    CW_SETUP_CONTENTS_NONE = 8,
    CW_SETUP_CONTENTS_END = 16, /* other contents end the job */
    CW_SETUP_CHANNEL = 32, /* the rank is its own mailbox, and exchanges messages with those that
                              share its channel memory there */
};

/* Where a rank is in its output when an image is taken: written to each of stdout and stderr that
 * is still the pipe of its launcher. */
struct cw_output_mark {
    uint8_t mark[CW_MARK_SIZE]; /* of SETUP */
    uint32_t number;            /* of the image */
    uint32_t check;             /* ~number */
};
#define CW_OUTPUT_MARK_SIZE sizeof(struct cw_output_mark) /* below PIPE_BUF: it stays together */

enum cw_report_kind {
    CW_REPORT_RELAY_LOST = 1, /* the session with the relay was given up */
    CW_REPORT_FATAL = 2,
    CW_REPORT_EARLY = 3, /* the bytes are early readings, not text */
    CW_REPORT_DRILL = 4, /* it kills itself now, as fault_event says */
    CW_REPORT_FILE = 5,  /* it opens a file; the text is the path */
    /* images, see struct cw_image_report */
    CW_REPORT_IMAGE_TAKEN = 6, /* its process is being copied, at this point */
    CW_REPORT_IMAGE_ENDED = 7, /* the copy is at the server, or the text says why not */
    CW_REPORT_NOT_RESTORED =
        8, /* the image that it was to be started from is of no use: the text */
    CW_REPORT_IMAGE_BROKE_OFF = 9, /* likewise, but its stream has not come to its end */
    CW_REPORT_NESTED = 10, /* its program has started another MPI program, whose path is the text */
    CW_REPORT_SETUP_READ = 11, /* there is an R-device in it, which has read its setup */
    CW_REPORT_REMARK = 12,     /* it goes on from its image, and not all is as it was: the text */
    CW_REPORT_DIFFERS = 13,    /* it repeats a message with other contents, and goes on: the text */
};

/* As it is sent. IMAGE_TAKEN comes before anything that the rank does after that moment. */
struct cw_image_report {
    uint32_t number;
    uint32_t stored; /* ENDED: 1: the server has it; 0: the text says why not */
    struct cw_point point;
    uint64_t unread;   /* TAKEN: bytes in stdin that the rank has not read; UINT64_MAX: unknown */
    uint64_t stall_ns; /* ENDED: that the program stood still */
    uint64_t sent;     /* ENDED: bytes of the stream */
    /* TAKEN: `unread` was found between these times of CLOCK_MONOTONIC */
    uint64_t looked_from_ns;
    uint64_t looked_until_ns;
};
_Static_assert(sizeof(struct cw_image_report) == 72, "it is sent as it stands");

/* As it is sent: a regular file that a rank opens. A file system reuses inode numbers; inode and
 * time of birth together identify a file. */
struct cw_opening {
    uint64_t device;
    uint64_t inode;
    uint64_t born_ns;   /* mixed with the generation of its inode; 0: unknown */
    uint64_t opened_ns; /* CLOCK_MONOTONIC, when it was open */
    uint32_t writes;    /* 1: its content may change, or be written again by a re-execution */
    uint32_t made;      /* 1: it was not there before */
    uint64_t name;      /* a hash of the last part of its path */
};

struct cw_report {
    uint32_t kind;
    char text[CW_TEXT_MAX + 1]; /* terminated, printable; but for EARLY */
    const uint8_t *early;       /* for EARLY: points into the record */
    size_t early_size;
    struct cw_opening opening;    /* for FILE */
    struct cw_image_report image; /* for IMAGE_TAKEN and IMAGE_ENDED */
};
#define CW_REPORT_HEADER 8u
_Static_assert(sizeof(struct cw_opening) == 48, "it is sent as it stands");
#define CW_REPORT_FILE_MAX (CW_REPORT_HEADER + sizeof(struct cw_opening) + CW_PATH_TOLD)

/* Encode into CW_SETUP_MAX bytes; return how many were used. `size` bytes at most CW_EARLY_MAX for
 * EARLY, else CW_TEXT_MAX. */
size_t cw_setup_put(uint8_t *to, const struct cw_setup *v);
size_t cw_report_put(uint8_t *to, uint32_t kind, const void *bytes, size_t size);

/* A report FILE, into CW_REPORT_FILE_MAX bytes. */
size_t cw_report_put_file(uint8_t *to, const struct cw_opening *opening, const char *path);

/* A report IMAGE_TAKEN or IMAGE_ENDED with a text of at most CW_TEXT_MAX bytes. */
size_t cw_report_put_image(uint8_t *to, uint32_t kind, const struct cw_image_report *image,
                           const char *text);

/* Decode. Return false if a size or a value is wrong. `early` points into `from`. */
bool cw_setup_get(const uint8_t *from, size_t size, struct cw_setup *v);
bool cw_report_get(const uint8_t *from, size_t size, struct cw_report *v);

#endif
