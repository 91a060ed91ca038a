/* copies [refused]: descriptors that are copies of each other, and others of the same files, which
 * are none. An image does not move them, and afterwards they are what they were. With "refused",
 * kcmp() is, as in containers. */
#include "tests/image/taker.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define CHECK(condition)                                                                           \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "line %d: not so: %s (errno %d)\n", __LINE__, #condition, errno);      \
            failures++;                                                                            \
        }                                                                                          \
    } while (0)

static int failures;
static int file[2], other, later, memory[2], event[2], channel[2], output;

static int refuse_kcmp(void)
{
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_kcmp, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {sizeof(filter) / sizeof(*filter), filter};

    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
           prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

static int open_at(long at)
{
    int fd = open("text", O_RDWR | O_CREAT, 0644);

    CHECK(fd >= 0 && ftruncate(fd, 1000) == 0 && lseek(fd, at, SEEK_SET) == at);
    return fd;
}

static void open_all(void)
{
    file[0] = open_at(10);
    other = open_at(50);
    file[1] = dup(file[0]);
    later = open_at(70);
    memory[0] = memfd_create("memory", 0);
    CHECK(write(memory[0], "12345", 5) == 5);
    memory[1] = dup(memory[0]);
    event[0] = eventfd(0, EFD_NONBLOCK);
    event[1] = dup(event[0]);
    CHECK(pipe(channel) == 0);
    output = fcntl(STDOUT_FILENO, F_DUPFD, 100);
}

static void check_all(void)
{
    uint64_t one = 1, value = 0;

    CHECK(lseek(file[0], 0, SEEK_CUR) == 10);
    CHECK(lseek(other, 0, SEEK_CUR) == 50);
    CHECK(lseek(later, 0, SEEK_CUR) == 70);
    CHECK(lseek(file[1], 20, SEEK_SET) == 20 && lseek(file[0], 0, SEEK_CUR) == 20);
    CHECK(lseek(other, 0, SEEK_CUR) == 50 && lseek(later, 0, SEEK_CUR) == 70);
    CHECK(lseek(memory[1], 2, SEEK_SET) == 2 && lseek(memory[0], 0, SEEK_CUR) == 2);
    CHECK(write(event[1], &one, 8) == 8 && read(event[0], &value, 8) == 8 && value == 1);
    CHECK(write(output, "of a copy\n", 10) == 10);
}

int main(int argc, char **argv)
{
    int restored;

    if (argc > 1 && !strcmp(argv[1], "refused")) { /* by what it is started by */
        if (!refuse_kcmp())
            execl("/proc/self/exe", argv[0], NULL);
        perror("seccomp");
        return 2;
    }
    open_all();
    restored = taker_take();
    check_all();
    printf("%s, %d failures\n", restored ? "restored" : "went on", failures);
    return failures > 0;
}
