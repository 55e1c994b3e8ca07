/* SPDX-License-Identifier: Apache-2.0 */
/* Workloads of convolution, pooling and matrix products. */
#include <assert.h>
#include <math.h>
#include <string.h>

#include "engine/base/arena.h"
#include "engine/model/make.h"

static const char *const space_axis[OP_MAX_WINDOW][OP_MAX_WINDOW] = {
    {"x"}, {"y", "x"}, {"z", "y", "x"}};
static const char *const window_axis[OP_MAX_WINDOW][OP_MAX_WINDOW] = {
    {"s"}, {"r", "s"}, {"q", "r", "s"}};

/*
 * Input of a window operator, padded where a window leaves it: the tensor to read, and the position
 * of its first element in each dimension of space.
 */
struct window_input {
    int tensor;
    int64_t base[OP_MAX_WINDOW];
};

/* Index of an input element in dimension `i` of space: at `out` windows, tap `tap`. */
static struct affine window_index(const struct op_window *w, const struct window_input *in, int i,
                                  struct affine out, int tap)
{
    for (int a = 0; a < WL_MAX_AXES; a++)
        out.coef[a] *= w->stride[i];
    out = affine_add(out, affine_axis(tap, w->dilation[i]));
    out.base += in->base[i];
    return out;
}

/* Stage "pad" over exactly what the windows of an output of shape `ys` read. */
static struct window_input pad_input(struct maker *m, int slot, const struct op_window *w,
                                     const struct shape *ys, float pad)
{
    const struct slot *s = &m->k->slot[slot];
    struct window_input in = {.tensor = m->tensor[slot]};
    int64_t dim[LAYOUT_MAX_DIMS];
    const struct wl_tensor *t = &m->w->tensor[in.tensor];
    memcpy(dim, t->dim, sizeof dim);
    bool leaves = false;
    for (int i = 0; i < w->nr; i++) {
        int64_t reads = (ys->dim[2 + i] - 1) * w->stride[i] + (w->size[i] - 1) * w->dilation[i] + 1;
        leaves |= w->pad[i] > 0 || reads > s->shape.dim[2 + i];
        dim[2 + i] = reads;
    }
    if (!leaves)
        return in;
    int nr_dims = t->nr_dims, from = in.tensor;
    struct layout l = layout_plain(nr_dims, dim);
    in.tensor = workload_tensor(m->w, "pad", WL_TEMP, &l);
    int st = workload_stage(m->w, "pad", in.tensor, WL_NONE);
    struct affine idx[LAYOUT_MAX_DIMS];
    for (int i = 0; i < nr_dims; i++) {
        const char *name = i == 0          ? "n"
                           : i == 1        ? "c"
                           : i < 2 + w->nr ? space_axis[w->nr - 1][i - 2]
                                           : "ci";
        idx[i] = affine_axis(workload_axis(m->w, st, name, dim[i], false), 1);
        if (i >= 2 && i < 2 + w->nr)
            idx[i].base = -w->pad[i - 2];
    }
    m->w->stage[st].body = wl_load_guarded(m->w, from, idx, pad);
    return in;
}

/* The reduction writes the output itself when nothing follows. */
static int reduction_target(struct maker *m, const struct domain *d, const char *name, bool follows)
{
    return follows || m->k->nr_ops > 1 ? make_temp(m, name, d) : m->out;
}

/* ---- convolution ---- */

