/* SPDX-License-Identifier: Apache-2.0 */
#include "ui/screen_view.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "engine/base/arena.h"
#include "ui/screen_detail.h"
#include "ui/screen_text.h"

void view_init(struct view *v, enum glyph_set set)
{
    memset(v, 0, sizeof *v);
    v->set = set;
    v->g = glyphs_get(set);
    v->task = -1;
    v->follow = true;
    v->active = PANE_TASKS;
    index_init(&v->index);
}

void view_release(struct view *v)
{
    free(v->order);
    page_release(&v->page);
    index_release(&v->index);
}

const struct board_task *view_task(const struct view *v, const struct board *b)
{
    return v->task >= 0 && v->task < b->nr_tasks ? &b->task[v->task] : NULL;
}

bool view_is_live(const struct view *v, const struct board *b)
{
    return v->can_steer && !b->ended;
}

void view_say(struct view *v, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(v->message, sizeof v->message, fmt, ap);
    va_end(ap);
    v->message_until_ns = v->now_ns + 5000000000;
}

void view_log(struct view *v, const char *text)
{
    struct log_line *l = &v->log[v->nr_log++ % VIEW_LOG];
    snprintf(l->text, sizeof l->text, "%s", text);
}

static int log_rows(const struct view *v)
{
    return (int)(v->nr_log < VIEW_LOG ? v->nr_log : VIEW_LOG);
}

/* The group with the row-th highest count; of equals the older. */
static int group_at(const struct index *ix, int row)
{
    for (int i = 0; i < ix->nr_groups; i++) {
        int before = 0;
        for (int k = 0; k < ix->nr_groups; k++)
            before += ix->group[k].count > ix->group[i].count ||
                      (ix->group[k].count == ix->group[i].count && k < i);
        if (before == row)
            return i;
    }
    return 0;
}

struct note_row view_note(const struct view *v, const struct board *b, int row)
{
    struct note_row r = {{NOTE_NONE, 0}, NULL, NULL, NULL};
    if (row < 0)
        return r;
    if (row < v->index.nr_groups) {
        int g = group_at(&v->index, row);
        r.id = (struct note_id){NOTE_GROUP, g};
        r.group = &v->index.group[g];
        return r;
    }
    row -= v->index.nr_groups;
    if (row < log_rows(v)) {
        r.id = (struct note_id){NOTE_LOG, v->nr_log - 1 - row};
        r.log = &v->log[r.id.nr % VIEW_LOG];
        return r;
    }
    row -= log_rows(v);
    if (row < b->nr_notes) {
        r.event = &b->note[b->nr_notes - 1 - row];
        r.id = (struct note_id){NOTE_EVENT, r.event->seq};
    }
    return r;
}

int view_nr_rows(const struct view *v, const struct board *b, enum pane p)
{
    const struct board_task *t = view_task(v, b);
    switch (p) {
    case PANE_TASKS:
        return v->nr_order;
    case PANE_LEADERS:
        return t ? t->nr_leaders : 0;
    case PANE_LADDER:
        return v->ladder.nr;
    case PANE_NOTES:
        return v->index.nr_groups + log_rows(v) + b->nr_notes;
    default:
        return 0;
    }
}

static bool is_row(const struct view *v, const struct board *b, enum pane p, int row)
{
    struct note_id id;
    switch (p) {
    case PANE_TASKS:
        return v->order[row] == v->task;
    case PANE_LEADERS:
        return view_task(v, b)->leader[row] == v->trial;
    case PANE_LADDER:
        return v->ladder.rung[row].knob == v->rung;
    case PANE_NOTES:
        id = view_note(v, b, row).id;
        return id.kind == v->note.kind && id.nr == v->note.nr;
    default:
        return false;
    }
}

int view_cursor(const struct view *v, const struct board *b, enum pane p)
{
    int nr = view_nr_rows(v, b, p);
    for (int i = 0; i < nr; i++)
        if (is_row(v, b, p, i))
            return i;
    /* A task that the filter hides stays selected, without a row; elsewhere the first row is. */
    return nr && p != PANE_TASKS ? 0 : -1;
}

int64_t view_rung_trial(const struct view *v)
{
    for (int i = 0; i < v->ladder.nr; i++) {
        const struct rung *r = &v->ladder.rung[i];
        if (r->knob != v->rung)
            continue;
        if (v->rung_side == 0)
            return v->ladder.centre;
        const struct rung_side *s = &r->side[v->rung_side > 0];
        return s->nr_cells ? s->cell[0] : 0;
    }
    return 0;
}

/* What a task is sorted by; NAN goes last in either direction. */
static double sort_value(const struct board *b, int task, enum task_column c)
{
    const struct board_task *t = &b->task[task];
    double best = t->best_ns;
    switch (c) {
    case TC_STATE:
        return t->phase;
    case TC_PHASE:
        return t->budget > 0 ? (double)t->nr_phase / (double)t->budget : NAN;
    case TC_WEIGHT:
        return t->weight;
    case TC_DEFAULT:
        return t->default_ns;
    case TC_BEST:
        return best;
    case TC_SPEEDUP:
        return t->default_ns / best;
    case TC_GFLOPS:
    case TC_PEAK:
        return isfinite(best) ? board_gflops(t, best) : NAN;
    case TC_SHARE:
        return t->weight * best;
    case TC_TRIALS:
        return (double)t->nr_trials;
    default:
        return task;
    }
}

