#include "dispatcher/program/ucx_names.h"

#include <fcntl.h>
#include <gelf.h>
#include <libelf.h>
#include <string.h>
#include <unistd.h>

#define UCX_NAMES_MAX 256 /* functions of UCX that an MPI library may import */

/* The dynamic symbols of a library. */
struct symbols {
    int fd;
    Elf *elf;
    Elf_Data *data;
    GElf_Shdr header;
};

static void symbols_close(struct symbols *s)
{
    elf_end(s->elf);
    if (s->fd >= 0)
        close(s->fd);
}

static bool symbols_open(struct symbols *s, const char *path)
{
    Elf_Scn *section = NULL;

    *s = (struct symbols){.fd = open(path, O_RDONLY | O_CLOEXEC)};
    elf_version(EV_CURRENT);
    s->elf = s->fd >= 0 ? elf_begin(s->fd, ELF_C_READ, NULL) : NULL;
    while (s->elf && (section = elf_nextscn(s->elf, section)))
        if (gelf_getshdr(section, &s->header) && s->header.sh_type == SHT_DYNSYM) {
            s->data = elf_getdata(section, NULL);
            break;
        }
    if (s->data)
        return true;
    symbols_close(s);
    return false;
}

/* The i-th symbol's name, and whether the library defines it; NULL after the last. A weak one that
 * is not defined is nobody's duty: it counts as defined. */
static const char *symbols_at(const struct symbols *s, int i, bool *defined)
{
    GElf_Sym symbol;

    if (!gelf_getsym(s->data, i, &symbol))
        return NULL;
    *defined = symbol.st_shndx != SHN_UNDEF || GELF_ST_BIND(symbol.st_info) == STB_WEAK;
    return elf_strptr(s->elf, s->header.sh_link, symbol.st_name);
}

static bool is_defined(const struct symbols *s, const char *name)
{
    const char *other;
    bool defined;

    for (int i = 0; (other = symbols_at(s, i, &defined)); i++)
        if (defined && strcmp(other, name) == 0)
            return true;
    return false;
}

bool ucx_names_can_be_read(const char *library)
{
    struct symbols symbols;
    bool can = symbols_open(&symbols, library);

    if (can)
        symbols_close(&symbols);
    return can;
}

static bool is_of_ucx(const char *name)
{
    return strncmp(name, "ucp_", 4) == 0 || strncmp(name, "ucs_", 4) == 0;
}

static int compare(const struct symbols *mpi, const struct symbols *device,
                   void (*lacks)(void *ctx, const char *name), void *ctx, int *imported)
{
    int lacking = 0;
    const char *name;
    bool defined;

    for (int i = 0; (name = symbols_at(mpi, i, &defined)) && *imported < UCX_NAMES_MAX; i++) {
        if (defined || !is_of_ucx(name))
            continue;
        ++*imported;
        if (is_defined(device, name))
            continue;
        lacking++;
        lacks(ctx, name);
    }
    return lacking;
}

int ucx_names_compare(const char *mpi_library, const char *device,
                      void (*lacks)(void *ctx, const char *name), void *ctx, int *imported)
{
    struct symbols mpi;
    struct symbols own;
    int lacking;

    *imported = 0;
    if (!symbols_open(&mpi, mpi_library))
        return 0;
    if (!symbols_open(&own, device)) {
        symbols_close(&mpi);
        return 0;
    }
    lacking = compare(&mpi, &own, lacks, ctx, imported);
    symbols_close(&own);
    symbols_close(&mpi);
    return lacking;
}
