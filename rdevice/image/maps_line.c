#include "rdevice/image/maps_line.h"

#include <stddef.h>
#include <string.h>
#include <sys/mman.h>

struct cursor {
    const char *at, *end;
};

static int digit_of(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    return 16;
}

/* At least one digit and at most 16 of them. */
static bool take_number(struct cursor *c, int base, uint64_t *to)
{
    int digits = 0;

    for (*to = 0; c->at < c->end && digit_of(*c->at) < base; c->at++)
        if (++digits > 16)
            return false;
        else
            *to = *to * (uint64_t)base + (uint64_t)digit_of(*c->at);
    return digits > 0;
}

static bool take_char(struct cursor *c, char wanted)
{
    return c->at < c->end && *c->at++ == wanted;
}

static bool take_prot(struct cursor *c, struct maps_region *region)
{
    const char *p = c->at;

    if (c->end - c->at < 4)
        return false;
    c->at += 4;
    region->prot = (p[0] == 'r' ? PROT_READ : 0) | (p[1] == 'w' ? PROT_WRITE : 0) |
                   (p[2] == 'x' ? PROT_EXEC : 0);
    region->shared = p[3] == 's';
    return true;
}

static bool ends_with(const char *text, size_t size, const char *end)
{
    size_t n = strlen(end);

    return size >= n && memcmp(text + size - n, end, n) == 0;
}

static void take_path(struct cursor *c, struct maps_region *region)
{
    size_t size;

    while (c->at < c->end && *c->at == ' ')
        c->at++;
    size = (size_t)(c->end - c->at);
    region->deleted = ends_with(c->at, size, " (deleted)");
    region->cut = size >= sizeof(region->path);
    if (region->cut)
        size = sizeof(region->path) - 1;
    memcpy(region->path, c->at, size);
    region->path[size] = '\0';
    region->kernel = strncmp(region->path, "[v", 2) == 0 || region->start >= CW_IMAGE_USER_END ||
                     strcmp(region->path, "[uprobes]") == 0;
}

static bool parse_region(struct cursor c, struct maps_region *region)
{
    uint64_t major, minor, start, end;

    if (!take_number(&c, 16, &start) || !take_char(&c, '-') || !take_number(&c, 16, &end) ||
        !take_char(&c, ' '))
        return false;
    memset(region, 0, offsetof(struct maps_region, path));
    region->start = start;
    region->end = end;
    if (!take_prot(&c, region) || !take_char(&c, ' ') || !take_number(&c, 16, &region->offset) ||
        !take_char(&c, ' ') || !take_number(&c, 16, &major) || !take_char(&c, ':') ||
        !take_number(&c, 16, &minor) || !take_char(&c, ' ') ||
        !take_number(&c, 10, &region->inode) || start >= end)
        return false;
    region->major = (uint32_t)major;
    region->minor = (uint32_t)minor;
    take_path(&c, region);
    return true;
}

static void parse_flags(struct cursor c, struct maps_region *region)
{
    static const struct {
        char name[3];
        uint32_t flag;
    } known[] = {{"gd", CW_IMAGE_GROWS_DOWN},
                 {"hg", CW_IMAGE_HUGE_PAGES},
                 {"ht", CW_IMAGE_HUGE_PAGES},
                 {"nh", CW_IMAGE_NO_HUGE_PAGES},
                 {"nr", CW_IMAGE_NO_RESERVE}};

    for (; c.end - c.at >= 2; c.at++) {
        if (c.at[0] == ' ')
            continue;
        for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
            if (memcmp(c.at, known[i].name, 2) == 0)
                region->flags |= known[i].flag;
        if (memcmp(c.at, "io", 2) == 0 || memcmp(c.at, "pf", 2) == 0)
            region->device = true;
        c.at++;
    }
}

static bool take_name(struct cursor *c, const char *name)
{
    size_t n = strlen(name);

    if ((size_t)(c->end - c->at) < n || memcmp(c->at, name, n) != 0)
        return false;
    for (c->at += n; c->at < c->end && *c->at == ' ';)
        c->at++;
    return true;
}

enum maps_line maps_parse(const char *line, size_t size, struct maps_region *region)
{
    struct cursor c = {line, line + size};
    uint64_t kilobytes;

    if (size > 0 && line[0] >= 'A' && line[0] <= 'Z') {
        if (take_name(&c, "VmFlags:"))
            parse_flags(c, region);
        else if (take_name(&c, "ProtectionKey:")) /* the kernel gives one to what is code alone */
            region->keyed =
                take_number(&c, 10, &kilobytes) && kilobytes > 0 && region->prot != PROT_EXEC;
        else if (take_name(&c, "Anonymous:") || take_name(&c, "Swap:"))
            region->anonymous += take_number(&c, 10, &kilobytes) ? kilobytes * 1024 : 0;
        return MAPS_FIELD;
    }
    return parse_region(c, region) ? MAPS_REGION : MAPS_WRONG;
}
