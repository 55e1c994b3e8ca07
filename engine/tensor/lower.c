/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lowering: a candidate's loop program, nest by nest.
 *
 * Every axis of an anchor becomes a sum of loop variables, each times the product of the factors
 * inside it. Indices of the workload are affine in the axes, so they stay affine in the variables:
 * substitution is all there is to it. A producer that is computed in the loads is substituted into
 * them; one at a level gets a scratch buffer that covers the box that the loops inside touch.
 *
 * The vector axis: its register-tile factor is cut into vectors of `lanes`; where it is no
 * multiple, the lanes of the last vector that overhang are computed on whatever is in memory there
 * and never stored. Buffers are readable one vector past their end for that (backends/artifact.h).
 * The same holds for an axis whose loops were rounded up to whole vectors.
 *
 * A reduction axis in vectors has its loops over whole vectors; what is left of it, less than a
 * vector, is added under a guard after them. It may have several vectors of partial sums, one for
 * each unrolled step; their lanes are combined where the sum is used.
 */
#include "engine/tensor/sketch.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "engine/tensor/lower_private.h"

/* Loops of a nest. */

int lower_lanes_of(const struct lowering *L, int64_t extent)
{
    int lanes = 1;
    while (lanes < L->p->target.lanes && extent % (2 * lanes) == 0)
        lanes *= 2;
    return lanes;
}

static void add_loop(struct lowering *L, int axis, enum level level, int64_t extent, int64_t stride)
{
    if (extent <= 1)
        return;
    const char *name = L->w->stage[L->n->anchor].axis[axis];
    int before = 0;
    for (int i = 0; i < L->nr_loops; i++)
        before += L->loop[i].axis == axis;
    int var = lower_new_var(L, name, before);
    if (L->failed)
        return;
    L->loop[L->nr_loops++] = (struct loop_var){.var = var,
                                               .axis = axis,
                                               .level = level,
                                               .extent = extent,
                                               .stride = stride};
    lp_affine_term(&L->axis[axis].a, var, stride);
    if (level == L_LANE)
        L->lane_loop = L->nr_loops - 1;
}

void lower_begin_axes(struct lowering *L)
{
    const struct wl_stage *s = &L->w->stage[L->n->anchor];
    for (int a = 0; a < s->nr_spatial + s->nr_reduce; a++) {
        L->axis[a] = (struct axis_value){lp_affine_const(0), 0, s->extent[a] - 1};
        if (a < L->p->nr_outer && L->strip_var[a] >= 0)
            lp_affine_term(&L->axis[a].a, L->strip_var[a], 1);
    }
}

static void add_tile_loops(struct lowering *L)
{
    struct nest_tile t;
    nest_tile(L->n, &L->sh, &t);
    for (int i = 0; i < L->w->stage[L->n->anchor].nr_spatial; i++) {
        int a = t.order[i], before = L->nr_loops;
        bool vec = a == L->n->vec;
        add_loop(L, a, L_S3, vec ? L->sh.vectors : L->sh.s[a][3], vec ? L->sh.lanes : 1);
        if (L->nr_loops > before && a == t.again_axis)
            L->loop[before].again = t.again;
    }
}

static void make_loops(struct lowering *L)
{
    const struct wl_stage *s = &L->w->stage[L->n->anchor];
    const struct nest_shape *sh = &L->sh;
    struct nest_loop around[NEST_LOOPS];
    int nr_s = s->nr_spatial, nr = nest_loops(L->n, L->c, sh, around);
    lower_begin_axes(L);
    for (int i = 0; i < nr; i++)
        add_loop(L, around[i].axis, around[i].level, around[i].extent, around[i].stride);
    for (int level = L_R1; level <= L_RU; level++)
        for (int i = 0; i < s->nr_reduce; i++) {
            bool across = nr_s + i == L->n->across;
            int64_t step = across ? sh->lanes : 1, trips = across ? sh->vectors : sh->r[i][1];
            if (level == L_R1)
                add_loop(L, nr_s + i, L_R1, trips / sh->unrolled[i], sh->unrolled[i] * step);
            else
                add_loop(L, nr_s + i, L_RU, sh->unrolled[i], step);
        }
    add_tile_loops(L);
    L->lane_loop = -1;
    if (L->n->vec >= 0 || L->n->across >= 0)
        add_loop(L, L->n->vec >= 0 ? L->n->vec : L->n->across, L_LANE, sh->lanes, 1);
}

