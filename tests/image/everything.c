/* Takes an image in the middle of all that a program of one thread may have, and looks afterwards,
 * in both processes, whether it is there. Prints what is not, and exits with 1. */
#include "tests/image/taker.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define CHECK(condition)                                                                           \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            printf("line %d: not so: %s (errno %d)\n", __LINE__, #condition, errno);               \
            failures++;                                                                            \
        }                                                                                          \
    } while (0)
#define MUST(condition)                                                                            \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            perror(#condition);                                                                    \
            exit(2);                                                                               \
        }                                                                                          \
    } while (0)
#define PIECES 200
#define MAPPED_BYTES (64ul << 20)

static int failures, restored;
static volatile unsigned char untouched[8ul << 30];
static double numbers[1 << 20];
static _Thread_local int of_thread = 7;
static _Thread_local char of_thread_text[4000];
static volatile int signals, alarms;
static pthread_mutex_t mutex = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
static struct image_setting setting;

/* --- memory ---------------------------------------------------------------------------------- */

static char *pieces[PIECES], *mapped, *hidden, *constant;
static int *shared;
static double (*cosine)(double);

static char *of_file, *of_deleted, *shared_file, *half_shared;

static char *map_file(const char *name, int flags, bool deleted)
{
    int fd = open(name, O_RDWR | O_CREAT | O_TRUNC, 0644);
    char *at;

    MUST(fd >= 0 && ftruncate(fd, 20000) == 0 && pwrite(fd, "first", 5, 0) == 5 &&
         pwrite(fd, "last", 4, 16384) == 4);
    at = mmap(NULL, 24576, PROT_READ | PROT_WRITE, flags, fd, 0);
    MUST(at != MAP_FAILED);
    if (deleted)
        unlink(name);
    close(fd);
    strcpy(at + 8192, "changed");
    return at;
}

