#include "dispatcher/cli/cmd_doctor.h"
#include "dispatcher/cli/doctor_images.h"
#include "dispatcher/cli/doctor_library.h"
#include "dispatcher/cli/doctor_machine.h"
#include "dispatcher/program/program.h"
#include "dispatcher/program/resolve.h"
#include "dispatcher/program/tool.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- the program ---- */

static void check_program(struct doctor *d, const char *name)
{
    char path[PATH_MAX];
    struct program_info info;
    struct cw_err err;

    if (program_resolve(name, NULL, path, sizeof(path), &err) < 0 ||
        program_inspect(path, &info, &err) < 0) {
        doctor_say(d, DOCTOR_MISSING, "%s", err.text);
        return;
    }
    doctor_say(d, program_can_run(info.kind) ? DOCTOR_OK : DOCTOR_MISSING, "%s is %s%s%s%s", path,
               program_explain(info.kind), info.detail[0] ? " (" : "", info.detail,
               info.detail[0] ? ")" : "");
    if (info.kind == PROGRAM_MPICH_UCX && strcmp(info.mpi_library, d->mpich) != 0)
        doctor_say(
            d, DOCTOR_WARNING,
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
    struct doctor d = {.output = malloc(TOOL_OUTPUT_MAX)};

    if (!d.output) {
        fputs("causeway doctor: no memory\n", stderr);
        return 1;
    }
    doctor_check_library(&d);
    doctor_check_machine(&d);
    doctor_check_images(&d);
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
