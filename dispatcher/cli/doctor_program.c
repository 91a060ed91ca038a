#include "dispatcher/cli/doctor.h"
#include "dispatcher/program/program.h"
#include "dispatcher/program/resolve.h"

#include <string.h>

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