static void map_files(void)
{
    of_file = map_file("private", MAP_PRIVATE, false);
    memset(of_file, 0, 4096); /* zeros over what the file has */
    of_deleted = map_file("gone", MAP_PRIVATE, true);
    shared_file = map_file("shared", MAP_SHARED, false);
    half_shared = mmap(NULL, 1 << 20, 3, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    strcpy(half_shared, "hidden");
    strcpy(half_shared + 8192, "seen");
    mprotect(half_shared, 4096, PROT_NONE);
}

static void check_mapped_files(void)
{
    CHECK(of_file[0] == 0 && !strcmp(of_file + 8192, "changed") &&
          !strcmp(of_file + 16384, "last"));
    CHECK(!strcmp(of_deleted, "first") && !strcmp(of_deleted + 8192, "changed") &&
          !strcmp(of_deleted + 16384, "last"));
    CHECK(!strcmp(shared_file, "first") && !strcmp(shared_file + 8192, "changed"));
    strcpy(shared_file + 100, "written");
    mprotect(half_shared, 4096, PROT_READ);
    CHECK(!strcmp(half_shared, "hidden") && !strcmp(half_shared + 8192, "seen"));
}

static void fill_memory(void)
{
    for (int i = 0; i < PIECES; i++) {
        pieces[i] = malloc(50000 + (size_t)i * 100);
        memset(pieces[i], i, 50000);
    }
    for (int i = 0; i < PIECES; i += 2)
        free(pieces[i]);
    mapped = mmap(NULL, MAPPED_BYTES, 3, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    for (size_t i = 0; i < MAPPED_BYTES; i += 40960)
        mapped[i] = (char)(i / 4096);
    hidden = mmap(NULL, 1 << 20, 3, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memset(hidden, 9, 1 << 20);
    mprotect(hidden, 1 << 20, PROT_NONE);
    constant = mmap(NULL, 8192, 3, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    strcpy(constant, "constant");
    mprotect(constant, 8192, PROT_READ);
    shared = mmap(NULL, 1 << 20, 3, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    shared[100] = 42;
    numbers[12345] = 3.25;
    untouched[5ul << 30] = 77;
    of_thread = 99;
    strcpy(of_thread_text, "of the thread");
    cosine = (double (*)(double))dlsym(dlopen("libm.so.6", RTLD_NOW), "cos");
}

static void check_heap(void)
{
    char *more[2000];
    char *before = sbrk(0);

    for (int i = 1; i < PIECES; i += 2)
        for (int k = 0; k < 50000; k += 997)
            if (pieces[i][k] != (char)i) {
                CHECK(!"the heap is as it was");
                return;
            }
    for (int i = 0; i < 2000; i++) {
        more[i] = malloc(60000);
        CHECK(more[i]);
        memset(more[i], i, 60000);
    }
    CHECK((char *)sbrk(0) > before);
    for (int i = 0; i < 2000; i++) {
        CHECK(more[i][59999] == (char)i);
        free(more[i]);
    }
}

static void check_memory(void)
{
    check_heap();
    check_mapped_files();
    for (size_t i = 0; i < MAPPED_BYTES; i += 40960)
        if (mapped[i] != (char)(i / 4096)) {
            CHECK(!"what was mapped is as it was");
            break;
        }
    mprotect(hidden, 1 << 20, PROT_READ);
    CHECK(hidden[12345] == 9);
    CHECK(!strcmp(constant, "constant"));
    CHECK(shared[100] == 42 && shared[200] == 0);
    CHECK(numbers[12345] == 3.25);
    CHECK(untouched[5ul << 30] == 77 && untouched[7ul << 30] == 0);
    CHECK(of_thread == 99 && !strcmp(of_thread_text, "of the thread"));
    CHECK(cosine(0) == 1.0);
}

static void check_constant(int signal)
{
    (void)signal;
    _exit(failures ? 1 : 0); /* as it must be: constant memory cannot be written */
}

/* --- files ----------------------------------------------------------------------------------- */

static FILE *out, *in, *temporary;
static long in_position;
static int append, append_copy, memory_file, deleted, channel[2], event, timer, poller, null, dir;
static int expired, ticking, frantic;
static int given[2];

/* Which has expired already. */
static int timer_of(long interval_ns)
{
    int fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK);
    struct itimerspec value = {.it_value = {0, 1000}, .it_interval = {0, interval_ns}};
    struct pollfd p = {.fd = fd, .events = POLLIN};

    MUST(fd >= 0 && timerfd_settime(fd, 0, &value, NULL) == 0 && poll(&p, 1, 10000) == 1);
    return fd;
}

static bool expires(int fd)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};
    uint64_t value = 0;

    return poll(&p, 1, 5000) == 1 && read(fd, &value, 8) == 8 && value > 0;
}

static void open_files(void)
{
    char line[200];

    MUST(out = fopen("out", "w"));
    fprintf(out, "one\n");
    fflush(out);
    fprintf(out, "two\n"); /* stays in the buffer */
    MUST(in = fopen("in", "r"));
    for (int i = 0; i < 30; i++)
        MUST(fgets(line, sizeof(line), in));
    in_position = ftell(in);
    MUST(temporary = tmpfile());
    fprintf(temporary, "temporary\n");
    fflush(temporary);
    MUST((append = open("append", O_WRONLY | O_CREAT | O_APPEND, 0644)) >= 0);
    append_copy = dup(append);
    MUST(write(append, "AAAA", 4) == 4);
    MUST((memory_file = memfd_create("of the test", 0)) >= 0);
    MUST(write(memory_file, "memory file", 11) == 11);
    MUST((deleted = open("deleted", O_RDWR | O_CREAT | O_TRUNC, 0644)) >= 0);
    MUST(write(deleted, "deleted file", 12) == 12);
    unlink("deleted");
    MUST(pipe(channel) == 0 && write(channel[1], "unread", 6) == 6);
    event = eventfd(5, EFD_NONBLOCK);
    timer = timerfd_create(CLOCK_MONOTONIC, 0);
    timerfd_settime(timer, 0, &(struct itimerspec){.it_value = {1000, 0}, .it_interval = {3, 5}},
                    NULL);
    expired = timer_of(0);
    ticking = timer_of(1000000);
    frantic = timer_of(1); /* as good as no time is left of it when an image is taken */
    poller = epoll_create1(EPOLL_CLOEXEC);
    epoll_ctl(poller, EPOLL_CTL_ADD, channel[0],
              &(struct epoll_event){.events = EPOLLIN, .data.u64 = 1234567890123});
    null = open("/dev/null", O_WRONLY);
    dir = open(".", O_RDONLY | O_DIRECTORY);
    MUST(socketpair(AF_UNIX, SOCK_STREAM, 0, given) == 0);
    setting.closed[setting.closed_count++] = given[0];
    setting.closed[setting.closed_count++] = given[1];
}

static void check_special(void)
{
    struct itimerspec left;
    struct epoll_event seen;
    uint64_t value = 0;
    char text[20] = "";

    CHECK(epoll_wait(poller, &seen, 1, 0) == 1 && seen.data.u64 == 1234567890123);
    CHECK(fcntl(poller, F_GETFD) == FD_CLOEXEC);
    CHECK(read(channel[0], text, sizeof(text)) == 6 && !strcmp(text, "unread"));
    CHECK(write(channel[1], "more", 4) == 4 && read(channel[0], text, sizeof(text)) == 4);
    CHECK(read(event, &value, 8) == 8 && value == 5 && read(event, &value, 8) == -1);
    CHECK(timerfd_gettime(timer, &left) == 0 && left.it_value.tv_sec > 900 &&
          left.it_interval.tv_sec == 3 && left.it_interval.tv_nsec == 5);
    CHECK(expires(expired) && read(expired, &value, 8) == -1 && errno == EAGAIN);
    CHECK(expires(ticking) && expires(ticking) && expires(ticking));
    CHECK(expires(frantic) && expires(frantic) && expires(frantic));
    CHECK(write(null, "x", 1) == 1);
    CHECK(faccessat(dir, "in", R_OK, 0) == 0);
    CHECK(restored ? fcntl(given[0], F_GETFD) == -1 : fcntl(given[0], F_GETFD) >= 0);
}

static void check_files(void)
{
    char text[200] = "";
    struct stat st;

    CHECK(ftell(in) == in_position && fgets(text, sizeof(text), in) && !strcmp(text, "line 31\n"));
    rewind(temporary);
    CHECK(fgets(text, sizeof(text), temporary) && !strcmp(text, "temporary\n"));
    fputs("more", temporary);
    CHECK(fflush(temporary) == 0);
    CHECK(fstat(append, &st) == 0 && st.st_size == 4);
    CHECK(write(append_copy, "BBBB", 4) == 4 && fstat(append, &st) == 0 && st.st_size == 8);
    CHECK(lseek(append, 0, SEEK_CUR) == 8);
    CHECK(lseek(memory_file, 0, SEEK_CUR) == 11 && pread(memory_file, text, 11, 0) == 11 &&
          !memcmp(text, "memory file", 11));
    CHECK(lseek(deleted, 0, SEEK_CUR) == 12 && pread(deleted, text, 12, 0) == 12 &&
          !memcmp(text, "deleted file", 12) && write(deleted, "x", 1) == 1);
    check_special();
    fprintf(out, restored ? "three, restored\n" : "three\n");
    CHECK(fclose(out) == 0);
}

/* --- the process ----------------------------------------------------------------------------- */

static char cwd[4096];

static void on_signal(int signal)
{
    (void)signal;
    signals++;
}

static void on_alarm(int signal)
{
    (void)signal;
    alarms++;
}

static void set_process(void)
{
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_ONSTACK};
    stack_t stack = {.ss_sp = malloc(65536), .ss_size = 65536};
    struct rlimit limit;
    sigset_t set;

    sigaction(SIGUSR2, &action, NULL);
    action.sa_handler = on_alarm;
    sigaction(SIGALRM, &action, NULL);
    sigaltstack(&stack, NULL);
    sigemptyset(&set);
    sigaddset(&set, SIGHUP);
    sigprocmask(SIG_BLOCK, &set, NULL);
    raise(SIGHUP);
    umask(027);
    setitimer(ITIMER_REAL, &(struct itimerval){.it_value = {0, 300000}}, NULL);
    getrlimit(RLIMIT_CORE, &limit);
    limit.rlim_cur = 0;
    setrlimit(RLIMIT_CORE, &limit);
    setenv("OF_THE_TEST", "yes", 1);
    MUST(getcwd(cwd, sizeof(cwd)));
}

static void *thread(void *argument)
{
    return argument;
}

static void check_number(void)
{
    int32_t former, now;

    CHECK(image_thread(0, &former, &now) && former != 0 && former != gettid() && now == gettid());
    CHECK(!image_thread(1, &former, &now));
}

static void check_process(void)
{
    pid_t child;
    pthread_t other;
    char here[4096];
    sigset_t set;
    void *result;
    int status;

    kill(getpid(), SIGUSR2);
    CHECK(signals == 1);
    for (int i = 0; i < 500 && !alarms; i++)
        usleep(10000);
    CHECK(alarms == 1);
    sigprocmask(0, NULL, &set);
    CHECK(sigismember(&set, SIGHUP) && !sigismember(&set, SIGUSR1));
    sigpending(&set);
    CHECK(sigismember(&set, SIGHUP));
    CHECK(umask(0) == 027);
    CHECK(getcwd(here, sizeof(here)) && !strcmp(here, cwd));
    CHECK(!strcmp(getenv("OF_THE_TEST"), "yes"));
    CHECK(pthread_mutex_lock(&mutex) == 0 && pthread_mutex_lock(&mutex) == 0);
    CHECK(pthread_mutex_unlock(&mutex) == 0 && pthread_mutex_unlock(&mutex) == 0);
    CHECK(pthread_create(&other, NULL, thread, &status) == 0);
    CHECK(pthread_join(other, &result) == 0 && result == &status);
    CHECK(waitpid(-1, &status, WNOHANG) == -1 && errno == ECHILD);
    child = fork();
    if (child == 0)
        _exit(7);
    CHECK(waitpid(child, &status, 0) == child && WEXITSTATUS(status) == 7);
    CHECK(WEXITSTATUS(system("exit 3")) == 3);
    CHECK(sched_getcpu() >= 0);
    if (restored)
        check_number();
}

/* The kernel's functions without a system call. */
static void check_clock(void)
{
    struct timespec first, last;
    double ns;

    clock_gettime(CLOCK_MONOTONIC, &first);
    for (int i = 0; i < 100000; i++)
        clock_gettime(CLOCK_MONOTONIC, &last);
    ns = (double)(last.tv_sec - first.tv_sec) * 1e9 + (double)(last.tv_nsec - first.tv_nsec);
    CHECK(ns > 0 && time(NULL) > 1600000000);
}

/* --- the stack ------------------------------------------------------------------------------- */

static int deep(int levels)
{
    volatile char pad[4096];
    int taken;

    memset((char *)pad, levels & 255, sizeof(pad));
    taken = levels == 0 ? taker_take_with(&setting) : deep(levels - 1);
    for (size_t i = 0; i < sizeof(pad); i++)
        if (pad[i] != (char)(levels & 255)) {
            CHECK(!"the stack is as it was");
            break;
        }
    return taken;
}

static int deeper(int levels)
{
    volatile char pad[4096];

    memset((char *)pad, levels, sizeof(pad));
    return levels ? deeper(levels - 1) + pad[5] : 0;
}

int main(void)
{
    jmp_buf back;
    volatile int turns = 0;
    double sine = sin(1.0);

    setting.cut_appended = true;
    fill_memory();
    map_files();
    open_files();
    set_process();
    if (setjmp(back) == 0) {
        int taken = deep(1200);

        if (taken < 0) {
            fprintf(stderr, "no image: %s\n", taker_error);
            return 3;
        }
        restored = taken;
        turns++;
        longjmp(back, 5);
    }
    CHECK(turns == 1);
    CHECK(sin(1.0) == sine);
    check_memory();
    check_files();
    check_process();
    check_clock();
    deeper(1700);
    if (restored && taker_control >= 0)
        CHECK(send(taker_control, "12345678hello", 13, MSG_NOSIGNAL) == 13);
    printf("%s, %d failures\n", restored ? "restored" : "went on", failures);
    fflush(stdout);
    signal(SIGSEGV, check_constant);
    constant[0] = 'x';
    return 5;
}
