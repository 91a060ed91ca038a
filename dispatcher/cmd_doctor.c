#include "dispatcher/cmd_doctor.h"
#include "dispatcher/device_path.h"
#include "dispatcher/program.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <gelf.h>
#include <getopt.h>
#include <libelf.h>
#include <limits.h>
#include <linux/io_uring.h>
#include <sched.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/personality.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#ifndef PREFIX
#define PREFIX "/usr/local" /* where the files were installed */
#endif

#define MPICH_SONAME "libmpich.so.12"
#define DEVICE_FILE "librdevice.so"
#define DEVICE_SONAME "libucp.so.0" /* the device stands in the place of this library */
#define CHILD_TIME_MAX_S 20
#define VERSION_MAX 8192 /* bytes; MPI_MAX_LIBRARY_VERSION_STRING of MPICH */
#define OPEN_FILES_MIN 1024
#define MEMORY_MIN_MB 512
#define RESERVATION_BYTES (64ull << 30)
#define UCX_NAMES_MAX 256 /* functions of UCX that an MPI library may import */

enum level { LEVEL_OK, LEVEL_WARNING, LEVEL_MISSING };

struct doctor {
    bool missing;         /* something needed is not there */
    char mpich[PATH_MAX]; /* "" while not found, as the next */
    char device[PATH_MAX];
    char *output; /* owned; PROGRAM_OUTPUT_MAX bytes, for tools */
};

__attribute__((format(printf, 3, 4))) static void say(struct doctor *d, enum level level,
                                                      const char *fmt, ...)
{
    static const char *const words[] = {"ok", "warning", "missing"};
    va_list ap;

    printf("%-7s ", words[level]);
    va_start(ap, fmt);
    vprintf(fmt, ap);
    va_end(ap);
    putchar('\n');
    if (level == LEVEL_MISSING)
        d->missing = true;
}

/* ---- a question to a child, so that a crash or a lasting change is harmless ---- */

/* Runs `ask` in a child, which writes its answer to the descriptor. Returns the bytes of the answer
 * (terminated in `answer`), 0 when there is none. */
static size_t ask_child(void (*ask)(const void *about, int to), const void *about, char *answer,
                        size_t size)
{
    size_t used = 0;
    ssize_t n;
    int ends[2];
    pid_t pid;

    answer[0] = '\0';
    fflush(stdout);
    if (pipe2(ends, O_CLOEXEC) < 0)
        return 0;
    pid = fork();
    if (pid == 0) {
        alarm(CHILD_TIME_MAX_S);
        ask(about, ends[1]);
        _exit(0);
    }
    close(ends[1]);
    while (pid > 0 && used < size - 1 && (n = read(ends[0], answer + used, size - 1 - used)) > 0)
        used += (size_t)n;
    answer[used] = '\0';
    close(ends[0]);
    if (pid > 0)
        waitpid(pid, NULL, 0);
    return used;
}

static void answer_text(int to, const char *text)
{
    if (write(to, text, strlen(text)) < 0)
        _exit(1);
}

/* ---- the MPI library ---- */

static bool take_if_readable(char path[PATH_MAX], const char *dir, size_t dir_size,
                             const char *name)
{
    if (dir_size == 0 || dir_size + strlen(name) + 2 > PATH_MAX)
        return false;
    snprintf(path, PATH_MAX, "%.*s/%s", (int)dir_size, dir, name);
    if (access(path, R_OK) == 0)
        return true;
    path[0] = '\0';
    return false;
}

static bool find_in_list(char path[PATH_MAX], const char *dirs, const char *name)
{
    for (const char *at = dirs; at && *at; at += strspn(at, ":")) {
        size_t size = strcspn(at, ":");

        if (take_if_readable(path, at, size, name))
            return true;
        at += size;
    }
    return false;
}

