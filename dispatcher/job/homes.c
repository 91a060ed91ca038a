#include "dispatcher/job/homes.h"
#include "common/parse.h"
#include "common/setup.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define ITEM_MAX 32 /* bytes of one item of a map */

/* Takes one item off the map. */
static int take_item(const char **map, uint64_t *relay, uint64_t *count, uint32_t relays,
                     uint32_t ranks, struct cw_err *err)
{
    size_t size = strcspn(*map, ",");
    char item[ITEM_MAX];
    char *times;

    if (size >= sizeof(item))
        return cw_err_set(err, CW_EINVAL, "--relay-map: '%.*s' is too long for RELAY*COUNT",
                          ITEM_MAX, *map);
    memcpy(item, *map, size);
    item[size] = '\0';
    *map += size + ((*map)[size] == ',');
    times = strchr(item, '*');
    if (times)
        *times++ = '\0';
    *count = 1;
    if (cw_parse_number("--relay-map: relay", item, 0, relays - 1, relay, err) < 0)
        return err->code;
    return times ? cw_parse_number("--relay-map: count", times, 1, ranks, count, err) : CW_OK;
}

int homes_fill(uint8_t *homes, uint32_t ranks, uint32_t relays, const char *map, struct cw_err *err)
{
    uint32_t rank = 0;
    uint64_t relay;
    uint64_t count;

    while (!map && rank < ranks) {
        homes[rank] = (uint8_t)(rank % relays);
        rank++;
    }
    while (map && *map) {
        if (take_item(&map, &relay, &count, relays, ranks, err) < 0)
            return err->code;
        if (count > ranks - rank)
            return cw_err_set(err, CW_EINVAL, "--relay-map: more than the %u ranks of the job",
                              ranks);
        memset(homes + rank, (int)relay, count);
        rank += (uint32_t)count;
    }
    if (rank < ranks)
        return cw_err_set(err, CW_EINVAL, "--relay-map: %u ranks, but the job has %u", rank, ranks);
    return CW_OK;
}

bool homes_next_route(const uint8_t *homes, uint32_t ranks, bool *told, struct cw_route *route)
{
    uint32_t first = 0;
    uint32_t next;

    while (first < ranks && told[first])
        first++;
    if (first == ranks)
        return false;
    next = first + 1;
    while (next < ranks && (homes[next] != homes[first] || told[next]))
        next++;
    route->home = homes[first];
    route->first = first;
    route->step = next < ranks ? next - first : 1;
    route->count = 0;
    for (uint32_t rank = first; rank < ranks && homes[rank] == homes[first] && !told[rank];
         rank += route->step) {
        told[rank] = true;
        route->count++;
    }
    return true;
}

char *homes_setting(const uint8_t *homes, uint32_t ranks)
{
    static const char name[] = CW_SITES_ENV "=";
    static const char digits[] = "0123456789abcdef";
    char *text = calloc(1, sizeof(name) + ranks);

    _Static_assert(sizeof(digits) - 1 == CW_RELAYS_MAX, "a digit for each relay");
    if (!text)
        return NULL;
    memcpy(text, name, sizeof(name) - 1);
    for (uint32_t rank = 0; rank < ranks; rank++) {
        assert(homes[rank] < CW_RELAYS_MAX);
        text[sizeof(name) - 1 + rank] = digits[homes[rank]];
    }
    return text;
}
