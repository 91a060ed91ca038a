#include "dispatcher/run/programs.h"
#include "dispatcher/job/homes.h"
#include "dispatcher/program/device_path.h"
#include "dispatcher/program/program.h"
#include "dispatcher/program/resolve.h"
#include "dispatcher/program/ucx_names.h"

#include <errno.h>
#include <inttypes.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#define PRELOAD_NAME "LD_PRELOAD"
#define NAME_SIZE 64 /* bytes of a function's name */

static void take_first(void *ctx, const char *name)
{
    char *first = ctx;

    if (!first[0])
        snprintf(first, NAME_SIZE, "%s", name);
}

/* The dynamic loader would say so too, in each rank, and in the middle of its run. */
static int check_mpi(const char *path, const char *mpi_library, const char *device,
                     struct cw_err *err)
{
    char first[NAME_SIZE] = "";
    int imported;

    if (!ucx_names_compare(mpi_library, device, take_first, first, &imported))
        return CW_OK;
    return cw_err_set(
        err, CW_EINVAL,
        "%.300s: its MPI library %.300s calls %s of UCX, which Causeway does not have; "
        "use " UCX_NAMES_CARRIED,
        path, mpi_library, first);
}

static int check_program(const struct run_segment *segment, const char *device, char path[PATH_MAX],
                         struct program_info *info, struct cw_err *err)
{
    if (segment->wdir && access(segment->wdir, X_OK) < 0)
        return cw_err_set(err, CW_ENOTFOUND, "working directory %s: %s", segment->wdir,
                          strerror(errno));
    if (program_resolve(segment->argv[0], segment->wdir, path, PATH_MAX, err) < 0 ||
        program_inspect(path, info, err) < 0)
        return err->code;
    if (!program_can_run(info->kind))
        return cw_err_set(err, CW_EINVAL, "%s: %s", path, program_explain(info->kind));
    return info->kind == PROGRAM_MPICH_UCX ? check_mpi(path, info->mpi_library, device, err)
                                           : CW_OK;
}

static int allocate(struct programs *p, const struct run_options *options, struct cw_err *err)
{
    uint32_t rank = 0;

    *p = (struct programs){.segments = options->segment_count};
    p->of_segment = calloc(options->segment_count, sizeof(*p->of_segment));
    p->paths = calloc(options->segment_count, sizeof(*p->paths));
    p->segment_of = calloc(options->ranks, sizeof(*p->segment_of));
    p->preload = calloc(options->segment_count, sizeof(*p->preload));
    p->more = calloc(options->segment_count, sizeof(*p->more));
    if (!p->of_segment || !p->paths || !p->segment_of || !p->preload || !p->more)
        return cw_err_set(err, CW_ENOMEM, "no memory for a job of %u ranks", options->ranks);
    for (uint32_t i = 0; i < options->segment_count; i++)
        for (uint32_t j = 0; j < options->segments[i].ranks; j++)
            p->segment_of[rank++] = i;
    return CW_OK;
}

/* --- programs that are sent to hosts --- */

/* The path of a file that is sent for an earlier segment; NULL: none is. */
static const char *sent_before(const struct programs *p, uint32_t segment)
{
    for (uint32_t i = 0; i < segment; i++)
        if (strcmp(p->paths[i], p->paths[segment]) == 0)
            return p->of_segment[i].path;
    return NULL;
}

static int stage(struct programs *p, uint32_t segment, const char *dir, struct cw_err *err)
{
    struct staging_source *source = &p->sources[p->source_count];
    char of_this[PATH_MAX + 16];
    char *path = p->staged[segment].path;
    const char *before = sent_before(p, segment);

    p->of_segment[segment].path = before ? before : path;
    if (before)
        return CW_OK;
    snprintf(of_this, sizeof(of_this), "%s.%u", dir, segment);
    if (stage_program_read(&source->program, p->paths[segment], of_this, &source->fd, err) < 0)
        return err->code;
    p->source_count++;
    stage_program_path(&source->program, path);
    return CW_OK;
}

/* From now on they have the paths that they will have on the hosts. */
static int stage_all(struct programs *p, const struct run_options *options, struct cw_err *err)
{
    char dir[PATH_MAX];
    uint64_t number;

    if (!options->hosts.stage_dir || options->hosts.list.count == 0)
        return CW_OK;
    randombytes_buf(&number, sizeof(number));
    snprintf(dir, sizeof(dir), "%s/" STAGE_DIR_PREFIX "%u-%016" PRIx64, options->hosts.stage_dir,
             getuid(), number);
    p->staged = calloc(options->segment_count, sizeof(*p->staged));
    p->sources = calloc(options->segment_count, sizeof(*p->sources));
    if (!p->staged || !p->sources)
        return cw_err_set(err, CW_ENOMEM, "no memory for the programs of a job");
    for (uint32_t i = 0; i < options->segment_count; i++)
        if (stage(p, i, dir, err) < 0)
            return err->code;
    return CW_OK;
}

