/* SPDX-License-Identifier: Apache-2.0 */
#include "ui/layout.h"

#include <string.h>

enum {
    WIDE_COLS = 110,  /* from here a second column is worth more than long lines */
    WIDE_ROWS = 20,
    CURVE_ROWS = 6,   /* title, three rows of plot, axis, labels: less says nothing */
    LIST_ROWS = 4,    /* title and three lines of a list */
    NOTES_ROWS = 4,
    TALL_ROWS = 30,   /* from here the header has a third line, and the notes a place */
};

static int min(int a, int b)
{
    return a < b ? a : b;
}

static int max(int a, int b)
{
    return a > b ? a : b;
}

/* Takes `rows` from the top of what is left; never more than there is. */
static struct rect take(struct rect *left, int rows)
{
    struct rect r = *left;
    r.rows = max(0, min(rows, left->rows));
    left->y += r.rows;
    left->rows -= r.rows;
    return r;
}

/* The one of leaderboard and ladder that is shown where there is room for one. */
static enum pane wanted_list(const struct layout_in *in)
{
    if (in->active == PANE_LADDER || in->active == PANE_LEADERS)
        return in->active;
    return in->ladder && in->refining ? PANE_LADDER : PANE_LEADERS;
}

/* All tasks if they fit in a third of the height, else that third; a lone task needs no more than
 * its line, so that the others get the room. */
static int task_rows(const struct layout_in *in, int body)
{
    int want = 1 + max(1, in->nr_tasks);
    return min(want, max(LIST_ROWS - 1, body / 3));
}

/* Panes below each other. */
static void stack(const struct layout_in *in, struct rect body, struct screen_layout *out)
{
    enum pane list = wanted_list(in);
    out->pane[PANE_TASKS] = take(&body, task_rows(in, body.rows));
    bool notes = in->active == PANE_NOTES;
    bool curve = in->active == PANE_CURVE;
    if (body.rows < CURVE_ROWS + LIST_ROWS) { /* room for one more */
        enum pane p = notes ? PANE_NOTES : curve ? PANE_CURVE : list;
        out->pane[p] = take(&body, body.rows);
        return;
    }
    int spare = body.rows - CURVE_ROWS - LIST_ROWS;
    if (notes || spare >= NOTES_ROWS + 10) {
        /* Where there is room for one list only, the notes take its place while they are active. */
        if (spare < NOTES_ROWS) {
            out->pane[PANE_CURVE] = take(&body, CURVE_ROWS);
            out->pane[PANE_NOTES] = take(&body, body.rows);
            return;
        }
        int rows = NOTES_ROWS + (spare - NOTES_ROWS) / 5;
        struct rect top = {body.y, body.x, body.rows - rows, body.cols};
        body.y += top.rows;
        body.rows = rows;
        out->pane[PANE_NOTES] = body;
        body = top;
        spare = body.rows - CURVE_ROWS - LIST_ROWS;
    }
    out->pane[PANE_CURVE] = take(&body, CURVE_ROWS + spare * 2 / 5);
    if (in->ladder && body.rows >= 3 * LIST_ROWS + 2) {
        int rungs = min(1 + in->nr_ladder, body.rows * 3 / 5);
        struct rect ladder = {body.y + body.rows - rungs, body.x, rungs, body.cols};
        body.rows -= rungs;
        out->pane[PANE_LEADERS] = body;
        out->pane[PANE_LADDER] = ladder;
        return;
    }
    out->pane[list] = take(&body, body.rows);
}

/* Tasks over two columns: curve and notes on the left, what is measured on the right. */
static void columns(const struct layout_in *in, struct rect body, struct screen_layout *out)
{
    out->pane[PANE_TASKS] = take(&body, task_rows(in, body.rows));
    struct rect left = body, right = body;
    left.cols = body.cols * 2 / 5;
    out->split = true;
    out->divider = (struct rect){body.y, body.x + left.cols, body.rows, 1};
    right.x += left.cols + 1;
    right.cols -= left.cols + 1;

    int notes = left.rows - CURVE_ROWS >= NOTES_ROWS ? max(NOTES_ROWS, left.rows / 3) : 0;
    if (!notes && in->active == PANE_NOTES) {
        out->pane[PANE_NOTES] = left;
    } else {
        out->pane[PANE_CURVE] = take(&left, left.rows - notes);
        out->pane[PANE_NOTES] = take(&left, notes);
    }
    if (in->ladder && right.rows >= 2 * LIST_ROWS + 2) {
        int rungs = min(1 + in->nr_ladder, right.rows - LIST_ROWS);
        /* A long neighbourhood may have two thirds, a short one no more than it needs. */
        rungs = max(LIST_ROWS, min(rungs, right.rows * 2 / 3));
        out->pane[PANE_LEADERS] = take(&right, right.rows - rungs);
        out->pane[PANE_LADDER] = take(&right, right.rows);
        return;
    }
    out->pane[wanted_list(in)] = right;
}

void screen_layout(const struct layout_in *in, struct screen_layout *out)
{
    memset(out, 0, sizeof *out);
    if (in->rows < LAYOUT_MIN_ROWS || in->cols < LAYOUT_MIN_COLS) {
        out->tiny = true;
        out->line = (struct rect){0, 0, max(0, in->rows), max(0, in->cols)};
        return;
    }
    struct rect body = {0, 0, in->rows, in->cols};
    out->header = take(&body, in->rows < 12 ? 1 : in->rows < TALL_ROWS ? 2 : 3);
    body.rows -= 2;
    out->status = (struct rect){in->rows - 2, 0, 1, in->cols};
    out->keys = (struct rect){in->rows - 1, 0, 1, in->cols};
    if (in->overlay)
        out->overlay = body;
    else if (in->zoom)
        out->pane[in->active] = body;
    else if (in->cols >= WIDE_COLS && in->rows >= WIDE_ROWS)
        columns(in, body, out);
    else
        stack(in, body, out);
}
