#include "relay/core/stranger.h"

void stranger_enter(struct relay_conn *conn)
{
    struct conn_set *set = conn->set;

    conn->door.outside = conn->is_stranger = true;
    TAILQ_INSERT_TAIL(&set->strangers, conn, in_strangers);
    set->stranger_count++;
}

void stranger_leave(struct relay_conn *conn)
{
    struct conn_set *set = conn->set;

    if (!conn->is_stranger)
        return;
    conn->is_stranger = false;
    TAILQ_REMOVE(&set->strangers, conn, in_strangers);
    set->stranger_count--;
}

void stranger_make_room(struct conn_set *set, uint32_t ranks)
{
    struct relay_conn *oldest = TAILQ_FIRST(&set->strangers);

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
