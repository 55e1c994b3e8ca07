/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ladder. A row is a knob: what was tried below the incumbent's value, the value, what was tried
 * beside it. A cell shows, as far as its width allows and in this order of importance: glyph, change,
 * value, word, p, time. Where there is no room for a p beside the word, a p that decided stands in
 * the word's place: the glyph says the same.
 */
#include "ui/screen_draw.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "ui/format.h"
#include "ui/screen_text.h"
#include "ui/screen_words.h"

enum { CHANGE = 5, VALUE = 6, WORD = 6, LONG_WORD = 8, P = 5, TIME = 7, COUNT = 3 };

struct shape {
    int name, value, side; /* widths */
    int nr_cells, cell;    /* on a side */
    bool count;            /* room for "+2": more on this side than is shown */
    struct format_unit unit;
};

static int longest(const struct ladder *l, bool values)
{
    int n = 0;
    for (int i = 0; i < l->nr; i++) {
        const struct rung *r = &l->rung[i];
        int w = text_width(values ? r->value : r->info ? r->info->name : "others", false);
        n = w > n ? w : n;
    }
    return n;
}

static int clamp(int v, int lo, int hi)
{
    return v < lo ? lo : v > hi ? hi : v;
}

static void shape_of(const struct draw *d, const struct rect *r, struct shape *s)
{
    const struct ladder *l = &d->v->ladder;
    int inner = r->cols - 2;
    s->name = clamp(longest(l, false), 8, inner < 60 ? 10 : inner < 90 ? 12 : 16);
    s->value = clamp(longest(l, true), 8, inner < 70 ? 10 : 18);
    s->side = (inner - s->name - s->value - 3) / 2;
    s->count = s->side >= 28;
    int room = s->side - (s->count ? COUNT + 1 : 0);
    s->nr_cells = clamp((room + 2) / 36, 1, LADDER_CELLS);
    s->cell = (room + 2) / s->nr_cells - 2;
    s->unit = format_unit(l->centre_ns);
}

/* The value that a neighbour has in the knob of its rung. */
static void value_of(const struct rung *r, const struct board_trial *t, char *out, size_t size)
{
    out[0] = '\0';
    if (r->info)
        format_knob(t->knobs ? t->knobs : "", r->info->name, out, size);
    else
        snprintf(out, size, "%s", t->note ? t->note : "");
}

/* Which parts of a cell have room, and the width of the value. */
struct parts {
    bool word, p, time;
    int value, change, words;
};

static struct parts parts_of(int cols)
{
    struct parts s = {false, false, false, 0, CHANGE, WORD};
    int left = cols - 2 - CHANGE; /* glyph and change are always there */
    s.word = left >= VALUE + WORD + 2;
    if (!s.word) { /* then a word may have to stand in for the change */
        left -= WORD - CHANGE;
        s.change = WORD;
    }
    left -= s.word ? WORD + 1 : 0;
    s.p = left >= VALUE + 2 + P + 2;
    left -= s.p ? P + 1 : 0;
    s.time = left >= VALUE + 4 + TIME + 2;
    left -= s.time ? TIME + 1 : 0;
    s.value = left > VALUE ? left - 1 : 0;
    if (s.word && s.value >= VALUE + 6) {
        s.value -= LONG_WORD - WORD;
        s.words = LONG_WORD;
    }
    return s;
}

static bool p_decided(const struct board_trial *t)
{
    enum rung_state s = rung_state(t);
    return isfinite(t->p_value) && (s == RUNG_NOISE || s == RUNG_BETTER || s == RUNG_MOVED);
}

static void cell(const struct draw *d, const struct shape *s, const struct rung *r,
                 const struct board_trial *t, int y, int x)
{
    struct word w = word_rung(d->v, rung_state(t));
    struct parts parts = parts_of(s->cell);
    char text[64], p[FORMAT_MAX];
    int end = x + s->cell;
    draw_text(d, y, x, 1, w.role, w.glyph);
    x += 2;
    if (parts.value) {
        value_of(r, t, text, sizeof text);
        draw_text(d, y, x, parts.value, ROLE_NORMAL, text);
        x += parts.value + 1;
    }
    double ns = isfinite(t->median_ns) ? t->median_ns : t->cost_ns;
    if (parts.time) {
        if (isfinite(ns))
            draw_right(d, y, x, TIME, ROLE_NORMAL, format_in(text, ns, &s->unit));
        x += TIME + 1;
    }
    double change = rung_change(&d->v->ladder, t);
    if (isfinite(change))
        draw_right(d, y, x, parts.change, w.role, format_change(text, change));
    else if (!parts.word)
        draw_text(d, y, x, end - x, w.role, w.text);
    x += parts.change + 1;
    if (!parts.word)
        return;
    if (!parts.p && p_decided(t))
        snprintf(text, sizeof text, t->p_value < 0.001 ? "p%s" : "p %s", format_p(p, t->p_value));
    else
        snprintf(text, sizeof text, "%s",
                 text_width(w.text, false) > parts.words ? "meas." : w.text);
    draw_text(d, y, x, parts.words, w.role, text);
    x += parts.words + 1;
    if (parts.p && isfinite(t->p_value))
        draw_right(d, y, x, P, ROLE_NORMAL, format_p(p, t->p_value));
}

