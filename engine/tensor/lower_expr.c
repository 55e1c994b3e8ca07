/* SPDX-License-Identifier: Apache-2.0 */
/* Indices and expressions of the workload, in terms of the loops. */
#include "engine/tensor/lower_private.h"

#include <stdio.h>
#include <string.h>

struct list lower_list_new(void)
{
    return (struct list){NULL, NULL};
}

void lower_list_add(struct list *l, struct lp_node *n)
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

int lower_new_var(struct lowering *L, const char *name, int level)
{
    if (L->lp->nr_vars == LP_MAX_VARS) {
        L->failed = true;
        return 0;
    }
    int v = L->lp->nr_vars++;
    snprintf(L->lp->var_name[v], sizeof L->lp->var_name[v], "%.10s%d", name, level);
    return v;
}

int lower_new_buffer(struct lowering *L, const char *name, enum lp_scope scope, int64_t size)
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

void lower_ask(struct lowering *L, struct lp_cond *c, struct lp_range r)
{
    r.lo -= r.a.base;
    r.hi -= r.a.base;
    r.a.base = 0;
    for (int i = 0; i < c->nr; i++) {
        struct lp_range *o = &c->r[i];
        struct lp_affine minus = lp_affine_scale(&o->a, -1);
        if (lp_affine_add(&r.a, &minus).nr)
            continue;
        o->lo = r.lo > o->lo ? r.lo : o->lo;
        o->hi = r.hi < o->hi ? r.hi : o->hi;
        return;
    }
    if (c->nr == LAYOUT_MAX_DIMS)
        L->failed = true;
    else
        c->r[c->nr++] = r;
}

struct lp_cond lower_for_all(struct lowering *L, const struct lp_cond *c, int var, int64_t extent)
{
    struct lp_cond all = {0};
    for (int i = 0; i < c->nr; i++) {
        struct lp_range r = c->r[i];
        int64_t coef = lp_affine_coef(&r.a, var), reach = coef * (extent - 1);
        lp_affine_term(&r.a, var, -coef);
        r.lo -= reach < 0 ? reach : 0;
        r.hi -= reach > 0 ? reach : 0;
        lower_ask(L, &all, r);
    }
    return all;
}

/* The stored dimensions stay; what is logical is the weights that the transform is made of. */
void lower_transform_layout(const struct lowering *L, struct layout *l)
{
    const struct layout *from = &L->w->tensor[L->p->from].layout;
    l->transform = L->p->transform;
    l->nr_l = from->nr_l;
    memcpy(l->l, from->l, sizeof l->l);
}

int lower_tensor_buffer(struct lowering *L, int t)
{
    if (L->tensor_buf[t] >= 0)
        return L->tensor_buf[t];
    const struct wl_tensor *wt = &L->w->tensor[t];
    int64_t size = layout_stored_size(&wt->layout);
    enum lp_scope scope = wt->role == WL_TEMP ? LP_SCRATCH : LP_TENSOR;
    int b = lower_new_buffer(L, wt->name, scope, size);
    L->lp->buffer[b].tensor = scope == LP_TENSOR ? t : -1;
    L->lp->buffer[b].layout = wt->layout;
    if (t == L->p->derived) {
        /* To the outside it is the weights, stored after a transform. */
        L->lp->buffer[b].tensor = L->p->from;
        lower_transform_layout(L, &L->lp->buffer[b].layout);
    }
    return L->tensor_buf[t] = b;
}

