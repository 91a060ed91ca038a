#include "dispatcher/cli/doctor.h"
#include "dispatcher/program/device_path.h"
#include "dispatcher/program/program.h"
#include "dispatcher/program/tool.h"
#include "dispatcher/program/ucx_names.h"
#include "dispatcher/status/rundir.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MPICH_SONAME "libmpich.so.12"
#define DEVICE_FILE "librdevice.so"
#define DEVICE_SONAME "libucp.so.0" /* the device stands in the place of this library */
#define VERSION_MAX 8192            /* bytes; MPI_MAX_LIBRARY_VERSION_STRING of MPICH */

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

    if (tool_read(argv, d->output, &err) != 0)
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
        doctor_answer_text(to, version);
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
    char device[64];

    if (!find_library(d, d->mpich, MPICH_SONAME)) {
        doctor_say(d, DOCTOR_MISSING,
                   MPICH_SONAME
                   ": the dynamic loader does not find it; install MPICH (Debian: apt install "
                   "libmpich12) or name its directory in LD_LIBRARY_PATH");
        return;
    }
    if (!doctor_ask_child(ask_version, d->mpich, text, sizeof(text))) {
        doctor_say(d, DOCTOR_WARNING,
                   "%s: it does not tell its version; is it damaged? Reinstall it", d->mpich);
        return;
    }
    read_value(text, "MPICH Version", d->mpich_version, sizeof(d->mpich_version));
    read_value(text, "MPICH Device", device, sizeof(device));
    if (strncmp(device, "ch4:ucx", 7) == 0)
        doctor_say(d, DOCTOR_OK, "MPICH %s, device %s (%s)", d->mpich_version, device, d->mpich);
    else
        doctor_say(
            d, DOCTOR_MISSING,
            "an MPICH over UCX: %s is MPICH %s, device %s; install one of device ch4:ucx (Debian's "
            "libmpich12)",
            d->mpich, d->mpich_version, device);
}

/* ---- the device ---- */

static void say_missing(void *ctx, const char *name)
{
    doctor_say(ctx, DOCTOR_MISSING,
               "%s: MPICH imports it and the device does not have it; use " UCX_NAMES_CARRIED,
               name);
}

static void check_device(struct doctor *d)
{
    struct cw_err err;
    int imported;
    int lacking;

    if (device_path_find(d->device, &err) < 0) {
        d->device[0] = '\0';
        doctor_say(d, DOCTOR_MISSING, "%s", err.text);
        return;
    }
    if (!ucx_names_can_be_read(d->device)) {
        doctor_say(d, DOCTOR_MISSING,
                   "%s: no shared library, or damaged; run make and make install", d->device);
        d->device[0] = '\0';
        return;
    }
    if (!d->mpich[0])
        return;
    lacking = ucx_names_compare(d->mpich, d->device, say_missing, d, &imported);
    if (imported == 0)
        doctor_say(d, DOCTOR_MISSING,
                   "%s imports nothing of UCX; install an MPICH of device ch4:ucx", d->mpich);
    else if (lacking == 0)
        doctor_say(d, DOCTOR_OK, "the device has the %d functions of UCX that MPICH imports (%s)",
                   imported, d->device);
}

/* The name of the device in LD_PRELOAD: its path, or a link to it in a directory of our own. */
static bool begin_preload(struct doctor *d, struct rundir *dir, char preload[PATH_MAX])
{
    struct cw_err err;

    memcpy(preload, d->device, PATH_MAX);
    if (device_path_is_plain(d->device))
        return true;
    if (rundir_make(dir, &err) == CW_OK) {
        if (rundir_link(dir, d->device, preload, PATH_MAX, &err) == CW_OK)
            return true;
        rundir_remove(dir);
    }
    doctor_say(d, DOCTOR_MISSING, "%s", err.text);
    return false;
}

/* Asks the real loader: with the device preloaded it must look for no other libucp.so.0. */
static void check_preload(struct doctor *d)
{
    const char *before = getenv("LD_PRELOAD");
    char *saved = before ? strdup(before) : NULL;
    char preload[PATH_MAX];
    struct rundir dir;
    struct cw_err err;
    int code;

    if (!d->mpich[0] || !d->device[0] || !begin_preload(d, &dir, preload)) {
        free(saved);
        return;
    }
    setenv("LD_PRELOAD", preload, 1);
    code = program_list_libraries(d->mpich, d->output, &err);
    if (strcmp(preload, d->device) != 0)
        rundir_remove(&dir);
    if (saved)
        setenv("LD_PRELOAD", saved, 1);
    else
        unsetenv("LD_PRELOAD");
    free(saved);
    if (code < 0)
        doctor_say(d, DOCTOR_MISSING, "the dynamic loader's word on the device: %s", err.text);
    else if (code > 0)
        doctor_say(d, DOCTOR_MISSING, "what the dynamic loader needs: %.*s; install it",
                   (int)strcspn(d->output, "\n"), d->output);
    else if (!strstr(d->output, preload) || strstr(d->output, DEVICE_SONAME " =>"))
        doctor_say(d, DOCTOR_MISSING,
                   "the dynamic loader does not take %s in the place of " DEVICE_SONAME
                   "; its SONAME must be that: run make clean and make",
                   d->device);
    else
        doctor_say(d, DOCTOR_OK,
                   "the dynamic loader takes the device in the place of " DEVICE_SONAME);
}

void doctor_check_library(struct doctor *d)
{
    check_mpich(d);
    check_device(d);
    check_preload(d);
}
