/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lowering: a candidate's loop program, nest by nest.
 *
 * Every axis of an anchor becomes a sum of loop variables, each times the product of the factors
 * inside it. Indices of the workload are affine in the axes, so they stay affine in the variables:
 * substitution is all there is to it. A producer that is computed in the loads is substituted into
 * them; one at a level gets a scratch buffer that covers the box that the loops inside touch.
 *
 * The vector axis: its register-tile factor is cut into vectors of `lanes`; where it is no multiple,
 * the lanes of the last vector that overhang are computed on whatever is in memory there and never
 * stored. Buffers are readable one vector past their end for that (backends/artifact.h). The same
 * holds for an axis whose loops were rounded up to whole vectors.
 */
#include "engine/tensor/sketch.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "engine/tensor/plan.h"

enum level { L_S0, L_S1, L_R0, L_S2, L_R1, L_RU, L_S3, L_LANE, NR_LEVELS };

/* One loop of the nest that is being lowered. */
struct loop_var {
    int var, axis;
    enum level level;
    int64_t extent, stride;
    bool unroll; /* in S2: an axis that a table depends on */
};

/* What an axis is, at a place in the program: an affine form and the values it takes. */
struct axis_value {
    struct lp_affine a;
    int64_t lo, hi;
};

/* A buffer in which the loads of a workload tensor find their elements. */
struct source {
    int tensor;
    int buf;
    enum { FROM_TENSOR, FROM_REGISTER, FROM_LOOPS } kind;
    struct lp_affine at; /* FROM_REGISTER, FROM_LOOPS: the offset, whatever the load's index */
    /* FROM_TENSOR: offset = sum of stride * (index - origin) */
    int64_t stride[LAYOUT_MAX_DIMS];
    struct lp_affine origin[LAYOUT_MAX_DIMS];
};

enum { MAX_SOURCES = WL_MAX_TENSORS + 8, MAX_LOOPS = WL_MAX_AXES * 6 };

struct lowering {
    const struct plan *p;
    const struct workload *w;
    struct loop_program *lp;
    int tensor_buf[WL_MAX_TENSORS]; /* -1 until used */
    bool failed;                    /* a limit of the loop program was met */

    /* Of the current nest. */
    const struct nest_plan *n;
    const struct candidate *c;
    struct nest_shape sh;
    int nr_loops;
    struct loop_var loop[MAX_LOOPS]; /* in nest order */
    struct axis_value axis[WL_MAX_AXES];
    int nr_sources;
    struct source source[MAX_SOURCES];
    int lane_loop; /* index in loop[], -1 for none */
};

/* A list of nodes under construction. */
struct list {
    struct lp_node *first, **tail;
};

static struct list list_new(void)
{
    return (struct list){NULL, NULL};
}

static void list_add(struct list *l, struct lp_node *n)
{
    if (!n)
        return;
    if (!l->first)
        l->first = n;
    else
        *l->tail = n;
    while (n->next)
        n = n->next;
    l->tail = &n->next;
}

static int new_var(struct lowering *L, const char *name, int level)
{
    if (L->lp->nr_vars == LP_MAX_VARS) {
        L->failed = true;
        return 0;
    }
    int v = L->lp->nr_vars++;
    snprintf(L->lp->var_name[v], sizeof L->lp->var_name[v], "%.10s%d", name, level);
    return v;
}

static int new_buffer(struct lowering *L, const char *name, enum lp_scope scope, int64_t size)
{
    if (L->lp->nr_buffers == LP_MAX_BUFFERS) {
        L->failed = true;
        return 0;
    }
    int b = L->lp->nr_buffers++;
    struct lp_buffer *buf = &L->lp->buffer[b];
    *buf = (struct lp_buffer){.scope = scope, .tensor = -1, .size = size};
    snprintf(buf->name, sizeof buf->name, "%s", name);
    return b;
}

/* The stored dimensions stay; what is logical is the weights that the transform is made of. */
static void transform_layout(const struct lowering *L, struct layout *l)
{
    const struct layout *from = &L->w->tensor[L->p->from].layout;
    l->transform = L->p->transform;
    l->nr_l = from->nr_l;
    memcpy(l->l, from->l, sizeof l->l);
}

static int tensor_buffer(struct lowering *L, int t)
{
    if (L->tensor_buf[t] >= 0)
        return L->tensor_buf[t];
    const struct wl_tensor *wt = &L->w->tensor[t];
    int64_t size = layout_stored_size(&wt->layout);
    enum lp_scope scope = wt->role == WL_TEMP ? LP_SCRATCH : LP_TENSOR;
    int b = new_buffer(L, wt->name, scope, size);
    L->lp->buffer[b].tensor = scope == LP_TENSOR ? t : -1;
    L->lp->buffer[b].layout = wt->layout;
    if (t == L->p->derived) {
        /* To the outside it is the weights, stored after a transform. */
        L->lp->buffer[b].tensor = L->p->from;
        transform_layout(L, &L->lp->buffer[b].layout);
    }
    return L->tensor_buf[t] = b;
}

