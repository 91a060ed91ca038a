/* The units of the job, which are its own relays and its own checkpoint server: where each stands,
 * its order, and what is heard of it. */
#ifndef DISPATCHER_UNIT_NEWS_H
#define DISPATCHER_UNIT_NEWS_H

#include "dispatcher/run/parts.h"
#include "dispatcher/run/relay_news.h"

/* All that it points to is borrowed. */
struct unit_news {
    struct parts *parts;
    struct relay_news *relay_news;
    uint32_t settled;         /* servers that listen, as bits */
    bool servers_settled;     /* all that are on hosts do; or one never will, for: */
    struct cw_err server_why; /* its code is 0, or says so */
};

/* With a struct unit_news as their `ctx`. */
extern const struct units_events unit_news_events;

extern const struct relays_own unit_news_relays;
/* As of struct servers_config. */
void unit_news_start_server(void *ctx, uint32_t server, const char *listen,
                            const uint8_t key[CW_KEY_SIZE]);

#endif
