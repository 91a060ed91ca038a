/* refused WHAT: a program of which there can be no image; prints why. */
#include "tests/image/taker.h"

#include <asm/ldt.h>
#include <fcntl.h>
#include <link.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define THREADS 257 /* one more than an image holds */

static void *sleeper(void *unused)
{
    pause();
    return unused;
}

/* All signals, by the kernel: libc leaves two of its own out. */
static void *blocker(void *unused)
{
    unsigned long all = ~0ul;

    syscall(SYS_rt_sigprocmask, SIG_SETMASK, &all, NULL, sizeof(all));
    for (;;)
        sleep(1000);
    return unused;
}

static int wait_inside(struct dl_phdr_info *info, size_t size, void *unused)
{
    (void)info;
    (void)size;
    (void)unused;
    pause();
    return 1;
}

static void *loader(void *unused)
{
    dl_iterate_phdr(wait_inside, NULL);
    return unused;
}

static void *apart(void *unused)
{
    unshare(CLONE_FS);
    pause();
    return unused;
}

static int make_many(void)
{
    pthread_attr_t small;
    pthread_t thread;

    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, 65536);
    for (int i = 0; i < THREADS; i++)
        if (pthread_create(&thread, &small, sleeper, NULL))
            return 1;
    return 0;
}

static int open_again(int fd)
{
    char name[40];

    snprintf(name, sizeof(name), "/proc/self/fd/%d", fd);
    return open(name, O_RDONLY);
}

/* Which shares memory with it. */
static int fork_child(void)
{
    pid_t parent = getpid(), pid;

    if (mmap(NULL, 4096, 3, MAP_SHARED | MAP_ANONYMOUS, -1, 0) == MAP_FAILED)
        return 1;
    pid = fork();
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        while (getppid() == parent)
            pause();
        _exit(0);
    }
    return pid < 0;
}

static int make_filter(void)
{
    struct sock_filter all = {.code = BPF_RET | BPF_K, .k = SECCOMP_RET_ALLOW};
    struct sock_fprog program = {.len = 1, .filter = &all};

    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
           prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

static int make_segment(void)
{
    struct user_desc segment = {.limit = 1, .seg_32bit = 1, .useable = 1};

    return (int)syscall(SYS_modify_ldt, 1, &segment, sizeof(segment));
}

static int make(const char *what)
{
    struct sigevent event = {.sigev_notify = SIGEV_NONE};
    pthread_t thread;
    timer_t timer;
    sigset_t set;
    int fds[2];

    sigemptyset(&set);
    if (!strcmp(what, "blocked"))
        return pthread_create(&thread, NULL, blocker, NULL) || usleep(10000);
    if (!strcmp(what, "loader"))
        return pthread_create(&thread, NULL, loader, NULL) || usleep(10000);
    if (!strcmp(what, "apart"))
        return pthread_create(&thread, NULL, apart, NULL) || usleep(10000);
    if (!strcmp(what, "many"))
        return make_many();
    if (!strcmp(what, "socket"))
        return socketpair(AF_UNIX, SOCK_STREAM, 0, fds);
    if (!strcmp(what, "pipe"))
        return pipe(fds) || close(fds[1]);
    if (!strcmp(what, "inotify"))
        return inotify_init() < 0;
    if (!strcmp(what, "signalfd"))
        return signalfd(-1, &set, 0) < 0;
    if (!strcmp(what, "timer"))
        return timer_create(CLOCK_MONOTONIC, &event, &timer);
    if (!strcmp(what, "directory"))
        return mkdir("gone", 0755) || chdir("gone") || rmdir("../gone");
    if (!strcmp(what, "memory")) {
        int fd = memfd_create("twice", 0);

        return ftruncate(fd, 4096) || mmap(NULL, 4096, 3, MAP_SHARED, fd, 0) == MAP_FAILED;
    }
    if (!strcmp(what, "child"))
        return fork_child();
    if (!strcmp(what, "aio")) {
        unsigned long context = 0;

        return (int)syscall(SYS_io_setup, 8, &context);
    }
    if (!strcmp(what, "space"))
        return unshare(CLONE_NEWUTS);
    if (!strcmp(what, "root"))
        return chroot("/tmp");
    if (!strcmp(what, "filter"))
        return make_filter();
    if (!strcmp(what, "keyring"))
        return syscall(SYS_keyctl, 0, -2, 1) < 0;
    if (!strcmp(what, "segments"))
        return make_segment();
    if (!strcmp(what, "keys"))
        return pkey_alloc(0, PKEY_DISABLE_WRITE) < 0;
    if (!strcmp(what, "lease"))
        return fcntl(open("lease", O_RDWR | O_CREAT, 0600), F_SETLEASE, F_WRLCK);
    if (!strcmp(what, "owner"))
        return pipe(fds) || fcntl(fds[0], F_SETOWN, getppid());
    if (!strcmp(what, "twice"))
        return open_again(memfd_create("twice", 0)) < 0;
    return strcmp(what, "nothing") != 0;
}

int main(int argc, char **argv)
{
    struct image_setting setting = {0};

    if (argc < 2 || make(argv[1]))
        return 2;
    if (taker_take_with(&setting) >= 0) {
        printf("not refused\n");
        return 0;
    }
    printf("%s\n", taker_error);
    return 3;
}
