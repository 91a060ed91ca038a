/* What programs do with their process while images of them are taken: oddities GO ODDITY... Ranks
 * exchange messages until the file GO is there, which rank 0 looks for; each oddity begins before,
 * goes on in every round, and is looked at in the end. Not for ranks that start from their
 * beginning again: they do not see what was there before. */
#define _GNU_SOURCE /* memfd_create */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <mpi.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define ODDITIES_MAX 8

static int rank, ranks, round_now;
static const char *go_path;

static void __attribute__((format(printf, 1, 2), noreturn)) bad(const char *format, ...)
{
    va_list args;

    va_start(args, format);
    fprintf(stderr, "rank %d, round %d: ", rank, round_now);
    vfprintf(stderr, format, args);
    fprintf(stderr, "\n");
    va_end(args);
    MPI_Abort(MPI_COMM_WORLD, 99);
    exit(99);
}

static char *name_of(const char *what)
{
    static char name[100];

    snprintf(name, sizeof(name), "%s.%d", what, rank);
    return name;
}

/* --- output ----------------------------------------------------------------------------------- */

static void reopen_output(void)
{
    if (!freopen(name_of("stdout"), "w", stdout))
        bad("freopen: %s", strerror(errno));
}

static void reopen_in_round_100(void)
{
    if (round_now == 100)
        reopen_output();
    if (round_now >= 100)
        printf("%d\n", round_now);
}

static void print_round(void)
{
    printf("%d\n", round_now);
}

/* The lines of the file, each once and in order. */
static void check_output(int first)
{
    FILE *f;
    int got, expected = first;

    fflush(stdout);
    f = fopen(name_of("stdout"), "r");
    while (f && fscanf(f, "%d", &got) == 1)
        if (got != expected++)
            bad("stdout: %d where %d was expected", got, expected - 1);
    if (!f || expected != round_now)
        bad("stdout ends before %d", expected);
}

static void check_whole_output(void)
{
    check_output(0);
}

static void check_output_from_100(void)
{
    if (round_now > 100)
        check_output(100);
}

/* Said to nobody. */
static void silence(void)
{
    if (!freopen("/dev/null", "w", stdout))
        bad("freopen: %s", strerror(errno));
}

static void say_nothing(void)
{
    printf("not to be seen\n");
    fflush(stdout);
}

/* Both to where stdout goes. */
static void join_outputs(void)
{
    if (dup2(STDOUT_FILENO, STDERR_FILENO) < 0)
        bad("dup2: %s", strerror(errno));
}

static void print_error(void)
{
    fprintf(stderr, "error %d\n", round_now);
}

/* No line ever ends before the last round. */
static void write_part(void)
{
    if (round_now < 2000)
        putchar('a' + round_now % 26);
    if (round_now % 10 == 0)
        fflush(stdout);
}

static void end_line(void)
{
    putchar('\n');
}

/* The pipe has no room for a byte more, and nobody waits for that. */
static void fill_pipe(void)
{
    static const char byte = '.';

    fcntl(STDOUT_FILENO, F_SETFL, O_NONBLOCK);
    while (write(STDOUT_FILENO, &byte, 1) == 1)
        ;
    fcntl(STDOUT_FILENO, F_SETFL, 0);
}

/* Far more than a pipe takes. */
static void write_much(void)
{
    static char line[32768];

    memset(line, 'a' + round_now % 26, sizeof(line) - 1);
    line[sizeof(line) - 1] = '\n';
    if (round_now < 1000)
        fwrite(line, 1, sizeof(line), stdout);
}

/* --- the process ------------------------------------------------------------------------------ */

static void move(void)
{
    mkdir(name_of("dir"), 0700);
    if (chdir(name_of("dir")) < 0)
        bad("chdir: %s", strerror(errno));
    umask(027);
}

static void check_moved(void)
{
    char at[4096], *slash = getcwd(at, sizeof(at)) ? strrchr(at, '/') : NULL;

    if (!slash || strcmp(slash + 1, name_of("dir")) != 0)
        bad("it is in %s", at);
    if (umask(027) != 027)
        bad("its umask has changed");
}

