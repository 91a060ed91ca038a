/* System calls, without libc: its functions may be the library's own, or the program's, and the
 * restorer has none. Each returns what the kernel returns: 0 or more, or a negative errno. */
#ifndef RDEVICE_IMAGE_SYSTEM_H
#define RDEVICE_IMAGE_SYSTEM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/syscall.h>

/* The program may use any address but these: where the restorer is linked. The library unmaps it
 * when the program goes on. All of it and the next is 1.1 GiB of 128 TiB: some programs map memory
 * at addresses that they draw (MPICH for MPI_Win_allocate). */
#define SYSTEM_RESTORER_START 0x200000000000ull
#define SYSTEM_RESTORER_END 0x200004000000ull
/* Beside it: the kernel's own pages, when they cannot be where the image has them. */
#define SYSTEM_PARKED_START SYSTEM_RESTORER_END
#define SYSTEM_PARKED_STEP 0x40000ull
#define SYSTEM_PARKED_PLACES 4096u
#define SYSTEM_PARKED_END (SYSTEM_PARKED_START + SYSTEM_PARKED_PLACES * SYSTEM_PARKED_STEP)

#define SYSTEM_NOWHERE ((void *)-4095l)

static inline long system_call6(long number, long a, long b, long c, long d, long e, long f)
{
    register long r10 __asm__("r10") = d;
    register long r8 __asm__("r8") = e;
    register long r9 __asm__("r9") = f;
    long result;

    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
                     : "rcx", "r11", "memory");
    return result;
}

#define SYSTEM_CALL_(number, a, b, c, d, e, f, ...)                                                \
    system_call6(number, (long)(a), (long)(b), (long)(c), (long)(d), (long)(e), (long)(f))
/* With up to six arguments, integers or pointers. */
#define system_call(...) SYSTEM_CALL_(__VA_ARGS__, 0, 0, 0, 0, 0, 0, 0)

static inline int system_open(const char *path, int flags, unsigned mode)
{
    return (int)system_call(SYS_openat, -100 /* AT_FDCWD */, path, flags, mode);
}

static inline void system_close(int fd)
{
    system_call(SYS_close, fd);
}

static inline bool system_failed(const void *address)
{
    return (uintptr_t)address >= (uintptr_t)SYSTEM_NOWHERE;
}

/* Tests system_failed() of what is returned. */
static inline void *system_map(uint64_t at, uint64_t size, int prot, int flags, int fd,
                               uint64_t offset)
{
    return (void *)system_call(SYS_mmap, at, size, prot, flags, fd, offset);
}

static inline uint64_t system_now_ns(void)
{
    int64_t now[2] = {0}; /* a struct timespec */

    system_call(SYS_clock_gettime, 1 /* CLOCK_MONOTONIC */, now);
    return (uint64_t)now[0] * 1000000000u + (uint64_t)now[1];
}

/* Private memory, of which only what is touched costs; NULL: there is none. */
static inline void *system_memory(uint64_t size)
{
    /* PROT_READ | PROT_WRITE; MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE */
    void *at = system_map(0, size, 3, 0x4022, -1, 0);

    return system_failed(at) ? NULL : at;
}

static inline void system_unmap(uint64_t at, uint64_t size)
{
    system_call(SYS_munmap, at, size);
}

/* Reads up to `size` bytes; fewer at the end of the file. */
static inline long system_read_whole(int fd, void *to, uint64_t size)
{
    uint64_t done = 0;

    while (done < size) {
        long n = system_call(SYS_read, fd, (char *)to + done, size - done);

        if (n == -4 /* EINTR */)
            continue;
        if (n < 0)
            return n;
        if (n == 0)
            break;
        done += (uint64_t)n;
    }
    return (long)done;
}

/* A small file, of /proc as a rule, with a zero byte after it. Returns its length, or a negative
 * errno. */
static inline long system_read_file(const char *path, void *to, uint64_t size)
{
    int fd = system_open(path, 02000000 /* O_CLOEXEC */, 0);
    long n;

    if (fd < 0)
        return fd;
    n = system_read_whole(fd, to, size - 1);
    system_close(fd);
    if (n >= 0)
        ((char *)to)[n] = '\0';
    return n;
}

/* The names of a directory, one after the other. */
struct system_names {
    long at, end;
    char bytes[8192] __attribute__((aligned(8)));
};

struct system_name {
    uint64_t inode;
    int64_t offset;
    unsigned short size;
    unsigned char type;
    char name[];
};

/* The next one; NULL: there is none, and n->end is 0, or a negative errno. To begin with at = end =
 * 0. */
static inline const struct system_name *system_next_name(int directory, struct system_names *n)
{
    const struct system_name *next;

    if (n->at == n->end) {
        n->at = 0;
        n->end = system_call(SYS_getdents64, directory, n->bytes, sizeof(n->bytes));
    }
    if (n->end <= 0)
        return NULL;
    next = (const void *)(n->bytes + n->at);
    n->at += next->size;
    return next;
}

/* The number that a name is; -1: it is none. */
static inline int system_number(const char *name)
{
    int number = 0;

    if (*name < '0' || *name > '9')
        return -1;
    for (; *name >= '0' && *name <= '9'; name++)
        number = number * 10 + (*name - '0');
    return number;
}

/* Of whole lines of 64 bytes. */
static inline bool system_is_zero(const void *at, uint64_t size)
{
    const uint64_t *word = at;

    for (uint64_t i = 0; i < size / 8; i += 8)
        if (word[i] | word[i + 1] | word[i + 2] | word[i + 3] | word[i + 4] | word[i + 5] |
            word[i + 6] | word[i + 7])
            return false;
    return true;
}

#endif