static enum lp_loop loop_kind(const struct loop_var *v)
{
    return v->level == L_LANE ? LP_VECTOR : v->level >= L_RU || v->unroll ? LP_UNROLL : LP_SERIAL;
}

struct lp_node *lower_wrap_one(struct lowering *L, int i, struct lp_node *body)
{
    const struct loop_var *v = &L->loop[i];
    struct lp_node *n = lower_node_for(L, loop_kind(v), v->var, v->extent, body);
    n->again = v->again;
    return n;
}

/* Wraps `body` in the loops of levels from .. to, the first outermost. */
struct lp_node *lower_wrap(struct lowering *L, enum level from, enum level to, struct lp_node *body)
{
    for (int i = L->nr_loops - 1; i >= 0; i--)
        if (L->loop[i].level >= from && L->loop[i].level <= to)
            body = lower_wrap_one(L, i, body);
    return body;
}

/* Row-major offset over the loops of levels from .. to, the lanes counted unless `vectors`. */
static struct lp_affine offset_over(const struct lowering *L, enum level from, enum level to,
                                    int64_t *size)
{
    struct lp_affine at = {0};
    int64_t stride = 1;
    for (int i = L->nr_loops - 1; i >= 0; i--) {
        const struct loop_var *v = &L->loop[i];
        if (v->level < from || v->level > to)
            continue;
        lp_affine_term(&at, v->var, stride);
        stride *= v->extent;
    }
    *size = stride;
    return at;
}

/* The reduction around the register tile. */

static enum wl_op combine_op(enum wl_combine c)
{
    static const enum wl_op op[] = {
        [WL_SUM] = WL_ADD, [WL_MAXIMUM] = WL_MAX, [WL_MINIMUM] = WL_MIN, [WL_PRODUCT] = WL_MUL};
    return op[c];
}

const struct lp_expr *lower_combine(struct lowering *L, enum wl_combine c,
                                    const struct lp_expr *acc, const struct lp_expr *x)
{
    return lower_expr_arith(L, combine_op(c), acc, x);
}

/* All loops of R0 are at their first (or last) value. */
static struct lp_cond at_end(const struct lowering *L, bool last)
{
    struct lp_cond c = {0};
    for (int i = 0; i < L->nr_loops; i++) {
        const struct loop_var *v = &L->loop[i];
        if (v->level != L_R0 || c.nr == LAYOUT_MAX_DIMS)
            continue;
        struct lp_affine a = {0};
        lp_affine_term(&a, v->var, 1);
        c.r[c.nr++] = (struct lp_range){a, last ? v->extent - 1 : 0, last ? v->extent : 1};
    }
    return c;
}

struct lp_node *lower_node_if(struct lowering *L, struct lp_cond cond, struct lp_node *then,
                              struct lp_node *other)
{
    if (!cond.nr)
        return then;
    struct lp_node *n = ARENA_NEW(&L->lp->arena, struct lp_node);
    n->kind = LP_IF;
    n->cond = cond;
    n->body = then;
    n->other = other;
    return n;
}

/* Where the finished element goes: the flattened index of the stage that is stored last. */
struct lp_node *lower_store_output(struct lowering *L, const struct wl_stage *s,
                                   const struct lp_expr *value)
{
    const struct wl_tensor *t = &L->w->tensor[s->out];
    struct lp_affine at = {0};
    struct lp_cond cond = {0}, *inside = L->assumed ? L->assumed : &cond;
    int64_t stride = 1;
    for (int d = t->nr_dims - 1; d >= 0; d--) {
        struct axis_value v = lower_value_of(&s->out_idx[d], L->axis);
        struct lp_affine i = lp_affine_scale(&v.a, stride);
        at = lp_affine_add(&at, &i);
        stride *= t->dim[d];
        if (v.lo < 0 || v.hi >= t->dim[d]) /* tiles of a derived workload may overhang */
            lower_ask(L, inside, (struct lp_range){v.a, 0, t->dim[d]});
    }
    struct lp_node *n = lower_node_store(L, lower_tensor_buffer(L, s->out), &at, value);
    n->cond = cond;
    lower_add_lane_ranges(L, &n->cond);
    return n;
}

