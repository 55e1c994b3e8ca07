/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Layout: where things are on the screen.
 *
 * One pure function from the size of the terminal and a summary of what there is to show, to
 * rectangles; no curses. What it promises for every size, and a test sweeps: rectangles lie inside
 * the screen, none overlaps another, sizes are not negative, the active pane is among the visible.
 *
 * A pane's first row is its title. Panes are hidden in this order as the screen shrinks: notes,
 * curve, the one of leaderboard and ladder that is not wanted; below LAYOUT_MIN one line remains.
 */
#ifndef UI_LAYOUT_H
#define UI_LAYOUT_H

#include <stdbool.h>

enum pane { PANE_TASKS, PANE_CURVE, PANE_LEADERS, PANE_LADDER, PANE_NOTES, PANE_NR };

enum { LAYOUT_MIN_ROWS = 10, LAYOUT_MIN_COLS = 40 };

struct rect {
    int y, x, rows, cols; /* rows == 0: not shown */
};

struct layout_in {
    int rows, cols;
    int nr_tasks;
    bool ladder;      /* there is a neighbourhood to show */
    bool refining;    /* and it is what happens now: the ladder goes before the leaderboard */
    int nr_ladder;    /* its rows */
    enum pane active; /* shown whatever the size, in place of another */
    bool zoom;        /* it alone */
    bool overlay;     /* help or details in place of the panes */
};

struct screen_layout {
    bool tiny; /* too small: only `line` */
    struct rect line;
    struct rect header, pane[PANE_NR], overlay, status, keys;
    bool split;       /* the panes stand in two columns, `divider` between them */
    struct rect divider;
};

void screen_layout(const struct layout_in *in, struct screen_layout *out);

static inline bool rect_shown(const struct rect *r)
{
    return r->rows > 0 && r->cols > 0;
}

#endif
