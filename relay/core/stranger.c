#include "relay/core/stranger.h"

void stranger_enter(struct relay_conn *conn)
{
    struct conn_set *set = conn->set;

    conn->door.outside = conn->is_stranger = true;
    conn->stranger_before = set->stranger_last;
    if (set->stranger_last)
        set->stranger_last->stranger_after = conn;
    else
        set->stranger_first = conn;
    set->stranger_last = conn;
    set->stranger_count++;
}

void stranger_leave(struct relay_conn *conn)
{
    struct conn_set *set = conn->set;

    if (!conn->is_stranger)
        return;
    conn->is_stranger = false;
    if (conn->stranger_before)
        conn->stranger_before->stranger_after = conn->stranger_after;
    else
        set->stranger_first = conn->stranger_after;
    if (conn->stranger_after)
        conn->stranger_after->stranger_before = conn->stranger_before;
    else
        set->stranger_last = conn->stranger_before;
    set->stranger_count--;
}

void stranger_make_room(struct conn_set *set, uint32_t ranks)
{
    struct relay_conn *oldest = set->stranger_first;

    if (set->stranger_count < RELAY_STRANGERS_MAX + ranks)
        return;
    stranger_leave(oldest);
    if (oldest->state == CONN_CLOSING)
        conn_discard(oldest); /* it does not read why */
    else
        conn_refuse(oldest, CW_REFUSED_LIMIT,
                    "too many connections have not said who they are, and this one has had the "
                    "most time; try again");
    conn_ready(oldest);
}
