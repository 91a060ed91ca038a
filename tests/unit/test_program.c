/* What a program file is: on the programs of the system, and on fakes in a directory of the test.
 */
#include "dispatcher/program/program.h"
#include "dispatcher/program/resolve.h"
#include "dispatcher/program/tool.h"
#include "tests/lib/scratch.h"
#include "tests/unit/suites.h"

#include <CUnit/CUnit.h>
#include <elf.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MPI_PROGRAM "/usr/bin/NPmpich2"
#define PLAIN_PROGRAM "/bin/ls"
#define STATIC_PROGRAM "/sbin/ldconfig"
#define SCRIPT_PROGRAM "/usr/bin/ldd"
#define NOBODY 65534

static char old_path[4096];
static struct cw_err err;

static int set_up(void)
{
    snprintf(old_path, sizeof(old_path), "%s", getenv("PATH") ? getenv("PATH") : "");
    return scratch_make() || mkdir(scratch_path("sub"), 0700) || mkdir(scratch_path("tool"), 0700);
}

static int tear_down(void)
{
    setenv("PATH", old_path, 1);
    return scratch_remove();
}

SUITE("program", set_up, tear_down);

static void put_tools(void)
{
    scratch_put("sub/tool", "#!/bin/sh\n", 10, 0700);
    scratch_put("sub/plain", "text", 4, 0600);
}

static void resolves(const char *name, const char *wdir, const char *expected)
{
    char path[PATH_MAX];

    memset(&err, 0, sizeof(err));
    CU_ASSERT_EQUAL(program_resolve(name, wdir, path, sizeof(path), &err), CW_OK);
    CU_ASSERT_STRING_EQUAL(err.text, "");
    CU_ASSERT_STRING_EQUAL(path, expected);
}

static void unresolved(const char *name, const char *wdir, int code, const char *why)
{
    char path[PATH_MAX];

    CU_ASSERT_EQUAL(program_resolve(name, wdir, path, sizeof(path), &err), code);
    CU_ASSERT_EQUAL(err.code, code);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, why));
}

TEST(resolve_by_path)
{
    char here[PATH_MAX];

    put_tools();
    resolves(PLAIN_PROGRAM, NULL, PLAIN_PROGRAM);
    resolves("sub/tool", scratch_dir, scratch_path("sub/tool"));
    resolves("./tool", scratch_path("sub"), scratch_path("sub/tool"));
    CU_ASSERT_PTR_NOT_NULL_FATAL(getcwd(here, sizeof(here)));
    CU_ASSERT_EQUAL_FATAL(chdir(scratch_dir), 0);
    resolves("./tool", "sub", scratch_path("sub/tool"));
    resolves("sub/tool", NULL, scratch_path("sub/tool"));
    CU_ASSERT_EQUAL_FATAL(chdir(here), 0);
    unresolved("./none", scratch_dir, CW_ENOTFOUND, "there is no file");
    unresolved("sub/tool/none", scratch_dir, CW_ENOTFOUND, "there is no file");
    unresolved("./sub", scratch_dir, CW_EINVAL, "is a directory");
    unresolved("sub/plain", scratch_dir, CW_EINVAL, "chmod +x");
    unresolved("", scratch_dir, CW_ENOTFOUND, "empty");
}

TEST(resolve_by_name)
{
    char path[1024];

    put_tools();
    setenv("PATH", "/bin", 1);
    resolves("ls", NULL, "/bin/ls");
    unresolved("tool-of-nobody", scratch_dir, CW_ENOTFOUND, "neither in PATH nor");
    unresolved("tool", scratch_path("sub"), CW_ENOTFOUND, "write ./tool");
    /* A directory of that name does not end the search; nor does an empty or missing part. */
    snprintf(path, sizeof(path), "/none::%s:%s/sub", scratch_dir, scratch_dir);
    setenv("PATH", path, 1);
    resolves("tool", "/", scratch_path("sub/tool"));
    setenv("PATH", scratch_dir, 1);
    unresolved("tool", "/", CW_EINVAL, "is a directory");
    setenv("PATH", scratch_path("sub"), 1);
    unresolved("plain", "/", CW_EINVAL, "chmod +x");
    setenv("PATH", ":/none:", 1);
    resolves("tool", scratch_path("sub"), scratch_path("sub/tool"));
    setenv("PATH", "sub", 1);
    resolves("tool", scratch_dir, scratch_path("sub/tool"));
    unsetenv("PATH");
    resolves("ls", NULL, "/bin/ls");
    setenv("PATH", old_path, 1);
}

TEST(resolve_within_bounds)
{
    char path[8];

    CU_ASSERT_EQUAL(program_resolve("/bin/ls", NULL, path, sizeof(path), &err), CW_OK);
    CU_ASSERT_STRING_EQUAL(path, "/bin/ls");
    CU_ASSERT_EQUAL(program_resolve("/bin/cat", NULL, path, sizeof(path), &err), CW_EINVAL);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "longer than 7 bytes"));
}

