#include "dispatcher/program/program.h"
#include "dispatcher/program/tool.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <gelf.h>
#include <libelf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#define SCRIPT_LINE_MAX 256 /* bytes of a #! line that the kernel reads */

#if defined(__x86_64__)
#define HOST_MACHINE EM_X86_64
#define HOST_LOADER "/lib64/ld-linux-x86-64.so.2"
#elif defined(__aarch64__)
#define HOST_MACHINE EM_AARCH64
#define HOST_LOADER "/lib/ld-linux-aarch64.so.1"
#else
#error "add the machine, and the path of its glibc loader"
#endif

/* Only these are ever run; a file may name any program as its loader. */
static const char *const known_loaders[] = {
    HOST_LOADER,
    "/lib/x86_64-linux-gnu/ld-linux-x86-64.so.2",
    "/usr/lib/x86_64-linux-gnu/ld-linux-x86-64.so.2",
    "/usr/lib64/ld-linux-x86-64.so.2",
};

static int list_with(const char *loader, const char *path, char *output, struct cw_err *err)
{
    /* posix_spawn does not write to them. */
    char *argv[] = {(char *)loader, "--list", (char *)path, NULL};

    return tool_read(argv, output, err);
}

int program_list_libraries(const char *path, char *output, struct cw_err *err)
{
    return list_with(HOST_LOADER, path, output, err);
}

/* ---- looking into it ---- */

static void set_detail(struct program_info *info, const char *text)
{
    snprintf(info->detail, sizeof(info->detail), "%s", text);
}

static int bad_file(const char *path, const char *what, struct cw_err *err)
{
    return cw_err_set(err, CW_EINVAL, "%.300s %s", path, what);
}

/* The file begins with "#!". */
static int inspect_script(const char *path, int fd, struct program_info *info, struct cw_err *err)
{
    char line[SCRIPT_LINE_MAX];
    ssize_t n = pread(fd, line, sizeof(line) - 1, 2);
    char *start;
    size_t size;

    line[n > 0 ? n : 0] = '\0';
    line[strcspn(line, "\n")] = '\0';
    start = line + strspn(line, " \t");
    info->kind = PROGRAM_SCRIPT;
    set_detail(info, start);
    size = strcspn(start, " \t");
    if (size && start[size - 1] == '\r')
        return bad_file(path, "is a script whose first line ends as on DOS (\\r)", err);
    start[size] = '\0';
    if (access(start, X_OK) < 0)
        return cw_err_set(err, CW_ENOTFOUND, "%.200s is a script, and its interpreter '%s': %s",
                          path, start, strerror(errno));
    return CW_OK;
}

static const char *machine_name(const GElf_Ehdr *header)
{
    static const struct {
        unsigned machine;
        const char *name;
    } names[] = {
        {EM_386, "32-bit x86"},     {EM_ARM, "32-bit ARM"},      {EM_AARCH64, "64-bit ARM"},
        {EM_PPC64, "64-bit POWER"}, {EM_RISCV, "RISC-V"},        {EM_S390, "IBM Z"},
        {EM_IA_64, "Itanium"},      {EM_LOONGARCH, "LoongArch"},
    };

    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
        if (names[i].machine == header->e_machine)
            return names[i].name;
    return header->e_machine == EM_X86_64 ? "x86-64 of another kind (x32)" : "an unknown machine";
}

static bool is_of_this_machine(const GElf_Ehdr *header)
{
    return header->e_machine == HOST_MACHINE && header->e_ident[EI_CLASS] == ELFCLASS64 &&
           header->e_ident[EI_DATA] == ELFDATA2LSB;
}

/* The value of the first entry of that tag in the dynamic section; for DT_NEEDED with `soname`, of
 * the entry that names it. */
static bool find_dynamic(Elf *elf, GElf_Sxword tag, const char *soname, GElf_Xword *value)
{
    Elf_Scn *section = NULL;
    GElf_Shdr header;
    GElf_Dyn entry;
    Elf_Data *data;

    do {
        section = elf_nextscn(elf, section);
        if (!section || !gelf_getshdr(section, &header))
            return false;
    } while (header.sh_type != SHT_DYNAMIC);
    data = elf_getdata(section, NULL);
    for (int i = 0; data && gelf_getdyn(data, i, &entry); i++) {
        const char *name;

        if (entry.d_tag == DT_NULL)
            return false;
        if (entry.d_tag != tag)
            continue;
        *value = entry.d_un.d_val;
        name = soname ? elf_strptr(elf, header.sh_link, entry.d_un.d_val) : NULL;
        if (!soname || (name && strcmp(name, soname) == 0))
            return true;
    }
    return false;
}