/* Lines of ldconfig -p: "<tab>NAME (libc6,x86-64) => PATH", of all machines. */
static bool find_in_cache(struct doctor *d, char path[PATH_MAX], const char *name)
{
    char *argv[] = {"/sbin/ldconfig", "-p", NULL};
    struct cw_err err;
    char *rest = d->output;
    char *line;

    if (program_read_tool(argv, d->output, &err) != 0)
        return false;
    while ((line = strsep(&rest, "\n"))) {
        char *word = line + strspn(line, " \t");
        char *arrow = strstr(word, " => ");

        if (strncmp(word, name, strlen(name)) != 0 || word[strlen(name)] != ' ' || !arrow)
            continue;
        if (!strstr(word, "x86-64") && !strstr(word, "AArch64"))
            continue;
        snprintf(path, PATH_MAX, "%s", arrow + 4);
        return true;
    }
    return false;
}

/* In the order of the dynamic loader. */
static bool find_library(struct doctor *d, char path[PATH_MAX], const char *name)
{
    static const char defaults[] = "/lib/x86_64-linux-gnu:/usr/lib/x86_64-linux-gnu:"
                                   "/lib/aarch64-linux-gnu:/usr/lib/aarch64-linux-gnu:"
                                   "/lib64:/usr/lib64:/lib:/usr/lib";

    return find_in_list(path, getenv("LD_LIBRARY_PATH"), name) || find_in_cache(d, path, name) ||
           find_in_list(path, defaults, name);
}

/* MPI_Get_library_version is one of the few functions that MPI allows before MPI_Init. */
static void ask_version(const void *about, int to)
{
    char version[VERSION_MAX + 1] = "";
    int size = 0;
    void *library = dlopen(about, RTLD_LAZY | RTLD_LOCAL);
    int (*get)(char *, int *) = NULL;

    if (library)
        *(void **)&get = dlsym(library, "MPI_Get_library_version");
    if (get && get(version, &size) == 0)
        answer_text(to, version);
}

/* Puts what follows "KEY:" and blanks on a line of `text` into `value`; "?" when it is not there.
 */
static void read_value(const char *text, const char *key, char *value, size_t size)
{
    const char *at = strstr(text, key);

    snprintf(value, size, "?");
    if (!at)
        return;
    at += strlen(key);
    at += strspn(at, ": \t");
    snprintf(value, size, "%.*s", (int)strcspn(at, "\n"), at);
}

static void check_mpich(struct doctor *d)
{
    char text[VERSION_MAX + 1];
    char version[64];
    char device[64];

    if (!find_library(d, d->mpich, MPICH_SONAME)) {
        say(d, LEVEL_MISSING,
            MPICH_SONAME
            ": the dynamic loader does not find it; install MPICH (Debian: apt install "
            "libmpich12) or name its directory in LD_LIBRARY_PATH");
        return;
    }
    if (!ask_child(ask_version, d->mpich, text, sizeof(text))) {
        say(d, LEVEL_WARNING, "%s: it does not tell its version; is it damaged? Reinstall it",
            d->mpich);
        return;
    }
    read_value(text, "MPICH Version", version, sizeof(version));
    read_value(text, "MPICH Device", device, sizeof(device));
    if (strncmp(device, "ch4:ucx", 7) == 0)
        say(d, LEVEL_OK, "MPICH %s, device %s (%s)", version, device, d->mpich);
    else
        say(d, LEVEL_MISSING,
            "an MPICH over UCX: %s is MPICH %s, device %s; install one of device ch4:ucx (Debian's "
            "libmpich12)",
            d->mpich, version, device);
}

/* ---- the device ---- */

/* Beside the executable (a build directory), where it was installed with it, or below PREFIX. */
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

/* Says each function of UCX that the MPI library imports and the device does not define. */
static void compare_functions(struct doctor *d, const struct symbols *mpich,
                              const struct symbols *device)
{
    unsigned imported = 0;
    unsigned lacking = 0;
    const char *name;
    bool defined;

    for (int i = 0; (name = symbols_at(mpich, i, &defined)) && imported < UCX_NAMES_MAX; i++) {
        if (defined || (strncmp(name, "ucp_", 4) != 0 && strncmp(name, "ucs_", 4) != 0))
            continue;
        imported++;
        if (is_defined(device, name))
            continue;
        lacking++;
        say(d, LEVEL_MISSING, "%s: MPICH imports it and the device does not have it; use MPICH 4.0",
            name);
    }
    if (imported == 0)
        say(d, LEVEL_MISSING, "%s imports nothing of UCX; install an MPICH of device ch4:ucx",
            d->mpich);
    else if (lacking == 0)
        say(d, LEVEL_OK, "the device has the %u functions of UCX that MPICH imports (%s)", imported,
            d->device);
}