static void side(const struct draw *d, const struct shape *s, const struct rung *r, int i, int y,
                 int x)
{
    const struct rung_side *e = &r->side[i];
    int shown = e->nr_cells < s->nr_cells ? e->nr_cells : s->nr_cells;
    for (int c = 0; c < shown; c++) {
        const struct board_trial *t = board_trial(d->b, e->cell[c]);
        if (t)
            cell(d, s, r, t, y, x + c * (s->cell + 2));
    }
    if (s->count && e->nr > shown) {
        char more[16];
        snprintf(more, sizeof more, "+%d", e->nr - shown < 99 ? e->nr - shown : 99);
        draw_right(d, y, x + s->side - COUNT, COUNT, ROLE_DIM, more);
    }
}

static void heads(const struct draw *d, const struct rect *r, const struct shape *s)
{
    const struct ladder *l = &d->v->ladder;
    enum role role = d->v->active == PANE_LADDER ? ROLE_ACTIVE : ROLE_TITLE;
    char text[96], a[FORMAT_MAX];
    int x = r->x + 1;
    draw_text(d, r->y, x, s->name, role, "4 Ladder");
    x += s->name + 1;
    draw_text(d, r->y, x, s->side, role, "below");
    x += s->side + 1;
    snprintf(text, sizeof text, "#%lld", (long long)l->centre);
    draw_text(d, r->y, x, s->value, role, text);
    x += s->value + 1;
    snprintf(text, sizeof text, "beside");
    int used = draw_text(d, r->y, x, s->side, role, text);
    snprintf(text, sizeof text, "%s, %d of %d tried", format_time(a, l->centre_ns), l->nr_ended,
             l->nr_trials);
    if (s->side >= 40)
        draw_right(d, r->y, x + used + 1, s->side - used - 1, role, text);
    else if (s->side >= 22) {
        snprintf(text, sizeof text, "%d of %d tried", l->nr_ended, l->nr_trials);
        draw_right(d, r->y, x + used + 1, s->side - used - 1, role, text);
    }
    draw_title(d, r, PANE_LADDER);
}

static void row(const struct draw *d, const struct rect *r, const struct shape *s, int i, int y)
{
    const struct view *v = d->v;
    const struct rung *rung = &v->ladder.rung[i];
    int x = r->x + 1;
    int below = x + s->name + 1, value = below + s->side + 1, beside = value + s->value + 1;
    draw_text(d, y, x, s->name, ROLE_NORMAL, rung->info ? rung->info->name : "others");
    side(d, s, rung, 0, y, below);
    draw_text(d, y, value, s->value, ROLE_STRONG, rung->value);
    side(d, s, rung, 1, y, beside);
    if (rung->knob != v->rung)
        return;
    draw_text(d, y, r->x, 1, ROLE_STRONG, d->t->g->cursor);
    if (v->active != PANE_LADDER)
        return;
    /* The cursor is a cell: the keys left and right choose it. */
    draw_paint(d, y, x, s->name, ROLE_CURSOR);
    if (v->rung_side < 0)
        draw_paint(d, y, below, s->side, ROLE_CURSOR);
    else if (v->rung_side > 0)
        draw_paint(d, y, beside, s->side, ROLE_CURSOR);
    else
        draw_paint(d, y, value, s->value, ROLE_CURSOR);
}

static void why_empty(const struct draw *d, const struct rect *r)
{
    const struct board_task *t = view_task(d->v, d->b);
    enum role role = d->v->active == PANE_LADDER ? ROLE_ACTIVE : ROLE_TITLE;
    draw_text(d, r->y, r->x + 1, r->cols - 2, role, "4 Ladder");
    draw_title(d, r, PANE_LADDER);
    if (!t)
        draw_empty(d, r, "no task is selected");
    else if (t->phase < PHASE_REFINE)
        draw_empty(d, r, "the ladder shows the neighbours of the incumbent; %s is %s, its "
                         "refinement has not begun", t->name, word_phase(t->phase));
    else
        draw_empty(d, r, "no neighbour of the incumbent has been proposed");
}

void draw_ladder(const struct draw *d, const struct rect *r)
{
    const struct view *v = d->v;
    if (!v->ladder.centre || !v->ladder.nr) {
        why_empty(d, r);
        return;
    }
    struct shape s;
    shape_of(d, r, &s);
    heads(d, r, &s);
    int top = v->top[PANE_LADDER];
    for (int i = 0; i + 1 < r->rows && top + i < v->ladder.nr; i++)
        row(d, r, &s, top + i, r->y + 1 + i);
}
