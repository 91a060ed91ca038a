#include "rdevice/image/header.h"

#include "rdevice/image/features.h"
#include "rdevice/image/system.h"

#include <linux/prctl.h>
#include <string.h>
#include <time.h>

#define STAT_BYTES 2048u
/* Numbers of the fields of /proc/PID/stat, see proc(5). */
enum {
    STAT_STATE = 3,
    STAT_START_CODE = 26,
    STAT_END_CODE = 27,
    STAT_START_STACK = 28,
    STAT_START_DATA = 45,
    STAT_END_DATA = 46,
    STAT_START_BRK = 47,
    STAT_ARG_START = 48,
    STAT_ARG_END = 49,
    STAT_ENV_START = 50,
    STAT_ENV_END = 51,
    STAT_FIELDS = 52,
};

/* The name of the program, in parentheses, may hold anything. */
static bool parse_stat(const char *text, uint64_t *field)
{
    const char *at = strrchr(text, ')');
    int n = STAT_STATE;

    if (!at || at[1] != ' ' || at[2] == '\0')
        return false;
    for (at += 3; *at == ' ' && ++n <= STAT_FIELDS;) {
        at++;
        at += *at == '-';
        for (field[n] = 0; *at >= '0' && *at <= '9'; at++)
            field[n] = field[n] * 10 + (uint64_t)(*at - '0');
    }
    return n >= STAT_ENV_END;
}

static int read_bounds(struct cw_image_bounds *bounds, struct cw_err *err)
{
    uint64_t field[STAT_FIELDS + 2] = {0};
    char text[STAT_BYTES];
    long n = system_read_file("/proc/self/stat", text, sizeof(text));

    if (n < 0 || !parse_stat(text, field) || field[STAT_START_STACK] == 0)
        return cw_err_set(err, CW_ESYS, "/proc/self/stat does not say where memory begins: %s",
                          n < 0 ? strerrordesc_np((int)-n) : "the fields are not there");
    *bounds = (struct cw_image_bounds){
        .start_code = field[STAT_START_CODE],
        .end_code = field[STAT_END_CODE],
        .start_data = field[STAT_START_DATA],
        .end_data = field[STAT_END_DATA],
        .start_brk = field[STAT_START_BRK],
        .brk = (uint64_t)system_call(SYS_brk, 0),
        .start_stack = field[STAT_START_STACK],
        .arg_start = field[STAT_ARG_START],
        .arg_end = field[STAT_ARG_END],
        .env_start = field[STAT_ENV_START],
        .env_end = field[STAT_ENV_END],
    };
    return 0;
}

static void fill_order(struct cw_image_header *header, const struct image_order *order)
{
    struct timespec now = {0};

    system_call(SYS_clock_gettime, CLOCK_REALTIME, &now);
    memcpy(header->job, order->job, sizeof(header->job));
    header->rank = order->rank;
    header->ranks = order->ranks;
    header->incarnation = order->incarnation;
    header->number = order->number;
    header->event = order->event;
    header->clock = order->clock;
    header->acts = order->acts;
    header->taken_ns = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

int header_fill(struct cw_image_header *header, const struct image_order *order,
                const struct cw_image_context *context, uint64_t handoff, struct cw_err *err)
{
    long n;

    header->magic = CW_IMAGE_MAGIC;
    header->version = CW_IMAGE_VERSION;
    header->size = sizeof(*header);
    fill_order(header, order);
    n = system_call(SYS_readlinkat, -100 /* AT_FDCWD */, "/proc/self/exe", header->program,
                    sizeof(header->program) - 1);
    header->program[n > 0 ? n : 0] = '\0';
    system_call(SYS_prctl, PR_GET_NAME, header->comm);
    header->comm[sizeof(header->comm) - 1] = '\0';
    header->xcr0 = features_read(header->features);
    header->context = *context;
    header->handoff = handoff;
    n = system_read_file("/proc/self/auxv", header->auxv, sizeof(header->auxv));
    if (n <= 0 || n % 16 != 0)
        return cw_err_set(err, CW_ESYS, "/proc/self/auxv cannot be read, or is too long");
    header->auxv_size = (uint32_t)n;
    return read_bounds(&header->bounds, err);
}

int header_add_system(struct cw_image_header *header, const struct maps_region *region,
                      struct cw_err *err)
{
    struct cw_image_system *system = &header->system[header->systems];
    uint64_t size = region->end - region->start;

    if (region->start >= CW_IMAGE_USER_END)
        return 0; /* vsyscall: the same everywhere */
    if (strcmp(region->path, "[uprobes]") == 0)
        return 0; /* of who traces the process */
    if (header->systems == CW_IMAGE_SYSTEM_MAX || strlen(region->path) >= sizeof(system->name))
        return cw_err_set(err, CW_ESYS,
                          "this kernel has more mappings of its own than an image "
                          "holds: %.30s",
                          region->path);
    header->systems++;
    system->start = region->start;
    system->end = region->end;
    strcpy(system->name, region->path);
    if (strcmp(region->path, "[vdso]") != 0)
        return 0;
    if (size > CW_IMAGE_VDSO_MAX)
        return cw_err_set(err, CW_ESYS, "the vdso of this kernel has %llu bytes; an image holds %u",
                          (unsigned long long)size, CW_IMAGE_VDSO_MAX);
    memcpy(header->vdso, (const void *)(uintptr_t)region->start, size);
    header->vdso_size = (uint32_t)size;
    return 0;
}