/* Puts the path in PT_INTERP into `loader`. Returns 1, 0 when there is none, -1 when it is bad. */
static int read_loader(Elf *elf, int fd, char loader[PROGRAM_DETAIL_MAX])
{
    GElf_Phdr header;
    size_t count;

    if (elf_getphdrnum(elf, &count) < 0)
        return -1;
    for (size_t i = 0; i < count; i++) {
        if (!gelf_getphdr(elf, (int)i, &header))
            return -1;
        if (header.p_type != PT_INTERP)
            continue;
        if (header.p_filesz < 2 || header.p_filesz > PROGRAM_DETAIL_MAX ||
            pread(fd, loader, header.p_filesz, (off_t)header.p_offset) !=
                (ssize_t)header.p_filesz ||
            loader[header.p_filesz - 1] != '\0')
            return -1;
        return 1;
    }
    return 0;
}

static bool is_known_loader(const char *loader)
{
    for (size_t i = 0; i < sizeof(known_loaders) / sizeof(*known_loaders); i++)
        if (strcmp(known_loaders[i], loader) == 0)
            return true;
    return false;
}

/* The kernel's rule for AT_SECURE (bprm_fill_uid, cap_bprm_creds_from_file): the ids change, or
 * capabilities come with the file for somebody who is not root. */
static bool is_privileged(const char *path, const struct stat *st)
{
    if ((st->st_mode & S_ISUID) && st->st_uid != getuid())
        return true;
    if ((st->st_mode & S_ISGID) && (st->st_mode & S_IXGRP) && st->st_gid != getgid())
        return true;
    return getuid() != 0 && getxattr(path, "security.capability", NULL, 0) > 0;
}

static bool starts(const char *text, const char *with)
{
    return strncmp(text, with, strlen(with)) == 0;
}

/* libmpi.so.12 is the name in the ABI that MPICH and its relatives share; Debian says libmpich. */
static bool is_mpich_name(const char *name)
{
    return starts(name, "libmpich.so") || strcmp(name, "libmpi.so.12") == 0;
}

static bool is_openmpi_name(const char *name)
{
    return starts(name, "libmpi.so.40") || starts(name, "libmpi.so.20") ||
           starts(name, "libopen-rte.so") || starts(name, "libopen-pal.so");
}

/* Takes "NAME => PATH (0x...)" apart in place. False for lines of another form. */
static bool split_library(char *line, const char **name, const char **path)
{
    char *arrow = strstr(line, " => ");
    char *address = strrchr(line, '(');

    line += strspn(line, " \t");
    if (!arrow || !address || address < arrow + 5)
        return false;
    *arrow = '\0';
    address[-1] = '\0';
    *name = line;
    *path = arrow + 4;
    return true;
}

/* Cuts the loader's list up. */
static void classify(char *list, struct program_info *info)
{
    bool openmpi = false;
    char *rest = list;
    char *line;

    while ((line = strsep(&rest, "\n"))) {
        const char *name;
        const char *path;

        if (!split_library(line, &name, &path))
            continue;
        openmpi = openmpi || is_openmpi_name(name);
        if (starts(name, "libasan.so") || starts(name, "libclang_rt.asan"))
            snprintf(info->sanitizer, sizeof(info->sanitizer), "%s", name);
        if (is_mpich_name(name) || (openmpi && starts(name, "libmpi.so")))
            snprintf(info->mpi_library, sizeof(info->mpi_library), "%s", path);
    }
    if (openmpi)
        info->kind = PROGRAM_OPENMPI;
    else if (!info->mpi_library[0])
        info->kind = PROGRAM_NOT_MPI;
    else
        info->kind = program_needs(info->mpi_library, "libucp.so.0") ? PROGRAM_MPICH_UCX
                                                                     : PROGRAM_MPICH_OTHER;
}

/* "PROGRAM: error while loading shared libraries: WHAT": people need the last part. */
static void tell_missing(const char *output, struct program_info *info)
{
    static const char marker[] = "shared libraries: ";
    const char *found = strstr(output, marker);

    info->kind = PROGRAM_MISSING_LIBS;
    set_detail(info, found ? found + strlen(marker) : output);
    info->detail[strcspn(info->detail, "\n")] = '\0';
}

static int inspect_libraries(const char *path, const char *loader, struct program_info *info,
                             struct cw_err *err)
{
    char *output;
    int code;

    if (access(loader, X_OK) < 0) {
        tell_missing(loader, info);
        return CW_OK;
    }
    output = malloc(TOOL_OUTPUT_MAX);
    if (!output)
        return cw_err_set(err, CW_ENOMEM, "no memory to list the libraries of %.200s", path);
    code = list_with(loader, path, output, err);
    if (code == 0)
        classify(output, info);
    else if (code > 0)
        tell_missing(output, info);
    free(output);
    if (code < 0)
        return cw_err_wrap(err, "list the libraries of %.200s", path);
    return CW_OK;
}

static int inspect_elf(const char *path, int fd, Elf *elf, struct program_info *info,
                       struct cw_err *err)
{
    char loader[PROGRAM_DETAIL_MAX];
    GElf_Xword flags = 0;
    GElf_Ehdr header;
    struct stat st;
    int has_loader;

