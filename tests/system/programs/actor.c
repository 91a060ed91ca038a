/* A program that does what its arguments say, one after the other: [RANK:]STEP[=VALUE]. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <grp.h>
#include <mpi.h>
#include <mqueue.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/msg.h>
#include <sys/prctl.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <time.h>
#include <unistd.h>

static int rank;

static void snooze(double seconds)
{
    struct timespec t = {.tv_sec = (time_t)seconds};
    t.tv_nsec = (long)((seconds - (double)t.tv_sec) * 1e9);
    while (nanosleep(&t, &t) < 0)
        ;
}

static void init(const char *value)
{
    (void)value;
    MPI_Init(NULL, NULL);
}

static void finalize(const char *value)
{
    (void)value;
    MPI_Finalize();
}

static void send_to(const char *value)
{
    MPI_Send(&rank, 1, MPI_INT, atoi(value), 2, MPI_COMM_WORLD);
}

static void receive_from(const char *value)
{
    int got = -1;

    MPI_Recv(&got, 1, MPI_INT, atoi(value), 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    printf("%d from %d\n", got, atoi(value));
}

/* Gives up the rights of root, but can be copied and looked at as before. */
static void become_nobody(const char *value)
{
    (void)value;
    if (setgroups(0, NULL) || setresgid(65534, 65534, 65534) || setresuid(65534, 65534, 65534) ||
        prctl(PR_SET_DUMPABLE, 1))
        MPI_Abort(MPI_COMM_WORLD, 98);
}

/* Passes a number around and adds all up; says so when all is as it should be. */
static void ring(const char *value)
{
    int size, to, from, got = -1, sum = 0;
    int rounds = *value ? atoi(value) : 1;

    MPI_Comm_size(MPI_COMM_WORLD, &size);
    to = (rank + 1) % size;
    from = (rank + size - 1) % size;
    for (int i = 0; i < rounds; i++) {
        MPI_Sendrecv(&rank, 1, MPI_INT, to, 1, &got, 1, MPI_INT, from, 1, MPI_COMM_WORLD,
                     MPI_STATUS_IGNORE);
        MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
        if (got != from || sum != size * (size - 1) / 2)
            MPI_Abort(MPI_COMM_WORLD, 99);
    }
    if (rank == 0)
        printf("ring of %d\n", size);
}

/* Rings of small and large messages until the file is there, which rank 0 looks for. Not for ranks
 * that are restarted: they do not see again what was there before. */
