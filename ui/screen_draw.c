/* SPDX-License-Identifier: Apache-2.0 */
#include "ui/screen_draw.h"

#include <stdio.h>
#include <string.h>
#include <wchar.h>

#include <curses.h>

#include "ui/screen_detail.h"
#include "ui/screen_text.h"

enum { LINE_MAX_CELLS = 1024 };

static bool is_ascii(const struct draw *d)
{
    return d->t->set == GLYPHS_ASCII;
}

int draw_skip(const struct draw *d, int y, int x, int cols, int skip, enum role role,
              const char *text)
{
    wchar_t w[LINE_MAX_CELLS + 1];
    int len;
    if (cols <= 0)
        return 0;
    if (cols > LINE_MAX_CELLS)
        cols = LINE_MAX_CELLS;
    int used = text_fit(text, skip, cols, is_ascii(d), d->t->g->ellipsis, w, LINE_MAX_CELLS, &len);
    attrset((int)d->t->attr[role]);
    mvaddnwstr(y, x, w, len);
    attrset(A_NORMAL);
    return used;
}

int draw_text(const struct draw *d, int y, int x, int cols, enum role role, const char *text)
{
    return draw_skip(d, y, x, cols, 0, role, text);
}

int draw_right(const struct draw *d, int y, int x, int cols, enum role role, const char *text)
{
    int width = text_width(text, is_ascii(d));
    int pad = width < cols ? cols - width : 0;
    return pad + draw_text(d, y, x + pad, cols - pad, role, text);
}

void draw_paint(const struct draw *d, int y, int x, int cols, enum role role)
{
    attr_t a = d->t->attr[role];
    if (cols > 0)
        mvchgat(y, x, cols, a & ~(attr_t)A_COLOR, (short)PAIR_NUMBER((int)a), NULL);
}

void draw_title(const struct draw *d, const struct rect *r, enum pane p)
{
    draw_paint(d, r->y, r->x, r->cols, p == d->v->active ? ROLE_ACTIVE : ROLE_TITLE);
}

void draw_cursor(const struct draw *d, const struct rect *r, enum pane p, int y)
{
    bool active = p == d->v->active;
    draw_text(d, y, r->x, 1, ROLE_STRONG, d->t->g->cursor);
    /* A row that is only selected keeps its colours, and shows the mark. */
    if (active)
        draw_paint(d, y, r->x, r->cols, ROLE_CURSOR);
}

void draw_empty(const struct draw *d, const struct rect *r, const char *fmt, ...)
{
    struct strbuf text = {0};
    struct page l = {0};
    va_list ap;
    va_start(ap, fmt);
    strbuf_vaddf(&text, fmt, ap);
    va_end(ap);
    page_wrap(&l, ROLE_DIM, "", 0, r->cols - 4, strbuf_text(&text));
    int y = r->rows - 1 > l.nr ? (r->rows - 1 - l.nr) / 2 : 0;
    if (y > 2)
        y = 2;
    for (int i = 0; i < l.nr && 1 + y + i < r->rows; i++)
        draw_text(d, r->y + 1 + y + i, r->x + 2, r->cols - 3, ROLE_DIM, page_text(&l, i));
    page_release(&l);
    strbuf_release(&text);
}

void draw_overlay(const struct draw *d, const struct rect *r)
{
    struct strbuf title = {0};
    const struct view *v = d->v;
    detail_title(v, d->b, &title);
    draw_text(d, r->y, r->x + 1, r->cols - 2, ROLE_ACTIVE, strbuf_text(&title));
    int rows = r->rows - 1;
    if (v->page.nr > rows) {
        char where[48];
        int last = v->overlay_top + rows < v->page.nr ? v->overlay_top + rows : v->page.nr;
        snprintf(where, sizeof where, "%d-%d of %d", v->overlay_top + 1, last, v->page.nr);
        draw_right(d, r->y, r->x + r->cols - 20, 19, ROLE_ACTIVE, where);
    }
    draw_paint(d, r->y, r->x, r->cols, ROLE_ACTIVE);
    for (int i = 0; i < rows && v->overlay_top + i < v->page.nr; i++)
        draw_text(d, r->y + 1 + i, r->x + 1, r->cols - 1, v->page.line[v->overlay_top + i].role,
                  page_text(&v->page, v->overlay_top + i));
    strbuf_release(&title);
}

void draw_frame(const struct draw *d)
{
    static void (*const pane[PANE_NR])(const struct draw *, const struct rect *) = {
        [PANE_TASKS] = draw_tasks,     [PANE_CURVE] = draw_curve, [PANE_LEADERS] = draw_leaders,
        [PANE_LADDER] = draw_ladder,   [PANE_NOTES] = draw_notes,
    };
    const struct screen_layout *l = &d->v->layout;
    erase();
    if (l->tiny) {
        draw_tiny(d, &l->line);
        return;
    }
    draw_header(d, &l->header);
    for (int p = 0; p < PANE_NR; p++)
        if (rect_shown(&l->pane[p]))
            pane[p](d, &l->pane[p]);
    if (rect_shown(&l->divider))
        for (int y = 0; y < l->divider.rows; y++)
            draw_text(d, l->divider.y + y, l->divider.x, 1, ROLE_DIM, d->t->g->divider);
    if (rect_shown(&l->overlay))
        draw_overlay(d, &l->overlay);
    draw_status(d, &l->status);
    draw_keys(d, &l->keys);
}

static void put_utf8(struct strbuf *out, uint32_t c)
{
    if (c < 0x80) {
        strbuf_addc(out, (char)c);
    } else if (c < 0x800) {
        strbuf_addc(out, (char)(0xc0 | c >> 6));
        strbuf_addc(out, (char)(0x80 | (c & 0x3f)));
    } else if (c < 0x10000) {
        strbuf_addc(out, (char)(0xe0 | c >> 12));
        strbuf_addc(out, (char)(0x80 | (c >> 6 & 0x3f)));
        strbuf_addc(out, (char)(0x80 | (c & 0x3f)));
    } else {
        strbuf_addc(out, (char)(0xf0 | c >> 18));
        strbuf_addc(out, (char)(0x80 | (c >> 12 & 0x3f)));
        strbuf_addc(out, (char)(0x80 | (c >> 6 & 0x3f)));
        strbuf_addc(out, (char)(0x80 | (c & 0x3f)));
    }
}

void draw_to_text(struct strbuf *out)
{
    int rows, cols;
    getmaxyx(stdscr, rows, cols);
    wchar_t w[LINE_MAX_CELLS + 1];
    for (int y = 0; y < rows; y++) {
        int n = mvinnwstr(y, 0, w, cols < LINE_MAX_CELLS ? cols : LINE_MAX_CELLS);
        while (n > 0 && w[n - 1] == L' ')
            n--;
        for (int i = 0; i < n; i++)
            put_utf8(out, (uint32_t)w[i]);
        strbuf_addc(out, '\n');
    }
}
