/* SPDX-License-Identifier: Apache-2.0 */
#include "ui/plot.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "ui/format.h"

/* The frame of a plot: where the curve's cells are, and how values become levels. */
struct frame {
    const struct plot_in *in;
    struct plot_cell *cell;
    int left;       /* columns of the y labels and the axis */
    int rows, cols; /* of the curve */
    double lo, hi;
    bool log;
};

static void put(struct frame *f, int y, int x, uint32_t ch, enum role role)
{
    if (y < 0 || x < 0 || y >= f->in->rows || x >= f->in->cols)
        return;
    f->cell[y * f->in->cols + x] = (struct plot_cell){ch, (uint8_t)role};
}

static void puts_at(struct frame *f, int y, int x, const char *text, enum role role)
{
    for (; *text; text++)
        put(f, y, x++, (unsigned char)*text, role);
}

static void range(const struct plot_in *in, double *lo, double *hi)
{
    *lo = INFINITY;
    *hi = -INFINITY;
    for (int i = 0; i < in->nr_points; i++)
        if (isfinite(in->point[i].y)) {
            *lo = fmin(*lo, in->point[i].y);
            *hi = fmax(*hi, in->point[i].y);
        }
}

bool plot_is_log(const struct plot_in *in)
{
    double lo, hi;
    range(in, &lo, &hi);
    return lo > 0 && hi / lo > PLOT_LOG_FROM;
}

/* 0 for the lowest value, 1 for the highest. */
static double height(const struct frame *f, double y)
{
    if (f->hi <= f->lo)
        return 0.5;
    double t = f->log ? log(y / f->lo) / log(f->hi / f->lo) : (y - f->lo) / (f->hi - f->lo);
    return fmin(1, fmax(0, t));
}

static double value_at(const struct frame *f, double t)
{
    return f->log ? f->lo * pow(f->hi / f->lo, t) : f->lo + t * (f->hi - f->lo);
}

/* The level of each of nr columns, 0 .. levels - 1; -1 where the curve has not begun. */
static int level_at(const struct frame *f, int column, int nr, int levels, int *next)
{
    const struct plot_in *in = f->in;
    double right = in->x_now * (column + 1) / nr;
    while (*next < in->nr_points && in->point[*next].x <= right)
        ++*next;
    if (!*next)
        return -1;
    double t = height(f, in->point[*next - 1].y);
    return (int)lround(t * (levels - 1));
}

static enum role phase_role(const struct plot_in *in, double x)
{
    return x >= in->refine_x ? ROLE_REFINE : ROLE_EXPLORE; /* false for NAN */
}

/* Eighth blocks, filled to the bottom. */
static void draw_block(struct frame *f)
{
    int next = 0, levels = f->rows * 8;
    for (int c = 0; c < f->cols; c++) {
        int level = level_at(f, c, f->cols, levels, &next);
        enum role role = phase_role(f->in, f->in->x_now * (c + 1) / f->cols);
        for (int r = 0; r < f->rows; r++) {
            int fill = level + 1 - 8 * (f->rows - 1 - r);
            if (level < 0 || fill <= 0)
                continue;
            enum role below = role == ROLE_REFINE ? ROLE_REFINE_FILL : ROLE_EXPLORE_FILL;
            put(f, r, f->left + c, 0x2580 + (uint32_t)(fill < 8 ? fill : 8),
                fill <= 8 ? role : below);
        }
    }
}

/* Three heights of a line in ASCII; the refined part has its own middle and top. */
static void draw_ascii(struct frame *f)
{
    int next = 0, levels = f->rows * 3, before = -1;
    for (int c = 0; c < f->cols; c++) {
        int level = level_at(f, c, f->cols, levels, &next);
        if (level < 0)
            continue;
        enum role role = phase_role(f->in, f->in->x_now * (c + 1) / f->cols);
        int row = f->rows - 1 - level / 3;
        if (before >= 0)
            for (int r = f->rows - 1 - before / 3 + 1; r < row; r++)
                put(f, r, f->left + c, '|', role);
        put(f, row, f->left + c, (unsigned char)(role == ROLE_REFINE ? "_=\"" : "_-'")[level % 3],
            role);
        before = level;
    }
}

/* Bits of a braille cell, by column and level from the bottom. */
static const uint8_t braille_dot[2][4] = {{0x40, 0x04, 0x02, 0x01}, {0x80, 0x20, 0x10, 0x08}};

static void draw_braille(struct frame *f)
{
    int next = 0, levels = f->rows * 4, before = -1;
    for (int c = 0; c < 2 * f->cols; c++) {
        int level = level_at(f, c, 2 * f->cols, levels, &next);
        if (level < 0)
            continue;
        enum role role = phase_role(f->in, f->in->x_now * (c + 1) / (2 * f->cols));
        int top = before > level ? before : level;
        for (int v = level; v <= top; v++) {
            struct plot_cell *cell =
                &f->cell[(f->rows - 1 - v / 4) * f->in->cols + f->left + c / 2];
            if (!cell->ch)
                cell->ch = 0x2800;
            cell->ch |= braille_dot[c % 2][v % 4];
            cell->role = (uint8_t)role;
        }
        before = level;
    }
}