/* --- what libc is told --- */

/* The value that the list has last. NULL: none. */
static const char *value_in(const char *const *list, uint32_t count, const char *name)
{
    size_t size = strlen(name);

    while (count-- > 0)
        if (strncmp(list[count], name, size) == 0 && list[count][size] == '=')
            return list[count] + size + 1;
    return NULL;
}

/* What the ranks of the segment would have. */
static const char *users_value(const struct launch_program *program, const char *name)
{
    const char *value = value_in(program->more, program->more_count, name);

    value = value ? value : value_in(program->env, program->env_count, name);
    return value ? value : getenv(name);
}

/* --- what ranks are told besides --- */

/* `setting` is borrowed. */
static bool add_setting(struct programs *p, uint32_t segment, const char *setting)
{
    struct launch_program *program = &p->of_segment[segment];
    const char **more = calloc(program->more_count + 1, sizeof(*more));

    if (!more || !setting) {
        free(more);
        return false;
    }
    if (program->more_count)
        memcpy(more, program->more, program->more_count * sizeof(*more));
    more[program->more_count++] = setting;
    free(p->more[segment]);
    p->more[segment] = more;
    program->more = more;
    return true;
}

/* The library of AddressSanitizer, by its name, for it may lie elsewhere on another host; before
 * what the user preloads. rank_child.c puts it before the device. */
static bool preload_sanitizer(struct programs *p, uint32_t segment, const char *library)
{
    const char *users = users_value(&p->of_segment[segment], PRELOAD_NAME);

    if (!library[0])
        return true;
    if (asprintf(&p->preload[segment], PRELOAD_NAME "=%s%s%s", library, users && *users ? ":" : "",
                 users ? users : "") < 0)
        p->preload[segment] = NULL;
    return add_setting(p, segment, p->preload[segment]);
}

int programs_tell_homes(struct programs *p, const struct run_options *options,
                        const struct layout *layout, struct cw_err *err)
{
    bool well = true;

    if (layout->relays == 1 || options->flat_collectives)
        return CW_OK;
    p->homes = homes_setting(layout->homes, options->ranks);
    for (uint32_t i = 0; well && i < options->segment_count; i++)
        well = add_setting(p, i, p->homes);
    return well ? CW_OK : cw_err_set(err, CW_ENOMEM, "no memory for the environment of ranks");
}

/* --- all of them --- */

int programs_open(struct programs *p, const struct run_options *options, int *exit_code,
                  struct cw_err *err)
{
    mode_t mask = umask(0);

    umask(mask);
    *exit_code = 1;
    if (allocate(p, options, err) < 0 || device_path_find(p->device_path, err) < 0)
        return err->code;
    device_path_find_restorer(p->device_path, p->restore_path, &p->restorer);
    for (uint32_t i = 0; i < options->segment_count; i++) {
        const struct run_segment *segment = &options->segments[i];
        struct program_info info;

        if (check_program(segment, p->device_path, p->paths[i], &info, err) < 0) {
            *exit_code = err->code == CW_ENOTFOUND ? 127 : 126;
            return err->code;
        }
        p->of_segment[i] = (struct launch_program){.path = p->paths[i],
                                                   .argv = segment->argv,
                                                   .wdir = segment->wdir,
                                                   .env = (const char *const *)options->env,
                                                   .env_count = options->env_count,
                                                   .more = (const char *const *)segment->env,
                                                   .more_count = segment->env_count,
                                                   .device_path = p->device_path,
                                                   .restore_path = p->restore_path,
                                                   .umask = mask,
                                                   .niceness = getpriority(PRIO_PROCESS, 0)};
        if (!preload_sanitizer(p, i, info.sanitizer))
            return cw_err_set(err, CW_ENOMEM, "no memory for the environment of ranks");
    }
    return stage_all(p, options, err);
}

void programs_close(struct programs *p)
{
    free(p->of_segment);
    free(p->paths);
    free(p->segment_of);
    for (uint32_t i = 0; i < p->source_count; i++)
        close(p->sources[i].fd);
    for (uint32_t i = 0; i < p->segments; i++) {
        if (p->preload)
            free(p->preload[i]);
        if (p->more)
            free(p->more[i]);
    }
    free(p->preload);
    free(p->more);
    free(p->homes);
    free(p->sources);
    free(p->staged);
}

const struct launch_program *programs_of(const struct programs *p, uint32_t rank)
{
    return &p->of_segment[p->segment_of[rank]];
}