static void inspects(const char *path, enum program_kind kind, struct program_info *info)
{
    memset(&err, 0, sizeof(err));
    CU_ASSERT_EQUAL(program_inspect(path, info, &err), CW_OK);
    CU_ASSERT_STRING_EQUAL(err.text, "");
    CU_ASSERT_EQUAL(info->kind, kind);
}

static void uninspected(const char *path, int code, const char *why)
{
    struct program_info info;

    CU_ASSERT_EQUAL(program_inspect(path, &info, &err), code);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, path));
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, why));
}

TEST(programs_of_the_system)
{
    struct program_info info;

    inspects(MPI_PROGRAM, PROGRAM_MPICH_UCX, &info);
    CU_ASSERT_PTR_NOT_NULL(strstr(info.mpi_library, "/libmpich.so.12"));
    CU_ASSERT_STRING_EQUAL(info.detail, "");
    inspects(PLAIN_PROGRAM, PROGRAM_NOT_MPI, &info);
    CU_ASSERT_STRING_EQUAL(info.mpi_library, "");
    inspects(STATIC_PROGRAM, PROGRAM_STATIC, &info);
    inspects(SCRIPT_PROGRAM, PROGRAM_SCRIPT, &info);
    CU_ASSERT_PTR_NOT_NULL(strstr(info.detail, "/bin/"));
    uninspected("/nowhere/at/all", CW_ENOTFOUND, "No such file");
    uninspected("/tmp", CW_EINVAL, "no regular file");
}

TEST(scripts)
{
    struct program_info info;

    scratch_put("script", "#! /bin/sh -e\necho\n", 19, 0700);
    inspects(scratch_path("script"), PROGRAM_SCRIPT, &info);
    CU_ASSERT_STRING_EQUAL(info.detail, "/bin/sh -e");
    scratch_put("dos", "#!/bin/sh\r\necho\r\n", 17, 0700);
    uninspected(scratch_path("dos"), CW_EINVAL, "DOS");
    scratch_put("bad", "#!/no/such/interpreter\n", 23, 0700);
    uninspected(scratch_path("bad"), CW_ENOTFOUND, "'/no/such/interpreter'");
    scratch_put("text", "echo hello\n", 11, 0700);
    uninspected(scratch_path("text"), CW_EINVAL, "neither a program nor a script");
    scratch_put("empty", "", 0, 0700);
    uninspected(scratch_path("empty"), CW_EINVAL, "too short");
    CU_ASSERT_EQUAL(mkfifo(scratch_path("fifo"), 0700), 0);
    uninspected(scratch_path("fifo"), CW_EINVAL, "no regular file");
}

/* A header, and program headers that name a loader. */
struct fake {
    Elf64_Ehdr header;
    Elf64_Phdr segment;
    char loader[64];
};

static struct fake fake_program(const char *loader)
{
    struct fake fake = {
        .header = {.e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB, 1},
                   .e_type = ET_DYN,
                   .e_machine = EM_X86_64,
                   .e_version = 1,
                   .e_phoff = sizeof(Elf64_Ehdr),
                   .e_ehsize = sizeof(Elf64_Ehdr),
                   .e_phentsize = sizeof(Elf64_Phdr),
                   .e_phnum = 1},
        .segment = {.p_type = PT_INTERP,
                    .p_offset = offsetof(struct fake, loader),
                    .p_filesz = strlen(loader) + 1},
    };

    snprintf(fake.loader, sizeof(fake.loader), "%s", loader);
    return fake;
}

TEST(programs_of_elsewhere)
{
    struct fake fake = fake_program("/lib/ld-musl-x86_64.so.1");
    struct program_info info;

    scratch_put("elf", &fake, sizeof(fake), 0700);
    inspects(scratch_path("elf"), PROGRAM_FOREIGN, &info);
    CU_ASSERT_STRING_EQUAL(info.detail, "/lib/ld-musl-x86_64.so.1");
    fake.header.e_machine = EM_RISCV;
    scratch_put("elf", &fake, sizeof(fake), 0700);
    inspects(scratch_path("elf"), PROGRAM_FOREIGN, &info);
    CU_ASSERT_STRING_EQUAL(info.detail, "RISC-V");
    fake.header.e_ident[EI_CLASS] = ELFCLASS32;
    fake.header.e_machine = EM_386;
    scratch_put("elf", &fake, sizeof(fake), 0700);
    inspects(scratch_path("elf"), PROGRAM_FOREIGN, &info);
    CU_ASSERT_STRING_EQUAL(info.detail, "32-bit x86");
}

