/* SPDX-License-Identifier: Apache-2.0 */
#include "ui/screen_ladder.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "ui/format.h"

enum rung_state rung_state(const struct board_trial *t)
{
    switch ((enum trial_status)t->status) {
    case TRIAL_PENDING:
        return t->measuring                       ? RUNG_MEASURING
               : t->origin == ORIGIN_SPECULATE ? RUNG_SPECULATIVE
                                                  : RUNG_QUEUED;
    case TRIAL_OK:
        break;
    case TRIAL_CUT:
        return RUNG_CUT;
    default:
        return RUNG_FAILED;
    }
    switch (t->verdict) {
    case VERDICT_BETTER:
        return RUNG_BETTER;
    case VERDICT_MOVED:
        return RUNG_MOVED;
    case VERDICT_WORSE:
        return RUNG_WORSE;
    case VERDICT_NOISE:
        return RUNG_NOISE;
    case VERDICT_FAILED:
        return RUNG_FAILED;
    default:
        return RUNG_MEASURED;
    }
}

double rung_change(const struct ladder *l, const struct board_trial *t)
{
    if (isfinite(t->gain))
        return -t->gain;
    if (t->status != TRIAL_OK && t->status != TRIAL_CUT)
        return NAN;
    double ns = isfinite(t->median_ns) ? t->median_ns : t->cost_ns;
    return ns / l->centre_ns - 1;
}

/* Lower is shown first. */
static double order_of(const struct ladder *l, const struct board_trial *t)
{
    switch (rung_state(t)) {
    case RUNG_FAILED:
        return 1e9;
    case RUNG_QUEUED:
    case RUNG_SPECULATIVE:
        return 1e8;
    case RUNG_MEASURING:
        return 1e7;
    default:
        break;
    }
    double change = rung_change(l, t);
    return isfinite(change) ? fmin(change, 1e6) : 1e6;
}

static void add_cell(const struct ladder *l, const struct board *b, struct rung_side *s,
                     const struct board_trial *t)
{
    s->nr++;
    int at = s->nr_cells;
    while (at > 0 && order_of(l, t) < order_of(l, board_trial(b, s->cell[at - 1])))
        at--;
    if (at == LADDER_CELLS)
        return;
    if (s->nr_cells < LADDER_CELLS)
        s->nr_cells++;
    memmove(&s->cell[at + 1], &s->cell[at],
            sizeof s->cell[0] * (size_t)(s->nr_cells - 1 - at));
    s->cell[at] = t->id;
}

/* The rungs of the sketch, still without trials. */
static void add_rungs(struct ladder *l, const struct board_task *t, const struct board_trial *c)
{
    /* A candidate's code begins with the number of its sketch. */
    int sketch = c->code ? atoi(c->code) : 0;
    int knob = 0;
    for (int i = 0; i < t->nr_knobs && l->nr < BOARD_KNOBS; i++) {
        if (t->knob[i].sketch != sketch)
            continue;
        struct rung *r = &l->rung[l->nr++];
        r->knob = knob++;
        r->info = &t->knob[i];
        format_knob(c->knobs ? c->knobs : "", t->knob[i].name, r->value, sizeof r->value);
    }
}

static struct rung *rung_of(struct ladder *l, const struct board_trial *t)
{
    bool step = t->origin == ORIGIN_NEIGHBOUR || t->origin == ORIGIN_SPECULATE;
    for (int i = 0; step && i < l->nr; i++)
        if (l->rung[i].knob == t->knob)
            return &l->rung[i];
    struct rung *last = l->nr ? &l->rung[l->nr - 1] : NULL;
    if (!last || last->knob != LADDER_OTHER) {
        last = &l->rung[l->nr++];
        memset(last, 0, sizeof *last);
        last->knob = LADDER_OTHER;
    }
    return last;
}

void ladder_build(struct ladder *l, const struct board *b, const struct board_task *t)
{
    memset(l, 0, sizeof *l);
    const struct board_trial *c = t ? board_trial(b, t->centre) : NULL;
    if (!c)
        return;
    l->centre = c->id;
    l->centre_ns = isfinite(c->median_ns) ? c->median_ns : c->cost_ns;
    add_rungs(l, t, c);
    for (int i = 0; i < t->nr_ring; i++) {
        const struct board_trial *n = board_trial(b, t->ring[i]);
        if (!n || n->id == c->id)
            continue;
        struct rung *r = rung_of(l, n);
        add_cell(l, b, &r->side[n->dir < 0 ? 0 : 1], n);
        enum rung_state s = rung_state(n);
        l->nr_trials++;
        l->nr_ended += n->status != TRIAL_PENDING;
        l->nr_better += s == RUNG_BETTER || s == RUNG_MOVED;
    }
}
