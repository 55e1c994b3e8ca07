/* SPDX-License-Identifier: Apache-2.0 */
/* Workloads of reductions over axes, normalisations, and of what moves elements. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "engine/base/arena.h"
#include "engine/model/make.h"

/* ---- reductions over a set of axes ---- */

/* Axes of windows where the array has space, else k, k1, k2, ... */
static void reduce_name(char *out, int rank, int dim, int nr)
{
    static const char *const space[] = {"n", "c", "q", "r", "s"};
    int k = dim < 2 ? dim : dim + 5 - rank;
    if (rank >= 3 && rank <= 5 && dim > 0)
        snprintf(out, WL_NAME, "%s", space[k]);
    else if (nr == 0)
        snprintf(out, WL_NAME, "k");
    else
        snprintf(out, WL_NAME, "k%d", nr);
}

/* Adds an axis for each dimension of `axes`; at[] gets the position in the array reduced. */
static void reduce_axes(struct maker *m, int st, const struct shape *xs, unsigned axes,
                        const struct domain *d, struct position *at)
{
    int nr = 0;
    for (int i = 0; i < xs->rank; i++) {
        at[i] = d->at[i];
        if (!(axes >> i & 1))
            continue;
        char name[WL_NAME];
        reduce_name(name, xs->rank, i, nr++);
        at[i] = at_axis(workload_axis(m->w, st, name, xs->dim[i], true), 1, 0);
    }
}

static int64_t count_reduced(const struct shape *xs, unsigned axes)
{
    int64_t n = 1;
    for (int i = 0; i < xs->rank; i++)
        n *= axes >> i & 1 ? xs->dim[i] : 1;
    return n;
}

void make_reduce(struct maker *m)
{
    static const enum wl_combine combine[] = {WL_SUM, WL_SUM, WL_MAXIMUM, WL_MINIMUM, WL_PRODUCT};
    const struct kernel_op *o = &m->k->op[0];
    const struct shape *xs = &m->k->slot[o->in[0]].shape;
    bool mean = o->op.reduce == REDUCE_MEAN;
    struct domain d = make_domain(&m->k->slot[o->out], false, 1);
    int target = mean || m->k->nr_ops > 1 ? make_temp(m, "acc", &d) : m->out;
    int st = make_stage(m, "reduce", target, combine[o->op.reduce], &d);
    struct position at[LAYOUT_MAX_DIMS];
    reduce_axes(m, st, xs, o->op.axes, &d, at);
    m->w->stage[st].body = load_slot(m, st, o->in[0], at, 0);
    m->t->reduce_length = count_reduced(xs, o->op.axes);
    if (target == m->out)
        return;
    st = make_stage(m, "out", m->out, WL_NONE, &d);
    const struct wl_expr *v = load_temp(m, target, &d);
    if (mean)
        v = wl_binary(m->w, WL_MUL, v,
                      wl_literal(m->w, (float)(1.0 / (double)m->t->reduce_length)));
    m->w->stage[st].body = make_epilogue(m, st, &d, 1, v);
}

/* A temporary of a reduction read back over the whole array. */
static const struct wl_expr *load_reduced(struct maker *m, int temp, unsigned axes,
                                          const struct domain *d)
{
    struct affine idx[LAYOUT_MAX_DIMS];
    for (int i = 0; i < d->rank; i++)
        idx[i] = axes >> i & 1 ? affine_const(0) : d->at[i].whole;
    return wl_load(m->w, temp, idx);
}

/* exp(x - max), or x - max, at a position of the input. */
static const struct wl_expr *shifted(struct maker *m, int st, const struct position *at,
                                     const struct wl_expr *max, bool exponential)
{
    const struct wl_expr *v =
        wl_binary(m->w, WL_SUB, load_slot(m, st, m->k->op[0].in[0], at, 0), max);
    return exponential ? wl_unary(m->w, WL_EXP, v) : v;
}

