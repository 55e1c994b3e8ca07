/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tables and padded text for printers. Texts are not trusted: control characters are shown as ^X,
 * and widths are those of a terminal (screen_text.h). Where a table does not fit, text columns
 * shrink first, then whole columns go, the least important first.
 */
#ifndef UI_TABLE_H
#define UI_TABLE_H

#include <stdbool.h>

#include "engine/base/strbuf.h"

/* Appends the text cut (with "..") or padded to `cols` columns. */
void print_cell(struct strbuf *out, const char *text, int cols, bool right);

/* Appends the whole text, escaped. */
void print_text(struct strbuf *out, const char *text);

/* Columns that the text takes. */
int print_width(const char *text);

/* Columns of the terminal that `fd` is; 120 where it is none. */
int print_columns(int fd);

struct table_column {
    const char *title;
    bool right;
    int least; /* columns it may shrink to; 0: it does not shrink */
    int drop;  /* 1 goes first, 2 next ...; 0: never */
};

struct table {
    const struct table_column *column;
    int nr_columns;
    int nr_cells, cap_cells;
    char **cell; /* row by row */
};

enum { TABLE_MAX_COLUMNS = 16 };

void table_init(struct table *t, const struct table_column *columns, int nr);
void table_release(struct table *t);
void table_cell(struct table *t, const char *text);
void table_print(const struct table *t, int cols, struct strbuf *out);

#endif
