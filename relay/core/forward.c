#include "relay/core/forward.h"

void forward_send(struct relay_conn *link, uint32_t src, const struct cw_send *send,
                  const uint8_t *at, uint32_t size, struct relay_block *block)
{
    uint8_t *to = conn_data_frame(link, CW_FRAME_FORWARD, CW_FORWARD_SIZE, at, size, block);

    if (!to)
        return;
    cw_forward_put(to, &(struct cw_forward){.src = src, .send = *send});
    link->set->stats->forwarded++;
    link->set->stats->forwarded_bytes += size;
}

void forward_data(struct relay_conn *link, uint32_t src, const uint8_t *at, uint32_t size,
                  struct relay_block *block)
{
    uint8_t *to =
        conn_data_frame(link, CW_FRAME_FORWARD_DATA, CW_FORWARD_REF_SIZE, at, size, block);

    if (!to)
        return;
    cw_forward_ref_put(to, &(struct cw_forward_ref){.rank = src});
    link->set->stats->forwarded_bytes += size;
}

void forward_end(struct relay_conn *link, uint32_t src)
{
    conn_frame(link, CW_FRAME_FORWARD_END, &(struct cw_forward_ref){.rank = src},
               CW_FORWARD_REF_SIZE);
}

void forward_sent(struct relay_conn *link, uint32_t src, uint32_t req)
{
    conn_frame(link, CW_FRAME_FORWARD_SENT, &(struct cw_forward_ref){.rank = src, .req = req},
               CW_FORWARD_REF_SIZE);
}
