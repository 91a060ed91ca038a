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

/* Returns 1 where something is wrong. */
static unsigned tell(unsigned number, const char *name, const char *wrong)
{
    printf("%s %u - interleave: %s\n", wrong ? "not ok" : "ok", number, name);
    if (wrong)
        printf("# %s\n", wrong);
    fflush(stdout);
    return wrong != NULL;
}

static unsigned run(unsigned number, const struct program *program, const struct programs *of)
{
    struct explored e = explore(program, of->memory, of->size, of->state);

    printf("# %llu schedules, %llu of them to the end, %llu states\n",
           (unsigned long long)e.schedules, (unsigned long long)e.whole,
           (unsigned long long)e.states);
    return tell(number, program->name, e.wrong);
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
            failed += run(++count, program, all[f]);
        }
    if (is_named(argv + 1 + slow, HOSTILE_NAME))
        failed += tell(++count, HOSTILE_NAME, hostile_run());
    printf("1..%u\n", count);
    return failed > 0;
}