static struct lp_node *node_for(struct lowering *L, enum lp_loop kind, int var, int64_t extent,
                                struct lp_node *body)
{
    struct lp_node *n = ARENA_NEW(&L->lp->arena, struct lp_node);
    n->kind = LP_FOR;
    n->loop = kind;
    n->nr_vars = 1;
    n->var[0] = var;
    n->extent[0] = extent;
    n->body = body;
    return n;
}

static struct lp_node *node_store(struct lowering *L, int buf, const struct lp_affine *at,
                                  const struct lp_expr *value)
{
    struct lp_node *n = ARENA_NEW(&L->lp->arena, struct lp_node);
    n->kind = LP_STORE;
    n->buf = buf;
    n->at = *at;
    n->value = value;
    L->lp->buffer[buf].written = true;
    return n;
}

static struct lp_expr *expr_new(struct lowering *L, enum lp_op op)
{
    struct lp_expr *x = ARENA_NEW(&L->lp->arena, struct lp_expr);
    x->op = op;
    return x;
}

static const struct lp_expr *expr_load(struct lowering *L, int buf, const struct lp_affine *at)
{
    struct lp_expr *x = expr_new(L, LP_LOAD);
    x->buf = buf;
    x->at = *at;
    return x;
}

static const struct lp_expr *expr_literal(struct lowering *L, float v)
{
    struct lp_expr *x = expr_new(L, LP_LITERAL);
    x->literal = v;
    return x;
}

static const struct lp_expr *expr_arith(struct lowering *L, enum wl_op op, const struct lp_expr *a,
                                        const struct lp_expr *b)
{
    struct lp_expr *x = expr_new(L, LP_ARITH);
    x->arith = op;
    x->a = a;
    x->b = b;
    return x;
}

/* Expressions. */

static struct axis_value value_of(const struct affine *f, const struct axis_value *axis)
{
    struct axis_value v = {lp_affine_const(f->base), f->base, f->base};
    for (int a = 0; a < WL_MAX_AXES; a++) {
        int64_t coef = f->coef[a];
        if (!coef)
            continue;
        struct lp_affine term = lp_affine_scale(&axis[a].a, coef);
        v.a = lp_affine_add(&v.a, &term);
        v.lo += coef * (coef > 0 ? axis[a].lo : axis[a].hi);
        v.hi += coef * (coef > 0 ? axis[a].hi : axis[a].lo);
    }
    return v;
}

static const struct lp_expr *guard(struct lowering *L, const struct lp_expr *x,
                                   const struct wl_tensor *t, const struct axis_value *idx,
                                   float pad)
{
    struct lp_cond cond = {0};
    for (int d = 0; d < t->nr_dims; d++)
        if (idx[d].lo < 0 || idx[d].hi >= t->dim[d])
            cond.r[cond.nr++] = (struct lp_range){idx[d].a, 0, t->dim[d]};
    if (!cond.nr)
        return x;
    struct lp_expr *g = expr_new(L, LP_GUARD);
    g->cond = cond;
    g->a = x;
    g->literal = pad;
    return g;
}

static const struct source *find_source(const struct lowering *L, int tensor)
{
    for (int i = L->nr_sources - 1; i >= 0; i--)
        if (L->source[i].tensor == tensor)
            return &L->source[i];
    return NULL;
}

static int inlined_producer(const struct lowering *L, int tensor)
{
    const struct nest_plan *n = L->n;
    for (int i = 0; i < n->nr_producers; i++)
        if (L->w->stage[n->producer[i].stage].out == tensor)
            return n->producer[i].stage;
    return -1;
}

static const struct lp_expr *convert(struct lowering *L, const struct wl_expr *e,
                                     const struct axis_value *axis);

/* The lanes that are no element: of the last vector of a register tile, and past the end of an axis
 * that was rounded up. Adds what must hold of the others. */
