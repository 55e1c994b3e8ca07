/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Taps on padding. What a convolution multiplies with the zeros around an image, or a pool compares
 * with what is less than everything, changes no sum and need not be computed: a share of the work
 * that grows as images get small, a fifth of a 3x3 convolution of 7x7.
 *
 * A row that is padding for the whole register tile is passed over by a branch around the loops
 * inside; an element of the tile whose tap is known to be padding when the code is made, as the
 * first of a tile that covers whole rows, is left out of the code. Other taps read the padding.
 */
#include "engine/tensor/lower_private.h"

#include "engine/search/space.h"

/* The load of `tensor` that makes `e` neutral where it is. */
static const struct wl_expr *neutral_factor(const struct wl_expr *e, enum wl_combine c, int tensor)
{
    if (e->op == WL_LOAD)
        return e->tensor == tensor && !e->guarded ? e : NULL;
    if (e->op != WL_MUL || c != WL_SUM)
        return NULL;
    const struct wl_expr *a = neutral_factor(e->a, c, tensor);
    return a ? a : neutral_factor(e->b, c, tensor);
}

const struct wl_expr *plan_padded_load(const struct nest_plan *n, const struct wl_expr **inside)
{
    const struct workload *w = n->plan->w;
    const struct wl_stage *s = &w->stage[n->anchor];
    for (int i = 0; i < n->nr_producers && s->nr_reduce; i++) {
        const struct wl_stage *p = &w->stage[n->producer[i].stage];
        const struct wl_expr *load = neutral_factor(s->body, s->combine, p->out);
        *inside = p->body;
        if (load && p->body->op == WL_LOAD && p->body->guarded &&
            p->body->pad == wl_neutral(s->combine))
            return load;
    }
    return NULL;
}

struct lp_cond lower_taps(struct lowering *L)
{
    struct lp_cond c = {0};
    const struct wl_expr *inside, *load = plan_padded_load(L->n, &inside);
    if (L->n->skip_knob < 0 || !knob_value(&L->p->sketch->knob[L->n->skip_knob], L->c))
        return c;
    struct axis_value at[LAYOUT_MAX_DIMS];
    for (int d = 0; d < L->w->tensor[load->tensor].nr_dims; d++)
        at[d] = lower_value_of(&load->idx[d], L->axis);
    const struct wl_tensor *t = &L->w->tensor[inside->tensor];
    for (int d = 0; d < t->nr_dims; d++) {
        struct axis_value v = lower_value_of(&inside->idx[d], at);
        if (v.lo < 0 || v.hi >= t->dim[d])
            lower_ask(L, &c, (struct lp_range){v.a, 0, t->dim[d]});
    }
    return c;
}

static bool moves(const struct loop_var *v, const struct lp_range *r)
{
    return lp_affine_coef(&r->a, v->var) != 0;
}

static bool in_tile(const struct lowering *L, const struct lp_range *r)
{
    bool tile = false;
    for (int i = 0; i < L->nr_loops; i++)
        tile |= L->loop[i].level >= L_S3 && moves(&L->loop[i], r);
    return tile;
}

/* Would some element's tap be known to be padding if the value of `v` were? Every tap of the axis
 * then has code of its own, as long as that stays small. */
static bool tells(const struct lowering *L, const struct loop_var *v, const struct lp_cond *hint)
{
    for (int i = 0; i < hint->nr; i++) {
        bool known = moves(v, &hint->r[i]);
        for (int k = 0; k < L->nr_loops; k++)
            known &=
                L->loop[k].level >= L_RU || &L->loop[k] == v || !moves(&L->loop[k], &hint->r[i]);
        if (known)
            return v->extent * L->sh.tile_vectors * L->sh.unrolled_trips <= MAX_BODY_OPS;
    }
    return false;
}

struct lp_node *lower_wrap_update(struct lowering *L, struct lp_node *update,
                                  const struct lp_cond *taps)
{
    struct lp_cond rows = {0};
    for (int i = 0; i < taps->nr; i++)
        lower_ask(L, in_tile(L, &taps->r[i]) ? &update->hint : &rows, taps->r[i]);
    struct lp_node *body = lower_wrap(L, L_S3, L_LANE, update);
    for (int i = L->nr_loops - 1; i >= 0; i--) {
        const struct loop_var *v = &L->loop[i];
        if (v->level < L_R1 || v->level > L_RU)
            continue;
        bool asks = false;
        for (int k = 0; k < rows.nr; k++)
            asks |= moves(v, &rows.r[k]);
        if (asks) {
            body = lower_node_if(L, rows, body, NULL);
            rows.nr = 0;
        }
        bool unroll = v->level == L_RU || tells(L, v, &update->hint);
        body = lower_node_for(L, unroll ? LP_UNROLL : LP_SERIAL, v->var, v->extent, body);
    }
    return lower_node_if(L, rows, body, NULL);
}
