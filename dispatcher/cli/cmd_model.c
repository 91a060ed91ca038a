/* `causeway model detector`: what failure detectors do, measured in simulated time. */
#include "common/options.h"
#include "dispatcher/cli/commands.h"
#include "dispatcher/detector/experiments.h"
#include "dispatcher/detector/failures.h"

#include <getopt.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#define TRIALS_MAX 100000u
#define FAILURE_TRIALS 20000u /* for each unit of --trials */
#define F_FM 0.05             /* [FM] figure 4: "f = 0.05" */
#define F_P2P (-expm1(-0.1))  /* [P2P] figure 12: δ = 1, λt = 10^-1, by its equation (1) */

enum part { PART_ALL, PART_FAILURES, PART_TIMES, PART_BYTES, PART_SUSPICIONS };

struct model_options {
    uint32_t trials;
    uint32_t seed;
    enum part part;
    bool help;
};

static const char usage[] =
    "usage: causeway model detector [options]\n"
    "\n"
    "Prints how failure detectors of a group of processes do, in simulated time, from the\n"
    "code that detects: how likely failures of processes make one useless, how long it takes\n"
    "to find a failure, how many bytes it sends, and whom it suspects in vain. What this\n"
    "prints depends on the options alone.\n"
    "\n";

#define AT(field) offsetof(struct model_options, field)

static const struct cw_option list[] = {
    {"trials", .argument = "N", CW_OPTION_NUMBER, AT(trials), .min = 1, .max = TRIALS_MAX,
     .help = "so many of each experiment (default 3), and 20000 times as many sets of failures"},
    {"seed", .argument = "N", CW_OPTION_NUMBER, AT(seed), .min = 0, .max = UINT32_MAX,
     .help = "of what is drawn at random (default 1)"},
    {"part", .argument = "all|failures|times|bytes|suspicions", CW_OPTION_WORD, AT(part),
     .help = "which of them (default all)"},
    {"help", "h", .at = AT(help), .help = "this text"},
    {0}};

static const struct cw_options options = {
    .command = "causeway model",
    .usage = usage,
    .groups = (const struct cw_option_group[]){{NULL, list, 0}, {0}},
    .end = "\nExit code: 0; 1 when there is no memory; 2 bad usage.\n"};

/* --- failures --- */

static void print_failures(const struct model_options *o, enum routing_kind kind, uint32_t n,
                           double f)
{
    uint64_t trials = (uint64_t)o->trials * FAILURE_TRIALS;
    struct failures result = failures_count(kind, n, f, trials, o->seed);
    double bounds[2];

    failures_bounds(kind, n, f, bounds);
    printf("%5u  %-5s %10.3g %10.3g %12.4g to %-10.4g %10.3g  ", n, routings[kind].name,
           result.deaf, result.parted, bounds[0], bounds[1], failures_of_application(n / 2, 2, f));
    if (result.exact)
        puts("all sets");
    else
        printf("%llu drawn\n", (unsigned long long)result.trials);
}

static int part_failures(const struct model_options *o, struct cw_err *err)
{
    static const uint32_t sizes[] = {4, 8, 16, 32, 64, 128, 256, 512};
    static const struct {
        const char *source;
        double f;
    } figures[] = {{"[FM] figure 4: f = 0.05", F_FM}, {"[P2P] figure 12: λt = 0.1", F_P2P}};

    (void)err;
    for (size_t i = 0; i < sizeof(figures) / sizeof(*figures); i++) {
        printf("Probability that failures of processes make a detector useless, %s (each fails "
               "with %.4f)\n\n"
               "    n  kind   hears none     parted    hears none: between          application  "
               "sets of failures\n",
               figures[i].source, figures[i].f);
        for (size_t size = 0; size < sizeof(sizes) / sizeof(*sizes); size++)
            for (enum routing_kind kind = ROUTING_BRR; kind <= ROUTING_DBRR; kind++)
                print_failures(o, kind, sizes[size], figures[i].f);
        putchar('\n');
    }
    puts("hears none: all that send to a process that lives have failed, or none lives; parted: "
         "one\n"
         "that lives never hears of another that does; application: of n/2 processes, 2 copies "
         "each\n");
    return CW_OK;
}

/* --- times --- */

static int print_times(const struct model_options *o, const struct experiment_protocol *protocol,
                       uint32_t n, struct cw_err *err)
{
    uint32_t rounds = detector_cleanup_rounds(protocol->kind, n);
    struct experiment_times times;

    if (experiment_detection(&times, protocol, n, o->trials, o->seed, err) < 0)
        return err->code;
    printf("%5u  %-9s ", n, protocol->name);
    if (rounds)
        printf("%8.2f", rounds * (double)EXPERIMENT_GOSSIP_NS / 1e9);
    else
        printf("%8s", "-");
    printf("%8.2f%8.2f%8.2f%8llu%8llu\n", times.mean_s, times.least_s, times.most_s,
           (unsigned long long)times.missed, (unsigned long long)times.wrong);
    return CW_OK;
}

