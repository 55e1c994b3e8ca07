/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Plot: a best-so-far curve as character cells. Pure; the caller puts the cells on a screen.
 *
 *   12.31 ms +#
 *            |####
 *    4.213   |############
 *            +--x-------x--     failures are marked on the axis
 *             0  refine  412 trials
 *
 * The step curve has as many levels a row as the glyph set can draw: block 8 (an area), braille 4
 * (a line, two columns a cell), ASCII 3 (a line). The y axis is logarithmic where the values span
 * more than a factor of PLOT_LOG_FROM.
 */
#ifndef UI_PLOT_H
#define UI_PLOT_H

#include <stdbool.h>
#include <stdint.h>

#include "ui/theme.h"

enum { PLOT_LOG_FROM = 3 };

struct plot_point {
    double x, y; /* y holds from x until the next point */
};

struct plot_in {
    int rows, cols;
    enum glyph_set set;
    const struct plot_point *point; /* ordered by x */
    int nr_points;
    double x_now;             /* the curve ends here; the axis runs from 0 to it */
    double refine_x;          /* where refinement began; NAN when it has not */
    const double *failure;    /* x of failed trials, ordered */
    int nr_failures;
    bool time;                /* x is nanoseconds, else trials */
};

struct plot_cell {
    uint32_t ch; /* code point; 0 is blank */
    uint8_t role;
};

/* Fills cell[rows * cols]. False where there is nothing to plot or no room; the cells are blank. */
bool plot_render(const struct plot_in *in, struct plot_cell *cell);

/* Whether the y axis is logarithmic, for the title. */
bool plot_is_log(const struct plot_in *in);

#endif