void make_softmax(struct maker *m)
{
    const struct kernel_op *o = &m->k->op[0];
    const struct slot *x = &m->k->slot[o->in[0]];
    unsigned axes = o->op.axes;
    struct slot kept = *x;
    for (int i = 0; i < kept.shape.rank; i++)
        if (axes >> i & 1)
            kept.shape.dim[i] = 1;
    struct domain small = make_domain(&kept, false, 1),
                  d = make_domain(&m->k->slot[o->out], false, 1);
    int max = make_temp(m, "max", &small), sum = make_temp(m, "sum", &small);
    struct position at[LAYOUT_MAX_DIMS];
    int st = make_stage(m, "max", max, WL_MAXIMUM, &small);
    reduce_axes(m, st, &x->shape, axes, &small, at);
    m->w->stage[st].body = load_slot(m, st, o->in[0], at, 0);

    st = make_stage(m, "sum", sum, WL_SUM, &small);
    reduce_axes(m, st, &x->shape, axes, &small, at);
    m->w->stage[st].body = shifted(m, st, at, load_temp(m, max, &small), true);

    st = make_stage(m, "out", m->out, WL_NONE, &d);
    const struct wl_expr *v = shifted(m, st, d.at, load_reduced(m, max, axes, &d), !o->op.log);
    const struct wl_expr *by = load_reduced(m, sum, axes, &d);
    v = o->op.log ? wl_binary(m->w, WL_SUB, v, wl_unary(m->w, WL_LOG, by))
                  : wl_binary(m->w, WL_DIV, v, by);
    m->w->stage[st].body = make_epilogue(m, st, &d, 1, v);
    m->t->reduce_length = count_reduced(&x->shape, axes);
}

/* x * t^-beta; the usual beta of 3/4 needs roots only. */
static const struct wl_expr *lrn_scale(struct workload *w, const struct wl_expr *x,
                                       const struct wl_expr *t, float beta)
{
    if (beta == 0.75f) {
        const struct wl_expr *root = wl_unary(w, WL_SQRT, t);
        return wl_binary(w, WL_DIV, x, wl_binary(w, WL_MUL, root, wl_unary(w, WL_SQRT, root)));
    }
    return wl_binary(w, WL_MUL, x, wl_binary(w, WL_POW, t, wl_literal(w, -beta)));
}

/* The last stage: what is in `sum` scales the input. */
static void lrn_out(struct maker *m, const struct domain *d, int sum)
{
    const struct kernel_op *o = &m->k->op[0];
    const struct op *op = &o->op;
    int st = make_stage(m, "out", m->out, WL_NONE, d);
    const struct wl_expr *t = load_temp(m, sum, d);
    t = wl_binary(m->w, WL_MUL, t, wl_literal(m->w, (float)((double)op->a / (double)op->size)));
    t = wl_binary(m->w, WL_ADD, t, wl_literal(m->w, op->c));
    const struct wl_expr *v = lrn_scale(m->w, load_slot(m, st, o->in[0], d->at, 0), t, op->b);
    m->w->stage[st].body = make_epilogue(m, st, d, 1, v);
}

/* Zeros in channels [from, from + nr) of the array of squares. */
static void lrn_edge(struct maker *m, const char *name, int squares, int64_t from, int64_t nr)
{
    const struct shape *s = &m->k->slot[m->k->op[0].out].shape;
    if (!nr)
        return;
    int st = workload_stage(m->w, name, squares, WL_NONE);
    workload_axis(m->w, st, "n", s->dim[0], false);
    workload_axis(m->w, st, "y", s->dim[2], false);
    workload_axis(m->w, st, "x", s->dim[3], false);
    workload_axis(m->w, st, "c", nr, false);
    m->w->stage[st].out_idx[3].base = from;
    m->w->stage[st].body = wl_literal(m->w, 0);
}

/*
 * Blocked: a window of channels crosses blocks. So the squares go to an array with all channels of
 * a pixel side by side and zeros at both ends, where the lanes of a block read windows that are
 * neighbours in memory. The number of channels is a multiple of the block.
 */
static void lrn_blocked(struct maker *m, const struct domain *d)
{
    const struct kernel_op *o = &m->k->op[0];
    const struct shape *s = &m->k->slot[o->out].shape;
    int64_t low = (o->op.size - 1) / 2, high = o->op.size - 1 - low;
    int64_t dim[] = {s->dim[0], s->dim[2], s->dim[3], low + s->dim[1] + high};
    struct layout l = layout_plain(4, dim);
    int squares = workload_tensor(m->w, "squares", WL_TEMP, &l), sum = make_temp(m, "sum", d);
    struct affine idx[] = {d->at[0].whole, d->at[2].whole, d->at[3].whole, d->at[1].whole};

    lrn_edge(m, "edge_low", squares, 0, low);
    lrn_edge(m, "edge_high", squares, low + s->dim[1], high);
    int st = make_stage(m, "square", squares, WL_NONE, d);
    memcpy(m->w->stage[st].out_idx, idx, sizeof idx);
    m->w->stage[st].out_idx[3].base = low;
    const struct wl_expr *v = load_slot(m, st, o->in[0], d->at, 0);
    m->w->stage[st].body = wl_binary(m->w, WL_MUL, v, v);

    st = make_stage(m, "sum", sum, WL_SUM, d);
    idx[3] = affine_add(idx[3], affine_axis(workload_axis(m->w, st, "c", o->op.size, true), 1));
    m->w->stage[st].body = wl_load(m->w, squares, idx);
    lrn_out(m, d, sum);
}