struct lp_node *lower_node_for(struct lowering *L, enum lp_loop kind, int var, int64_t extent,
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

struct lp_node *lower_node_store(struct lowering *L, int buf, const struct lp_affine *at,
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

struct lp_expr *lower_expr_new(struct lowering *L, enum lp_op op)
{
    struct lp_expr *x = ARENA_NEW(&L->lp->arena, struct lp_expr);
    x->op = op;
    return x;
}

const struct lp_expr *lower_expr_load(struct lowering *L, int buf, const struct lp_affine *at)
{
    struct lp_expr *x = lower_expr_new(L, LP_LOAD);
    x->buf = buf;
    x->at = *at;
    return x;
}

const struct lp_expr *lower_expr_literal(struct lowering *L, float v)
{
    struct lp_expr *x = lower_expr_new(L, LP_LITERAL);
    x->literal = v;
    return x;
}

const struct lp_expr *lower_expr_arith(struct lowering *L, enum wl_op op, const struct lp_expr *a,
                                       const struct lp_expr *b)
{
    struct lp_expr *x = lower_expr_new(L, LP_ARITH);
    x->arith = op;
    x->a = a;
    x->b = b;
    return x;
}

/* Expressions. */

struct axis_value lower_value_of(const struct affine *f, const struct axis_value *axis)
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

static bool is_given(const struct lowering *L, const struct lp_range *r)
{
    for (int i = 0; i < L->given.nr; i++) {
        const struct lp_range *g = &L->given.r[i];
        struct lp_affine minus = lp_affine_scale(&g->a, -1), gap = lp_affine_add(&r->a, &minus);
        if (!gap.nr && g->lo + gap.base >= r->lo && g->hi + gap.base <= r->hi)
            return true;
    }
    return false;
}

const struct lp_expr *lower_guard(struct lowering *L, const struct lp_expr *x,
                                  const struct wl_tensor *t, const struct axis_value *idx,
                                  float pad)
{
    struct lp_cond cond = {0};
    for (int d = 0; d < t->nr_dims; d++) {
        struct lp_range r = {idx[d].a, 0, t->dim[d]};
        if ((idx[d].lo < 0 || idx[d].hi >= t->dim[d]) && !is_given(L, &r))
            lower_ask(L, L->assumed ? L->assumed : &cond, r);
    }
    if (!cond.nr)
        return x;
    struct lp_expr *g = lower_expr_new(L, LP_GUARD);
    g->cond = cond;
    g->a = x;
    g->literal = pad;
    return g;
}

const struct source *lower_find_source(const struct lowering *L, int tensor)
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

/* The lanes that are no element: of the last vector of a register tile, and past the end of an axis
 * that was rounded up. Adds what must hold of the others. */
void lower_add_lane_ranges(const struct lowering *L, struct lp_cond *cond)
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
        lower_add_lane_ranges(L, &cond);
    if (!cond.nr)
        return load;
    struct lp_expr *g = lower_expr_new(L, LP_GUARD);
    g->cond = cond;
    g->a = load;
    return g;
}

/* A load, with everything that may stand behind it. */
const struct lp_expr *lower_convert_load(struct lowering *L, const struct wl_expr *e,
                                         const struct axis_value *axis)
{
    const struct wl_tensor *t = &L->w->tensor[e->tensor];
    const struct source *src = lower_find_source(L, e->tensor);
    if (src && src->kind == FROM_VALUE)
        return src->value;
    if (src && src->kind != FROM_TENSOR)
        return lower_expr_load(L, src->buf, &src->at);
    struct axis_value idx[LAYOUT_MAX_DIMS];
    for (int d = 0; d < t->nr_dims; d++)
        idx[d] = lower_value_of(&e->idx[d], axis);
    const struct lp_expr *x;
    int producer = src ? -1 : inlined_producer(L, e->tensor);
    if (producer >= 0) {
        x = lower_convert(L, L->w->stage[producer].body, idx);
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
        x = guard_overhang(
            L, lower_expr_load(L, src ? src->buf : lower_tensor_buffer(L, e->tensor), &at));
    }
    return e->guarded ? lower_guard(L, x, t, idx, e->pad) : x;
}

/* Lanes that overhang read nothing: where they would is not known. */
static const struct lp_expr *convert_pick(struct lowering *L, const struct wl_expr *e,
                                          const struct axis_value *axis)
{
    const struct wl_tensor *t = &L->w->tensor[e->tensor];
    struct lp_expr *x = lower_expr_new(L, LP_PICK), *g = lower_expr_new(L, LP_GUARD);
    int64_t stride = 1;
    for (int d = t->nr_dims - 1; d >= 0; stride *= t->dim[d--]) {
        struct axis_value i = lower_value_of(&e->idx[d], axis);
        i.a = lp_affine_scale(&i.a, stride);
        x->at = lp_affine_add(&x->at, &i.a);
        if (d == e->dim)
            x->step = stride;
    }
    x->count = t->dim[e->dim];
    x->buf = lower_tensor_buffer(L, e->tensor);
    x->a = lower_convert(L, e->a, axis);
    lower_add_lane_ranges(L, &g->cond);
    g->a = x;
    return g->cond.nr ? g : x;
}

const struct lp_expr *lower_convert(struct lowering *L, const struct wl_expr *e,
                                    const struct axis_value *axis)
{
    if (e->op == WL_PICK)
        return convert_pick(L, e, axis);
    if (e->op == WL_LITERAL)
        return lower_expr_literal(L, e->literal);
    if (e->op == WL_LOAD)
        return lower_convert_load(L, e, axis);
    return lower_expr_arith(L, e->op, lower_convert(L, e->a, axis),
                            e->b ? lower_convert(L, e->b, axis) : NULL);
}
