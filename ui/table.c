/* SPDX-License-Identifier: Apache-2.0 */
#include "ui/table.h"

#include <langinfo.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>

#include "engine/base/arena.h"
#include "ui/screen_text.h"

enum { GAP = 2, NO_TERMINAL_COLUMNS = 120, CELL_MAX = 1024 };

/* Output that is not UTF-8 gets ASCII only. */
static bool is_ascii(void)
{
    return strcmp(nl_langinfo(CODESET), "UTF-8") != 0;
}

static void add_char(struct strbuf *out, wchar_t w)
{
    uint32_t c = (uint32_t)w;
    if (c < 0x80) {
        strbuf_addc(out, (char)c);
        return;
    }
    int more = c < 0x800 ? 1 : c < 0x10000 ? 2 : 3;
    static const unsigned char head[] = {0, 0xc0, 0xe0, 0xf0};
    strbuf_addc(out, (char)(head[more] | c >> (6 * more)));
    while (more-- > 0)
        strbuf_addc(out, (char)(0x80 | (c >> (6 * more) & 0x3f)));
}

static int add_text(struct strbuf *out, const char *text, int cols)
{
    wchar_t w[CELL_MAX];
    int nr, used = text_fit(text, 0, cols, is_ascii(), NULL, w, CELL_MAX, &nr);
    for (int i = 0; i < nr; i++)
        add_char(out, w[i]);
    return used;
}

int print_width(const char *text)
{
    return text_width(text, is_ascii());
}

void print_text(struct strbuf *out, const char *text)
{
    add_text(out, text, CELL_MAX - 2);
}

void print_cell(struct strbuf *out, const char *text, int cols, bool right)
{
    static const char spaces[] = "                ";
    int width = print_width(text);
    bool cut = width > cols && cols > 4;
    int pad = width < cols ? cols - width : 0;
    for (int left = right ? pad : 0; left > 0; left -= 16)
        strbuf_add(out, spaces, left < 16 ? (size_t)left : 16);
    int used = add_text(out, text, cut ? cols - 2 : cols);
    if (cut) {
        strbuf_adds(out, "..");
        used += 2;
    }
    for (int left = right ? 0 : cols - used; left > 0; left -= 16)
        strbuf_add(out, spaces, left < 16 ? (size_t)left : 16);
}

int print_columns(int fd)
{
    struct winsize w;
    return ioctl(fd, TIOCGWINSZ, &w) == 0 && w.ws_col > 0 ? w.ws_col : NO_TERMINAL_COLUMNS;
}

void table_init(struct table *t, const struct table_column *columns, int nr)
{
    *t = (struct table){.column = columns, .nr_columns = nr};
}

void table_release(struct table *t)
{
    for (int i = 0; i < t->nr_cells; i++)
        free(t->cell[i]);
    free(t->cell);
    *t = (struct table){0};
}

void table_cell(struct table *t, const char *text)
{
    GROW(t->cell, t->nr_cells, t->cap_cells);
    t->cell[t->nr_cells++] = xstrdup(text);
}

/* Width of the shown columns (those of width > 0) with the gaps between them. */
static int total(const int *width, int nr)
{
    int sum = 0;
    for (int i = 0; i < nr; i++)
        sum += width[i] ? width[i] + GAP : 0;
    return sum ? sum - GAP : 0;
}

static void shrink(const struct table *t, int *width, int cols)
{
    for (;;) {
        int widest = -1;
        for (int i = 0; i < t->nr_columns; i++)
            if (t->column[i].least && width[i] > t->column[i].least &&
                (widest < 0 || width[i] > width[widest]))
                widest = i;
        if (widest < 0 || total(width, t->nr_columns) <= cols)
            return;
        width[widest]--;
    }
}

static void fit(const struct table *t, int *width, int cols)
{
    int natural[TABLE_MAX_COLUMNS];
    for (int i = 0; i < t->nr_columns; i++)
        natural[i] = print_width(t->column[i].title);
    for (int i = 0; i < t->nr_cells; i++) {
        int w = print_width(t->cell[i]), *n = &natural[i % t->nr_columns];
        *n = w > *n ? w : *n;
    }
    memcpy(width, natural, sizeof natural);
    for (int drop = 1;; drop++) {
        shrink(t, width, cols);
        if (total(width, t->nr_columns) <= cols || drop > t->nr_columns)
            return;
        /* What a dropped column frees is shared out anew. */
        for (int i = 0; i < t->nr_columns; i++)
            width[i] = t->column[i].drop && t->column[i].drop <= drop ? 0 : natural[i];
    }
}

static void print_row(const struct table *t, const int *width, int row, struct strbuf *out)
{
    size_t start = out->len;
    for (int i = 0; i < t->nr_columns; i++) {
        if (!width[i])
            continue;
        if (out->len > start)
            strbuf_adds(out, "  ");
        print_cell(out, row < 0 ? t->column[i].title : t->cell[row * t->nr_columns + i], width[i],
                   t->column[i].right);
    }
    while (out->len > start && out->buf[out->len - 1] == ' ')
        out->buf[--out->len] = '\0';
    strbuf_addc(out, '\n');
}

void table_print(const struct table *t, int cols, struct strbuf *out)
{
    int width[TABLE_MAX_COLUMNS] = {0};
    fit(t, width, cols);
    for (int row = -1; row < t->nr_cells / t->nr_columns; row++)
        print_row(t, width, row, out);
}