static void add_lane_ranges(const struct lowering *L, struct lp_cond *cond)
{
    const struct nest_plan *n = L->n;
    if (n->vec < 0 || L->lane_loop < 0)
        return;
    int64_t tile = L->sh.s[n->vec][3], extent = L->w->stage[n->anchor].extent[n->vec];
    if (tile % L->sh.lanes) {
        struct lp_affine in_tile = lp_affine_const(0);
        for (int i = 0; i < L->nr_loops; i++)
            if (L->loop[i].axis == n->vec && L->loop[i].level >= L_S3)
                lp_affine_term(&in_tile, L->loop[i].var, L->loop[i].stride);
        cond->r[cond->nr++] = (struct lp_range){in_tile, 0, tile};
    }
    if (n->extent[n->vec] > extent)
        cond->r[cond->nr++] = (struct lp_range){L->axis[n->vec].a, 0, extent};
}

/* Overhanging lanes of a contiguous load stay within a vector of the tensor's end; strided ones
 * would not, and are left out. */
static const struct lp_expr *guard_overhang(struct lowering *L, const struct lp_expr *load)
{
    if (L->lane_loop < 0)
        return load;
    int64_t step = lp_affine_coef(&load->at, L->loop[L->lane_loop].var);
    struct lp_cond cond = {0};
    if (step != 0 && step != 1)
        add_lane_ranges(L, &cond);
    if (!cond.nr)
        return load;
    struct lp_expr *g = expr_new(L, LP_GUARD);
    g->cond = cond;
    g->a = load;
    return g;
}

/* A load, with everything that may stand behind it. */
static const struct lp_expr *convert_load(struct lowering *L, const struct wl_expr *e,
                                          const struct axis_value *axis)
{
    const struct wl_tensor *t = &L->w->tensor[e->tensor];
    const struct source *src = find_source(L, e->tensor);
    if (src && src->kind != FROM_TENSOR)
        return expr_load(L, src->buf, &src->at);
    struct axis_value idx[LAYOUT_MAX_DIMS];
    for (int d = 0; d < t->nr_dims; d++)
        idx[d] = value_of(&e->idx[d], axis);
    const struct lp_expr *x;
    int producer = src ? -1 : inlined_producer(L, e->tensor);
    if (producer >= 0) {
        x = convert(L, L->w->stage[producer].body, idx);
    } else {
        struct lp_affine at = {0};
        int64_t stride = 1;
        for (int d = t->nr_dims - 1; d >= 0; d--) {
            struct lp_affine i = idx[d].a, minus;
            if (src) {
                minus = lp_affine_scale(&src->origin[d], -1);
                i = lp_affine_add(&i, &minus);
            }
            i = lp_affine_scale(&i, src ? src->stride[d] : stride);
            at = lp_affine_add(&at, &i);
            stride *= t->dim[d];
        }
        x = guard_overhang(L, expr_load(L, src ? src->buf : tensor_buffer(L, e->tensor), &at));
    }
    return e->guarded ? guard(L, x, t, idx, e->pad) : x;
}

/* Lanes that overhang read nothing: where they would is not known. */
static const struct lp_expr *convert_pick(struct lowering *L, const struct wl_expr *e,
                                          const struct axis_value *axis)
{
    const struct wl_tensor *t = &L->w->tensor[e->tensor];
    struct lp_expr *x = expr_new(L, LP_PICK), *g = expr_new(L, LP_GUARD);
    int64_t stride = 1;
    for (int d = t->nr_dims - 1; d >= 0; stride *= t->dim[d--]) {
        struct axis_value i = value_of(&e->idx[d], axis);
        i.a = lp_affine_scale(&i.a, stride);
        x->at = lp_affine_add(&x->at, &i.a);
        if (d == e->dim)
            x->step = stride;
    }
    x->count = t->dim[e->dim];
    x->buf = tensor_buffer(L, e->tensor);
    x->a = convert(L, e->a, axis);
    add_lane_ranges(L, &g->cond);
    g->a = x;
    return g->cond.nr ? g : x;
}

static const struct lp_expr *convert(struct lowering *L, const struct wl_expr *e,
                                     const struct axis_value *axis)
{
    if (e->op == WL_PICK)
        return convert_pick(L, e, axis);
    if (e->op == WL_LITERAL)
        return expr_literal(L, e->literal);
    if (e->op == WL_LOAD)
        return convert_load(L, e, axis);
    if (e->op == WL_TABLE) {
        struct lp_expr *x = expr_new(L, LP_TABLE);
        x->table = e->table;
        x->at = value_of(&e->idx[0], axis).a;
        return x;
    }
    return expr_arith(L, e->op, convert(L, e->a, axis), e->b ? convert(L, e->b, axis) : NULL);
}

/* Loops of a nest. */

