#include "relay/log/point.h"

#include <assert.h>
#include <string.h>

static int make_room(struct relay_log *log)
{
    struct log_points *points = log->points;
    uint32_t oldest;

    if (!points) {
        points = log->points = relay_pool_alloc(log->pool, sizeof(*points));
        if (!points)
            return CW_ENOMEM;
        *points = (struct log_points){0};
    }
    if (points->count < LOG_POINTS_MAX)
        return CW_OK;
    oldest = points->trimmed;
    memmove(&points->at[oldest], &points->at[oldest + 1],
            (--points->count - oldest) * sizeof(*points->at));
    return CW_OK;
}

static void add(struct log_points *points, const struct log_point *point)
{
    points->at[points->count++] = *point;
    points->snapshot = point->position;
}

static uint64_t least(uint64_t a, uint64_t b, uint64_t c)
{
    uint64_t least = a < b ? a : b;

    return c < least ? c : least;
}

int log_point_begin(struct relay_log *log, const struct cw_point *at)
{
    const struct log_mark *early = &log->early;
    const struct log_mark *late = &log->late;
    uint64_t payload = chain_next(&log->payload);
    struct log_point point = {.at = *at,
                              .from = {.events = early->position,
                                       .event = early->event,
                                       .clock = log->clock,
                                       .send = log->send_count},
                              .low = least(early->position, early->low, late->low),
                              .floor = least(payload, early->floor, late->floor),
                              .payload = payload,
                              .event_count = log->event_count,
                              .determinant_count = log->determinant_count};
    const struct log_record record = {
        .type = LOG_POINT, .size = sizeof(point), .bytes = (const uint8_t *)&point};
    uint64_t position;

    assert(at->event == log->taken && early->event <= at->event);
    if (make_room(log) < 0 || log_append(log, &record, &position) < 0)
        return CW_ENOMEM;
    point.position = point.from.determinants = position;
    add(log->points, &point);
    return CW_OK;
}

bool log_point_fits(const struct relay_log *log)
{
    return log->snapshots <= log->bytes - log->snapshots + LOG_SNAPSHOTS_FREE;
}

static bool same(const struct cw_point *a, const struct cw_point *b)
{
    return a->event == b->event && a->clock == b->clock && a->acts == b->acts;
}

const struct log_point *log_point_find(const struct relay_log *log, const struct cw_point *at)
{
    const struct log_points *points = log->points;

    for (uint32_t i = 0; points && i < points->count; i++)
        if (same(&points->at[i].at, at))
            return &points->at[i];
    return NULL;
}

const struct log_point *log_point_last(const struct relay_log *log)
{
    const struct log_points *points = log->points;

    return points && points->count ? &points->at[points->count - 1] : NULL;
}

bool log_is_whole(const struct relay_log *log)
{
    return !log->points || !log->points->trimmed;
}

void log_points_forget(struct relay_log *log, uint64_t clock)
{
    struct log_points *points = log->points;

    while (points && points->count > points->trimmed &&
           points->at[points->count - 1].at.clock > clock)
        points->count--;
}

bool log_pin(struct relay_log *log, uint64_t at, uint64_t point)
{
    struct log_segment *segment = chain_segment(&log->payload, at);

    if (segment)
        segment->pin = point;
    return segment != NULL;
}

void log_trim(struct relay_log *log, const struct log_point *point)
{
    struct log_points *points = log->points;
    uint32_t before = (uint32_t)(point - points->at);
    uint32_t first = chain_number(point->low);
    uint32_t floor = chain_number(point->floor);
    uint32_t last = log->payload.first + log->payload.count - 1; /* stays: it is being filled */
    uint64_t pin = point->position;

    assert(before < points->count);
    chain_trim(&log->records, first);
    if (log->payload.count > 0) /* the snapshot refers to what has this pin */
        chain_thin(&log->payload, floor < last ? floor : last, pin);
    points->count -= before;
    memmove(points->at, point, points->count * sizeof(*points->at));
    points->trimmed = true;
    log_weigh(log);
    log->snapshots = 0;
}

/* --- what was left -------------------------------------------------------------------------------
 */

struct log_points_left log_points_left(const struct relay_log *log)
{
    const struct log_points *points = log->points;
    struct log_points_left left = {0};

    if (!points)
        return left;
    left = (struct log_points_left){
        .any = 1, .count = points->count, .trimmed = points->trimmed, .snapshot = points->snapshot};
    for (uint32_t i = 0; i < points->count; i++)
        left.at[i] = points->at[i].position;
    return left;
}

int log_points_return(struct relay_log *log, const struct log_points_left *left)
{
    if (make_room(log) < 0)
        return CW_ENOMEM;
    log->points->trimmed = left->trimmed;
    log->points->snapshot = left->snapshot;
    return CW_OK;
}

void log_point_return(struct relay_log *log, const struct log_point *point)
{
    assert(log->points->count < LOG_POINTS_MAX);
    log->points->at[log->points->count++] = *point;
}

bool log_point_read(const struct log_record *record, uint64_t position, struct log_point *point)
{
    if (record->type != LOG_POINT || record->placed || record->size != sizeof(*point))
        return false;
    memcpy(point, record->bytes, sizeof(*point));
    point->position = point->from.determinants = position;
    return point->from.event <= point->at.event && point->at.event <= point->event_count &&
           point->low <= point->from.events && point->from.events <= position;
}

void log_go_on_from(struct relay_log *log, const struct log_point *point)
{
    log->event_count = point->event_count;
    log->taken = point->at.event;
    log->clock = point->from.clock;
    log->determinant_count = point->determinant_count;
    log->send_count = point->from.send;
    log->early = (struct log_mark){.position = point->from.events,
                                   .event = point->from.event,
                                   .low = point->low,
                                   .floor = point->floor};
    log->late = (struct log_mark){.position = point->position,
                                  .event = point->event_count,
                                  .low = UINT64_MAX,
                                  .floor = UINT64_MAX};
}
