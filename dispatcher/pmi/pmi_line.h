/* A line of PMI-1, taken apart: "cmd=put kvsname=... key=... value=...". Pure. */
#ifndef DISPATCHER_PMI_LINE_H
#define DISPATCHER_PMI_LINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PMI_FIELDS_MAX 8 /* key=value pairs of a line; no command has more than four */

struct pmi_field {
    const char *key;
    const char *value;
};

/* A line taken apart in place. */
struct pmi_line {
    uint32_t rank;
    const char *text; /* as it came, for errors */
    struct pmi_field fields[PMI_FIELDS_MAX];
    size_t count;
};

/* Cuts "k=v k=v" into line->fields. A word without '=' belongs to the value before it: the name of
 * a service may have blanks, and PMI-1 has no quotes. False: it is no such line. */
bool pmi_line_split(struct pmi_line *line, char *text);

/* The value of a key; NULL: the line has none. */
const char *pmi_line_find(const struct pmi_line *line, const char *key);

/* False when it is no decimal number of an int; NULL is none. */
bool pmi_read_int(const char *text, int *value);

#endif
