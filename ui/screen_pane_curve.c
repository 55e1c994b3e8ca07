/* SPDX-License-Identifier: Apache-2.0 */
/* The best-so-far curve of the selected task. */
#include "ui/screen_draw.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <wchar.h>

#include <curses.h>

#include "engine/base/arena.h"
#include "ui/format.h"
#include "ui/plot.h"

/* What the plot is made of; freed with release(). */
struct series {
    struct plot_in in;
    struct plot_point *point;
    double *failure;
};

static double x_of(const struct view *v, const struct board_trial *t, int64_t start_ns)
{
    return v->plot_time ? (double)(t->ended_ns - start_ns) : index_ordinal(&v->index, t->id);
}

static void collect(struct series *s, const struct draw *d, const struct board_task *t)
{
    const struct view *v = d->v;
    const struct index *ix = &v->index;
    memset(s, 0, sizeof *s);
    s->in.refine_x = NAN;
    s->in.time = v->plot_time;
    s->in.set = d->t->set;
    const struct board_trial *first = ix->nr_members ? board_trial(d->b, ix->member[0]) : NULL;
    if (!t || !first)
        return;
    int64_t start = first->started_ns;
    s->point = xcalloc((size_t)t->nr_points + 1, sizeof *s->point);
    s->failure = xcalloc((size_t)ix->nr_failed + 1, sizeof *s->failure);
    for (int i = 0; i < t->nr_points; i++) {
        const struct board_trial *p = board_trial(d->b, t->point[i].trial);
        if (!p)
            continue;
        double x = v->plot_time ? (double)(t->point[i].t_ns - start) : x_of(v, p, start);
        s->point[s->in.nr_points++] = (struct plot_point){x, t->point[i].cost_ns};
        s->in.x_now = fmax(s->in.x_now, x);
    }
    for (int i = 0; i < ix->nr_failed; i++)
        s->failure[s->in.nr_failures++] = x_of(v, board_trial(d->b, ix->failed[i]), start);
    if (ix->first_refine) {
        const struct board_trial *p = board_trial(d->b, ix->first_refine);
        s->in.refine_x = v->plot_time ? (double)(p->started_ns - start) : x_of(v, p, start) - 1;
        /* Not measured yet: it has no time, and nothing is refined so far. */
        if (p->started_ns <= 0 && v->plot_time)
            s->in.refine_x = NAN;
    }
    s->in.x_now = fmax(s->in.x_now, v->plot_time ? (double)(ix->last_ended_ns - start)
                                                 : (double)t->nr_trials);
    s->in.point = s->point;
    s->in.failure = s->failure;
}

static void release(struct series *s)
{
    free(s->point);
    free(s->failure);
}

static void title(const struct draw *d, const struct rect *r, const struct board_task *t, bool log)
{
    char text[256], a[FORMAT_MAX], c[FORMAT_MAX];
    enum role role = d->v->active == PANE_CURVE ? ROLE_ACTIVE : ROLE_TITLE;
    snprintf(text, sizeof text, "2 Best so far%s%s", t ? "  " : "", t ? t->name : "");
    int right = 0;
    if (t && isfinite(t->best_ns)) {
        char value[96];
        snprintf(value, sizeof value, "%s%s  %s", log ? "log  " : "", format_time(a, t->best_ns),
                 format_speedup(c, t->default_ns, t->best_ns));
        right = (int)strlen(value) + 2;
        if (right < r->cols / 2)
            draw_right(d, r->y, r->x + r->cols - right, right - 1, role, value);
        else
            right = 0;
    }
    draw_text(d, r->y, r->x + 1, r->cols - 2 - right, role, text);
    draw_title(d, r, PANE_CURVE);
}

static void put_cells(const struct draw *d, const struct rect *r, const struct plot_cell *cell,
                      int rows, int cols)
{
    for (int y = 0; y < rows; y++)
        for (int x = 0; x < cols; x++) {
            const struct plot_cell *c = &cell[y * cols + x];
            wchar_t w[2] = {(wchar_t)c->ch, L'\0'};
            if (!c->ch)
                continue;
            attrset((int)d->t->attr[c->role]);
            mvaddnwstr(r->y + 1 + y, r->x + 1 + x, w, 1);
        }
    attrset(A_NORMAL);
}

void draw_curve(const struct draw *d, const struct rect *r)
{
    const struct board_task *t = view_task(d->v, d->b);
    struct series s;
    collect(&s, d, t);
    s.in.rows = r->rows - 1;
    s.in.cols = r->cols - 2;
    title(d, r, t, plot_is_log(&s.in));
    if (s.in.rows > 0 && s.in.cols > 0) {
        struct plot_cell *cell = xcalloc((size_t)s.in.rows * (size_t)s.in.cols, sizeof *cell);
        if (plot_render(&s.in, cell))
            put_cells(d, r, cell, s.in.rows, s.in.cols);
        else if (!s.in.nr_points)
            draw_empty(d, r, t ? "nothing has been measured yet" : "no task is selected");
        free(cell);
    }
    release(&s);
}