static void ring_until(const char *value)
{
    static char large[2][300000];
    int size, seen = 0;

    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (int round = 0; !seen; round++) {
        int bytes = round % 3 == 0 ? (int)sizeof(large[0]) : round % 1000;

        memset(large[0], rank + round, (size_t)bytes);
        MPI_Sendrecv(large[0], bytes, MPI_CHAR, (rank + 1) % size, 2, large[1], bytes, MPI_CHAR,
                     (rank + size - 1) % size, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        for (int i = 0; i < bytes; i++)
            if (large[1][i] != (char)((rank + size - 1) % size + round))
                MPI_Abort(MPI_COMM_WORLD, 99);
        seen = rank == 0 && access(value, F_OK) == 0;
        MPI_Bcast(&seen, 1, MPI_INT, 0, MPI_COMM_WORLD);
    }
    if (rank == 0)
        printf("rings of %d\n", size);
}

/* A receive that nobody ever sends to. */
static void stuck(const char *value)
{
    int got;

    (void)value;
    MPI_Recv(&got, 1, MPI_INT, rank, 77, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void leave(const char *value)
{
    exit(atoi(value));
}

static void abort_all(const char *value)
{
    MPI_Abort(MPI_COMM_WORLD, atoi(value));
}

static void sleep_for(const char *value)
{
    snooze(atof(value));
}

static void raise_it(const char *value)
{
    raise(atoi(value));
}

static void print(const char *value)
{
    puts(value);
    fflush(stdout);
}

/* Not a whole line. */
static void part(const char *value)
{
    fputs(value, stdout);
    fflush(stdout);
}

static void complain(const char *value)
{
    fprintf(stderr, "%s\n", value);
}

static void show_env(const char *value)
{
    const char *it = getenv(value);

    printf("%d %s=%s\n", rank, value, it ? it : "(not set)");
    fflush(stdout);
}

static void show_cwd(const char *value)
{
    char path[4096];

    (void)value;
    printf("%d in %s\n", rank, getcwd(path, sizeof(path)) ? path : "nowhere");
    fflush(stdout);
}

static void cat(const char *value)
{
    char bytes[65536];
    size_t n;

    (void)value;
    while ((n = fread(bytes, 1, sizeof(bytes), stdin)) > 0)
        fwrite(bytes, 1, n, stdout);
    fflush(stdout);
}

/* COUNT,LENGTH: whole lines of LENGTH bytes, all of one letter but for rank and number. */
static void lines(const char *value)
{
    int count = 0, length = 0;
    char *line;

    if (sscanf(value, "%d,%d", &count, &length) != 2 || length < 20)
        exit(98);
    line = malloc((size_t)length + 1);
    memset(line, 'a' + rank, (size_t)length);
    line[length - 1] = '\n';
    for (int i = 0; i < count; i++) {
        char head[24];
        int size = snprintf(head, sizeof(head), "%d:%d:", rank, i);

        memcpy(line, head, (size_t)size);
        fwrite(line, 1, (size_t)length, stdout);
    }
    fflush(stdout);
    free(line);
}

static void ignore(const char *value)
{
    (void)value;
    signal(SIGINT, SIG_IGN);
    signal(SIGTERM, SIG_IGN);
}

static void touch(const char *value)
{
    int fd = open(value, O_WRONLY | O_CREAT, 0600);

    if (fd < 0)
        exit(97);
    close(fd);
}

static void mpi_file(const char *path)
{
    MPI_File file;
    char byte = (char)('a' + rank);

    MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_CREATE | MPI_MODE_WRONLY, MPI_INFO_NULL, &file);
    MPI_File_write_at(file, rank, &byte, 1, MPI_BYTE, MPI_STATUS_IGNORE);
    MPI_File_close(&file);
}

/* HOW,PATH: opens it in that way; all but read and excl may change it. */
/* Made under a name of its own first. */
static int make_and_rename(const char *path)
{
    char other[4096];
    int fd;

    snprintf(other, sizeof(other), "%s.new", path);
    fd = open(other, O_WRONLY | O_CREAT | O_EXCL, 0600);
    return fd >= 0 && rename(other, path) == 0 ? fd : -1;
}

/* What ranks share that is no file of their own; `name` is a number for System V. */
static bool use_shared(const char *kind, const char *name)
{
    struct {
        long type;
        char text[1];
    } message = {.type = 1};
    struct sembuf up = {.sem_op = 1};
    int key = atoi(name);

    if (strncmp(kind, "shm,", 4) == 0)
        return shmat(shmget(key, 4096, IPC_CREAT | 0600), NULL, 0) != (void *)-1;
    if (strncmp(kind, "semop,", 6) == 0)
        return semop(semget(key, 1, IPC_CREAT | 0600), &up, 1) == 0;
    if (strncmp(kind, "msg,", 4) == 0)
        return msgsnd(msgget(key, IPC_CREAT | 0600), &message, 1, IPC_NOWAIT) == 0;
    if (strncmp(kind, "posix,", 6) == 0)
        return shm_open(name, O_CREAT | O_RDWR, 0600) >= 0;
    if (strncmp(kind, "sem,", 4) == 0)
        return sem_open(name, O_CREAT, 0600, 1) != SEM_FAILED;
    return strncmp(kind, "mq,", 3) == 0 && mq_open(name, O_CREAT | O_RDWR, 0600, NULL) >= 0;
}

static void use_file(const char *value)
{
    const char *path = strchr(value, ',') + 1;
    size_t size = (size_t)(path - value) - 1;
    FILE *f = NULL;
    int fd = -1;

    if (strncmp(value, "mpi", size) == 0) {
        mpi_file(path);
        return;
    }
    if (use_shared(value, path))
        return;
    if (strncmp(value, "open", size) == 0)
        fd = open(path, O_WRONLY | O_CREAT | O_APPEND, 0600);
    else if (strncmp(value, "openat", size) == 0)
        fd = openat(AT_FDCWD, path, O_RDWR | O_CREAT, 0600);
    else if (strncmp(value, "creat", size) == 0)
        fd = creat(path, 0600);
    else if (strncmp(value, "excl", size) == 0)
        fd = open(path, O_WRONLY | O_CREAT | O_EXCL, 0600);
    else if (strncmp(value, "renamed", size) == 0)
        fd = make_and_rename(path);
    else if (strncmp(value, "read", size) == 0)
        f = fopen(path, "r");
    else if (strncmp(value, "kept", size) == 0 && open(path, O_RDONLY) >= 0)
        return;
    else if (strncmp(value, "fopen", size) == 0)
        f = fopen(path, "a");
    else if (strncmp(value, "freopen", size) == 0)
        f = freopen(path, "w", stdin);
    if (fd < 0 && !f)
        exit(97);
    if (f)
        fclose(f);
    else
        close(fd);
}

static void await(const char *value)
{
    while (access(value, F_OK) < 0)
        snooze(0.01);
}

/* A command of the shell, whose exit code must be 0. */
static void shell(const char *value)
{
    if (system(value) != 0)
        exit(97);
}

static void write_pid(const char *value)
{
    char path[4096], temporary[4200];
    FILE *f;

    snprintf(path, sizeof(path), "%s.%d", value, rank);
    snprintf(temporary, sizeof(temporary), "%s.tmp", path);
    f = fopen(temporary, "w");
    if (!f)
        exit(97);
    fprintf(f, "%d\n", (int)getpid());
    fclose(f);
    rename(temporary, path);
}

/* How many this rank may run on. */
static void cores(const char *value)
{
    cpu_set_t all;

    (void)value;
    printf("cores: %d\n", sched_getaffinity(0, sizeof(all), &all) == 0 ? CPU_COUNT(&all) : -1);
}

/* Processes that outlive this one: a chain of them, all but the first in sessions of their own. */
static void background(const char *value)
{
    int depth = atoi(value);
    int pipes[2];
    char byte;

    if (pipe(pipes) < 0)
        exit(96);
    if (fork() == 0) {
        while (--depth > 0 && fork() == 0)
            setsid();
        if (depth <= 0 && write(pipes[1], "x", 1) < 0)
            _exit(96);
        snooze(1000);
        _exit(0);
    }
    if (read(pipes[0], &byte, 1) < 0)
        exit(96);
    close(pipes[0]);
    close(pipes[1]);
}

static const struct {
    const char *name;
    void (*take)(const char *value);
} steps[] = {
    {"init", init},       {"finalize", finalize},     {"nobody", become_nobody},  {"ring", ring},
    {"send", send_to},    {"receive", receive_from},  {"stuck", stuck},           {"exit", leave},
    {"abort", abort_all}, {"sleep", sleep_for},       {"raise", raise_it},        {"print", print},
    {"part", part},       {"err", complain},          {"env", show_env},          {"cwd", show_cwd},
    {"cat", cat},         {"lines", lines},           {"ignore", ignore},         {"touch", touch},
    {"file", use_file},   {"await", await},           {"pid", write_pid},         {"shell", shell},
    {"cores", cores},     {"background", background}, {"ring_until", ring_until},
};

static void take_step(char *text)
{
    char *value = strchr(text, '=');
    size_t size = value ? (size_t)(value - text) : strlen(text);

    for (size_t i = 0; i < sizeof(steps) / sizeof(*steps); i++)
        if (strlen(steps[i].name) == size && strncmp(steps[i].name, text, size) == 0) {
            steps[i].take(value ? value + 1 : "");
            return;
        }
    fprintf(stderr, "actor: no step %s\n", text);
    exit(95);
}

int main(int argc, char **argv)
{
    const char *number = getenv("PMI_RANK");

    rank = number ? atoi(number) : 0;
    for (int i = 1; i < argc; i++) {
        char *step = argv[i];
        bool mine = true;

        if (step[0] >= '0' && step[0] <= '9')
            mine = strtol(step, &step, 10) == rank && *step++ == ':';
        if (mine)
            take_step(step);
    }
    return 0;
}