static volatile sig_atomic_t alarms;

static void on_alarm(int number)
{
    (void)number;
    alarms++;
}

static void set_alarm(void)
{
    struct itimerval every = {{0, 5000}, {0, 5000}};

    signal(SIGALRM, on_alarm);
    setitimer(ITIMER_REAL, &every, NULL);
}

static void check_alarm(void)
{
    int before = alarms;

    for (int i = 0; i < 1000 && alarms == before; i++)
        usleep(1000);
    if (alarms == before)
        bad("its timer does not go on");
}

/* It expires once, and its signal waits: until it is taken the kernel does not set it again. */
static void set_blocked_alarm(void)
{
    sigset_t set;

    sigemptyset(&set);
    sigaddset(&set, SIGALRM);
    sigprocmask(SIG_BLOCK, &set, NULL);
    set_alarm();
    usleep(20000);
}

static void check_blocked_alarm(void)
{
    sigset_t set;

    sigemptyset(&set);
    sigaddset(&set, SIGALRM);
    sigprocmask(SIG_UNBLOCK, &set, NULL);
    check_alarm();
}

static void lower_limits(void)
{
    struct rlimit limit = {40, 50};

    dup2(STDERR_FILENO, 60);
    if (setrlimit(RLIMIT_NOFILE, &limit) < 0)
        bad("setrlimit: %s", strerror(errno));
    limit = (struct rlimit){0, 0};
    setrlimit(RLIMIT_CORE, &limit);
}

static void check_limits(void)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) < 0 || limit.rlim_cur != 40 || limit.rlim_max != 50)
        bad("its limits have changed");
    if (write(60, "", 0) < 0)
        bad("it has lost a descriptor above its limit");
}

/* But what its launcher has given it for MPI, without which MPI does not end. */
static void close_others(void)
{
    const char *launcher = getenv("PMI_FD");

    for (int fd = 3; fd < 1024; fd++)
        if (!launcher || fd != atoi(launcher))
            close(fd);
}

/* A child that writes to what its parent writes to, and a shell. */
static void fork_child(void)
{
    pid_t child;
    int status;

    if (round_now % 20)
        return;
    fflush(stdout);
    child = fork();
    if (child == 0) {
        if (write(STDOUT_FILENO, "child\n", 6) < 0)
            _exit(1);
        _exit(7);
    }
    if (waitpid(child, &status, 0) != child || !WIFEXITED(status) || WEXITSTATUS(status) != 7)
        bad("a child was lost");
}

static void call_system(void)
{
    if (round_now % 50 == 0 && system("exit 3") != 3 << 8)
        bad("system() fails");
}

static void wait_for_all(void)
{
    if (waitpid(-1, NULL, WNOHANG) > 0)
        bad("a child that was never made has ended");
}

/* --- memory ----------------------------------------------------------------------------------- */

#define PIECES 64
static unsigned char *piece[PIECES];

