/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The loops around a register tile and in it, and which candidates share them.
 *
 * A split has more levels than a program has use for. Where nothing is made between two levels,
 * 27 steps of one and none of the other, or 9 and 3, are the same loop; loops of one step have no
 * order; and a body can only be unrolled by a divisor. Candidates that differ in nothing else are
 * *twins*: they become the same program. In a ring of neighbours nearly half are twins of each
 * other or of trials, so it is told beforehand (sketch_twins), and none is measured twice.
 */
#include "engine/tensor/plan.h"

#include <string.h>

#include "engine/base/hash.h"

static bool is_made_at(const struct nest_plan *n, const struct candidate *c, enum place place)
{
    for (int i = 0; i < n->nr_producers; i++)
        if (knob_place(n->plan, n->producer[i].knob, c) == place)
            return true;
    for (int i = 0; i < n->nr_packs; i++)
        if (knob_place(n->plan, n->pack[i].knob, c) == place)
            return true;
    return false;
}

/* Levels between whose loops and the next level's there is nothing: as bits. */
static unsigned open_levels(const struct nest_plan *n, const struct candidate *c,
                            const struct nest_shape *sh)
{
    bool parallel = n->plan->target.threads > 1; /* the loops of S0 are */
    unsigned open = 0;
    if (!parallel && !is_made_at(n, c, PLACE_S0))
        open |= 1u << L_S0;
    if (!is_made_at(n, c, PLACE_S1))
        open |= 1u << L_S1;
    if (sh->r0_trips <= 1 && !is_made_at(n, c, PLACE_R0))
        open |= 1u << L_R0;
    return open;
}

static bool are_one(const struct nest_loop *outer, const struct nest_loop *inner, unsigned open)
{
    for (int level = outer->level; level < (int)inner->level; level++)
        if (!(open >> level & 1))
            return false;
    return outer->axis == inner->axis;
}

static void add(struct nest_loop *out, int *nr, const struct nest_loop *l, unsigned open)
{
    struct nest_loop *last = *nr ? &out[*nr - 1] : NULL;
    if (l->extent <= 1)
        return;
    if (!last || !are_one(last, l, open)) {
        out[(*nr)++] = *l;
        return;
    }
    last->extent *= l->extent;
    last->stride = l->stride;
    last->level = l->level;
}

int nest_loops(const struct nest_plan *n, const struct candidate *c, const struct nest_shape *sh,
               struct nest_loop *out)
{
    const struct wl_stage *s = &n->plan->w->stage[n->anchor];
    unsigned open = open_levels(n, c, sh);
    int order[WL_MAX_AXES], nr = 0;
    nest_order(n, c, order);
    for (enum level level = L_S0; level <= L_S2; level++) {
        for (int i = 0; level == L_R0 && i < s->nr_reduce; i++)
            add(out, &nr, &(struct nest_loop){s->nr_spatial + i, L_R0, sh->r[i][0], sh->r[i][1]},
                open);
        int at = level == L_S2 ? 2 : (int)level;
        for (int i = 0; level != L_R0 && i < s->nr_spatial; i++) {
            const int64_t *f = sh->s[order[i]];
            int64_t stride = 1;
            for (int k = at + 1; k < 4; k++)
                stride *= f[k];
            add(out, &nr, &(struct nest_loop){order[i], level, f[at], stride}, open);
        }
    }
    return nr;
}

/* The loads of `e` that an axis moves, as bits in the order in which they are met. */
static uint64_t loads_moved(const struct wl_expr *e, int axis, int *nr)
{
    if (!e)
        return 0;
    uint64_t moved = 0;
    if (e->op == WL_LOAD || e->op == WL_PICK) {
        for (int d = 0; d < LAYOUT_MAX_DIMS; d++)
            moved |= (uint64_t)(e->idx[d].coef[axis] != 0) << *nr;
        *nr = *nr < 63 ? *nr + 1 : 63;
    }
    moved |= loads_moved(e->a, axis, nr);
    return moved | loads_moved(e->b, axis, nr);
}

struct tile_axis {
    int side; /* its first axis */
    int64_t extent, side_extent;
};

static bool is_outside(const struct tile_axis *a, const struct tile_axis *b)
{
    if (a->side == b->side)
        return a->extent > b->extent;
    return a->side_extent == b->side_extent ? a->side < b->side : a->side_extent > b->side_extent;
}