/* The last elements of a reduction axis in vectors: update, over what is no whole vector of it. */
static struct lp_node *lower_rest(struct lowering *L, int acc, struct lp_affine reg)
{
    const struct wl_stage *s = &L->w->stage[L->n->anchor];
    int axis = L->n->across;
    int64_t extent = s->extent[axis], done = L->sh.vectors * L->sh.lanes;
    if (done == extent)
        return NULL;
    struct axis_value whole = L->axis[axis];
    L->axis[axis] = (struct axis_value){lp_affine_const(done), done, extent - 1};
    lp_affine_term(&L->axis[axis].a, L->loop[L->lane_loop].var, 1);
    struct lp_expr *body = lower_expr_new(L, LP_GUARD);
    body->a = lower_convert(L, s->body, L->axis);
    body->literal = wl_neutral(s->combine);
    body->cond.r[body->cond.nr++] = (struct lp_range){L->axis[axis].a, 0, extent};
    L->axis[axis] = whole;
    for (int i = 0; i < L->nr_loops; i++) /* into the sum of its first step */
        if (L->loop[i].axis == axis && L->loop[i].level == L_RU)
            lp_affine_term(&reg, L->loop[i].var, -lp_affine_coef(&reg, L->loop[i].var));
    const struct lp_expr *sum = lower_expr_load(L, acc, &reg);
    struct lp_node *n = lower_node_store(L, acc, &reg, lower_combine(L, s->combine, sum, body));
    for (int i = L->nr_loops - 1; i >= 0; i--)
        if (L->loop[i].level >= L_R1 && (L->loop[i].axis != axis || L->loop[i].level == L_LANE))
            n = lower_node_for(L, loop_kind(&L->loop[i]), L->loop[i].var, L->loop[i].extent, n);
    return n;
}

/* A register tile of sums over an axis in vectors: acc[unrolled steps][tile]. */
static struct lp_node *lower_across(struct lowering *L)
{
    const struct nest_plan *n = L->n;
    const struct wl_stage *s = &L->w->stage[n->anchor];
    const struct wl_stage *fin = n->epilogue >= 0 ? &L->w->stage[n->epilogue] : s;
    int64_t size, tile;
    struct lp_affine reg = offset_over(L, L_RU, L_S3, &size);
    struct lp_affine at = offset_over(L, L_S3, L_S3, &tile);
    int acc = lower_new_buffer(L, "acc", LP_REGISTER, size);
    if (L->failed)
        return NULL;
    struct list out = lower_list_new();
    const struct lp_expr *neutral = lower_expr_literal(L, wl_neutral(s->combine));
    lower_list_add(&out,
                   lower_wrap(L, L_RU, L_LANE, lower_node_store(L, acc, &reg, neutral)));
    const struct lp_expr *body = lower_convert(L, s->body, L->axis);
    body = lower_combine(L, s->combine, lower_expr_load(L, acc, &reg), body);
    if (L->sh.vectors > 0)
        lower_list_add(&out, lower_wrap(L, L_R1, L_LANE, lower_node_store(L, acc, &reg, body)));
    lower_list_add(&out, lower_rest(L, acc, reg));

    const struct lp_expr *parts = lower_expr_load(L, acc, &at);
    for (at.base = tile; at.base < size; at.base += tile)
        parts = lower_combine(L, s->combine, parts, lower_expr_load(L, acc, &at));
    struct lp_expr *sum = lower_expr_new(L, LP_ACROSS);
    sum->arith = combine_op(s->combine);
    sum->a = parts;
    sum->count = L->sh.lanes;
    const struct lp_expr *value = sum;
    if (n->epilogue >= 0) {
        L->source[L->nr_sources++] =
            (struct source){.tensor = s->out, .kind = FROM_VALUE, .value = sum};
        lower_pack_constants(L, fin->body);
        value = lower_convert(L, fin->body, L->axis);
    }
    lower_list_add(&out, lower_wrap(L, L_S3, L_S3, lower_store_output(L, fin, value)));
    return out.first;
}