void make_lrn(struct maker *m)
{
    const struct kernel_op *o = &m->k->op[0];
    const struct op *op = &o->op;
    struct domain d = make_domain(&m->k->slot[o->out], false, 1);
    m->t->reduce_length = op->size;
    if (m->k->slot[o->out].block > 1) {
        lrn_blocked(m, &d);
        return;
    }
    int sum = make_temp(m, "sum", &d);
    int st = make_stage(m, "sum", sum, WL_SUM, &d);
    struct position at[LAYOUT_MAX_DIMS];
    memcpy(at, d.at, sizeof at);
    int c = workload_axis(m->w, st, "c", op->size, true);
    at[1].whole = affine_add(at[1].whole, affine_axis(c, 1));
    at[1].whole.base = -((op->size - 1) / 2);
    const struct wl_expr *v = load_slot(m, st, o->in[0], at, 0);
    m->w->stage[st].body = wl_binary(m->w, WL_MUL, v, v);
    lrn_out(m, &d, sum);
}

/* ---- movements ---- */

/* One stage an input, each filling its part of the output. */
void make_concat(struct maker *m)
{
    const struct kernel_op *o = &m->k->op[0];
    int axis = o->op.axis;
    int64_t base = 0;
    for (int i = 0; i < o->nr_in; i++) {
        const struct slot *x = &m->k->slot[o->in[i]];
        struct domain d = make_domain(x, false, 1);
        char name[WL_NAME];
        snprintf(name, sizeof name, "part%d", i);
        d.idx[axis].base = axis == 1 ? base / x->block : base;
        int st = make_stage(m, name, m->out, WL_NONE, &d);
        m->w->stage[st].body = load_slot(m, st, o->in[i], d.at, 0);
        base += x->shape.dim[axis];
    }
}

/* Blocked to plain, over the `extent` lanes of `blocks` blocks from block `first` on. */
static void unpack_stage(struct maker *m, const char *name, const struct slot *x, int64_t first,
                         int64_t blocks, int64_t lanes)
{
    const struct shape *s = &x->shape;
    struct domain d = {.rank = s->rank};
    static const char *const names[] = {"n", "k", "ki", "y", "x"};
    int64_t extent[] = {s->dim[0], blocks, lanes, s->dim[2], s->dim[3]};
    for (d.nr = 0; d.nr < 5; d.nr++) {
        snprintf(d.name[d.nr], WL_NAME, "%s", names[d.nr]);
        d.extent[d.nr] = extent[d.nr];
    }
    struct affine outer = affine_axis(1, 1), lane = affine_axis(2, 1);
    outer.base = first;
    struct affine whole = affine_add(affine_axis(1, x->block), lane);
    whole.base = first * x->block;
    d.at[0] = at_axis(0, 1, 0);
    d.at[1] = (struct position){.whole = whole, .outer = outer, .lane = lane, .split = true};
    d.at[2] = at_axis(3, 1, 0);
    d.at[3] = at_axis(4, 1, 0);
    for (int i = 0; i < 4; i++)
        d.idx[i] = d.at[i].whole;
    int st = make_stage(m, name, m->out, WL_NONE, &d);
    m->w->stage[st].body = load_slot(m, st, m->k->op[0].in[0], d.at, 0);
}

void make_relayout(struct maker *m)
{
    const struct kernel_op *o = &m->k->op[0];
    const struct slot *x = &m->k->slot[o->in[0]], *y = &m->k->slot[o->out];
    if (x->block == 1) {
        struct domain d = make_domain(y, false, 1);
        int st = make_stage(m, "pack", m->out, WL_NONE, &d);
        m->w->stage[st].body = load_slot(m, st, o->in[0], d.at, 0);
        return;
    }
    int64_t channels = x->shape.dim[1], full = channels / x->block, rest = channels % x->block;
    if (full)
        unpack_stage(m, "unpack", x, 0, full, x->block);
    if (rest)
        unpack_stage(m, "unpack_rest", x, full, 1, rest);
}

