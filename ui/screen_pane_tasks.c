/* SPDX-License-Identifier: Apache-2.0 */
/* The task table. */
#include "ui/screen_draw.h"

#include <math.h>
#include <stdio.h>

#include "ui/format.h"
#include "ui/screen_words.h"

static double model_share(const struct board *b, const struct board_task *t)
{
    double sum = 0;
    for (int i = 0; i < b->nr_tasks; i++)
        if (isfinite(b->task[i].best_ns))
            sum += b->task[i].weight * b->task[i].best_ns;
    return sum > 0 ? t->weight * t->best_ns / sum : NAN;
}

static void cell_text(const struct draw *d, int i, enum task_column c, char *text, size_t size)
{
    const struct board *b = d->b;
    const struct board_task *t = &b->task[i];
    char a[FORMAT_MAX], e[FORMAT_MAX];
    double peak = b->session.u.session.peak_gflops;
    struct word w;
    text[0] = '\0';
    switch (c) {
    case TC_NUMBER:
        snprintf(text, size, "%d", i + 1);
        break;
    case TC_NAME:
        snprintf(text, size, "%s", t->name);
        break;
    case TC_STATE:
        w = word_task(d->v, t);
        snprintf(text, size, "%s %s", w.glyph, w.text);
        break;
    case TC_PHASE:
        if (t->budget > 0 && (t->phase == PHASE_EXPLORE || t->phase == PHASE_REFINE))
            snprintf(text, size, "%s/%s", format_count(a, (double)t->nr_phase),
                     format_count(e, (double)t->budget));
        break;
    case TC_WEIGHT:
        snprintf(text, size, "%s", format_count(a, t->weight));
        break;
    case TC_DEFAULT:
        snprintf(text, size, "%s", format_time(a, t->default_ns));
        break;
    case TC_BEST:
        snprintf(text, size, "%s", format_time(a, t->best_ns));
        break;
    case TC_SPEEDUP:
        snprintf(text, size, "%s", format_speedup(a, t->default_ns, t->best_ns));
        break;
    case TC_GFLOPS:
        snprintf(text, size, "%s",
                 format_gflops(a, isfinite(t->best_ns) ? board_gflops(t, t->best_ns) : NAN));
        break;
    case TC_PEAK:
        snprintf(text, size, "%s",
                 format_share(a, peak > 0 && t->flops > 0 && isfinite(t->best_ns)
                                     ? board_gflops(t, t->best_ns) / peak : NAN));
        break;
    case TC_SHARE:
        snprintf(text, size, "%s", format_share(a, model_share(b, t)));
        break;
    case TC_TRIALS:
        snprintf(text, size, "%s", format_count(a, (double)t->nr_trials));
        break;
    case TC_NR:
        break;
    }
}

static void heads(const struct draw *d, const struct rect *r, const struct column_place *at)
{
    enum role role = d->v->active == PANE_TASKS ? ROLE_ACTIVE : ROLE_TITLE;
    for (int c = 0; c < TC_NR; c++) {
        char head[48];
        if (!at[c].width)
            continue;
        const char *mark = (int)d->v->sort == c && (c != TC_NUMBER || d->v->reverse)
                               ? (d->v->reverse ? d->t->g->down : d->t->g->up) : "";
        int x = r->x + 1 + at[c].x;
        if (c == TC_NAME && d->v->nr_order < d->b->nr_tasks)
            snprintf(head, sizeof head, "1 Tasks%s %d of %d", mark, d->v->nr_order, d->b->nr_tasks);
        else if (c == TC_NAME)
            snprintf(head, sizeof head, "1 Tasks%s %d", mark, d->b->nr_tasks);
        else
            snprintf(head, sizeof head, "%s%s", task_columns[c].head, mark);
        /* The mark of a right-aligned head stands in the gap behind it. */
        if (task_columns[c].left)
            draw_text(d, r->y, x, at[c].width, role, head);
        else
            draw_right(d, r->y, x, at[c].width + (*mark != 0), role, head);
    }
    draw_title(d, r, PANE_TASKS);
}

static void row(const struct draw *d, const struct rect *r, const struct column_place *at, int y,
                int task)
{
    const struct board_task *t = &d->b->task[task];
    enum role state = word_task(d->v, t).role;
    for (int c = 0; c < TC_NR; c++) {
        char text[EVENT_NAME];
        if (!at[c].width)
            continue;
        cell_text(d, task, (enum task_column)c, text, sizeof text);
        enum role role = c == TC_STATE                                ? state
                         : c == TC_BEST && isfinite(t->best_ns)       ? ROLE_STRONG
                         : t->phase == PHASE_WAITING && c != TC_NAME ? ROLE_DIM
                                                                      : ROLE_NORMAL;
        int x = r->x + 1 + at[c].x;
        if (task_columns[c].left)
            draw_text(d, y, x, at[c].width, role, text);
        else
            draw_right(d, y, x, at[c].width, role, text);
    }
    if (task == d->v->task)
        draw_cursor(d, r, PANE_TASKS, y);
}

void draw_tasks(const struct draw *d, const struct rect *r)
{
    const struct view *v = d->v;
    const struct column_place *at = v->task_at;
    heads(d, r, at);
    int top = v->top[PANE_TASKS];
    for (int i = 0; i + 1 < r->rows && top + i < v->nr_order; i++)
        row(d, r, at, r->y + 1 + i, v->order[top + i]);
    if (v->nr_order)
        return;
    if (d->b->nr_tasks)
        draw_empty(d, r, "no task has \"%s\" in its name; / changes the filter, Esc drops it",
                   v->filter);
    else if (d->b->ended)
        draw_empty(d, r, "the session has no task");
    else if (d->b->has_session)
        draw_empty(d, r, "no task yet: the model is being read");
    else
        draw_empty(d, r, "nothing yet: the session has not begun");
}
