#include "rdevice/restorer/world.h"

#include "rdevice/image/maps_line.h"
#include "rdevice/image/system.h"
#include "rdevice/restorer/report.h"
#include "rdevice/restorer/vdso.h"

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>

#define MAPS_BYTES 65536u
#define WORLD_REGIONS_MAX 64u
#define MOVE_FIXED 3 /* MREMAP_MAYMOVE | MREMAP_FIXED */

static struct maps_region regions[WORLD_REGIONS_MAX];
static uint32_t count;
static struct cw_image_system systems[CW_IMAGE_SYSTEM_MAX]; /* where they are now */
static uint32_t system_count;

static void *at_address(uint64_t address)
{
    return (void *)(uintptr_t)address;
}

static uint64_t size_of(const struct cw_image_system *system)
{
    return system->end - system->start;
}

/* --- clearing -------------------------------------------------------------------------------- */

static void read_maps(void)
{
    static char text[MAPS_BYTES];
    long n = system_read_file("/proc/self/maps", text, sizeof(text));
    char *line = text, *end;

    if (n <= 0)
        report_end("/proc/self/maps cannot be read: %e; is /proc mounted?", n);
    for (; line < text + n; line = end + 1) {
        for (end = line; end < text + n && *end != '\n';)
            end++;
        if (count == WORLD_REGIONS_MAX ||
            maps_parse(line, (size_t)(end - line), &regions[count]) != MAPS_REGION)
            report_end("/proc/self/maps has another form than is known");
        count++;
    }
}

static void keep_system(const struct maps_region *region)
{
    struct cw_image_system *system = &systems[system_count];

    if (region->start >= CW_IMAGE_USER_END)
        return;
    if (system_count == CW_IMAGE_SYSTEM_MAX || strlen(region->path) >= sizeof(system->name))
        report_end("this kernel has more mappings of its own than are known: %s", region->path);
    system->start = region->start;
    system->end = region->end;
    strcpy(system->name, region->path);
    system_count++;
}

static void unmap_all(void)
{
    for (uint32_t i = 0; i < count; i++) {
        const struct maps_region *r = &regions[i];

        if (r->kernel)
            keep_system(r);
        else if (r->start < SYSTEM_RESTORER_START || r->start >= SYSTEM_RESTORER_END)
            system_unmap(r->start, r->end - r->start);
    }
}

/* The place after that of the image's: in those before lie the functions of kernels where the
 * process was earlier. */
static uint64_t parking_place(const struct cw_image_header *header)
{
    uint64_t place = 0;

    for (uint32_t i = 0; i < header->systems; i++) {
        uint64_t end = header->system[i].end;

        if (end > SYSTEM_PARKED_START && end <= SYSTEM_PARKED_END)
            place = (end - 1 - SYSTEM_PARKED_START) / SYSTEM_PARKED_STEP + 1;
    }
    if (place == SYSTEM_PARKED_PLACES)
        report_end("there is no place for the kernel's own mappings");
    return SYSTEM_PARKED_START + place * SYSTEM_PARKED_STEP;
}

/* All by the same distance: the vdso finds its data relative to itself. */
static void move_systems(uint64_t to)
{
    uint64_t first = system_count ? systems[0].start : 0;

    for (uint32_t i = 0; i < system_count; i++) {
        struct cw_image_system *s = &systems[i];
        uint64_t start = to + (s->start - first), size = size_of(s);
        void *at = (void *)system_call(SYS_mremap, s->start, size, size, MOVE_FIXED, start);

        if (at != at_address(start))
            report_end("the kernel's %s cannot be moved: %e", s->name, (long)at);
        s->start = start;
        s->end = start + size;
    }
}

static void keep_free(const struct cw_image_header *header)
{
    for (uint32_t i = 0; i < header->systems; i++) {
        const struct cw_image_system *s = &header->system[i];
        void *at =
            system_map(s->start, size_of(s), PROT_NONE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);

        if (at != at_address(s->start))
            report_end("the place of the kernel's %s, %x, is taken", s->name, s->start);
    }
}

void world_clear(const struct cw_image_header *header)
{
    read_maps();
    unmap_all();
    if (system_count && systems[system_count - 1].end - systems[0].start > SYSTEM_PARKED_STEP)
        report_end("the kernel's own mappings are further apart than is known");
    move_systems(parking_place(header));
    keep_free(header);
}

/* --- settling -------------------------------------------------------------------------------- */

static const struct cw_image_system *find_vdso(const struct cw_image_system *system, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        if (strcmp(system[i].name, "[vdso]") == 0)
            return &system[i];
    return NULL;
}

static bool is_same_kernel(const struct cw_image_header *header, const struct cw_image_system *vdso)
{
    if (system_count != header->systems || size_of(vdso) != header->vdso_size ||
        memcmp(at_address(vdso->start), header->vdso, header->vdso_size) != 0)
        return false;
    for (uint32_t i = 0; i < system_count; i++)
        if (strcmp(systems[i].name, header->system[i].name) != 0 ||
            size_of(&systems[i]) != size_of(&header->system[i]) ||
            systems[i].start - systems[0].start !=
                header->system[i].start - header->system[0].start)
            return false;
    return true;
}

static void redirect(const struct cw_image_header *header, const struct cw_image_system *old,
                     const struct cw_image_system *new)
{
    const char *fault;
    void *at;

    for (uint32_t i = 0; i < header->systems; i++)
        if (&header->system[i] != old)
            system_unmap(header->system[i].start, size_of(&header->system[i]));
    at = at_address(old->start);
    system_call(SYS_mprotect, old->start, size_of(old), PROT_READ | PROT_WRITE);
    memcpy(at, header->vdso, header->vdso_size);
    fault = vdso_redirect(at, header->vdso_size, at_address(new->start), size_of(new));
    if (fault)
        report_end("%s; the machines where the rank may run need kernels alike", fault);
    system_call(SYS_mprotect, old->start, size_of(old), PROT_READ | PROT_EXEC);
}

void world_settle(const struct cw_image_header *header)
{
    const struct cw_image_system *old = find_vdso(header->system, header->systems);
    const struct cw_image_system *new = find_vdso(systems, system_count);

    if (!old) /* nor does the program know of one */
        return;
    if (!new)
        report_end("this machine's kernel has no vdso, the image's had one");
    if (header->vdso_size != size_of(old))
        report_end("the image is damaged: its vdso has another size than its place");
    if (is_same_kernel(header, new))
        move_systems(header->system[0].start);
    else
        redirect(header, old, new);
}