/* The whole of one register tile: S2's body. */
static struct lp_node *lower_tile(struct lowering *L)
{
    const struct nest_plan *n = L->n;
    const struct wl_stage *s = &L->w->stage[n->anchor];
    if (!s->nr_reduce) {
        lower_pack_constants(L, s->body);
        return lower_wrap(L, L_S3, L_LANE, lower_store_output(L, s, lower_convert(L, s->body, L->axis)));
    }
    if (n->across >= 0)
        return lower_across(L);
    const struct wl_stage *fin = n->epilogue >= 0 ? &L->w->stage[n->epilogue] : s;
    int64_t tile, waiting;
    struct lp_affine reg = offset_over(L, L_S3, L_S3, &tile);
    int acc = lower_new_buffer(L, "acc", LP_REGISTER, tile);
    if (L->failed)
        return NULL;
    const struct lp_expr *sum = lower_expr_load(L, acc, &reg);

    lower_pack_constants(L, s->body);
    lower_skip_taps(L);
    struct lp_node *update = lower_update(L, acc, &reg);
    struct lp_node *zero =
        lower_wrap(L, L_S3, L_LANE,
                   lower_node_store(L, acc, &reg, lower_expr_literal(L, wl_neutral(s->combine))));

    if (n->epilogue >= 0) {
        L->source[L->nr_sources++] =
            (struct source){.tensor = s->out, .buf = acc, .kind = FROM_REGISTER, .at = reg};
        lower_pack_constants(L, fin->body);
    }
    struct lp_node *done = lower_wrap(
        L, L_S3, L_LANE,
        lower_store_output(L, fin, n->epilogue >= 0 ? lower_convert(L, fin->body, L->axis) : sum));

    struct list out = lower_list_new();
    if (L->sh.r0_trips <= 1) {
        lower_list_add(&out, zero);
        lower_list_add(&out, update);
        lower_list_add(&out, done);
        return out.first;
    }
    /* Partial sums wait between the steps of R0. */
    struct lp_node *save;
    const struct lp_expr *saved;
    if (knob_value(&L->p->sketch->knob[n->cache_knob], L->c)) {
        struct lp_affine at = offset_over(L, L_S2, L_S2, &waiting), in;
        int64_t inner;
        in = offset_over(L, L_S3, L_LANE, &inner);
        at = lp_affine_scale(&at, inner);
        at = lp_affine_add(&at, &in);
        int cache = lower_new_buffer(L, "cache", LP_SCRATCH, waiting * inner);
        L->lp->buffer[cache].per_thread = L->p->target.threads > 1;
        save = lower_node_store(L, cache, &at, sum);
        saved = lower_expr_load(L, cache, &at);
    } else {
        save = lower_store_output(L, fin, sum);
        saved = lower_expr_load(L, save->buf, &save->at);
    }
    struct lp_node *restore = lower_wrap(L, L_S3, L_LANE, lower_node_store(L, acc, &reg, saved));
    lower_list_add(&out, lower_node_if(L, at_end(L, false), zero, restore));
    lower_list_add(&out, update);
    lower_list_add(&out, lower_node_if(L, at_end(L, true), done, lower_wrap(L, L_S3, L_LANE, save)));
    return out.first;
}

struct lp_node *lower_outer_loops(struct lowering *L, int nr, const int *var, const int64_t *extent,
                                  struct lp_node *body)
{
    if (L->p->target.threads > 1 && nr && !L->in_strips) {
        struct lp_node *par = ARENA_NEW(&L->lp->arena, struct lp_node);
        par->kind = LP_FOR;
        par->loop = LP_PARALLEL;
        par->body = body;
        assert(nr <= LP_MAX_PARALLEL);
        for (int i = 0; i < nr; i++) {
            par->var[i] = var[i];
            par->extent[par->nr_vars++] = extent[i];
        }
        return par;
    }
    for (int i = nr - 1; i >= 0; i--)
        body = lower_node_for(L, LP_SERIAL, var[i], extent[i], body);
    return body;
}

static struct lp_node *wrap_outer(struct lowering *L, struct lp_node *body)
{
    if (L->p->target.threads == 1 || L->in_strips)
        return lower_wrap(L, L_S0, L_S0, body);
    int nr = 0, var[WL_MAX_AXES];
    int64_t extent[WL_MAX_AXES];
    for (int i = 0; i < L->nr_loops; i++)
        if (L->loop[i].level == L_S0) {
            var[nr] = L->loop[i].var;
            extent[nr++] = L->loop[i].extent;
        }
    return lower_outer_loops(L, nr, var, extent, body);
}