static int part_times(const struct model_options *o, struct cw_err *err)
{
    puts("Seconds from a crash until the others know it, T_gossip 0.5 s, [FM] figure 6, [P2P] "
         "figure "
         "13\n\n"
         "    n  kind      T_cleanup    mean   least    most  missed   wrong");
    for (uint32_t n = 4; n <= 256; n *= 2)
        for (uint32_t i = 0; i < EXPERIMENT_PROTOCOLS; i++)
            if (print_times(o, &experiment_protocols[i], n, err) < 0)
                return err->code;
    puts("\nmissed: processes that did not know it after two minutes; wrong: verdicts about "
         "others\n");
    return CW_OK;
}

/* --- bytes --- */

static int print_bytes(const struct model_options *o, const struct experiment_protocol *protocol,
                       struct cw_err *err)
{
    double steady[3], unsteady[2];
    int failed = experiment_bytes(&steady[0], protocol, 16, 0, o->seed, err);

    if (!failed)
        failed = experiment_bytes(&steady[1], protocol, 256, 0, o->seed, err);
    if (!failed && protocol->kind == DETECTOR_SWIM)
        failed = experiment_bytes(&steady[2], protocol, 4096, 0, o->seed, err);
    else if (!failed)
        failed = experiment_bytes_in_step(&steady[2], protocol, 4096, err);
    if (!failed)
        failed = experiment_bytes(&unsteady[0], protocol, 16, 5000000, o->seed, err);
    if (!failed)
        failed = experiment_bytes(&unsteady[1], protocol, 256, 5000000, o->seed, err);
    if (!failed)
        printf("%-9s %10.1f%10.1f%10.1f%14.1f%10.1f\n", protocol->name, steady[0], steady[1],
               steady[2], unsteady[0], unsteady[1]);
    return failed;
}

static int part_bytes(const struct model_options *o, struct cw_err *err)
{
    puts("Bytes that a process sends in a second while nothing fails, without headers of what "
         "carries them\n\n"
         "               delays of 1 ms                1 ms and 5 ms on average\n"
         "kind            n=16     n=256    n=4096          n=16     n=256");
    for (uint32_t i = 0; i < EXPERIMENT_PROTOCOLS; i++)
        if (print_bytes(o, &experiment_protocols[i], err) < 0)
            return err->code;
    puts("\nn=4096: of heartbeats, all processes in step\n");
    return CW_OK;
}

/* --- suspicions --- */

static int part_suspicions(const struct model_options *o, struct cw_err *err)
{
    printf("Verdicts that a process has failed, while none has: 64 processes, two minutes, %u "
           "times\n(about processes that run; in brackets, about those that stand still at that "
           "moment)\n\n%-34s",
           o->trials, "trouble");
    for (uint32_t i = 0; i < EXPERIMENT_PROTOCOLS; i++)
        printf(" %15s", experiment_protocols[i].name);
    putchar('\n');
    for (uint32_t t = 0; t < EXPERIMENT_TROUBLES; t++) {
        printf("%-34s", experiment_troubles[t].name);
        for (uint32_t i = 0; i < EXPERIMENT_PROTOCOLS; i++) {
            struct experiment_suspicions s;

            if (experiment_suspicions(&s, &experiment_protocols[i], &experiment_troubles[t],
                                      o->trials, o->seed, err) < 0)
                return err->code;
            printf(" %7llu (%5llu)", (unsigned long long)s.running, (unsigned long long)s.stopped);
        }
        putchar('\n');
    }
    return CW_OK;
}

/* --- the command --- */

static int run(const struct model_options *o, struct cw_err *err)
{
    static int (*const parts[])(const struct model_options *,
                                struct cw_err *) = {[PART_FAILURES] = part_failures,
                                                    [PART_TIMES] = part_times,
                                                    [PART_BYTES] = part_bytes,
                                                    [PART_SUSPICIONS] = part_suspicions};

    for (enum part part = PART_FAILURES; part <= PART_SUSPICIONS; part++)
        if ((o->part == PART_ALL || o->part == part) && parts[part](o, err) < 0)
            return err->code;
    if (fflush(stdout) == 0)
        return CW_OK;
    return cw_err_set(err, CW_ESYS, "standard output: %m");
}

static int parse_words(int count, char **words, struct cw_err *err)
{
    if (count == 1 && strcmp(words[0], "detector") == 0)
        return CW_OK;
    return cw_err_set(err, CW_EINVAL, "expected detector; see causeway model --help");
}

int cmd_model(int argc, char **argv)
{
    struct model_options o = {.trials = 3, .seed = 1};
    struct cw_err err = {0};
    int code = 0;

    if (cw_options_parse(&options, argc, argv, &o, NULL, &err) < 0 ||
        (!o.help && parse_words(argc - optind, argv + optind, &err) < 0))
        code = 2;
    else if (o.help)
        cw_options_help(&options, stdout);
    else if (run(&o, &err) < 0)
        code = 1;
    if (code) {
        fflush(stdout);
        fprintf(stderr, "causeway model: %s\n", err.text);
    }
    return code;
}