static void check_device(struct doctor *d)
{
    struct symbols mpich;
    struct symbols device;
    struct cw_err err;

    if (device_path_find(d->device, &err) < 0) {
        d->device[0] = '\0';
        say(d, LEVEL_MISSING, "%s", err.text);
        return;
    }
    if (!symbols_open(&device, d->device)) {
        say(d, LEVEL_MISSING, "%s: no shared library, or damaged; run make and make install",
            d->device);
        d->device[0] = '\0';
        return;
    }
    if (d->mpich[0] && symbols_open(&mpich, d->mpich)) {
        compare_functions(d, &mpich, &device);
        symbols_close(&mpich);
    }
    symbols_close(&device);
}

/* Asks the real loader: with the device preloaded it must look for no other libucp.so.0. */
static void check_preload(struct doctor *d)
{
    const char *before = getenv("LD_PRELOAD");
    char *saved = before ? strdup(before) : NULL;
    struct cw_err err;
    int code;

    if (!d->mpich[0] || !d->device[0]) {
        free(saved);
        return;
    }
    setenv("LD_PRELOAD", d->device, 1);
    code = program_list_libraries(d->mpich, d->output, &err);
    if (saved)
        setenv("LD_PRELOAD", saved, 1);
    else
        unsetenv("LD_PRELOAD");
    free(saved);
    if (code < 0)
        say(d, LEVEL_MISSING, "the dynamic loader's word on the device: %s", err.text);
    else if (code > 0)
        say(d, LEVEL_MISSING, "what the dynamic loader needs: %.*s; install it",
            (int)strcspn(d->output, "\n"), d->output);
    else if (!strstr(d->output, d->device) || strstr(d->output, DEVICE_SONAME " =>"))
        say(d, LEVEL_MISSING,
            "the dynamic loader does not take %s in the place of " DEVICE_SONAME
            "; its SONAME must be that: run make clean and make",
            d->device);
    else
        say(d, LEVEL_OK, "the dynamic loader takes the device in the place of " DEVICE_SONAME);
}

/* ---- the machine ---- */

static void check_kernel(struct doctor *d)
{
    struct utsname name;

    if (uname(&name) == 0)
        say(d, LEVEL_OK, "%s %s, %s", name.sysname, name.release, name.machine);
}

static void ask_personality(const void *about, int to)
{
    int now = personality(0xffffffff);

    (void)about;
    if (now < 0 || personality((unsigned)now | ADDR_NO_RANDOMIZE) < 0)
        answer_text(to, strerror(errno));
    else if (!(personality(0xffffffff) & ADDR_NO_RANDOMIZE))
        answer_text(to, "it had no effect");
    else
        answer_text(to, "ok");
}

static void check_personality(struct doctor *d)
{
    char answer[128];

    ask_child(ask_personality, NULL, answer, sizeof(answer));
    if (strcmp(answer, "ok") == 0)
        say(d, LEVEL_OK, "address randomisation can be turned off for a process");
    else
        say(d, LEVEL_MISSING,
            "personality(ADDR_NO_RANDOMIZE): %s; without it a crashed rank cannot be brought back. "
            "In a container allow it (docker run --security-opt seccomp=unconfined)",
            answer);
}

static const char *runtime_dir(void)
{
    const char *dir = getenv("XDG_RUNTIME_DIR");

    if (!dir || !*dir)
        dir = getenv("TMPDIR");
    return dir && *dir ? dir : "/tmp";
}