/* What finds no register, and what of that is loaded anew. */
static void find_over(const struct nest_plan *n, const struct nest_shape *sh,
                      const struct tile_axis *axis, struct nest_tile *t)
{
    const struct wl_stage *s = &n->plan->w->stage[n->anchor];
    int64_t kept = sh->tile_vectors / t->longest;
    t->over = sh->tile_vectors + kept + 1 - n->plan->target.registers;
    if (t->over < 0 || !s->nr_reduce || n->across >= 0)
        t->over = 0;
    if (t->over == 0 || n->vec < 0)
        return;
    for (int a = 0; a < s->nr_spatial; a++)
        if (axis[a].side == axis[n->vec].side && axis[a].extent == kept &&
            axis[a].side_extent == kept && kept > 1)
            t->again_axis = a;
    if (t->again_axis >= 0)
        t->again = t->over < kept ? t->over : kept;
}

void nest_tile(const struct nest_plan *n, const struct nest_shape *sh, struct nest_tile *out)
{
    const struct wl_stage *s = &n->plan->w->stage[n->anchor];
    uint64_t moved[WL_MAX_AXES];
    struct tile_axis axis[WL_MAX_AXES];
    for (int a = 0; a < s->nr_spatial; a++) {
        int nr = 0, side = 0;
        moved[a] = loads_moved(s->body, a, &nr);
        while (moved[side] != moved[a])
            side++;
        int64_t extent = a == n->vec ? sh->vectors : sh->s[a][3];
        axis[a] = (struct tile_axis){side, extent, 1};
        axis[side].side_extent *= extent;
    }
    *out = (struct nest_tile){.longest = 1, .again_axis = -1};
    for (int a = 0; a < s->nr_spatial; a++) {
        axis[a].side_extent = axis[axis[a].side].side_extent;
        out->longest = out->longest < axis[a].side_extent ? axis[a].side_extent : out->longest;
        int at = a;
        for (; at > 0 && is_outside(&axis[a], &axis[out->order[at - 1]]); at--)
            out->order[at] = out->order[at - 1];
        out->order[at] = a;
    }
    find_over(n, sh, axis, out);
}

static uint64_t hash_int(uint64_t h, int64_t x)
{
    return hash64(h, &x, sizeof x);
}

/* Levels between which there is nothing are one. */
static uint64_t hash_loops(uint64_t h, const struct nest_plan *n, const struct candidate *c,
                           const struct nest_shape *sh)
{
    struct nest_loop loop[NEST_LOOPS];
    unsigned open = open_levels(n, c, sh);
    int nr = nest_loops(n, c, sh, loop);
    for (int i = 0; i < nr; i++) {
        int level = loop[i].level;
        while (open >> level & 1)
            level++;
        h = hash_int(h, level);
        h = hash_int(h, loop[i].axis);
        h = hash_int(h, loop[i].extent);
    }
    return hash_int(h, nr);
}

static uint64_t hash_nest(uint64_t h, const struct nest_plan *n, const struct candidate *c)
{
    const struct wl_stage *s = &n->plan->w->stage[n->anchor];
    struct nest_shape sh;
    nest_shape(n, c, &sh);
    h = hash_loops(h, n, c, &sh);
    for (int a = 0; a < s->nr_spatial; a++)
        h = hash_int(h, sh.s[a][3]);
    for (int i = 0; i < s->nr_reduce; i++) {
        h = hash_int(h, sh.r[i][1]);
        h = hash_int(h, sh.unrolled[i]);
    }
    return h;
}

/* The knobs that are told by the loops. */
static uint64_t loop_knobs(const struct nest_plan *n)
{
    const struct wl_stage *s = &n->plan->w->stage[n->anchor];
    uint64_t set = 0;
    for (int a = 0; a < s->nr_spatial + s->nr_reduce; a++)
        set |= n->tile_knob[a] >= 0 ? UINT64_C(1) << n->tile_knob[a] : 0;
    set |= n->order_knob >= 0 ? UINT64_C(1) << n->order_knob : 0;
    return set | (n->unroll_knob >= 0 ? UINT64_C(1) << n->unroll_knob : 0);
}

uint64_t sketch_twins(const struct sketch *k, const struct candidate *c)
{
    const struct plan *p = k->user;
    uint64_t told = 0, h = hash_int(HASH64_INIT, c->sketch);
    for (int i = 0; i < p->nr_nests; i++)
        if (!p->nest[i].transform.matrix) {
            h = hash_nest(h, &p->nest[i], c);
            told |= loop_knobs(&p->nest[i]);
        }
    for (int i = 0; i < k->nr_knobs; i++) {
        const struct knob *x = &k->knob[i];
        if (!(told >> i & 1))
            h = hash64(h, c->v + x->slot, (size_t)x->nr_slots * sizeof *c->v);
    }
    return h;
}