    if (!gelf_getehdr(elf, &header))
        return bad_file(path, "has a damaged ELF header", err);
    if (!is_of_this_machine(&header)) {
        info->kind = PROGRAM_FOREIGN;
        set_detail(info, machine_name(&header));
        return CW_OK;
    }
    has_loader = read_loader(elf, fd, loader);
    if (has_loader < 0)
        return bad_file(path, "has damaged ELF program headers", err);
    if (header.e_type == ET_DYN && !has_loader)
        find_dynamic(elf, DT_FLAGS_1, NULL, &flags);
    if (header.e_type != ET_EXEC && !(header.e_type == ET_DYN && (has_loader || flags & DF_1_PIE)))
        return bad_file(path, "is an ELF file but no program (a library, object or core file)",
                        err);
    if (fstat(fd, &st) < 0)
        return cw_err_set(err, CW_ESYS, "%.300s: %s", path, strerror(errno));
    info->kind = has_loader ? PROGRAM_SETUID : PROGRAM_STATIC;
    if (!has_loader || is_privileged(path, &st))
        return CW_OK;
    info->kind = PROGRAM_FOREIGN;
    set_detail(info, loader);
    if (!is_known_loader(loader))
        return CW_OK;
    info->detail[0] = '\0';
    return inspect_libraries(path, loader, info, err);
}

static int inspect_file(const char *path, int fd, struct program_info *info, struct cw_err *err)
{
    char magic[SELFMAG] = {0};
    Elf *elf;
    int code;

    if (pread(fd, magic, sizeof(magic), 0) < 2)
        return bad_file(path, "is too short to be a program", err);
    if (memcmp(magic, "#!", 2) == 0)
        return inspect_script(path, fd, info, err);
    if (memcmp(magic, ELFMAG, SELFMAG) != 0)
        return bad_file(path, "is neither a program nor a script that starts with #!", err);
    elf_version(EV_CURRENT);
    elf = elf_begin(fd, ELF_C_READ, NULL);
    if (!elf)
        return cw_err_set(err, CW_EINVAL, "%.300s: %s", path, elf_errmsg(-1));
    code = inspect_elf(path, fd, elf, info, err);
    elf_end(elf);
    return code;
}

int program_inspect(const char *path, struct program_info *info, struct cw_err *err)
{
    struct stat st;
    int code;
    int fd;

    assert(strchr(path, '/')); /* the loader would search for it otherwise */
    memset(info, 0, sizeof(*info));
    info->kind = PROGRAM_NOT_MPI;
    /* O_NONBLOCK: a FIFO must not make us wait. */
    fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return cw_err_set(err, errno == ENOENT ? CW_ENOTFOUND : CW_ESYS, "open %.300s: %s", path,
                          strerror(errno));
    if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
        code = bad_file(path, "is no regular file", err);
    else
        code = inspect_file(path, fd, info, err);
    close(fd);
    return code;
}

bool program_needs(const char *path, const char *soname)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    GElf_Xword value;
    bool needs = false;
    Elf *elf;

    if (fd < 0)
        return false;
    elf_version(EV_CURRENT);
    elf = elf_begin(fd, ELF_C_READ, NULL);
    if (elf)
        needs = find_dynamic(elf, DT_NEEDED, soname, &value);
    elf_end(elf);
    close(fd);
    return needs;
}

/* ---- what that means ---- */

static const struct {
    bool can_run;
    const char *text;
} meanings[] = {
    [PROGRAM_MPICH_UCX] = {true, "linked against MPICH over UCX: Causeway carries it as it is"},
    [PROGRAM_MPICH_OTHER] =
        {false,
         "linked against an MPICH that does not use UCX, so Causeway has nowhere to step in: "
         "use an MPICH of device ch4:ucx (Debian's libmpich12) by LD_LIBRARY_PATH or by "
         "recompiling with its mpicc"},
    [PROGRAM_OPENMPI] = {false,
                         "linked against Open MPI, which Causeway cannot carry: recompile it "
                         "with mpicc.mpich (mpicxx.mpich, mpifort.mpich)"},
    [PROGRAM_STATIC] = {false,
                        "statically linked, so that no library can be put before MPI's: link "
                        "it dynamically with mpicc.mpich, without -static"},
    [PROGRAM_SCRIPT] = {true, "a script: Causeway carries the MPI program that it starts, if it "
                              "starts one with its own environment, best by exec"},
    [PROGRAM_NOT_MPI] = {true,
                         "linked against no MPI library: Causeway starts it, and carries it if "
                         "it loads MPICH later, as python does for mpi4py"},
    [PROGRAM_FOREIGN] = {false, "built for another machine or another C library, so it cannot run "
                                "here under Causeway: build it on this system"},
    [PROGRAM_SETUID] = {false, "set-user-id, set-group-id or with file capabilities, for which the "
                               "system ignores LD_PRELOAD: start a copy without them (cp, chmod "
                               "ug-s, setcap -r)"},
    [PROGRAM_MISSING_LIBS] = {false, "in need of a library that the dynamic loader does not find: "
                                     "install it or name its directory in LD_LIBRARY_PATH"},
};

const char *program_explain(enum program_kind kind)
{
    return meanings[kind].text;
}

bool program_can_run(enum program_kind kind)
{
    return meanings[kind].can_run;
}