/* Binds and connects a socket of that name. Returns 0 or errno. */
static int try_socket(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    size_t size = strlen(path) + 1;
    int failure = 0;
    int server;
    int client;

    if (size > sizeof(address.sun_path))
        return ENAMETOOLONG;
    memcpy(address.sun_path, path, size);
    server = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    client = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (server < 0 || client < 0 ||
        bind(server, (struct sockaddr *)&address, sizeof(address)) < 0 || listen(server, 1) < 0 ||
        connect(client, (struct sockaddr *)&address, sizeof(address)) < 0)
        failure = errno;
    if (server >= 0)
        close(server);
    if (client >= 0)
        close(client);
    unlink(path);
    return failure;
}

static void check_runtime_dir(struct doctor *d)
{
    const char *base = runtime_dir();
    char dir[PATH_MAX];
    char path[PATH_MAX + 16];
    int failure;

    snprintf(dir, sizeof(dir), "%s/causeway-doctor-XXXXXX", base);
    if (!mkdtemp(dir)) {
        say(d, LEVEL_MISSING,
            "a directory for sockets: %s: %s; set XDG_RUNTIME_DIR or TMPDIR to one that you may "
            "write to",
            base, strerror(errno));
        return;
    }
    snprintf(path, sizeof(path), "%s/socket", dir);
    failure = try_socket(path);
    rmdir(dir);
    if (failure)
        say(d, LEVEL_MISSING,
            "Unix sockets in %s: %s; set XDG_RUNTIME_DIR or TMPDIR to a short path on a local disk",
            base, strerror(failure));
    else
        say(d, LEVEL_OK, "Unix sockets in %s", base);
}

static void check_io_uring(struct doctor *d)
{
    struct io_uring_params params = {0};
    long fd = syscall(__NR_io_uring_setup, 1, &params);

    if (fd >= 0) {
        close((int)fd);
        say(d, LEVEL_OK, "io_uring is there (a note: nothing needs it)");
    } else {
        say(d, LEVEL_WARNING,
            "io_uring: %s; nothing needs it. To have it: kernel 5.1 or later, "
            "kernel.io_uring_disabled = 0, and in a container a seccomp profile that allows it",
            strerror(errno));
    }
}

static void check_open_files(struct doctor *d)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
        return;
    if (limit.rlim_cur < OPEN_FILES_MIN)
        say(d, LEVEL_WARNING,
            "%llu open files a process (up to %llu on demand): few for a job of many ranks; "
            "raise it with ulimit -n",
            (unsigned long long)limit.rlim_cur, (unsigned long long)limit.rlim_max);
    else
        say(d, LEVEL_OK, "%llu open files a process (up to %llu on demand)",
            (unsigned long long)limit.rlim_cur, (unsigned long long)limit.rlim_max);
}

static void check_cores(struct doctor *d)
{
    long online = sysconf(_SC_NPROCESSORS_ONLN);
    cpu_set_t set;
    int usable = sched_getaffinity(0, sizeof(set), &set) == 0 ? CPU_COUNT(&set) : (int)online;

    if (usable < 2)
        say(d, LEVEL_WARNING,
            "1 core: the relay and the ranks take turns; allow it more (taskset, cpuset), or bear "
            "it");
    else
        say(d, LEVEL_OK, "%d cores of %ld", usable, online);
}

/* MemAvailable of /proc/meminfo, in MiB; -1 when it is not to be had. */
static long available_mb(void)
{
    FILE *file = fopen("/proc/meminfo", "re");
    char line[128];
    long kb = -1;

    if (!file)
        return -1;
    while (kb < 0 && fgets(line, sizeof(line), file))
        if (sscanf(line, "MemAvailable: %ld kB", &kb) != 1)
            kb = -1;
    fclose(file);
    return kb < 0 ? -1 : kb / 1024;
}

