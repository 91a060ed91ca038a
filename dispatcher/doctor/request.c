#include "dispatcher/doctor/request.h"

#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TOKEN_DIGITS (2 * TCP_PROBE_TOKEN)
#define WORDS 4

static const int words[] = {1, 2, WORDS, 3}; /* of each */
static const char *const names[] = {"time", "listen", "reach", "tunnel"};

void request_print(const struct request *q, char line[REQUEST_LINE_MAX])
{
    char token[TOKEN_DIGITS + 1];

    sodium_bin2hex(token, sizeof(token), q->token, sizeof(q->token));
    if (q->type == REQUEST_TIME)
        snprintf(line, REQUEST_LINE_MAX, "%s", names[q->type]);
    else if (q->type == REQUEST_LISTEN)
        snprintf(line, REQUEST_LINE_MAX, "%s %s", names[q->type], token);
    else if (q->type == REQUEST_TUNNEL)
        snprintf(line, REQUEST_LINE_MAX, "%s %s %s", names[q->type], token, q->address);
    else
        snprintf(line, REQUEST_LINE_MAX, "%s %s %s %u", names[q->type], token, q->address, q->port);
}

static bool read_token(const char *word, uint8_t token[TCP_PROBE_TOKEN])
{
    size_t size;

    return strlen(word) == TOKEN_DIGITS &&
           sodium_hex2bin(token, TCP_PROBE_TOKEN, word, TOKEN_DIGITS, NULL, &size, NULL) == 0 &&
           size == TCP_PROBE_TOKEN;
}

static bool read_port(const char *word, uint16_t *port)
{
    long value = atol(word);

    *port = (uint16_t)value;
    return strlen(word) <= 5 && strspn(word, "0123456789") == strlen(word) && value > 0 &&
           value <= UINT16_MAX;
}

bool request_read(const char *line, struct request *q)
{
    char copy[REQUEST_LINE_MAX];
    char *rest = copy;
    char *word[WORDS] = {"", "", "", ""};
    int count = 0;

    if (strlen(line) >= sizeof(copy))
        return false;
    strcpy(copy, line);
    while (rest && count < WORDS)
        word[count++] = strsep(&rest, " ");
    *q = (struct request){0};
    while (strcmp(word[0], names[q->type]) != 0)
        if (++q->type == sizeof(names) / sizeof(*names))
            return false;
    if (rest || count != words[q->type])
        return false;
    if (q->type == REQUEST_TIME)
        return true;
    if (!read_token(word[1], q->token))
        return false;
    if (q->type == REQUEST_LISTEN)
        return true;
    if (!*word[2] || strlen(word[2]) > REQUEST_ADDRESS_MAX ||
        (q->type != REQUEST_TUNNEL && !read_port(word[3], &q->port)))
        return false;
    strcpy(q->address, word[2]);
    return true;
}
