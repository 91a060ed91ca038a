#include "rdevice/restorer/vdso.h"

#include <elf.h>
#include <stdbool.h>
#include <string.h>

#define VDSO_SYMBOLS_MAX 64u
#define JUMP_SIZE 12u /* mov $ADDRESS, %rax; jmp *%rax */

struct vdso {
    const uint8_t *at;
    size_t size;
    uint64_t bias; /* virtual address minus offset in the file */
    const Elf64_Sym *symbols;
    uint32_t count;
    const char *names;
    size_t names_size;
};

static const void *inside(const struct vdso *v, uint64_t offset, uint64_t size)
{
    return offset <= v->size && size <= v->size - offset ? v->at + offset : NULL;
}

/* A struct, or several. */
static const void *inside_aligned(const struct vdso *v, uint64_t offset, uint64_t size)
{
    return offset % 8 == 0 ? inside(v, offset, size) : NULL;
}

static const Elf64_Dyn *find_dynamic(struct vdso *v, size_t *entries)
{
    const Elf64_Ehdr *head = inside_aligned(v, 0, sizeof(*head));
    const Elf64_Dyn *dynamic = NULL;

    for (uint32_t i = 0; head && i < head->e_phnum; i++) {
        const Elf64_Phdr *p = inside_aligned(v, head->e_phoff + i * sizeof(*p), sizeof(*p));

        if (p && p->p_type == PT_LOAD)
            v->bias = p->p_vaddr - p->p_offset;
        if (p && p->p_type == PT_DYNAMIC) {
            dynamic = inside_aligned(v, p->p_offset, p->p_filesz);
            *entries = p->p_filesz / sizeof(*dynamic);
        }
    }
    return dynamic;
}

/* The names follow the symbols, in every vdso that there is. */
static bool open_vdso(struct vdso *v, const uint8_t *at, size_t size)
{
    const Elf64_Dyn *dynamic;
    uint64_t symbols = 0, names = 0;
    size_t entries = 0;

    *v = (struct vdso){.at = at, .size = size};
    dynamic = find_dynamic(v, &entries);
    for (size_t i = 0; dynamic && i < entries && dynamic[i].d_tag != DT_NULL; i++) {
        if (dynamic[i].d_tag == DT_SYMTAB)
            symbols = dynamic[i].d_un.d_ptr - v->bias;
        if (dynamic[i].d_tag == DT_STRTAB)
            names = dynamic[i].d_un.d_ptr - v->bias;
        if (dynamic[i].d_tag == DT_STRSZ)
            v->names_size = dynamic[i].d_un.d_val;
    }
    if (symbols == 0 || names <= symbols)
        return false;
    v->count = (uint32_t)((names - symbols) / sizeof(Elf64_Sym));
    v->symbols = inside_aligned(v, symbols, v->count * sizeof(Elf64_Sym));
    v->names = inside(v, names, v->names_size);
    return v->symbols && v->names && v->count <= VDSO_SYMBOLS_MAX && v->names_size > 0 &&
           v->names[v->names_size - 1] == '\0';
}

static const char *function_name(const struct vdso *v, const Elf64_Sym *symbol)
{
    if (ELF64_ST_TYPE(symbol->st_info) != STT_FUNC || symbol->st_shndx == SHN_UNDEF ||
        symbol->st_name >= v->names_size || !inside(v, symbol->st_value - v->bias, JUMP_SIZE))
        return NULL;
    return v->names + symbol->st_name;
}

static const Elf64_Sym *find_function(const struct vdso *v, const char *name)
{
    for (uint32_t i = 0; i < v->count; i++) {
        const char *other = function_name(v, &v->symbols[i]);

        if (other && strcmp(other, name) == 0)
            return &v->symbols[i];
    }
    return NULL;
}

static void put_jump(uint8_t *at, uint64_t target)
{
    static const uint8_t load[] = {0x48, 0xb8}, jump[] = {0xff, 0xe0};

    memcpy(at, load, sizeof(load));
    memcpy(at + 2, &target, sizeof(target));
    memcpy(at + 10, jump, sizeof(jump));
}

const char *vdso_redirect(uint8_t *old, size_t old_size, const uint8_t *new, size_t new_size)
{
    struct vdso from, to;

    if (!open_vdso(&from, old, old_size) || !open_vdso(&to, new, new_size))
        return "the kernel's vdso has a form that is not known";
    for (uint32_t i = 0; i < from.count; i++) {
        const char *name = function_name(&from, &from.symbols[i]);
        const Elf64_Sym *target = name ? find_function(&to, name) : NULL;

        if (!name)
            continue;
        if (!target)
            return "this machine's kernel lacks a function of the vdso that the image has";
        put_jump(old + (from.symbols[i].st_value - from.bias),
                 (uint64_t)(uintptr_t) new + (target->st_value - to.bias));
    }
    return NULL;
}
