/* Any bytes are a hostfile, --host, a rankfile and Slurm's variables, or are refused with a text;
 * who is placed by them has a slot that is there, and that not more ranks share than may. The first
 * bytes choose the options; a NUL ends each part. */
#include "dispatcher/hosts/placement.h"
#include "dispatcher/hosts/slurm.h"
#include "tests/fuzz/fuzz.h"
#include "tunnels/ssh_address.h"

#define INPUT_MAX 8192
#define HEAD 4 /* bytes of options */
#define PARTS 4

static char *parts[PARTS]; /* NUL-terminated */

/* Refused with a text, or well. */
static bool is_well(int result, const struct cw_err *err)
{
    must(result == CW_OK || (result == CW_EINVAL && err->code == CW_EINVAL && err->text[0]));
    return result == CW_OK;
}

static char *variable(const char *name)
{
    if (strcmp(name, "SLURM_JOB_NODELIST") == 0)
        return parts[1];
    if (strcmp(name, "SLURM_TASKS_PER_NODE") == 0 && *parts[2])
        return parts[2];
    return NULL;
}

static bool make_list(struct host_list *list, uint8_t how, struct cw_err *err)
{
    switch (how % 4) {
    case 0:
        return is_well(host_list_parse(list, "hosts", parts[1], strlen(parts[1]), err), err);
    case 1:
        return is_well(host_list_add_option(list, parts[1], err), err);
    case 2:
        return is_well(host_list_slurm(list, variable, err), err);
    default:
        return true; /* the hosts of the rankfile */
    }
}

/* Or an address behind gateways. */
static void read_address(void)
{
    struct ssh_address address;
    struct cw_err err = {0};

    if (!is_well(ssh_address_parse(&address, parts[1], &err), &err))
        return;
    must(address.ways > 0 && address.ways <= SSH_WAYS_MAX && address.host[0] && address.port);
    for (uint32_t i = 0; i < address.ways; i++)
        must(address.way[i].hops > 0 && address.way[i].hops <= SSH_HOPS_MAX);
}

static void check_list(const struct host_list *list)
{
    must(list->count <= HOSTS_MAX);
    for (uint32_t i = 0; i < list->count; i++) {
        const struct host *h = &list->host[i];

        must(h->name[0] && h->name[0] != '-' && strlen(h->name) <= HOST_NAME_MAX_BYTES);
        must(h->slots <= HOST_SLOTS_MAX && (!h->slots_max || h->slots <= h->slots_max));
        must(host_list_find(list, h->name) == i);
    }
}

static void check_placement(const struct placement *p, const struct host_list *list)
{
    uint32_t *count = calloc(p->slots, sizeof(*count));

    must(count && p->slots >= list->count);
    for (uint32_t i = 0; i < p->slots; i++)
        must(p->slot_host[i] < list->count && p->slot_ranks_max[i] > 0);
    for (uint32_t i = 0; i < p->ranks; i++) {
        must(p->rank_slot[i] < p->slots);
        must(++count[p->rank_slot[i]] <= p->slot_ranks_max[p->rank_slot[i]]);
        must(!list->host[p->slot_host[p->rank_slot[i]]].spare);
    }
    free(count);
}

static void place(struct host_list *list, const uint8_t head[HEAD], struct cw_err *err)
{
    struct rankfile rankfile = {0};
    struct placement placement = {0};
    uint32_t ranks = 1 + head[1];
    struct placement_options options = {.map = (enum placement_map)(head[2] & 1),
                                        .ppn = head[2] >> 4,
                                        .oversubscribe = head[2] & 2,
                                        .rankfile = *parts[3] ? &rankfile : NULL};

    if ((!options.rankfile ||
         is_well(rankfile_parse(&rankfile, "places", parts[3], strlen(parts[3]), ranks, list, err),
                 err)) &&
        is_well(host_list_set_spares(list, head[3] % 8, err), err) &&
        is_well(placement_make(&placement, list, ranks, &options, err), err))
        check_placement(&placement, list);
    check_list(list);
    rankfile_free(&rankfile);
    placement_free(&placement);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static char text[INPUT_MAX + PARTS];
    struct host_list list = {0};
    struct cw_err err = {0};
    char *at = text;

    if (size < HEAD || size > INPUT_MAX)
        return 0;
    memset(text, 0, sizeof(text));
    memcpy(text, data + HEAD, size - HEAD);
    for (int i = 1; i < PARTS; i++) {
        parts[i] = at;
        at += strnlen(at, (size_t)(text + sizeof(text) - 1 - at)) + 1;
        at = at < text + sizeof(text) - 1 ? at : text + sizeof(text) - 1;
    }
    read_address();
    if (make_list(&list, data[0], &err)) {
        check_list(&list);
        place(&list, data, &err);
    }
    host_list_free(&list);
    return 0;
}
