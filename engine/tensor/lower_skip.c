/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Taps on padding. What a convolution multiplies with the zeros around an image, or with those that
 * fill up its last block of channels, or a pool compares with what is less than everything, changes
 * no sum and need not be computed: a fifth of a 3x3 convolution of 7x7, a quarter of what is read
 * of 24 channels in blocks of 16.
 *
 * Rows: where the register tile has one row only, a branch around the loops inside passes over the
 * taps of a row that is padding. Columns: where the code is made for every position of the register
 * tile in its row apart, it is known which of its elements have a tap on padding; these are left
 * out. A tile whose taps are all decided in one of these ways reads the image itself, without a
 * padded copy and without asking.
 */
#include "engine/tensor/lower_private.h"

#include "engine/search/space.h"

/* Of the code of a register tile, one for each position of the tile in its row. */
enum { MAX_COPIES = 4 };

/* `f`, an index by the axes of a producer, by those of its reader, who loads at `idx`. */
static struct affine compose(const struct affine *f, const struct affine *idx)
{
    struct affine sum = affine_const(f->base);
    for (int d = 0; d < LAYOUT_MAX_DIMS; d++) {
        struct affine part = idx[d];
        part.base *= f->coef[d];
        for (int a = 0; a < WL_MAX_AXES; a++)
            part.coef[a] *= f->coef[d];
        sum = affine_add(sum, part);
    }
    return sum;
}

static bool may_leave(const struct wl_stage *s, const struct tap *t)
{
    int64_t lo = t->at.base, hi = t->at.base;
    for (int a = 0; a < s->nr_spatial + s->nr_reduce; a++) {
        int64_t reach = t->at.coef[a] * (s->extent[a] - 1);
        *(reach < 0 ? &lo : &hi) += reach;
    }
    return lo < 0 || hi >= t->extent;
}

static void add_tap(struct nest_plan *n, const struct affine *at, int64_t extent)
{
    const struct tap t = {*at, extent};
    if (may_leave(&n->plan->w->stage[n->anchor], &t) && n->nr_taps < LAYOUT_MAX_DIMS)
        n->tap[n->nr_taps++] = t;
}

/* Index in producer[] of what fills `tensor`, -1 for none. */
static int producer_of(const struct nest_plan *n, int tensor)
{
    for (int i = 0; i < n->nr_producers; i++)
        if (n->plan->w->stage[n->producer[i].stage].out == tensor)
            return i;
    return -1;
}

/* The taps of a load that makes a body neutral wherever it leaves its tensor, or what it reads is
 * padding that a producer has made. */
static void add_taps_of(struct nest_plan *n, const struct wl_expr *load, float neutral)
{
    const struct workload *w = n->plan->w;
    int i = producer_of(n, load->tensor);
    const struct wl_expr *x = i < 0 ? load : w->stage[n->producer[i].stage].body;
    if (x->op != WL_LOAD || !x->guarded || x->pad != neutral || (i >= 0 && load->guarded))
        return;
    for (int d = 0; d < w->tensor[x->tensor].nr_dims; d++) {
        struct affine at = i < 0 ? x->idx[d] : compose(&x->idx[d], load->idx);
        add_tap(n, &at, w->tensor[x->tensor].dim[d]);
    }
    if (i >= 0)
        n->padded = i;
}

static void find_taps(struct nest_plan *n, const struct wl_expr *e, enum wl_combine c)
{
    if (e->op == WL_LOAD)
        add_taps_of(n, e, wl_neutral(c));
    if (e->op != WL_MUL || c != WL_SUM)
        return;
    find_taps(n, e->a, c);
    find_taps(n, e->b, c);
}

void plan_taps(struct nest_plan *n)
{
    const struct wl_stage *s = &n->plan->w->stage[n->anchor];
    n->padded = -1;
    if (s->nr_reduce)
        find_taps(n, s->body, s->combine);
}

bool nest_pads_inline(const struct nest_plan *n, const struct candidate *c)
{
    return n->padded >= 0 && knob_place(n->plan, n->producer[n->padded].knob, c) == PLACE_INLINE;
}

enum tap_kind tap_kind(const struct nest_plan *n, const struct nest_shape *sh,
                       const struct candidate *c, const struct tap *t)
{
    const struct wl_stage *s = &n->plan->w->stage[n->anchor];
    bool inlined = nest_pads_inline(n, c), one = true;
    int64_t copies = 1, body = sh->tile_vectors * sh->unrolled_trips;
    for (int a = 0; a < s->nr_spatial + s->nr_reduce; a++) {
        int r = a - s->nr_spatial;
        if (!t->at.coef[a])
            continue;
        one &= r >= 0 || sh->s[a][3] == 1;
        if (r >= 0 ? sh->r[r][0] > 1 : n->plan->target.threads > 1 && sh->s[a][0] > 1)
            copies = MAX_BODY_OPS;
        else if (r >= 0)
            body *= sh->r[r][1] / sh->unrolled[r];
        else
            copies *= sh->s[a][0] * sh->s[a][1] * sh->s[a][2];
    }
    if (one)
        return TAP_BRANCH;
    if (n->vec >= 0 && t->at.coef[n->vec]) /* its lanes are not told apart */
        copies = MAX_BODY_OPS;
    return copies <= (inlined ? MAX_COPIES : 1) && copies * body <= MAX_BODY_OPS ? TAP_KNOWN
                                                                                 : TAP_ASKED;
}

void lower_skip_taps(struct lowering *L)
{
    const struct nest_plan *n = L->n;
    L->rows = L->columns = L->given = (struct lp_cond){0};
    if (n->skip_knob < 0 || !knob_value(&L->p->sketch->knob[n->skip_knob], L->c))
        return;
    for (int i = 0; i < n->nr_taps; i++) {
        const struct tap *t = &n->tap[i];
        struct lp_range r = {lower_value_of(&t->at, L->axis).a, 0, t->extent};
        enum tap_kind kind = tap_kind(n, &L->sh, L->c, t);
        if (kind == TAP_ASKED)
            continue;
        lower_ask(L, kind == TAP_BRANCH ? &L->rows : &L->columns, r);
        lower_ask(L, &L->given, r);
        for (int k = 0; k < L->nr_loops && kind == TAP_KNOWN; k++)
            L->loop[k].unroll |= t->at.coef[L->loop[k].axis] != 0;
    }
}

/* Wraps the update in the loops inside S2, with the branches. */
static struct lp_node *wrap(struct lowering *L, struct lp_node *update)
{
    struct lp_cond rows = L->rows;
    update->hint = L->columns;
    struct lp_node *body = lower_wrap(L, L_S3, L_LANE, update);
    for (int i = L->nr_loops - 1; i >= 0; i--) {
        const struct loop_var *v = &L->loop[i];
        if (v->level < L_R1 || v->level > L_RU)
            continue;
        bool asks = false;
        for (int k = 0; k < rows.nr; k++)
            asks |= lp_affine_coef(&rows.r[k].a, v->var) != 0;
        if (asks) {
            body = lower_node_if(L, rows, body, NULL);
            rows.nr = 0;
        }
        body = lower_wrap_one(L, i, body);
    }
    return lower_node_if(L, rows, body, NULL);
}

struct lp_node *lower_update(struct lowering *L, int acc, const struct lp_affine *reg)
{
    const struct wl_stage *s = &L->w->stage[L->n->anchor];
    const struct lp_expr *x = lower_convert(L, s->body, L->axis);
    L->given.nr = 0;
    x = lower_combine(L, s->combine, lower_expr_load(L, acc, reg), x);
    return wrap(L, lower_node_store(L, acc, reg, x));
}