static void check_memory(struct doctor *d)
{
    long all_mb = (long)((unsigned long long)sysconf(_SC_PHYS_PAGES) *
                             (unsigned long long)sysconf(_SC_PAGESIZE) >>
                         20);
    long free_mb = available_mb();

    if (free_mb >= 0 && free_mb < MEMORY_MIN_MB)
        say(d, LEVEL_WARNING,
            "%ld MiB of memory left of %ld; the relay keeps messages: end other "
            "programs",
            free_mb, all_mb);
    else
        say(d, LEVEL_OK, "%ld MiB of memory left of %ld", free_mb, all_mb);
}

static int overcommit_mode(void)
{
    FILE *file = fopen("/proc/sys/vm/overcommit_memory", "re");
    int mode = -1;

    if (!file)
        return -1;
    if (fscanf(file, "%d", &mode) != 1)
        mode = -1;
    fclose(file);
    return mode;
}

static void check_overcommit(struct doctor *d)
{
    void *area = mmap(NULL, RESERVATION_BYTES, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    if (area == MAP_FAILED) {
        say(d, LEVEL_MISSING,
            "address space: reserving %llu GiB: %s (vm.overcommit_memory is %d); set "
            "vm.overcommit_memory to 0 or 1 and ulimit -v to unlimited",
            RESERVATION_BYTES >> 30, strerror(errno), overcommit_mode());
        return;
    }
    munmap(area, RESERVATION_BYTES);
    say(d, LEVEL_OK, "%llu GiB of address space can be reserved (vm.overcommit_memory is %d)",
        RESERVATION_BYTES >> 30, overcommit_mode());
}

/* ---- the program ---- */

static void check_program(struct doctor *d, const char *name)
{
    char path[PATH_MAX];
    struct program_info info;
    struct cw_err err;

    if (program_resolve(name, NULL, path, sizeof(path), &err) < 0 ||
        program_inspect(path, &info, &err) < 0) {
        say(d, LEVEL_MISSING, "%s", err.text);
        return;
    }
    say(d, program_can_run(info.kind) ? LEVEL_OK : LEVEL_MISSING, "%s is %s%s%s%s", path,
        program_explain(info.kind), info.detail[0] ? " (" : "", info.detail,
        info.detail[0] ? ")" : "");
    if (info.kind == PROGRAM_MPICH_UCX && strcmp(info.mpi_library, d->mpich) != 0)
        say(d, LEVEL_WARNING,
            "it is linked against %s, not against the library above; look that this is meant",
            info.mpi_library);
}

/* ---- the command ---- */

static void print_help(FILE *to)
{
    fputs("usage: causeway doctor [--help] [PROGRAM]\n"
          "\n"
          "Looks whether this machine has what Causeway needs, and whether PROGRAM, found as a\n"
          "shell would, can run under it. Each line says ok, warning or missing, and what to do.\n"
          "\n"
          "Exit code: 0 all that is needed is there, 1 something is missing, 2 bad usage.\n",
          to);
}

static int examine(const char *program)
{
    static void (*const checks[])(struct doctor *) = {
        check_mpich,       check_device,     check_preload,     check_kernel,
        check_personality, check_io_uring,   check_open_files,  check_cores,
        check_memory,      check_overcommit, check_runtime_dir,
    };
    struct doctor d = {.output = malloc(PROGRAM_OUTPUT_MAX)};

    if (!d.output) {
        fputs("causeway doctor: no memory\n", stderr);
        return 1;
    }
    for (size_t i = 0; i < sizeof(checks) / sizeof(*checks); i++)
        checks[i](&d);
    if (program)
        check_program(&d, program);
    free(d.output);
    return d.missing;
}

int cmd_doctor(int argc, char **argv)
{
    static const struct option options[] = {{"help", no_argument, NULL, 'h'}, {0}};
    int option;

    optind = 0; /* start anew, whoever used getopt before */
    while ((option = getopt_long(argc, argv, "+h", options, NULL)) != -1) {
        if (option == 'h') {
            print_help(stdout);
            return 0;
        }
        print_help(stderr);
        return 2;
    }
    if (argc - optind > 1) {
        fprintf(stderr, "causeway doctor: unexpected argument '%s'; expected one PROGRAM at most\n",
                argv[optind + 1]);
        return 2;
    }
    return examine(argv[optind]);
}