/* Adds the reduction axes and sets the body: input times weight. */
static void conv_body(struct maker *m, int st, const struct domain *d,
                      const struct window_input *in)
{
    const struct kernel_op *o = &m->k->op[0];
    const struct slot *x = &m->k->slot[o->in[0]], *w = &m->k->slot[o->in[1]];
    const struct op_window *win = &o->op.window;
    bool depthwise = w->shape.dim[1] == 1 && o->op.groups > 1;
    struct position at[LAYOUT_MAX_DIMS] = {d->at[1]};
    struct affine xi[LAYOUT_MAX_DIMS] = {d->at[0].whole, d->at[1].outer};
    if (!depthwise || o->op.groups != w->shape.dim[0]) {
        int64_t blocks = (w->shape.dim[1] + x->block - 1) / x->block;
        int c = workload_axis(m->w, st, "c", blocks, true);
        xi[1] = affine_axis(c, 1);
        at[1] = at_axis(c, x->block, 0);
        if (o->op.groups > 1) /* d has axis g behind n */
            xi[1].coef[1] = blocks;
    } else if (!d->at[1].split) {
        xi[1] = d->at[1].whole;
    }
    for (int i = 0; i < win->nr; i++) {
        int tap = workload_axis(m->w, st, window_axis[win->nr - 1][i], win->size[i], true);
        xi[2 + i] = window_index(win, in, i, d->at[2 + i].whole, tap);
        at[2 + i] = at_axis(tap, 1, 0);
    }
    if (x->block > 1 && depthwise) {
        xi[2 + win->nr] = d->at[1].lane;
    } else if (x->block > 1) {
        int ci = workload_axis(m->w, st, "ci", x->block, true);
        xi[2 + win->nr] = affine_axis(ci, 1);
        at[1].whole = affine_add(at[1].whole, affine_axis(ci, 1));
    }
    const struct wl_expr *a = wl_load(m->w, in->tensor, xi);
    m->w->stage[st].body = wl_binary(m->w, WL_MUL, a, load_slot(m, st, o->in[1], at, 0));
}

void make_conv(struct maker *m)
{
    const struct kernel_op *o = &m->k->op[0];
    const struct slot *w = &m->k->slot[o->in[1]], *y = &m->k->slot[o->out];
    int64_t groups = o->op.groups;
    bool depthwise = w->shape.dim[1] == 1 && groups > 1 && groups == w->shape.dim[0];
    struct window_input in = pad_input(m, o->in[0], &o->op.window, &y->shape, 0);
    struct domain d = make_domain(y, false, depthwise ? 1 : groups);
    int target = reduction_target(m, &d, "acc", false);
    int st = make_stage(m, "conv", target, WL_SUM, &d);
    conv_body(m, st, &d, &in);
    m->t->reduce_length = w->shape.dim[1];
    for (int i = 0; i < o->op.window.nr; i++)
        m->t->reduce_length *= o->op.window.size[i];
    if (target != m->out)
        make_out(m, &d, target);
}

/* ---- pooling ---- */

/* Elements of the window at output `at` of dimension `i` that an average counts. */
static int64_t counted(const struct op *op, int i, int64_t in, int64_t at)
{
    const struct op_window *w = &op->window;
    int64_t low = op->include_pad ? -w->pad[i] : 0, n = 0;
    int64_t high = in + (op->include_pad ? w->pad_end[i] : 0);
    for (int64_t r = 0; r < w->size[i]; r++) {
        int64_t k = at * w->stride[i] - w->pad[i] + r * w->dilation[i];
        n += k >= low && k < high;
    }
    return n;
}

/*
 * What the sum of each window is multiplied with: a number where all windows count as many
 * elements, else a constant array over space, made here.
 */
static const struct wl_expr *pool_scale(struct maker *m, int st, const struct domain *d, int table)
{
    const struct kernel_op *o = &m->k->op[0];
    if (table >= 0) {
        struct affine idx[LAYOUT_MAX_DIMS];
        for (int i = 0; i < o->op.window.nr; i++)
            idx[i] = d->at[2 + i].whole;
        return wl_load(m->w, table, idx);
    }
    (void)st;
    int64_t n = 1;
    for (int i = 0; i < o->op.window.nr; i++)
        n *= o->op.window.size[i];
    return wl_literal(m->w, (float)(1.0 / (double)n));
}

