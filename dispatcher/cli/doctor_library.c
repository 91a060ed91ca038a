#include "dispatcher/cli/doctor.h"
#include "dispatcher/program/device_path.h"
#include "dispatcher/program/program.h"
#include "dispatcher/program/resolve.h"
#include "dispatcher/program/tool.h"
#include "dispatcher/program/ucx_names.h"
#include "dispatcher/status/rundir.h"

#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MPICH_SONAME "libmpich.so.12"
#define DEVICE_FILE "librdevice.so"
#define DEVICE_SONAME "libucp.so.0" /* the device stands in the place of this library */
#define VERSION_MAX 8192            /* bytes; MPI_MAX_LIBRARY_VERSION_STRING of MPICH */

/* ---- the MPI library ---- */

/* The path that the dynamic loader finds, then what the library says. MPI_Get_library_version is
 * one of the few functions that MPI allows before MPI_Init. Or "!" and why there is none. */
static void ask_library(const void *about, int to)
{
    void *library = dlopen(about, RTLD_LAZY | RTLD_LOCAL);
    char version[VERSION_MAX + 1] = "";
    int (*get)(char *, int *) = NULL;
    struct link_map *map;
    int size = 0;

    if (!library || dlinfo(library, RTLD_DI_LINKMAP, &map) < 0) {
        doctor_answer_text(to, "!");
        doctor_answer_text(to, dlerror());
        return;
    }
    doctor_answer_text(to, map->l_name);
    doctor_answer_text(to, "\n");
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
    char text[PATH_MAX + VERSION_MAX + 1];
    char device[64];
    size_t size;

    if (!doctor_ask_child(ask_library, MPICH_SONAME, text, sizeof(text)) ||
        (text[0] == '!' && !strstr(text, "!" MPICH_SONAME ": cannot open"))) {
        findings_add(&d->findings, DOCTOR_MISSING,
                     MPICH_SONAME ": the dynamic loader cannot take it%s%s; reinstall MPICH",
                     text[0] ? ": " : "", text[0] ? text + 1 : "");
        return;
    }
    if (text[0] == '!') {
        findings_add(&d->findings, DOCTOR_MISSING,
                     MPICH_SONAME
                     ": the dynamic loader does not find it; install MPICH (Debian: apt install "
                     "libmpich12) or name its directory in LD_LIBRARY_PATH");
        return;
    }
    size = strcspn(text, "\n");
    snprintf(d->mpich, sizeof(d->mpich), "%.*s", (int)size, text);
    if (!text[size] || !text[size + 1]) {
        findings_add(&d->findings, DOCTOR_WARNING,
                     "%s: it does not tell its version; is it damaged? Reinstall it", d->mpich);
        return;
    }
    read_value(text, "MPICH Version", d->mpich_version, sizeof(d->mpich_version));
    read_value(text, "MPICH Device", device, sizeof(device));
    if (strncmp(device, "ch4:ucx", 7) == 0)
        findings_add(&d->findings, DOCTOR_OK, "MPICH %s, device %s (%s)", d->mpich_version, device,
                     d->mpich);
    else
        findings_add(
            &d->findings, DOCTOR_MISSING,
            "an MPICH over UCX: %s is MPICH %s, device %s; install one of device ch4:ucx (Debian's "
            "libmpich12)",
            d->mpich, d->mpich_version, device);
}

/* ---- the device ---- */

static void say_missing(void *ctx, const char *name)
{
    findings_add(ctx, DOCTOR_MISSING,
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
        findings_add(&d->findings, DOCTOR_MISSING, "%s", err.text);
        return;
    }
    if (!ucx_names_can_be_read(d->device)) {
        findings_add(&d->findings, DOCTOR_MISSING,
                     "%s: no shared library, or damaged; run make and make install", d->device);
        d->device[0] = '\0';
        return;
    }
    if (!d->mpich[0])
        return;
    lacking = ucx_names_compare(d->mpich, d->device, say_missing, &d->findings, &imported);
    if (imported == 0)
        findings_add(&d->findings, DOCTOR_MISSING,
                     "%s imports nothing of UCX; install an MPICH of device ch4:ucx", d->mpich);
    else if (lacking == 0)
        findings_add(&d->findings, DOCTOR_OK,
                     "the device has the %d functions of UCX that MPICH imports (%s)", imported,
                     d->device);
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
    findings_add(&d->findings, DOCTOR_MISSING, "%s", err.text);
    return false;
}

/* Asks the real loader: with the device preloaded it must look for no other libucp.so.0. */
static void check_preload(struct doctor *d)
{
    static char output[TOOL_OUTPUT_MAX];
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
    code = program_list_libraries(d->mpich, output, &err);
    if (strcmp(preload, d->device) != 0)
        rundir_remove(&dir);
    if (saved)
        setenv("LD_PRELOAD", saved, 1);
    else
        unsetenv("LD_PRELOAD");
    free(saved);
    if (code < 0)
        findings_add(&d->findings, DOCTOR_MISSING, "the dynamic loader's word on the device: %s",
                     err.text);
    else if (code > 0)
        findings_add(&d->findings, DOCTOR_MISSING,
                     "what the dynamic loader needs: %.*s; install it", (int)strcspn(output, "\n"),
                     output);
    else if (!strstr(output, preload) || strstr(output, DEVICE_SONAME " =>"))
        findings_add(&d->findings, DOCTOR_MISSING,
                     "the dynamic loader does not take %s in the place of " DEVICE_SONAME
                     "; its SONAME must be that: run make clean and make",
                     d->device);
    else
        findings_add(&d->findings, DOCTOR_OK,
                     "the dynamic loader takes the device in the place of " DEVICE_SONAME);
}

void doctor_check_library(struct doctor *d)
{
    check_mpich(d);
    check_device(d);
    check_preload(d);
}

/* ---- a program ---- */

void doctor_check_program(struct doctor *d, const char *name)
{
    char path[PATH_MAX];
    struct program_info info;
    struct cw_err err;

    if (program_resolve(name, NULL, path, sizeof(path), &err) < 0 ||
        program_inspect(path, &info, &err) < 0) {
        findings_add(&d->findings, DOCTOR_MISSING, "%s", err.text);
        return;
    }
    findings_add(&d->findings, program_can_run(info.kind) ? DOCTOR_OK : DOCTOR_MISSING,
                 "%s is %s%s%s%s", path, program_explain(info.kind), info.detail[0] ? " (" : "",
                 info.detail, info.detail[0] ? ")" : "");
    if (info.kind == PROGRAM_MPICH_UCX && strcmp(info.mpi_library, d->mpich) != 0)
        findings_add(
            &d->findings, DOCTOR_WARNING,
            "it is linked against %s, not against the library above; look that this is meant",
            info.mpi_library);
}