static int compare_tasks(const struct view *v, const struct board *b, int x, int y)
{
    int c;
    if (v->sort == TC_NAME) {
        c = strcmp(b->task[x].name, b->task[y].name);
    } else {
        double p = sort_value(b, x, v->sort), q = sort_value(b, y, v->sort);
        if (isnan(p) || isnan(q))
            return isnan(p) != isnan(q) ? (isnan(p) ? 1 : -1) : x - y;
        c = (p > q) - (p < q);
    }
    if (v->reverse)
        c = -c;
    return c ? c : x - y;
}

static bool matches(const char *name, const char *filter)
{
    size_t n = strlen(filter);
    for (; *name; name++)
        if (!strncasecmp(name, filter, n))
            return true;
    return n == 0;
}

/* Insertion into what is nearly sorted already: tasks are few and move little between frames. */
static void sort_order(struct view *v, const struct board *b)
{
    for (int i = 1; i < v->nr_order; i++) {
        int task = v->order[i], k = i;
        for (; k > 0 && compare_tasks(v, b, v->order[k - 1], task) > 0; k--)
            v->order[k] = v->order[k - 1];
        v->order[k] = task;
    }
}

static void arrange_tasks(struct view *v, const struct board *b)
{
    /* Keep those that still match in their order, then add the new ones behind. */
    int nr = 0;
    for (int i = 0; i < v->nr_order; i++)
        if (v->order[i] < b->nr_tasks && matches(b->task[v->order[i]].name, v->filter))
            v->order[nr++] = v->order[i];
    v->nr_order = nr;
    for (int t = 0; t < b->nr_tasks; t++) {
        if (!matches(b->task[t].name, v->filter))
            continue;
        bool known = false;
        for (int i = 0; i < nr && !known; i++)
            known = v->order[i] == t;
        if (known)
            continue;
        GROW(v->order, v->nr_order, v->cap_order);
        v->order[v->nr_order++] = t;
    }
    if (v->now_ns >= v->sort_hold_ns)
        sort_order(v, b);
}

static void select_rows(struct view *v, const struct board *b)
{
    if (v->follow && b->current >= 0)
        v->task = b->current;
    if (v->task < 0 && b->nr_tasks)
        v->task = 0;
    if (v->task >= b->nr_tasks)
        v->task = b->nr_tasks - 1;
    bool found = false;
    for (int i = 0; i < v->ladder.nr && !found; i++)
        found = v->ladder.rung[i].knob == v->rung;
    if (!found)
        v->rung = v->ladder.nr ? v->ladder.rung[0].knob : 0;
}

/* The first row to show so that the cursor is on the screen and no line is left empty at the end. */
static int scroll_to(int top, int cursor, int nr, int rows)
{
    if (rows <= 0)
        return 0;
    if (cursor >= 0 && cursor < top)
        top = cursor;
    if (cursor >= top + rows)
        top = cursor - rows + 1;
    if (top > nr - rows)
        top = nr - rows;
    return top < 0 ? 0 : top;
}

/* The widest name shown, up to what a wide screen gives it. */
static int name_width(const struct view *v, const struct board *b)
{
    int n = 12;
    for (int i = 0; i < v->nr_order; i++) {
        int w = text_width(b->task[v->order[i]].name, v->set == GLYPHS_ASCII);
        n = w > n ? w : n;
    }
    return n < 32 ? n : 32;
}

void view_arrange(struct view *v, const struct board *b, int rows, int cols)
{
    v->rows = rows;
    v->cols = cols;
    arrange_tasks(v, b);
    select_rows(v, b);
    const struct board_task *t = view_task(v, b);
    index_update(&v->index, b, t ? v->task : -1);
    ladder_build(&v->ladder, b, t);
    select_rows(v, b);
    struct layout_in in = {
        .rows = rows,
        .cols = cols,
        .nr_tasks = v->nr_order,
        .ladder = v->ladder.centre && v->ladder.nr_trials,
        .refining = t && t->phase == PHASE_REFINE,
        .nr_ladder = v->ladder.nr,
        .active = v->active,
        .zoom = v->zoom,
        .overlay = v->overlay != OVERLAY_NONE,
    };
    screen_layout(&in, &v->layout);
    for (int p = 0; p < PANE_NR; p++)
        v->top[p] = scroll_to(v->top[p], view_cursor(v, b, (enum pane)p),
                              view_nr_rows(v, b, (enum pane)p), v->layout.pane[p].rows - 1);
    columns_fit(task_columns, TC_NR, cols - 2, name_width(v, b), v->task_at);
    if (v->overlay != OVERLAY_NONE) {
        detail_build(v, b, cols - 2);
        v->overlay_top = scroll_to(v->overlay_top, -1, v->page.nr, v->layout.overlay.rows - 1);
    }
}
