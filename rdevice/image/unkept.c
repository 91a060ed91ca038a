#include "rdevice/image/unkept.h"

#include "rdevice/image/system.h"

#include <asm/prctl.h>
#include <cpuid.h>
#include <linux/keyctl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>

#define STATUS_BYTES 8192u
#define SPACE_NAME_MAX 40u
#define LDT_BYTES 64u
#define ARCH_SHADOW_STACK_STATUS 0x5005 /* ARCH_SHSTK_STATUS */
#define ARCH_UNTAG_MASK 0x4001          /* ARCH_GET_UNTAG_MASK */
#define LEAF_FEATURES 7
#define HAS_KEYS (1u << 4) /* ECX: OSPKE */

/* Time is not among them: the restored process may be in one of its own. */
static const char *const spaces[] = {"mnt", "pid", "user", "net", "ipc", "uts", "cgroup"};
#define SPACES (sizeof(spaces) / sizeof(*spaces))

struct place {
    uint64_t device, inode;
};

struct state {
    struct place root, space[SPACES];
    uint64_t filters; /* of system calls */
    uint32_t rights;  /* to memory with keys */
    bool children;    /* of a shell that became the program: it does not know of them */
};
static struct state started;

static struct place place_of(const char *path)
{
    struct stat st;

    return system_call(SYS_newfstatat, -100 /* AT_FDCWD */, path, &st, 0) == 0
               ? (struct place){st.st_dev, st.st_ino}
               : (struct place){0};
}

/* Of the process, or of its parent; a place is 0 where that may not be asked. */
static void read_places(struct state *s, const char *whose)
{
    char name[SPACE_NAME_MAX];

    snprintf(name, sizeof(name), "/proc/%s/root/.", whose);
    s->root = place_of(name);
    for (size_t i = 0; i < SPACES; i++) {
        snprintf(name, sizeof(name), "/proc/%s/ns/%s", whose, spaces[i]);
        s->space[i] = place_of(name);
    }
}

static uint32_t rights(void)
{
    uint32_t a, b, c = 0, d;

    if (!__get_cpuid_count(LEAF_FEATURES, 0, &a, &b, &c, &d) || !(c & HAS_KEYS))
        return 0;
    __asm__ volatile(".byte 0x0f, 0x01, 0xee" /* rdpkru */ : "=a"(a), "=d"(d) : "c"(0));
    return a;
}

/* Not of the copies of this process, of which wait() does not tell. */
static bool has_children(void)
{
    siginfo_t info;

    return system_call(SYS_waitid, P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT, 0) == 0;
}

static void read_state(struct state *s)
{
    static char text[STATUS_BYTES];
    const char *at;

    memset(s, 0, sizeof(*s));
    read_places(s, "self");
    s->rights = rights();
    s->children = has_children();
    if (system_read_file("/proc/self/status", text, sizeof(text)) > 0 &&
        (at = strstr(text, "Seccomp_filters:")))
        s->filters = strtoull(at + strlen("Seccomp_filters:"), NULL, 10);
}

__attribute__((constructor)) void unkept_begin(void)
{
    read_state(&started);
}

static bool is_same(struct place a, struct place b)
{
    return a.inode == 0 || b.inode == 0 || (a.device == b.device && a.inode == b.inode);
}

/* A program that another one has put elsewhere first (unshare, chroot, containers) has a parent
 * that is where the launcher is; else it went there itself. */
static const char *elsewhere(const struct state *now)
{
    char number[SPACE_NAME_MAX];
    struct state parent = {0};

    snprintf(number, sizeof(number), "%ld", system_call(SYS_getppid));
    read_places(&parent, number);
    if (!is_same(now->root, started.root) || !is_same(now->root, parent.root))
        return "a root directory of its own (chroot)";
    for (size_t i = 0; i < SPACES; i++)
        if (!is_same(now->space[i], started.space[i]) || !is_same(now->space[i], parent.space[i]))
            return "a namespace of its own (unshare, setns, a container)";
    return NULL;
}

static bool has_keyring(void)
{
    return system_call(SYS_keyctl, KEYCTL_GET_KEYRING_ID, KEY_SPEC_THREAD_KEYRING, 0) > 0 ||
           system_call(SYS_keyctl, KEYCTL_GET_KEYRING_ID, KEY_SPEC_PROCESS_KEYRING, 0) > 0;
}

static const char *of_processor(const struct state *now)
{
    uint64_t value = 0, mask = ~0ull;
    char table[LDT_BYTES];

    if (now->rights != started.rights)
        return "rights to memory with keys (pkey_set)";
    if (system_call(SYS_modify_ldt, 0, table, sizeof(table)) > 0)
        return "segments of its own (modify_ldt)";
    if (system_call(SYS_arch_prctl, ARCH_SHADOW_STACK_STATUS, &value) == 0 && value != 0)
        return "a shadow stack";
    if (system_call(SYS_arch_prctl, ARCH_UNTAG_MASK, &mask) == 0 && mask != ~0ull)
        return "addresses with tags (ARCH_ENABLE_TAGGED_ADDR)";
    return NULL;
}

int unkept_check(struct cw_err *err)
{
    struct state now;
    const char *what;

    read_state(&now);
    what = elsewhere(&now);
    if (!what)
        what = of_processor(&now);
    if (!what && now.filters != started.filters)
        what = "a filter of system calls of its own (seccomp)";
    if (!what && has_keyring())
        what = "a keyring of its own (keyctl)";
    if (!what && now.children && !started.children)
        what = "a child, or one that has ended and that it has not waited for";
    return what ? cw_err_set(err, CW_EINVAL, "the program has %s, which an image cannot hold", what)
                : 0;
}
