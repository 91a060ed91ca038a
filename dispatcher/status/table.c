#include "dispatcher/status/table.h"

#include <stdio.h>
#include <string.h>

#define COLUMNS_MAX 16
#define GAP 2 /* spaces between columns */

unsigned long long table_number(const json_t *row, const char *key)
{
    json_int_t value = json_integer_value(json_object_get(row, key));

    return value < 0 ? 0 : (unsigned long long)value;
}

const char *table_text(const json_t *row, const char *key)
{
    const char *value = json_string_value(json_object_get(row, key));

    return value ? value : "";
}

/* A terminal must not take anything in a text for a command: neither the control characters nor
 * U+0080 to U+009F, which are such too. */
void table_put_text(FILE *to, const char *from)
{
    for (; *from; from++) {
        unsigned char c = (unsigned char)*from;

        if (c == 0xc2 && (unsigned char)from[1] >= 0x80 && (unsigned char)from[1] < 0xa0) {
            fputc('?', to);
            from++;
        } else {
            fputc(c < ' ' || c == 0x7f ? '?' : c, to);
        }
    }
}

void table_put_json(const json_t *document)
{
    json_dumpf(document, stdout, JSON_COMPACT);
    putchar('\n');
}

void table_bytes(uint64_t bytes, char *to, size_t size)
{
    static const char units[] = " KMGTPE";
    double value = (double)bytes;
    int unit = 0;

    for (; value >= 1024 && units[unit + 1]; unit++)
        value /= 1024;
    if (unit)
        snprintf(to, size, "%.1f%c", value, units[unit]);
    else
        snprintf(to, size, "%d", (int)bytes);
}

static void fill_cell(const struct table_column *column, const json_t *row, char *to)
{
    if (column->cell)
        column->cell(row, to);
    else if (column->bytes)
        table_bytes(table_number(row, column->bytes), to, TABLE_CELL_MAX);
    else if (column->text)
        snprintf(to, TABLE_CELL_MAX, "%s", table_text(row, column->text));
    else
        snprintf(to, TABLE_CELL_MAX, "%llu", table_number(row, column->number));
}

static void put_cell(FILE *to, const struct table_column *column, const char *cell, int width,
                     bool last)
{
    int padding = width - (int)strlen(cell);

    fprintf(to, "%*s", column->right ? padding : 0, "");
    table_put_text(to, cell);
    if (!last)
        fprintf(to, "%*s", GAP + (column->right ? 0 : padding), "");
}

static void measure(const struct table_column *columns, size_t count, const json_t *rows,
                    int *widths)
{
    char cell[TABLE_CELL_MAX];

    for (size_t c = 0; c < count; c++) {
        widths[c] = (int)strlen(columns[c].title);
        for (size_t i = 0; i < json_array_size(rows); i++) {
            fill_cell(&columns[c], json_array_get(rows, i), cell);
            if ((int)strlen(cell) > widths[c])
                widths[c] = (int)strlen(cell);
        }
    }
}

void table_put(FILE *to, const struct table_column *columns, size_t count, const json_t *rows)
{
    int widths[COLUMNS_MAX];
    char cell[TABLE_CELL_MAX];

    measure(columns, count, rows, widths);
    for (size_t c = 0; c < count; c++)
        put_cell(to, &columns[c], columns[c].title, widths[c], c + 1 == count);
    fputc('\n', to);
    for (size_t i = 0; i < json_array_size(rows); i++) {
        for (size_t c = 0; c < count; c++) {
            fill_cell(&columns[c], json_array_get(rows, i), cell);
            put_cell(to, &columns[c], cell, widths[c], c + 1 == count);
        }
        fputc('\n', to);
    }
}