static void add_loop(struct lowering *L, int axis, enum level level, int64_t extent,
                     int64_t stride)
{
    if (extent <= 1)
        return;
    const char *name = L->w->stage[L->n->anchor].axis[axis];
    int var = new_var(L, name, level);
    if (L->failed)
        return;
    bool unroll = level == L_S2 && L->n->fixed[axis];
    L->loop[L->nr_loops++] = (struct loop_var){var, axis, level, extent, stride, unroll};
    lp_affine_term(&L->axis[axis].a, var, stride);
    if (level == L_LANE)
        L->lane_loop = L->nr_loops - 1;
}

/* The order of the spatial axes at S0, S1 and S2: as permuted, what is not permuted in place. */
static void spatial_order(const struct lowering *L, int *order)
{
    const struct nest_plan *n = L->n;
    const struct wl_stage *s = &L->w->stage[n->anchor];
    for (int a = 0; a < s->nr_spatial; a++)
        order[a] = a;
    if (n->order_knob < 0)
        return;
    int slot = L->p->sketch->knob[n->order_knob].slot;
    for (int i = 0; i < n->nr_order; i++)
        order[n->order_axis[i]] = n->order_axis[L->c->v[slot + i]];
}

static void make_loops(struct lowering *L)
{
    const struct wl_stage *s = &L->w->stage[L->n->anchor];
    const struct nest_shape *sh = &L->sh;
    int order[WL_MAX_AXES], nr_s = s->nr_spatial;
    spatial_order(L, order);
    for (int a = 0; a < nr_s + s->nr_reduce; a++)
        L->axis[a] = (struct axis_value){lp_affine_const(0), 0, s->extent[a] - 1};
    for (int level = 0; level < 2; level++)
        for (int i = 0; i < nr_s; i++) {
            const int64_t *f = sh->s[order[i]];
            add_loop(L, order[i], level ? L_S1 : L_S0, f[level],
                     level ? f[2] * f[3] : f[1] * f[2] * f[3]);
        }
    for (int i = 0; i < s->nr_reduce; i++)
        add_loop(L, nr_s + i, L_R0, sh->r[i][0], sh->r[i][1]);
    /* What is unrolled goes inside: the serial loops are not repeated. */
    for (int fixed = 0; fixed < 2; fixed++)
        for (int i = 0; i < nr_s; i++)
            if ((L->n->fixed[order[i]] != 0) == fixed)
                add_loop(L, order[i], L_S2, sh->s[order[i]][2], sh->s[order[i]][3]);
    for (int i = 0; i < s->nr_reduce; i++)
        add_loop(L, nr_s + i, L_R1, sh->r[i][1] / sh->unrolled[i], sh->unrolled[i]);
    for (int i = 0; i < s->nr_reduce; i++)
        add_loop(L, nr_s + i, L_RU, sh->unrolled[i], 1);
    for (int a = 0; a < nr_s; a++)
        add_loop(L, a, L_S3, a == L->n->vec ? sh->vectors : sh->s[a][3],
                 a == L->n->vec ? sh->lanes : 1);
    L->lane_loop = -1;
    if (L->n->vec >= 0)
        add_loop(L, L->n->vec, L_LANE, sh->lanes, 1);
}

static enum lp_loop loop_kind(const struct loop_var *v)
{
    return v->level == L_LANE ? LP_VECTOR : v->level >= L_RU || v->unroll ? LP_UNROLL : LP_SERIAL;
}