TEST(damaged_programs)
{
    struct fake fake = fake_program("/lib64/ld-linux-x86-64.so.2");

    scratch_put("elf", &fake, 20, 0700);
    uninspected(scratch_path("elf"), CW_EINVAL, "");
    fake.segment.p_filesz = 1u << 20;
    scratch_put("elf", &fake, sizeof(fake), 0700);
    uninspected(scratch_path("elf"), CW_EINVAL, "damaged");
    fake.segment.p_filesz = 5;
    scratch_put("elf", &fake, sizeof(fake), 0700);
    uninspected(scratch_path("elf"), CW_EINVAL, "damaged");
    fake.header.e_phnum = 0;
    scratch_put("elf", &fake, sizeof(fake), 0700);
    uninspected(scratch_path("elf"), CW_EINVAL, "no program");
    fake.header.e_type = ET_REL;
    scratch_put("elf", &fake, sizeof(fake), 0700);
    uninspected(scratch_path("elf"), CW_EINVAL, "no program");
}

static size_t read_copy(const char *path, char **bytes)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    struct stat st;

    CU_ASSERT_TRUE_FATAL(fd >= 0 && fstat(fd, &st) == 0);
    *bytes = malloc((size_t)st.st_size);
    CU_ASSERT_PTR_NOT_NULL_FATAL(*bytes);
    CU_ASSERT_EQUAL_FATAL(read(fd, *bytes, (size_t)st.st_size), st.st_size);
    close(fd);
    return (size_t)st.st_size;
}

/* The name of the library is changed inside a copy. */
TEST(missing_libraries)
{
    struct program_info info;
    char *bytes;
    size_t size = read_copy(MPI_PROGRAM, &bytes);
    char *name = memmem(bytes, size, "libmpich.so.12", 14);

    CU_ASSERT_PTR_NOT_NULL_FATAL(name);
    memcpy(name, "libzpich.so.12", 14);
    scratch_put("nolib", bytes, size, 0700);
    free(bytes);
    inspects(scratch_path("nolib"), PROGRAM_MISSING_LIBS, &info);
    CU_ASSERT_PTR_NOT_NULL(strstr(info.detail, "libzpich.so.12"));
    CU_ASSERT_PTR_NULL(strchr(info.detail, '\n'));
}

/* Root takes a copy and gives it away; others find one in the system. */
TEST(privileged_programs)
{
    struct program_info info;
    char *bytes;
    size_t size;

    if (getuid() != 0) {
        inspects("/bin/su", PROGRAM_SETUID, &info);
        return;
    }
    size = read_copy(PLAIN_PROGRAM, &bytes);
    scratch_put("copy", bytes, size, 0755);
    free(bytes);
    inspects(scratch_path("copy"), PROGRAM_NOT_MPI, &info);
    chmod(scratch_path("copy"), 04755);
    inspects(scratch_path("copy"), PROGRAM_NOT_MPI, &info); /* to oneself: nothing changes */
    if (chown(scratch_path("copy"), NOBODY, NOBODY) < 0)
        return; /* a user namespace without that id */
    chmod(scratch_path("copy"), 04755);
    inspects(scratch_path("copy"), PROGRAM_SETUID, &info);
    chmod(scratch_path("copy"), 02755);
    inspects(scratch_path("copy"), PROGRAM_SETUID, &info);
}

TEST(every_kind_is_explained)
{
    for (int kind = PROGRAM_MPICH_UCX; kind <= PROGRAM_MISSING_LIBS; kind++)
        CU_ASSERT_TRUE(strlen(program_explain(kind)) > 20);
    CU_ASSERT_TRUE(program_can_run(PROGRAM_MPICH_UCX));
    CU_ASSERT_TRUE(program_can_run(PROGRAM_SCRIPT));
    CU_ASSERT_FALSE(program_can_run(PROGRAM_OPENMPI));
    CU_ASSERT_PTR_NOT_NULL(strstr(program_explain(PROGRAM_OPENMPI), "mpicc.mpich"));
}

TEST(tools_are_read_with_a_bound)
{
    char *hello[] = {"/bin/echo", "hello", NULL};
    char *zeros[] = {"/usr/bin/head", "-c", "1000000", "/dev/zero", NULL};
    char *nothing[] = {"/nowhere/tool", NULL};
    char *failing[] = {"/bin/ls", "/nowhere", NULL};
    char *output = malloc(TOOL_OUTPUT_MAX);

    CU_ASSERT_PTR_NOT_NULL_FATAL(output);
    CU_ASSERT_EQUAL(tool_read(hello, output, &err), 0);
    CU_ASSERT_STRING_EQUAL(output, "hello\n");
    CU_ASSERT_EQUAL(tool_read(zeros, output, &err), CW_ELIMIT);
    CU_ASSERT_EQUAL(tool_read(nothing, output, &err), CW_ESYS);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "/nowhere/tool"));
    CU_ASSERT_EQUAL(tool_read(failing, output, &err), 2);
    CU_ASSERT_PTR_NOT_NULL(strstr(output, "/nowhere"));
    free(output);
}