static struct lp_node *lower_tiled(struct lowering *L)
{
    const struct nest_plan *n = L->n;
    nest_shape(n, L->c, &L->sh);
    for (int i = 0; i < n->nr_producers; i++)
        if (knob_place(L->p, n->producer[i].knob, L->c) == PLACE_ROOT) {
            int stage = n->producer[i].stage, tensor = L->w->stage[stage].out;
            lower_root_producer(L, stage);
            struct source src = {.tensor = tensor, .buf = lower_tensor_buffer(L, tensor)};
            int64_t stride = 1;
            for (int d = L->w->tensor[tensor].nr_dims - 1; d >= 0; d--) {
                src.stride[d] = stride;
                stride *= L->w->tensor[tensor].dim[d];
            }
            L->source[L->nr_sources++] = src;
        }
    make_loops(L);
    if (L->failed)
        return NULL;
    struct lp_node *fill[3];
    for (int i = 0; i < 3; i++)
        fill[i] = lower_fills_at(L, (enum place)(PLACE_S0 + i));
    struct lp_node *body = lower_wrap(L, L_S2, L_S2, lower_tile(L));
    if (L->failed)
        return NULL;
    for (int i = 2; i >= 0; i--) {
        struct list l = lower_list_new();
        lower_list_add(&l, fill[i]);
        lower_list_add(&l, body);
        static const enum level of[] = {L_S0, L_S1, L_R0};
        body = i ? lower_wrap(L, of[i], of[i], l.first) : wrap_outer(L, l.first);
    }
    if (L->lane_loop < 0)
        L->sh.lanes = 1;
    return body;
}

static struct lp_node *lower_nest(struct lowering *L, const struct nest_plan *n)
{
    L->n = n;
    L->nr_sources = L->nr_loops = 0;
    return n->transform.matrix ? lower_transform(L) : lower_tiled(L);
}

static void add_nest(struct lowering *L, const char *name, struct lp_node *body)
{
    struct lp_nest *out = &L->lp->nest[L->lp->nr_nests++];
    snprintf(out->name, sizeof out->name, "%s", name);
    out->lanes = L->sh.lanes;
    out->body = body;
}

/* All nests for one strip after the other. What they leave each other is a strip's, so that threads
 * that share the strips have one of each their own. */
static void lower_strips(struct lowering *L, int nr, const int *var, const int64_t *extent)
{
    const struct plan *p = L->p;
    struct list l = lower_list_new();
    L->in_strips = true;
    for (int i = 0; i < p->nr_nests && !L->failed; i++)
        lower_list_add(&l, lower_nest(L, &p->nest[i]));
    L->in_strips = false;
    for (int t = 0; t < L->w->nr_tensors && p->target.threads > 1; t++)
        if (L->w->tensor[t].role == WL_TEMP && L->tensor_buf[t] >= 0)
            L->lp->buffer[L->tensor_buf[t]].per_thread = true;
    if (!L->failed)
        add_nest(L, "strips", lower_outer_loops(L, nr, var, extent, l.first));
}

int lower(const struct workload *w, const struct space *s, const struct candidate *c,
          struct loop_program *out, struct err *e)
{
    const struct plan *p = s->sketch[c->sketch]->user;
    struct lowering L = {.p = p, .w = p->w, .lp = out, .c = c};
    *out = (struct loop_program){.threads = p->target.threads};
    for (int t = 0; t < WL_MAX_TENSORS; t++)
        L.tensor_buf[t] = -1;
    int nr = 0, var[WL_MAX_AXES];
    int64_t extent[WL_MAX_AXES];
    const struct wl_stage *first = &p->w->stage[p->nest[0].anchor];
    for (int a = 0; a < p->nr_outer; a++) {
        L.strip_var[a] = -1;
        if (first->extent[a] == 1)
            continue;
        L.strip_var[a] = var[nr] = lower_new_var(&L, first->axis[a], 0);
        extent[nr++] = first->extent[a];
    }
    if (nr)
        lower_strips(&L, nr, var, extent);
    for (int i = 0; i < p->nr_nests && !L.failed && !nr; i++) {
        struct lp_node *body = lower_nest(&L, &p->nest[i]);
        if (!L.failed)
            add_nest(&L, p->w->stage[p->nest[i].anchor].name, body);
    }
    if (L.failed) {
        loop_program_release(out);
        return err_set(e, ERR_LIMIT,
                       "workload \"%s\" needs more loops or buffers than a loop "
                       "program holds",
                       w->name);
    }
    return 0;
}
