/* Tables for people, of rows that are JSON objects. */
#ifndef DISPATCHER_TABLE_H
#define DISPATCHER_TABLE_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#define TABLE_CELL_MAX 64

/* What it shows is one of these: */
struct table_column {
    const char *title;
    bool right;
    void (*cell)(const json_t *row, char *to); /* TABLE_CELL_MAX bytes */
    const char *number;                        /* the value of this key */
    const char *bytes;                         /* the same, of bytes */
    const char *text;                          /* the same, a text */
};

/* The value of a key; 0 or "" where it has none that is such. */
unsigned long long table_number(const json_t *row, const char *key);
const char *table_text(const json_t *row, const char *key);

/* "0", "812", "1.2K", "3.4M", ...: powers of 1024. */
void table_bytes(uint64_t bytes, char *to, size_t size);
void table_put_text(FILE *to, const char *from);
/* The document as it is, on one line of standard output. */
void table_put_json(const json_t *document);
/* All rows, with a title over each column. */
void table_put(FILE *to, const struct table_column *columns, size_t count, const json_t *rows);

#endif
