/* `causeway run`: an MPI job whose messages all go through a relay. */
#include "dispatcher/cli/cmd_run.h"
#include "dispatcher/options/options.h"
#include "dispatcher/run/driver.h"

#include <stdio.h>

int cmd_run(int argc, char **argv)
{
    struct run_options options;
    struct cw_err err = {0};
    int code = 0;

    if (run_options_parse(&options, argc, argv, &err) < 0) {
        fprintf(stderr, "causeway run: %s\n", err.text);
        code = 2;
    } else if (options.help) {
        fputs(run_usage, stdout);
    } else {
        code = run_job(&options);
    }
    run_options_free(&options);
    return code;
}