/* Wraps `body` in the loops of levels from .. to, the first outermost. */
static struct lp_node *wrap(struct lowering *L, enum level from, enum level to,
                            struct lp_node *body)
{
    for (int i = L->nr_loops - 1; i >= 0; i--) {
        const struct loop_var *v = &L->loop[i];
        if (v->level >= from && v->level <= to)
            body = node_for(L, loop_kind(v), v->var, v->extent, body);
    }
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

/* Constants in reading order. */

/* Logical index of a load of a constant, for packing: every loop that moves it is a stored
 * dimension, in nest order. False where a loop moves two dimensions at once. */
static bool pack_layout(struct lowering *L, const struct wl_expr *load, struct layout *out,
                        struct lp_affine *at)
{
    const struct wl_tensor *t = &L->w->tensor[load->tensor];
    const struct wl_stage *s = &L->w->stage[L->n->anchor];
    int nr_axes = s->nr_spatial + s->nr_reduce;
    *out = t->layout;
    out->nr_p = 0;
    int64_t stride = 1;
    *at = lp_affine_const(0);
    for (int d = 0; d < t->nr_dims; d++)
        if (load->idx[d].base)
            return false;
    struct layout_dim dims[LAYOUT_MAX_STORED];
    int nr = 0;
    for (int i = L->nr_loops - 1; i >= 0; i--) {
        const struct loop_var *v = &L->loop[i];
        int dim = -1;
        for (int d = 0; d < t->nr_dims; d++)
            if (v->axis < nr_axes && load->idx[d].coef[v->axis]) {
                if (dim >= 0)
                    return false;
                dim = d;
            }
        if (dim < 0)
            continue;
        if (nr == LAYOUT_MAX_STORED)
            return false;
        dims[nr++] = (struct layout_dim){v->extent, load->idx[dim].coef[v->axis] * v->stride, dim};
        lp_affine_term(at, v->var, stride);
        stride *= v->extent;
    }
    for (int i = 0; i < nr; i++)
        out->p[out->nr_p++] = dims[nr - 1 - i];
    return nr > 0;
}

/* How often all stages of the workload load `tensor`. */
static int count_loads(const struct workload *w, int tensor)
{
    int nr = 0;
    for (int s = 0; s < w->nr_stages; s++)
        expr_find_load(w->stage[s].body, tensor, &nr);
    return nr;
}

static void pack_constants(struct lowering *L, const struct wl_expr *body)
{
    for (int t = 0; t < L->w->nr_tensors; t++) {
        if (L->w->tensor[t].role != WL_CONST || find_source(L, t))
            continue;
        int nr = 0;
        const struct wl_expr *load = expr_find_load(body, t, &nr);
        if (!load || count_loads(L->w, t) != 1 || (load->guarded && load->pad != 0))
            continue;
        struct source *src = &L->source[L->nr_sources];
        *src = (struct source){.tensor = t, .kind = FROM_LOOPS};
        struct layout layout;
        if (!pack_layout(L, load, &layout, &src->at))
            continue;
        src->buf = tensor_buffer(L, t);
        struct lp_buffer *b = &L->lp->buffer[src->buf];
        b->packed = true;
        b->layout = layout;
        b->size = layout_stored_size(&layout);
        if (t == L->p->derived)
            transform_layout(L, &b->layout);
        L->nr_sources++;
    }
}

/* Copies: producers and packed operands at a level of the loops. */

static enum level place_level(enum place p)
{
    return p == PLACE_S0 ? L_S0 : p == PLACE_S1 ? L_S1 : L_R0;
}

/* The values of the axes at the start of what is inside `place`. */
static void outer_axes(const struct lowering *L, enum place place, struct axis_value *out)
{
    const struct wl_stage *s = &L->w->stage[L->n->anchor];
    for (int a = 0; a < s->nr_spatial + s->nr_reduce; a++)
        out[a] = (struct axis_value){lp_affine_const(0), 0,
                                     L->n->extent[a] - nest_inner_extent(L->n, &L->sh, a, place)};
    for (int i = 0; i < L->nr_loops; i++)
        if (L->loop[i].level <= place_level(place))
            lp_affine_term(&out[L->loop[i].axis].a, L->loop[i].var, L->loop[i].stride);
}

/* A copy in the order of the loops: the same loops, with variables of their own. */
static struct lp_node *fill_in_loop_order(struct lowering *L, const struct wl_expr *load,
                                          enum place place, struct source *src)
{
    const struct wl_tensor *t = &L->w->tensor[load->tensor];
    struct axis_value axis[WL_MAX_AXES];
    outer_axes(L, place, axis);
    struct lp_affine to = {0};
    int64_t stride = 1;
    int nr = 0, kind[MAX_LOOPS], var[MAX_LOOPS];
    int64_t extent[MAX_LOOPS];
    src->at = lp_affine_const(0);
    for (int i = L->nr_loops - 1; i >= 0; i--) {
        const struct loop_var *v = &L->loop[i];
        bool used = false;
        for (int d = 0; d < t->nr_dims; d++)
            used |= load->idx[d].coef[v->axis] != 0;
        if (!used || v->level <= place_level(place))
            continue;
        int copy = new_var(L, "p", L->lp->nr_vars);
        if (L->failed)
            return NULL;
        lp_affine_term(&axis[v->axis].a, copy, v->stride);
        axis[v->axis].hi += v->stride * (v->extent - 1);
        lp_affine_term(&to, copy, stride);
        lp_affine_term(&src->at, v->var, stride);
        stride *= v->extent;
        kind[nr] = v->level == L_LANE ? LP_VECTOR : LP_SERIAL;
        extent[nr] = v->extent;
        var[nr++] = copy;
    }
    L->lp->buffer[src->buf].size = stride;
    /* Lanes that overhang may leave the tensor: the copy asks, where the last loads do not. */
    struct axis_value idx[LAYOUT_MAX_DIMS];
    for (int d = 0; d < t->nr_dims; d++)
        idx[d] = value_of(&load->idx[d], axis);
    const struct lp_expr *x = guard(L, convert_load(L, load, axis), t, idx, 0);
    struct lp_node *n = node_store(L, src->buf, &to, x);
    for (int i = 0; i < nr; i++)
        n = node_for(L, (enum lp_loop)kind[i], var[i], extent[i], n);
    return n;
}

/* A producer, computed for the box that is touched, in the order of its tensor. */
static struct lp_node *fill_box(struct lowering *L, const struct wl_expr *load, int stage,
                                enum place place, struct source *src)
{
    const struct wl_tensor *t = &L->w->tensor[load->tensor];
    struct axis_value axis[WL_MAX_AXES], at[LAYOUT_MAX_DIMS];
    outer_axes(L, place, axis);
    struct lp_affine to = {0};
    int64_t stride = 1, extent[LAYOUT_MAX_DIMS];
    int var[LAYOUT_MAX_DIMS], lanes = 1;
    for (int d = t->nr_dims - 1; d >= 0; d--) {
        at[d] = value_of(&load->idx[d], axis);
        src->origin[d] = at[d].a;
        extent[d] = nest_box_extent(L->n, &L->sh, &load->idx[d], place);
        if (extent[d] > t->dim[d])
            extent[d] = t->dim[d];
        src->stride[d] = stride;
        var[d] = new_var(L, "b", L->lp->nr_vars);
        if (L->failed)
            return NULL;
        lp_affine_term(&at[d].a, var[d], 1);
        at[d].hi += extent[d] - 1;
        lp_affine_term(&to, var[d], stride);
        stride *= extent[d];
    }
    L->lp->buffer[src->buf].size = stride;
    int last = t->nr_dims - 1, lane = -1;
    int64_t rows = extent[last];
    if (L->sh.lanes > 1 && rows > 1) {
        /* The last dimension in vectors: rows are filled in order, so that the lanes overhanging
         * one row are overwritten by the next; the last one overhangs the buffer. */
        lanes = L->sh.lanes;
        lane = new_var(L, "b", L->lp->nr_vars);
        rows = (rows + lanes - 1) / lanes;
        struct lp_affine *parts[] = {&at[last].a, &to};
        for (int i = 0; i < 2; i++) {
            lp_affine_term(parts[i], var[last], lanes - 1);
            lp_affine_term(parts[i], lane, 1);
        }
        at[last].hi += lanes;
        L->lp->buffer[src->buf].size += lanes;
    }
    struct lp_node *n =
        node_store(L, src->buf, &to, convert(L, L->w->stage[stage].body, at));
    if (lane >= 0)
        n = node_for(L, LP_VECTOR, lane, lanes, n);
    for (int d = t->nr_dims - 1; d >= 0; d--)
        n = node_for(L, LP_SERIAL, var[d], d == last ? rows : extent[d], n);
    return n;
}

/* The copies whose knob says `place`. */
static struct lp_node *fills_at(struct lowering *L, enum place place)
{
    const struct nest_plan *n = L->n;
    const struct wl_expr *body = L->w->stage[n->anchor].body;
    struct list out = list_new();
    for (int i = 0; i < n->nr_producers + n->nr_packs; i++) {
        bool is_pack = i >= n->nr_producers;
        int stage = is_pack ? -1 : n->producer[i].stage;
        int tensor = is_pack ? n->pack[i - n->nr_producers].tensor : L->w->stage[stage].out;
        int knob = is_pack ? n->pack[i - n->nr_producers].knob : n->producer[i].knob;
        if (knob_place(L->p, knob, L->c) != place)
            continue;
        int nr = 0;
        const struct wl_expr *load = expr_find_load(body, tensor, &nr);
        struct source src = {.tensor = tensor, .kind = is_pack ? FROM_LOOPS : FROM_TENSOR};
        char name[WL_NAME + 8];
        snprintf(name, sizeof name, "%s.copy", L->w->tensor[tensor].name);
        src.buf = new_buffer(L, name, LP_SCRATCH, 0);
        L->lp->buffer[src.buf].per_thread = L->p->target.threads > 1;
        list_add(&out, is_pack ? fill_in_loop_order(L, load, place, &src)
                               : fill_box(L, load, stage, place, &src));
        if (L->failed)
            return NULL;
        L->source[L->nr_sources++] = src;
    }
    return out.first;
}

/* A stage in a nest of its own, element by element: producers placed before the anchor. */
static void lower_root_producer(struct lowering *L, int stage)
{
    const struct wl_stage *s = &L->w->stage[stage];
    const struct wl_tensor *t = &L->w->tensor[s->out];
    struct axis_value axis[WL_MAX_AXES] = {0};
    struct lp_affine to = {0};
    int buf = tensor_buffer(L, s->out), var[WL_MAX_AXES], last = s->nr_spatial - 1, lane = -1;
    int64_t stride = 1, extent[WL_MAX_AXES];
    int lanes = 1;
    for (int a = last; a >= 0; a--) {
        extent[a] = s->extent[a];
        var[a] = new_var(L, s->axis[a], 0);
        axis[a] = (struct axis_value){lp_affine_const(0), 0, extent[a] - 1};
        int64_t by = 1;
        if (a == last && extent[a] > 1) {
            lanes = extent[a] < L->p->target.lanes ? 1 : L->p->target.lanes;
            while (lanes < extent[a] && lanes < L->p->target.lanes)
                lanes *= 2;
            lane = new_var(L, s->axis[a], 9);
            extent[a] = (extent[a] + lanes - 1) / lanes;
            by = lanes;
            lp_affine_term(&axis[a].a, lane, 1);
            axis[a].hi = extent[a] * lanes - 1;
            lp_affine_term(&to, lane, 1);
        }
        lp_affine_term(&axis[a].a, var[a], by);
        lp_affine_term(&to, var[a], stride * by);
        stride *= t->dim[a];
    }
    if (L->failed)
        return;
    L->lp->buffer[buf].size += lanes;
    struct lp_node *n = node_store(L, buf, &to, convert(L, s->body, axis));
    if (lane >= 0)
        n = node_for(L, LP_VECTOR, lane, lanes, n);
    for (int a = last; a >= 0; a--)
        n = node_for(L, LP_SERIAL, var[a], extent[a], n);
    struct lp_nest *out = &L->lp->nest[L->lp->nr_nests++];
    snprintf(out->name, sizeof out->name, "%s", s->name);
    out->lanes = lanes;
    out->body = n;
}

/* The reduction around the register tile. */

static const struct lp_expr *combine(struct lowering *L, enum wl_combine c,
                                     const struct lp_expr *acc, const struct lp_expr *x)
{
    static const enum wl_op op[] = {[WL_SUM] = WL_ADD, [WL_MAXIMUM] = WL_MAX,
                                    [WL_MINIMUM] = WL_MIN, [WL_PRODUCT] = WL_MUL};
    return expr_arith(L, op[c], acc, x);
}

static float neutral(enum wl_combine c)
{
    switch (c) {
    case WL_MAXIMUM:
        return -INFINITY;
    case WL_MINIMUM:
        return INFINITY;
    case WL_PRODUCT:
        return 1;
    default:
        return 0;
    }
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

static struct lp_node *node_if(struct lowering *L, struct lp_cond cond, struct lp_node *then,
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
static struct lp_node *store_output(struct lowering *L, const struct wl_stage *s,
                                    const struct lp_expr *value)
{
    const struct wl_tensor *t = &L->w->tensor[s->out];
    struct lp_affine at = {0};
    struct lp_cond inside = {0};
    int64_t stride = 1;
    for (int d = t->nr_dims - 1; d >= 0; d--) {
        struct axis_value v = value_of(&s->out_idx[d], L->axis);
        struct lp_affine i = lp_affine_scale(&v.a, stride);
        at = lp_affine_add(&at, &i);
        stride *= t->dim[d];
        if (v.lo < 0 || v.hi >= t->dim[d]) /* tiles of a derived workload may overhang */
            inside.r[inside.nr++] = (struct lp_range){v.a, 0, t->dim[d]};
    }
    struct lp_node *n = node_store(L, tensor_buffer(L, s->out), &at, value);
    n->cond = inside;
    add_lane_ranges(L, &n->cond);
    return n;
}

/* The whole of one register tile: S2's body. */
static struct lp_node *lower_tile(struct lowering *L)
{
    const struct nest_plan *n = L->n;
    const struct wl_stage *s = &L->w->stage[n->anchor];
    if (!s->nr_reduce) {
        pack_constants(L, s->body);
        return wrap(L, L_S3, L_LANE, store_output(L, s, convert(L, s->body, L->axis)));
    }
    const struct wl_stage *fin = n->epilogue >= 0 ? &L->w->stage[n->epilogue] : s;
    int64_t tile, waiting;
    struct lp_affine reg = offset_over(L, L_S3, L_S3, &tile);
    int acc = new_buffer(L, "acc", LP_REGISTER, tile);
    if (L->failed)
        return NULL;
    const struct lp_expr *sum = expr_load(L, acc, &reg);

    pack_constants(L, s->body);
    const struct lp_expr *body = convert(L, s->body, L->axis);
    struct lp_node *update =
        wrap(L, L_R1, L_LANE, node_store(L, acc, &reg, combine(L, s->combine, sum, body)));
    struct lp_node *zero =
        wrap(L, L_S3, L_LANE, node_store(L, acc, &reg, expr_literal(L, neutral(s->combine))));

    if (n->epilogue >= 0) {
        L->source[L->nr_sources++] =
            (struct source){.tensor = s->out, .buf = acc, .kind = FROM_REGISTER, .at = reg};
        pack_constants(L, fin->body);
    }
    struct lp_node *done = wrap(
        L, L_S3, L_LANE,
        store_output(L, fin, n->epilogue >= 0 ? convert(L, fin->body, L->axis) : sum));

    struct list out = list_new();
    if (L->sh.r0_trips <= 1) {
        list_add(&out, zero);
        list_add(&out, update);
        list_add(&out, done);
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
        int cache = new_buffer(L, "cache", LP_SCRATCH, waiting * inner);
        L->lp->buffer[cache].per_thread = L->p->target.threads > 1;
        save = node_store(L, cache, &at, sum);
        saved = expr_load(L, cache, &at);
    } else {
        save = store_output(L, fin, sum);
        saved = expr_load(L, save->buf, &save->at);
    }
    struct lp_node *restore = wrap(L, L_S3, L_LANE, node_store(L, acc, &reg, saved));
    list_add(&out, node_if(L, at_end(L, false), zero, restore));
    list_add(&out, update);
    list_add(&out, node_if(L, at_end(L, true), done, wrap(L, L_S3, L_LANE, save)));
    return out.first;
}

static struct lp_node *wrap_outer(struct lowering *L, struct lp_node *body)
{
    struct lp_node *par = ARENA_NEW(&L->lp->arena, struct lp_node);
    par->kind = LP_FOR;
    par->loop = LP_PARALLEL;
    par->body = body;
    for (int i = 0; i < L->nr_loops; i++)
        if (L->loop[i].level == L_S0 && par->nr_vars < LP_MAX_PARALLEL) {
            par->var[par->nr_vars] = L->loop[i].var;
            par->extent[par->nr_vars++] = L->loop[i].extent;
        }
    return L->p->target.threads > 1 && par->nr_vars ? par : wrap(L, L_S0, L_S0, body);
}

static void lower_nest(struct lowering *L, const struct nest_plan *n)
{
    L->n = n;
    nest_shape(n, L->c, &L->sh);
    L->nr_sources = L->nr_loops = 0;
    for (int i = 0; i < n->nr_producers; i++)
        if (knob_place(L->p, n->producer[i].knob, L->c) == PLACE_ROOT) {
            int stage = n->producer[i].stage, tensor = L->w->stage[stage].out;
            lower_root_producer(L, stage);
            struct source src = {.tensor = tensor, .buf = tensor_buffer(L, tensor)};
            int64_t stride = 1;
            for (int d = L->w->tensor[tensor].nr_dims - 1; d >= 0; d--) {
                src.stride[d] = stride;
                stride *= L->w->tensor[tensor].dim[d];
            }
            L->source[L->nr_sources++] = src;
        }
    make_loops(L);
    if (L->failed)
        return;
    struct lp_node *fill[3];
    for (int i = 0; i < 3; i++)
        fill[i] = fills_at(L, (enum place)(PLACE_S0 + i));
    struct lp_node *body = wrap(L, L_S2, L_S2, lower_tile(L));
    if (L->failed)
        return;
    for (int i = 2; i >= 0; i--) {
        struct list l = list_new();
        list_add(&l, fill[i]);
        list_add(&l, body);
        static const enum level of[] = {L_S0, L_S1, L_R0};
        body = i ? wrap(L, of[i], of[i], l.first) : wrap_outer(L, l.first);
    }
    struct lp_nest *out = &L->lp->nest[L->lp->nr_nests++];
    snprintf(out->name, sizeof out->name, "%s", L->w->stage[n->anchor].name);
    out->lanes = L->lane_loop >= 0 ? L->sh.lanes : 1;
    out->body = body;
}

int lower(const struct workload *w, const struct space *s, const struct candidate *c,
          struct loop_program *out, struct err *e)
{
    const struct plan *p = s->sketch[c->sketch]->user;
    struct lowering L = {.p = p, .w = p->w, .lp = out, .c = c};
    *out = (struct loop_program){.threads = p->target.threads};
    for (int t = 0; t < WL_MAX_TENSORS; t++)
        L.tensor_buf[t] = -1;
    for (int i = 0; i < p->nr_nests && !L.failed; i++)
        lower_nest(&L, &p->nest[i]);
    if (L.failed) {
        loop_program_release(out);
        return err_set(e, ERR_LIMIT, "workload \"%s\" needs more loops or buffers than a loop "
                       "program holds", w->name);
    }
    return 0;
}
