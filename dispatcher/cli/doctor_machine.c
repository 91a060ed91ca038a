#include "common/transport.h"
#include "dispatcher/cli/doctor.h"
#include "dispatcher/status/rundir.h"
#include "relay/engine/engine.h"

#include <errno.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/personality.h>
#include <sys/resource.h>
#include <sys/utsname.h>
#include <unistd.h>

#define OPEN_FILES_MIN 1024
#define MEMORY_MIN_MB 512
#define RESERVATION_BYTES (64ull << 30)

static void check_kernel(struct doctor *d)
{
    struct utsname name;

    if (uname(&name) == 0)
        findings_add(&d->findings, DOCTOR_OK, "%s %s, %s", name.sysname, name.release,
                     name.machine);
}

static void ask_personality(const void *about, int to)
{
    int now = personality(0xffffffff);

    (void)about;
    if (now < 0 || personality((unsigned)now | ADDR_NO_RANDOMIZE) < 0)
        doctor_answer_text(to, strerror(errno));
    else if (!(personality(0xffffffff) & ADDR_NO_RANDOMIZE))
        doctor_answer_text(to, "it had no effect");
    else
        doctor_answer_text(to, "ok");
}

static void check_personality(struct doctor *d)
{
    char answer[128];

    doctor_ask_child(ask_personality, NULL, answer, sizeof(answer));
    if (strcmp(answer, "ok") == 0)
        findings_add(&d->findings, DOCTOR_OK,
                     "address randomisation can be turned off for a process");
    else
        findings_add(
            &d->findings, DOCTOR_MISSING,
            "personality(ADDR_NO_RANDOMIZE): %s; without it a crashed rank cannot be brought back. "
            "In a container allow it (docker run --security-opt seccomp=unconfined)",
            answer);
}

static int try_socket(const char *dir, struct cw_err *err)
{
    char text[CW_ADDRESS_MAX];
    struct cw_address address;
    int server, client;

    snprintf(text, sizeof(text), "unix:%.900s/socket", dir);
    if (cw_address_parse(&address, text, err) < 0 || (server = cw_listen(&address, err)) < 0)
        return err->code;
    client = cw_connect(&address, err);
    cw_unlisten(server, &address);
    return client < 0 ? client : close(client);
}

static void check_runtime_dir(struct doctor *d)
{
    const char *base = rundir_base();
    struct cw_err err = {0};
    char dir[PATH_MAX];

    snprintf(dir, sizeof(dir), "%s/causeway-doctor-XXXXXX", base);
    if (!mkdtemp(dir)) {
        findings_add(&d->findings, DOCTOR_MISSING,
                     "a directory for sockets: %s: %s; set TMPDIR to one that you may write to",
                     base, strerror(errno));
        return;
    }
    if (try_socket(dir, &err) < 0)
        findings_add(&d->findings, DOCTOR_MISSING,
                     "Unix sockets in %s: %s; set TMPDIR to a short path on a local disk", base,
                     err.text);
    else
        findings_add(&d->findings, DOCTOR_OK, "Unix sockets in %s", base);
    rmdir(dir);
}

/* One engine of a relay alone asks for more than every system has. */
static void check_io_uring(struct doctor *d)
{
    struct cw_err err = {0};

    if (relay_engine_uring.check(&err) == CW_OK)
        findings_add(&d->findings, DOCTOR_OK, "io_uring, for --engine uring");
    else
        findings_add(&d->findings, DOCTOR_WARNING, "--engine uring cannot run here: %s", err.text);
}

static void check_open_files(struct doctor *d)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
        return;
    if (limit.rlim_cur < OPEN_FILES_MIN)
        findings_add(
            &d->findings, DOCTOR_WARNING,
            "%llu open files a process (up to %llu on demand): few for a job of many ranks; "
            "raise it with ulimit -n",
            (unsigned long long)limit.rlim_cur, (unsigned long long)limit.rlim_max);
    else
        findings_add(&d->findings, DOCTOR_OK, "%llu open files a process (up to %llu on demand)",
                     (unsigned long long)limit.rlim_cur, (unsigned long long)limit.rlim_max);
}

static void check_cores(struct doctor *d)
{
    long online = sysconf(_SC_NPROCESSORS_ONLN);
    cpu_set_t set;
    int usable = sched_getaffinity(0, sizeof(set), &set) == 0 ? CPU_COUNT(&set) : (int)online;

    if (usable < 2)
        findings_add(
            &d->findings, DOCTOR_WARNING,
            "1 core: the relay and the ranks take turns; allow it more (taskset, cpuset), or bear "
            "it");
    else
        findings_add(&d->findings, DOCTOR_OK, "%d cores of %ld", usable, online);
}

/* MemAvailable of /proc/meminfo. */
long doctor_free_memory_mb(void)
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
    long free_mb = doctor_free_memory_mb();

    if (free_mb >= 0 && free_mb < MEMORY_MIN_MB)
        findings_add(&d->findings, DOCTOR_WARNING,
                     "%ld MiB of memory left of %ld; the relay keeps messages: end other "
                     "programs",
                     free_mb, all_mb);
    else
        findings_add(&d->findings, DOCTOR_OK, "%ld MiB of memory left of %ld", free_mb, all_mb);
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
        findings_add(&d->findings, DOCTOR_MISSING,
                     "address space: reserving %llu GiB: %s (vm.overcommit_memory is %d); set "
                     "vm.overcommit_memory to 0 or 1 and ulimit -v to unlimited",
                     RESERVATION_BYTES >> 30, strerror(errno), overcommit_mode());
        return;
    }
    munmap(area, RESERVATION_BYTES);
    findings_add(&d->findings, DOCTOR_OK,
                 "%llu GiB of address space can be reserved (vm.overcommit_memory is %d)",
                 RESERVATION_BYTES >> 30, overcommit_mode());
}

void doctor_check_machine(struct doctor *d)
{
    check_kernel(d);
    check_personality(d);
    check_io_uring(d);
    check_open_files(d);
    check_cores(d);
    check_memory(d);
    check_overcommit(d);
    check_runtime_dir(d);
}
