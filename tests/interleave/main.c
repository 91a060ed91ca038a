/* Runs all schedules of the programs, and prints TAP (Test Anything Protocol).
 *
 *   interleave [--slow] [TEXT...]   the programs whose names contain one of the texts; all without
 * a text
 *
 *   --slow   those that take long, too */
#include "tests/interleave/programs.h"

#include <stdio.h>
#include <string.h>

static bool is_named(char *const *texts, const char *name)
{
    bool named = !*texts;

    for (; *texts; texts++)
        named |= strstr(name, *texts) != NULL;
    return named;
}

/* Returns whether it is well. */
static bool run(unsigned number, const struct program *program, const struct programs *of)
{
    struct explored e = explore(program, of->memory, of->size, of->state);

    printf("%s %u - interleave: %s\n", e.wrong ? "not ok" : "ok", number, program->name);
    printf("# %llu schedules, %llu of them to the end, %llu states\n",
           (unsigned long long)e.schedules, (unsigned long long)e.whole,
           (unsigned long long)e.states);
    if (e.wrong)
        printf("# %s\n", e.wrong);
    fflush(stdout);
    return !e.wrong;
}

int main(int argc, char **argv)
{
    static const struct programs *const all[] = {&stream_programs, &block_programs};
    bool slow = argc > 1 && strcmp(argv[1], "--slow") == 0;
    unsigned count = 0, failed = 0;

    for (unsigned f = 0; f < sizeof(all) / sizeof(*all); f++)
        for (unsigned i = 0; i < all[f]->count; i++) {
            const struct program *program = &all[f]->list[i];

            if ((program->slow && !slow) || !is_named(argv + 1 + slow, program->name))
                continue;
            failed += !run(++count, program, all[f]);
        }
    printf("1..%u\n", count);
    return failed > 0;
}
