/* SPDX-License-Identifier: Apache-2.0 */
/* The leaderboard of the selected task. */
#include "ui/screen_draw.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "ui/format.h"
#include "ui/screen_words.h"

enum { LC_RANK, LC_TIME, LC_SPEEDUP, LC_GFLOPS, LC_PHASE, LC_SKETCH, LC_KNOBS, LC_NR };

static const struct column columns[LC_NR] = {
    [LC_RANK] = {"3 Leaders", 10, 0, true, false},
    [LC_TIME] = {"", 8, 0, false, false},
    [LC_SPEEDUP] = {"speedup", 7, 1, false, false},
    [LC_GFLOPS] = {"GFLOP/s", 7, 2, false, false},
    [LC_PHASE] = {"phase", 7, 3, true, false},
    [LC_SKETCH] = {"sketch", 10, 5, true, false},
    [LC_KNOBS] = {"knobs", 12, 0, true, true},
};

static void heads(const struct draw *d, const struct rect *r, const struct column_place *at,
                  const struct format_unit *u)
{
    enum role role = d->v->active == PANE_LEADERS ? ROLE_ACTIVE : ROLE_TITLE;
    for (int c = 0; c < LC_NR; c++) {
        char head[32];
        snprintf(head, sizeof head, "%s", columns[c].head);
        if (c == LC_TIME)
            snprintf(head, sizeof head, "time %s", u->text);
        if (c == LC_KNOBS && d->v->skip)
            snprintf(head, sizeof head, "knobs from column %d", d->v->skip + 1);
        else if (c == LC_KNOBS && at[c].width >= 24)
            snprintf(head, sizeof head, "knobs, then what differs");
        int x = r->x + 1 + at[c].x;
        if (columns[c].left)
            draw_text(d, r->y, x, at[c].width, role, head);
        else
            draw_right(d, r->y, x, at[c].width, role, head);
    }
    draw_title(d, r, PANE_LEADERS);
}

/* The knobs of the first row, of the others what differs: neighbours have most of them in common. */
static void knobs_text(struct strbuf *out, const struct board_trial *t,
                       const struct board_trial *first)
{
    bool same = t != first && t->sketch && first->sketch && !strcmp(t->sketch, first->sketch);
    format_knobs(out, t->knobs ? t->knobs : "", same && first->knobs ? first->knobs : NULL);
}

static void row(const struct draw *d, const struct rect *r, const struct column_place *at, int y,
                int rank, const struct board_trial *t, const struct board_trial *first,
                const struct format_unit *u)
{
    const struct board_task *task = view_task(d->v, d->b);
    char text[64], a[FORMAT_MAX];
    bool best = t->id == task->best;
    bool refined = t->phase == PHASE_REFINE || t->phase == PHASE_FINAL;
    snprintf(text, sizeof text, "%s%2d #%lld", best ? d->t->g->best : " ", rank + 1,
             (long long)t->id);
    draw_text(d, y, r->x + 1, at[LC_RANK].width, best ? ROLE_STRONG : ROLE_NORMAL, text);
    draw_right(d, y, r->x + 1 + at[LC_TIME].x, at[LC_TIME].width, best ? ROLE_STRONG : ROLE_NORMAL,
               format_in(a, t->median_ns, u));
    draw_right(d, y, r->x + 1 + at[LC_SPEEDUP].x, at[LC_SPEEDUP].width, ROLE_NORMAL,
               format_speedup(a, task->default_ns, t->median_ns));
    draw_right(d, y, r->x + 1 + at[LC_GFLOPS].x, at[LC_GFLOPS].width, ROLE_NORMAL,
               format_gflops(a, board_gflops(task, t->median_ns)));
    draw_text(d, y, r->x + 1 + at[LC_PHASE].x, at[LC_PHASE].width,
              refined ? ROLE_REFINE : ROLE_EXPLORE,
              t->phase < PHASE_DONE ? phase_name((enum phase)t->phase) : "");
    draw_text(d, y, r->x + 1 + at[LC_SKETCH].x, at[LC_SKETCH].width, ROLE_NORMAL,
              t->sketch ? t->sketch : "");
    struct strbuf knobs = {0};
    knobs_text(&knobs, t, first);
    draw_skip(d, y, r->x + 1 + at[LC_KNOBS].x, at[LC_KNOBS].width, d->v->skip, ROLE_NORMAL,
              strbuf_text(&knobs));
    strbuf_release(&knobs);
    if (rank == view_cursor(d->v, d->b, PANE_LEADERS))
        draw_cursor(d, r, PANE_LEADERS, y);
}

static void why_empty(const struct draw *d, const struct rect *r, const struct board_task *t)
{
    if (!t)
        draw_empty(d, r, "no task is selected");
    else if (!d->b->nr_trials)
        draw_empty(d, r, "no trial has been proposed yet");
    else if (t->phase == PHASE_WAITING)
        draw_empty(d, r, "%s has not been started: other tasks promise more", t->name);
    else if (t->nr_trials)
        draw_empty(d, r, "none of the %lld trials of %s has succeeded; 5 shows why",
                   (long long)t->nr_trials, t->name);
    else
        draw_empty(d, r, "no trial of %s has ended yet", t->name);
}

void draw_leaders(const struct draw *d, const struct rect *r)
{
    const struct view *v = d->v;
    const struct board_task *t = view_task(v, d->b);
    struct column_place at[LC_NR];
    columns_fit(columns, LC_NR, r->cols - 2, 24, at);
    const struct board_trial *first = t && t->nr_leaders ? board_trial(d->b, t->leader[0]) : NULL;
    struct format_unit u = format_unit(first ? first->median_ns : NAN);
    heads(d, r, at, &u);
    int top = v->top[PANE_LEADERS];
    for (int i = 0; t && i + 1 < r->rows && top + i < t->nr_leaders; i++) {
        const struct board_trial *trial = board_trial(d->b, t->leader[top + i]);
        if (trial)
            row(d, r, at, r->y + 1 + i, top + i, trial, first, &u);
    }
    if (!first)
        why_empty(d, r, t);
}