static int column_of(const struct frame *f, double x)
{
    if (!(f->in->x_now > 0))
        return 0;
    int c = (int)(x / f->in->x_now * f->cols);
    return c < 0 ? 0 : c >= f->cols ? f->cols - 1 : c;
}

/* The rows whose value is written: the ends, the middle of a tall plot; of a flat curve its own. */
static bool has_label(const struct frame *f, int row)
{
    if (f->hi <= f->lo)
        return row == (f->rows - 1) / 2;
    return row == 0 || row == f->rows - 1 || (f->rows >= 5 && row == f->rows / 2);
}

static void draw_axes(struct frame *f)
{
    bool ascii = f->in->set == GLYPHS_ASCII;
    uint32_t side = ascii ? '|' : 0x2502, tick = ascii ? '+' : 0x2524;
    uint32_t corner = ascii ? '+' : 0x2514, floor_ch = ascii ? '-' : 0x2500;
    int x = f->left - 1;
    for (int r = 0; r < f->rows; r++)
        put(f, r, x, has_label(f, r) ? tick : side, ROLE_DIM);
    put(f, f->rows, x, corner, ROLE_DIM);
    for (int c = 0; c < f->cols; c++)
        put(f, f->rows, f->left + c, floor_ch, ROLE_DIM);
    for (int i = 0; i < f->in->nr_failures; i++)
        put(f, f->rows, f->left + column_of(f, f->in->failure[i]), ascii ? 'x' : 0x00d7, ROLE_BAD);
}

static void label_y(struct frame *f, int row, double v, const struct format_unit *u)
{
    char num[FORMAT_MAX], text[2 * FORMAT_MAX];
    format_in(num, v, u);
    snprintf(text, sizeof text, "%s %s", num, u->text);
    puts_at(f, row, f->left - 2 - (int)strlen(text), text, ROLE_DIM);
}

static void label_x(struct frame *f)
{
    int row = f->rows + 1;
    char num[FORMAT_MAX], end[2 * FORMAT_MAX];
    if (f->in->time)
        snprintf(end, sizeof end, "%s", format_elapsed(num, (int64_t)f->in->x_now));
    else
        snprintf(end, sizeof end, "%s trial%s", format_count(num, f->in->x_now),
                 f->in->x_now == 1 ? "" : "s");
    int at = f->in->cols - (int)strlen(end);
    puts_at(f, row, f->left, f->in->time ? "0:00" : "0", ROLE_DIM);
    if (at > f->left + 5)
        puts_at(f, row, at, end, ROLE_DIM);
    if (isfinite(f->in->refine_x)) {
        int x = f->left + column_of(f, f->in->refine_x);
        const char *word = f->in->set == GLYPHS_ASCII ? "^refine" : "refine";
        /* The word stands left of the place where there is no room to its right. */
        if (x + 8 >= at)
            x = at - 8;
        if (x >= f->left + 5) {
            if (f->in->set != GLYPHS_ASCII)
                put(f, row, x++, 0x2514, ROLE_REFINE);
            puts_at(f, row, x, word, ROLE_REFINE);
        }
    }
}

bool plot_render(const struct plot_in *in, struct plot_cell *cell)
{
    if (in->rows <= 0 || in->cols <= 0)
        return false;
    memset(cell, 0, sizeof *cell * (size_t)in->rows * (size_t)in->cols);
    struct frame f = {.in = in, .cell = cell, .rows = in->rows - 2};
    range(in, &f.lo, &f.hi);
    if (f.rows < 2 || !isfinite(f.lo) || f.lo <= 0 || !(in->x_now > 0))
        return false;
    f.log = f.hi / f.lo > PLOT_LOG_FROM;
    struct format_unit u = format_unit(f.lo);
    char num[FORMAT_MAX];
    f.left = (int)strlen(format_in(num, f.hi, &u)) + 1 + (int)strlen(u.text) + 2;
    f.cols = in->cols - f.left;
    if (f.cols < 8)
        return false;
    draw_axes(&f);
    if (in->set == GLYPHS_ASCII)
        draw_ascii(&f);
    else if (in->set == GLYPHS_BRAILLE)
        draw_braille(&f);
    else
        draw_block(&f);
    for (int r = 0; r < f.rows; r++)
        if (has_label(&f, r))
            label_y(&f, r, f.hi <= f.lo || r == 0 ? f.hi
                           : r == f.rows - 1      ? f.lo
                                                  : value_at(&f, 1 - (r + 0.5) / f.rows), &u);
    label_x(&f);
    return true;
}
