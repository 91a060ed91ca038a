#include "dispatcher/hosts/host_lines.h"

#include <string.h>

#define SPACES " \t\r"

int host_lines_wrap(const struct host_lines *lines, struct cw_err *err)
{
    return cw_err_wrap(err, "%s, line %u", lines->file, lines->number);
}

/* "slots = 4" as "slots=4", which is one word. */
static void join_settings(char *line)
{
    char *to = line;

    for (const char *from = line; *from; from++) {
        if (*from == '=') {
            while (to > line && strchr(SPACES, to[-1]))
                to--;
            *to++ = '=';
            from += strspn(from + 1, SPACES);
        } else {
            *to++ = *from;
        }
    }
    *to = '\0';
}

int host_lines_next(struct host_lines *lines, char line[HOST_LINE_BYTES_MAX], struct cw_err *err)
{
    while (lines->left > 0) {
        const char *end = memchr(lines->at, '\n', lines->left);
        size_t size = end ? (size_t)(end - lines->at) : lines->left;

        lines->number++;
        if (size >= HOST_LINE_BYTES_MAX || memchr(lines->at, '\0', size)) {
            cw_err_set(err, CW_EINVAL, "expected a line of text, with at most %d bytes",
                       HOST_LINE_BYTES_MAX - 1);
            return host_lines_wrap(lines, err);
        }
        memcpy(line, lines->at, size);
        line[size] = '\0';
        line[strcspn(line, "#")] = '\0';
        lines->at += size;
        lines->left -= size;
        if (end) {
            lines->at++;
            lines->left--;
        }
        join_settings(line);
        if (line[strspn(line, SPACES)])
            return 1;
    }
    return 0;
}

char *host_lines_word(char **rest)
{
    char *word;

    while ((word = strsep(rest, SPACES)) && !*word)
        ;
    return word;
}
