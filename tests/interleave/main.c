/* Runs all schedules of the programs, and prints TAP (Test Anything Protocol).
 *
 *   interleave [OPTION...] [TEXT...]   the programs whose names contain one of the texts; all
 * without a text
 *
 *   --slow        those that take long, too
 *   --seconds N   of each program no more schedules than run in that time
 *   --seed N      in the order of this number */
#include "tests/interleave/programs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool slow;
static unsigned seconds; /* 0: until the end */
static uint64_t seed;

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
    struct explored e = explore(program, of->memory, of->size, of->state, seed, seconds);

    printf("# %llu schedules%s, %llu of them to the end, %llu states\n",
           (unsigned long long)e.schedules, e.stopped ? ", not all" : "",
           (unsigned long long)e.whole, (unsigned long long)e.states);
    return tell(number, program->name, e.wrong);
}

/* Returns the first text. */
static char **read_options(char **argv)
{
    for (; *argv && strncmp(*argv, "--", 2) == 0; argv++)
        if (strcmp(*argv, "--slow") == 0)
            slow = true;
        else if (strcmp(*argv, "--seconds") == 0 && argv[1])
            seconds = (unsigned)strtoul(*++argv, NULL, 10);
        else if (strcmp(*argv, "--seed") == 0 && argv[1])
            seed = strtoull(*++argv, NULL, 10);
        else
            exit(2);
    return argv;
}

int main(int argc, char **argv)
{
    static const struct programs *const all[] = {&stream_programs, &block_programs};
    char **texts = read_options(argv + 1);
    unsigned count = 0, failed = 0;

    (void)argc;
    for (unsigned f = 0; f < sizeof(all) / sizeof(*all); f++)
        for (unsigned i = 0; i < all[f]->count; i++) {
            const struct program *program = &all[f]->list[i];

            if ((program->slow && !slow) || !is_named(texts, program->name))
                continue;
            failed += run(++count, program, all[f]);
        }
    if (is_named(texts, HOSTILE_NAME))
        failed += tell(++count, HOSTILE_NAME, hostile_run());
    printf("1..%u\n", count);
    return failed > 0;
}