/* The table of 1/count as a constant tensor, -1 where one number does. */
static int count_table(struct maker *m)
{
    const struct kernel_op *o = &m->k->op[0];
    const struct op *op = &o->op;
    const struct shape *xs = &m->k->slot[o->in[0]].shape, *ys = &m->k->slot[o->out].shape;
    bool uniform = true;
    for (int i = 0; i < op->window.nr; i++)
        for (int64_t at = 0; at < ys->dim[2 + i] && uniform; at++)
            uniform = counted(op, i, xs->dim[2 + i], at) == op->window.size[i];
    if (uniform)
        return -1;
    struct layout l = layout_plain(op->window.nr, ys->dim + 2);
    int t = workload_tensor(m->w, "scale", WL_CONST, &l);
    int64_t size = layout_logical_size(&l);
    float *data = m->t->data[t] = xmalloc((size_t)size * sizeof *data);
    for (int64_t at = 0; at < size; at++) {
        int64_t rest = at, n = 1;
        for (int i = op->window.nr; i-- > 0; rest /= ys->dim[2 + i])
            n *= counted(op, i, xs->dim[2 + i], rest % ys->dim[2 + i]);
        data[at] = (float)(1.0 / (double)n);
    }
    return t;
}

void make_pool(struct maker *m)
{
    const struct kernel_op *o = &m->k->op[0];
    const struct slot *x = &m->k->slot[o->in[0]], *y = &m->k->slot[o->out];
    const struct op_window *win = &o->op.window;
    bool max = o->op.max;
    int table = max ? -1 : count_table(m);
    struct window_input in = pad_input(m, o->in[0], win, &y->shape, max ? -INFINITY : 0);
    struct domain d = make_domain(y, false, 1);
    int target = reduction_target(m, &d, "acc", !max);
    int st = make_stage(m, "pool", target, max ? WL_MAXIMUM : WL_SUM, &d);
    struct affine xi[LAYOUT_MAX_DIMS] = {d.at[0].whole,
                                         d.at[1].split ? d.at[1].outer : d.at[1].whole};
    m->t->reduce_length = 1;
    for (int i = 0; i < win->nr; i++) {
        int tap = workload_axis(m->w, st, window_axis[win->nr - 1][i], win->size[i], true);
        xi[2 + i] = window_index(win, &in, i, d.at[2 + i].whole, tap);
        m->t->reduce_length *= win->size[i];
    }
    if (x->block > 1)
        xi[2 + win->nr] = d.at[1].lane;
    m->w->stage[st].body = wl_load(m->w, in.tensor, xi);
    if (target == m->out)
        return;
    st = make_stage(m, "out", m->out, WL_NONE, &d);
    const struct wl_expr *v = load_temp(m, target, &d);
    if (!max)
        v = wl_binary(m->w, WL_MUL, v, pool_scale(m, st, &d, table));
    m->w->stage[st].body = make_epilogue(m, st, &d, 1, v);
}

/* ---- matrix product ---- */

void make_matmul(struct maker *m)
{
    const struct kernel_op *o = &m->k->op[0];
    const struct op *op = &o->op;
    const struct shape *as = &m->k->slot[o->in[0]].shape, *bs = &m->k->slot[o->in[1]].shape;
    const struct slot *y = &m->k->slot[o->out];
    struct domain d = make_domain(y, true, 1);
    int target = reduction_target(m, &d, "acc", false), rank = y->shape.rank;
    int st = make_stage(m, "matmul", target, WL_SUM, &d);
    m->t->reduce_length = as->dim[as->rank - (op->trans_a ? 2 : 1)];
    struct position k = at_axis(workload_axis(m->w, st, "k", m->t->reduce_length, true), 1, 0);
    struct position a[LAYOUT_MAX_DIMS], b[LAYOUT_MAX_DIMS];
    for (int i = 0; i < rank - 2; i++)
        a[i] = b[i] = d.at[i];
    a[rank - 2] = op->trans_a ? k : d.at[rank - 2];
    a[rank - 1] = op->trans_a ? d.at[rank - 2] : k;
    b[rank - 2] = op->trans_b ? d.at[rank - 1] : k;
    b[rank - 1] = op->trans_b ? k : d.at[rank - 1];
    m->w->stage[st].body =
        wl_binary(m->w, WL_MUL, load_slot(m, st, o->in[0], a + (rank - as->rank), 0),
                  load_slot(m, st, o->in[1], b + (rank - bs->rank), 0));
    if (target != m->out)
        make_out(m, &d, target);
}
