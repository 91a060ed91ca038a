#include "rdevice/image/identity.h"

#include "rdevice/image/system.h"

#include <linux/capability.h>
#include <linux/prctl.h>
#include <linux/securebits.h>
#include <string.h>

#define GROUPS_MAX 65536u /* NGROUPS_MAX */
#define CAPABILITIES_MAX 64u
#define NOBODY (~0u) /* asks setfsuid() for what there is */

static uint32_t kept[GROUPS_MAX];
static uint32_t now_groups[GROUPS_MAX];
static uint32_t kept_count;

/* --- reading --------------------------------------------------------------------------------- */

static void read_capabilities(struct identity *id)
{
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct data[2] = {{0}};

    system_call(SYS_capget, &header, data);
    id->effective = data[0].effective | (uint64_t)data[1].effective << 32;
    id->permitted = data[0].permitted | (uint64_t)data[1].permitted << 32;
    id->inheritable = data[0].inheritable | (uint64_t)data[1].inheritable << 32;
    for (uint32_t i = 0; i < CAPABILITIES_MAX; i++) {
        long bounding = system_call(SYS_prctl, PR_CAPBSET_READ, i);

        if (bounding < 0)
            break;
        id->bounding |= (uint64_t)bounding << i;
        if (id->inheritable & id->permitted & 1ull << i)
            id->ambient |=
                (uint64_t)(system_call(SYS_prctl, PR_CAP_AMBIENT, PR_CAP_AMBIENT_IS_SET, i) == 1)
                << i;
    }
}

void identity_read(struct identity *id)
{
    memset(id, 0, sizeof(*id));
    system_call(SYS_getresuid, &id->users[0], &id->users[1], &id->users[2]);
    system_call(SYS_getresgid, &id->groups[0], &id->groups[1], &id->groups[2]);
    id->users[3] = (uint32_t)system_call(SYS_setfsuid, NOBODY);
    id->groups[3] = (uint32_t)system_call(SYS_setfsgid, NOBODY);
    read_capabilities(id);
    id->secure_bits = (int32_t)system_call(SYS_prctl, PR_GET_SECUREBITS);
    id->no_new_privileges = (int32_t)system_call(SYS_prctl, PR_GET_NO_NEW_PRIVS);
}

static uint32_t read_groups(uint32_t *groups)
{
    long n = system_call(SYS_getgroups, GROUPS_MAX, groups);

    return n > 0 ? (uint32_t)n : 0;
}

void identity_read_groups(void)
{
    kept_count = read_groups(kept);
}

/* --- putting back ---------------------------------------------------------------------------- */

static bool has_groups(void)
{
    return read_groups(now_groups) == kept_count &&
           memcmp(now_groups, kept, kept_count * sizeof(*kept)) == 0;
}

static bool is_equal(const struct identity *a, const struct identity *b)
{
    return memcmp(a, b, sizeof(*a)) == 0;
}

static void set_capabilities(const struct identity *want, uint64_t permitted)
{
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct data[2];

    permitted &= want->permitted;
    for (int i = 0; i < 2; i++)
        data[i] = (struct __user_cap_data_struct){
            .effective = (uint32_t)((want->effective & permitted) >> 32 * i),
            .permitted = (uint32_t)(permitted >> 32 * i),
            .inheritable = (uint32_t)(want->inheritable >> 32 * i)};
    system_call(SYS_capset, &header, data);
    system_call(SYS_prctl, PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL);
    for (uint32_t i = 0; i < CAPABILITIES_MAX; i++)
        if (want->ambient >> i & 1)
            system_call(SYS_prctl, PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, i);
}

/* In the order in which each step still may be made. Whether they were is seen afterwards. */
static void change(const struct identity *want, const struct identity *now, bool first)
{
    for (uint32_t i = 0; i < CAPABILITIES_MAX; i++)
        if ((now->bounding & ~want->bounding) >> i & 1)
            system_call(SYS_prctl, PR_CAPBSET_DROP, i);
    if (first && !has_groups())
        system_call(SYS_setgroups, kept_count, kept);
    system_call(SYS_setresgid, want->groups[0], want->groups[1], want->groups[2]);
    system_call(SYS_setfsgid, want->groups[3]);
    if (want->secure_bits != now->secure_bits)
        system_call(SYS_prctl, PR_SET_SECUREBITS, want->secure_bits);
    system_call(SYS_prctl, PR_SET_KEEPCAPS, 1);
    system_call(SYS_setresuid, want->users[0], want->users[1], want->users[2]);
    system_call(SYS_setfsuid, want->users[3]);
    set_capabilities(want, now->permitted);
    system_call(SYS_prctl, PR_SET_KEEPCAPS,
                want->secure_bits >= 0 && (want->secure_bits & SECBIT_KEEP_CAPS) != 0);
    if (want->no_new_privileges > 0)
        system_call(SYS_prctl, PR_SET_NO_NEW_PRIVS, 1);
}

/* One user without privileges, who is not root, and not about to become somebody else. */
static bool is_plain(const struct identity *id)
{
    return id->users[0] != 0 && id->users[0] == id->users[1] && id->users[0] == id->users[2] &&
           id->users[0] == id->users[3] && id->permitted == 0;
}

int identity_restore(const struct identity *want, bool first, struct cw_err *err)
{
    struct identity now;

    identity_read(&now);
    if (is_equal(want, &now) && (!first || has_groups()))
        return 0;
    if (is_plain(&now) && is_plain(want)) { /* it has nothing that it could give up */
        if (want->no_new_privileges > 0)
            system_call(SYS_prctl, PR_SET_NO_NEW_PRIVS, 1);
        return 0;
    }
    change(want, &now, first);
    identity_read(&now);
    if (memcmp(want->users, now.users, sizeof(now.users)) != 0 ||
        memcmp(want->groups, now.groups, sizeof(now.groups)) != 0 || (first && !has_groups()))
        return cw_err_set(err, CW_EINVAL,
                          "the program ran as user %u and group %u, which this process cannot "
                          "become, or not with the same further groups",
                          want->users[1], want->groups[1]);
    if ((now.effective & ~want->effective) || (now.permitted & ~want->permitted) ||
        (now.inheritable & ~want->inheritable) || (now.ambient & ~want->ambient) ||
        now.no_new_privileges < want->no_new_privileges)
        return cw_err_set(err, CW_EINVAL,
                          "the program had given up capabilities, which this process cannot give "
                          "up");
    return 0;
}