/* Numbers that make sense as indices, where a task is measured on its own. */
static void fill_indices(struct maker *m, int slot, int64_t extent)
{
    enum { MOST = 1 << 22 };
    const struct slot *s = &m->k->slot[slot];
    int64_t n = shape_size(&s->shape);
    if (s->role != SLOT_INPUT || n > MOST)
        return;
    float *data = m->t->data[m->tensor[slot]] = xmalloc((size_t)n * sizeof *data);
    for (int64_t i = 0; i < n; i++)
        data[i] = (float)((uint64_t)i * UINT64_C(0x9e3779b97f4a7c15) % (uint64_t)extent);
}

/* Index of an element as it is in the list: from the end where it may be below 0. */
static const struct wl_expr *load_index(struct maker *m, int st, int slot, int64_t extent,
                                        const struct position *at)
{
    const struct wl_expr *i = load_slot(m, st, slot, at, 0);
    if (!m->k->op[0].op.wraps)
        return i;
    const struct wl_expr *below = wl_binary(m->w, WL_LESS, i, wl_literal(m->w, 0));
    return wl_binary(m->w, WL_ADD, i,
                     wl_binary(m->w, WL_MUL, below, wl_literal(m->w, (float)extent)));
}

void make_gather(struct maker *m)
{
    const struct kernel_op *o = &m->k->op[0];
    const struct slot *x = &m->k->slot[o->in[0]], *list = &m->k->slot[o->in[1]];
    struct domain d = make_domain(&m->k->slot[m->k->op[m->k->nr_ops - 1].out], false, 1);
    int st = make_stage(m, "out", m->out, WL_NONE, &d), axis = o->op.axis;
    int64_t extent = x->shape.dim[axis];
    /* In the index: nothing where it is picked, and where the extent is 1. */
    struct affine idx[LAYOUT_MAX_DIMS] = {0};
    for (int i = 0; i < x->shape.rank; i++) {
        int from = o->op.each || i < axis ? i : i + list->shape.rank - 1;
        bool blocked = x->block > 1 && i == 1;
        if (i != axis && x->shape.dim[i] > 1)
            idx[i] = blocked ? d.at[from].outer : d.at[from].whole;
        if (blocked)
            idx[x->shape.rank] = d.at[from].lane;
    }
    const struct wl_expr *at = load_index(m, st, o->in[1], extent, o->op.each ? d.at : d.at + axis);
    fill_indices(m, o->in[1], extent);
    const struct wl_expr *v = wl_pick(m->w, m->tensor[o->in[0]], idx, axis, at);
    m->w->stage[st].body = make_epilogue(m, st, &d, 1, v);
}

/* Position in the input of a movement for a position in its output. */
static void moved(const struct op *op, const struct domain *d, struct position *at)
{
    for (int i = 0; i < d->rank; i++) {
        struct position p = d->at[i];
        if (op->kind == OP_TRANSPOSE) {
            at[op->at[i]] = p;
            continue;
        }
        if (op->kind == OP_PAD) {
            p.whole.base -= op->at[i];
        } else if (!p.split) {
            for (int a = 0; a < WL_MAX_AXES; a++)
                p.whole.coef[a] *= op->step[i];
            p.whole.base += op->at[i];
        }
        at[i] = p;
    }
}

void make_move(struct maker *m)
{
    const struct kernel_op *o = &m->k->op[0];
    int last = m->k->op[m->k->nr_ops - 1].out;
    struct domain d = make_domain(&m->k->slot[last], false, 1);
    int st = make_stage(m, "out", m->out, WL_NONE, &d);
    if (op_is_element(o->op.kind)) {
        m->w->stage[st].body = make_epilogue(m, st, &d, 0, NULL);
        return;
    }
    struct position at[LAYOUT_MAX_DIMS];
    moved(&o->op, &d, at);
    const struct wl_expr *v = load_slot(m, st, o->in[0], at, o->op.a);
    m->w->stage[st].body = make_epilogue(m, st, &d, 1, v);
}