/* Memory comes and goes, with all protections, and over what was there. */
static void map_around(void)
{
    int at = round_now % PIECES;
    size_t size = 4096ul * (size_t)(1 + round_now % 40);

    if (piece[at]) {
        for (size_t i = 0; i < 4096; i += 512)
            if (piece[at][i] != (unsigned char)(round_now - PIECES))
                bad("memory has changed");
        munmap(piece[at], 4096ul * (size_t)(1 + (round_now - PIECES) % 40));
    }
    piece[at] = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memset(piece[at], round_now, size);
    mmap(piece[at], size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    memset(piece[at], round_now, size);
    if (round_now % 3 == 0)
        mprotect(piece[at], size, PROT_READ);
}

/* 4 MiB that no compression makes smaller, each 100 rounds, from when GO.grow is there. */
static void grow(void)
{
    static uint64_t state = 88172645463325252u;
    static int grown;
    char path[4096];
    uint64_t *words;

    snprintf(path, sizeof(path), "%s.grow", go_path);
    if (round_now % 100 || grown == 100 || access(path, F_OK) < 0)
        return;
    grown++;
    words = malloc(4 << 20);
    for (size_t i = 0; i < (4 << 20) / sizeof(*words); i++) {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        words[i] = state;
    }
    usleep(200000);
}

static char *huge;
#define HUGE_BYTES (8ul << 30)

/* Of which little is ever touched. */
static void make_huge(void)
{
    huge = mmap(NULL, HUGE_BYTES, PROT_READ | PROT_WRITE,
                MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (huge == MAP_FAILED)
        bad("mmap of 8 GB: %s", strerror(errno));
}

static size_t huge_place(int round)
{
    return (size_t)(round % 50) * (HUGE_BYTES / 50);
}

static void touch_huge(void)
{
    huge[huge_place(round_now)] = (char)(1 + round_now % 50);
}

static void check_huge(void)
{
    for (int i = 0; i < 50 && i < round_now; i++)
        if (huge[huge_place(i)] != 1 + i || huge[huge_place(i) + 4096])
            bad("8 GB: another byte at place %d", i);
}

/* Where the restorer would be. */
static void map_over_restorer(void)
{
    if (mmap((void *)0x200000400000, 4096, PROT_READ | PROT_WRITE,
             MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0) == MAP_FAILED)
        bad("mmap: %s", strerror(errno));
}

/* Where it would put what is the kernel's. */
static void map_over_parking(void)
{
    if (mmap((void *)0x200004100000, 4096, PROT_READ | PROT_WRITE,
             MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0) == MAP_FAILED)
        bad("mmap: %s", strerror(errno));
}

/* --- files ------------------------------------------------------------------------------------ */

static FILE *appended, *reading, *temporary;
static int in_memory, deleted;

static void open_files(void)
{
    FILE *f = fopen(name_of("input"), "w");
    char path[] = "deletedXXXXXX";

    for (int i = 0; f && i < 100000; i++)
        fprintf(f, "%d\n", i);
    if (!f || fclose(f))
        bad("making a file: %s", strerror(errno));
    appended = fopen(name_of("appended"), "a");
    reading = fopen(name_of("input"), "r");
    temporary = tmpfile();
    in_memory = memfd_create("oddities", 0);
    deleted = mkstemp(path);
    unlink(path);
    if (!appended || !reading || !temporary || in_memory < 0 || deleted < 0)
        bad("opening files: %s", strerror(errno));
}

static void use_files(void)
{
    int got;

    if (round_now < 100000 && (fscanf(reading, "%d", &got) != 1 || got != round_now))
        bad("read %d", got);
    fprintf(appended, "%d\n", round_now);
    fprintf(temporary, "%d\n", round_now);
    if (write(in_memory, &round_now, 4) != 4 || write(deleted, &round_now, 4) != 4)
        bad("writing: %s", strerror(errno));
}

static void check_text(FILE *f, const char *what)
{
    int got, expected = 0;

    rewind(f);
    while (fscanf(f, "%d", &got) == 1)
        if (got != expected++)
            bad("%s: %d where %d was expected", what, got, expected - 1);
    if (expected != round_now)
        bad("%s ends before %d", what, expected);
}

static void check_numbers(int fd, const char *what)
{
    int got;

    for (int i = 0; i < round_now; i++)
        if (pread(fd, &got, 4, 4l * i) != 4 || got != i)
            bad("%s: %d where %d was expected", what, got, i);
}

static void check_files(void)
{
    FILE *f;

    fclose(appended);
    f = fopen(name_of("appended"), "r");
    check_text(f, "the appended file");
    check_text(temporary, "the temporary file");
    check_numbers(in_memory, "the file in memory");
    check_numbers(deleted, "the deleted file");
}

static int shared = -1;

static void share_file(void)
{
    shared = open("shared", O_WRONLY | O_APPEND | O_CREAT, 0600);
    if (shared < 0)
        bad("shared: %s", strerror(errno));
}

static void append_to_shared(void)
{
    char line[40];
    int size = snprintf(line, sizeof(line), "%d:%d\n", rank, round_now);

    if (write(shared, line, (size_t)size) != size)
        bad("appending: %s", strerror(errno));
}

/* --- descriptors of no file ------------------------------------------------------------------- */

#define PIPE_ROUNDS 10 /* what was written is read so many rounds later */
static int own_pipe[2], counter, watch;

static void watch_for(int fd)
{
    struct epoll_event event = {.events = EPOLLIN, .data.fd = fd};

    if (epoll_ctl(watch, EPOLL_CTL_ADD, fd, &event) < 0)
        bad("epoll_ctl: %s", strerror(errno));
}

static void open_descriptors(void)
{
    counter = eventfd(0, EFD_NONBLOCK);
    watch = epoll_create1(EPOLL_CLOEXEC);
    if (pipe(own_pipe) < 0 || counter < 0 || watch < 0)
        bad("opening descriptors: %s", strerror(errno));
    watch_for(own_pipe[0]);
    watch_for(counter);
}

static bool is_told(const struct epoll_event *told, int count, int fd)
{
    for (int i = 0; i < count; i++)
        if (told[i].data.fd == fd)
            return true;
    return false;
}

/* Between rounds, when images are taken, the pipe has numbers, and the counter is 1 or 0. */
static void use_descriptors(void)
{
    struct epoll_event told[4];
    uint64_t one = 1, read_back = 0;
    int got = -1, count;

    if (write(own_pipe[1], &round_now, sizeof(round_now)) != sizeof(round_now))
        bad("writing to a pipe: %s", strerror(errno));
    if (round_now >= PIPE_ROUNDS &&
        (read(own_pipe[0], &got, sizeof(got)) != sizeof(got) || got != round_now - PIPE_ROUNDS))
        bad("the pipe has %d", got);
    if (round_now % 2 == 0 && write(counter, &one, sizeof(one)) != sizeof(one))
        bad("writing to an eventfd: %s", strerror(errno));
    count = epoll_wait(watch, told, 4, 0);
    if (!is_told(told, count, own_pipe[0]) || !is_told(told, count, counter))
        bad("epoll tells of %d descriptors", count);
    if (round_now % 2 && (read(counter, &read_back, sizeof(read_back)) < 0 || read_back != 1))
        bad("the eventfd has %d", (int)read_back);
}

/* --- a library -------------------------------------------------------------------------------- */

static void *library;
static int (*plugin_count)(void);

/* It stands beside the program. */
static void load_library(void)
{
    char path[4200];
    ssize_t length = readlink("/proc/self/exe", path, 4096);
    char *slash;

    path[length < 0 ? 0 : length] = 0;
    slash = strrchr(path, '/');
    strcpy(slash ? slash : path, "/libplugin.so");
    library = dlopen(path, RTLD_NOW);
    if (library)
        *(void **)&plugin_count = dlsym(library, "plugin_count");
    if (!plugin_count)
        bad("%s", dlerror());
}

static void use_library(void)
{
    int count = plugin_count();

    if (count != round_now + 1)
        bad("the library has counted %d", count);
}

static void unload_library(void)
{
    if (dlclose(library) != 0)
        bad("dlclose: %s", dlerror());
}

/* --- MPI -------------------------------------------------------------------------------------- */

static void read_input(void)
{
    static int next;
    int got;

    if (rank == 0 && round_now % 4 == 0 && scanf("%d", &got) == 1 && got != next++)
        bad("standard input: %d where %d was expected", got, next - 1);
}

static void make_input(void)
{
    FILE *made = fopen(name_of("given"), "w");

    for (int i = 0; made && i < 100000; i++)
        fprintf(made, "%d\n", i);
    if (!made || fclose(made) || !freopen(name_of("given"), "r", stdin))
        bad("a file as standard input: %s", strerror(errno));
    setvbuf(stdin, NULL, _IONBF, 0);
}

static void read_given(void)
{
    int got;

    if (round_now < 100000 && (scanf("%d", &got) != 1 || got != round_now))
        bad("standard input: %d", got);
}

/* --- all -------------------------------------------------------------------------------------- */

static const struct oddity {
    const char *name;
    void (*before)(void); /* MPI_Init */
    void (*begin)(void);  /* after it */
    void (*round)(void);
    void (*end)(void);
} oddities[] = {
    {"output_before", reopen_output, NULL, print_round, check_whole_output},
    {"output", NULL, NULL, reopen_in_round_100, check_output_from_100},
    {"silent", NULL, silence, say_nothing, NULL},
    {"joined", NULL, join_outputs, print_error, NULL},
    {"given", NULL, make_input, read_given, NULL},
    {"part", NULL, NULL, write_part, end_line},
    {"full", NULL, NULL, fill_pipe, NULL},
    {"much", NULL, NULL, write_much, NULL},
    {"moved", NULL, move, NULL, check_moved},
    {"alarm", NULL, set_alarm, NULL, check_alarm},
    {"blocked_alarm", NULL, set_blocked_alarm, NULL, check_blocked_alarm},
    {"limits", NULL, lower_limits, NULL, check_limits},
    {"close", NULL, close_others, NULL, NULL},
    {"fork", NULL, NULL, fork_child, NULL},
    {"system", NULL, NULL, call_system, NULL},
    {"wait", NULL, NULL, wait_for_all, NULL},
    {"memory", NULL, NULL, map_around, NULL},
    {"huge", NULL, make_huge, touch_huge, check_huge},
    {"restorer", NULL, map_over_restorer, NULL, NULL},
    {"parking", NULL, map_over_parking, NULL, NULL},
    {"grow", NULL, NULL, grow, NULL},
    {"descriptors", NULL, open_descriptors, use_descriptors, NULL},
    {"library", NULL, load_library, use_library, unload_library},
    {"files", NULL, open_files, use_files, check_files},
    {"shared", NULL, share_file, append_to_shared, NULL},
    {"input", NULL, NULL, read_input, NULL},
    {"multiple", NULL, NULL, NULL, NULL}, /* MPI_THREAD_MULTIPLE */
};

static const struct oddity *chosen[ODDITIES_MAX];

static void choose(int count, char **names)
{
    for (int i = 0; i < count && i < ODDITIES_MAX; i++)
        for (size_t k = 0; k < sizeof(oddities) / sizeof(*oddities); k++)
            if (strcmp(names[i], oddities[k].name) == 0)
                chosen[i] = &oddities[k];
}

static void start_mpi(int argc, char **argv)
{
    int provided;

    for (int i = 0; i < ODDITIES_MAX; i++)
        if (chosen[i] && strcmp(chosen[i]->name, "multiple") == 0) {
            MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
            return;
        }
    MPI_Init(&argc, &argv);
}

static int exchange(const char *go)
{
    static char large[2][100000];
    int bytes = round_now % 3 ? round_now % 1000 : (int)sizeof(large[0]);
    int from = (rank + ranks - 1) % ranks, seen = rank == 0 && access(go, F_OK) == 0;

    memset(large[0], rank + round_now, (size_t)bytes);
    MPI_Sendrecv(large[0], bytes, MPI_CHAR, (rank + 1) % ranks, 2, large[1], bytes, MPI_CHAR, from,
                 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    for (int i = 0; i < bytes; i++)
        if (large[1][i] != (char)(from + round_now))
            bad("a wrong byte came");
    MPI_Bcast(&seen, 1, MPI_INT, 0, MPI_COMM_WORLD);
    return seen;
}

int main(int argc, char **argv)
{
    go_path = argv[1];
    choose(argc - 2, argv + 2);
    if (getenv("PMI_RANK"))
        rank = atoi(getenv("PMI_RANK"));
    for (int i = 0; i < ODDITIES_MAX; i++)
        if (chosen[i] && chosen[i]->before)
            chosen[i]->before();
    start_mpi(argc, argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    for (int i = 0; i < ODDITIES_MAX; i++)
        if (chosen[i] && chosen[i]->begin)
            chosen[i]->begin();
    for (int seen = 0; !seen; round_now++) {
        for (int i = 0; i < ODDITIES_MAX; i++)
            if (chosen[i] && chosen[i]->round)
                chosen[i]->round();
        seen = exchange(argv[1]);
    }
    for (int i = 0; i < ODDITIES_MAX; i++)
        if (chosen[i] && chosen[i]->end)
            chosen[i]->end();
    MPI_Finalize();
    fprintf(stderr, "ok oddities %d\n", rank);
    return 0;
}
