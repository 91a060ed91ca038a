#include "dispatcher/grid/rtt_file.h"
#include "dispatcher/hosts/host_lines.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define OUTSIDE "-"

static const char *name_of(const struct grid *grid, uint32_t line)
{
    return line == GRID_SITES_MAX ? OUTSIDE : grid->site[line].name;
}

char *rtt_file_make(const struct grid *grid, const struct routes_rtt *rtt)
{
    char *text = NULL;
    size_t size;
    FILE *to = open_memstream(&text, &size);
    bool whole;

    if (!to)
        return NULL;
    fputs("# round trips, in microseconds, as causeway doctor measured them\n", to);
    for (uint32_t from = 0; from <= GRID_SITES_MAX; from++)
        for (uint32_t i = 0; i < grid->sites; i++)
            if ((from < grid->sites || from == GRID_SITES_MAX) && rtt->us[from][i])
                fprintf(to, "%s %s %u\n", name_of(grid, from), grid->site[i].name,
                        rtt->us[from][i]);
    whole = !ferror(to);
    if (fclose(to) == 0 && whole)
        return text;
    free(text);
    return NULL;
}

static bool take_number(const char *word, uint32_t *number)
{
    char *end;
    unsigned long value = strtoul(word, &end, 10);

    *number = (uint32_t)value;
    return strspn(word, "0123456789") == strlen(word) && strlen(word) <= 10 && !*end && value > 0 &&
           value <= UINT32_MAX;
}

static int take_line(struct routes_rtt *rtt, const struct grid *grid, char *line,
                     struct cw_err *err)
{
    const char *from = host_lines_word(&line), *to = host_lines_word(&line);
    const char *time = host_lines_word(&line);
    uint32_t us, row, column;

    if (!from || !to || !time || host_lines_word(&line) || !take_number(time, &us))
        return cw_err_set(err, CW_EINVAL,
                          "expected FROM TO MICROSECONDS; without the file, times are not known, "
                          "until causeway doctor -f measures them");
    row = strcmp(from, OUTSIDE) == 0 ? GRID_SITES_MAX : grid_find(grid, from);
    column = grid_find(grid, to);
    if (row != GRID_OUTSIDE && column != GRID_OUTSIDE)
        rtt->us[row][column] = us;
    return CW_OK;
}

int rtt_file_parse(struct routes_rtt *rtt, const struct grid *grid, const char *file,
                   const char *text, struct cw_err *err)
{
    struct host_lines lines = {.file = file, .at = text, .left = strlen(text)};
    char line[HOST_LINE_BYTES_MAX];
    int more;

    *rtt = (struct routes_rtt){0};
    while ((more = host_lines_next(&lines, line, err)) > 0)
        if (take_line(rtt, grid, line, err) < 0) {
            more = host_lines_wrap(&lines, err);
            break;
        }
    if (more < 0)
        *rtt = (struct routes_rtt){0};
    return more;
}
