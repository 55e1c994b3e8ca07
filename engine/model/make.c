/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/model/make.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- domains ---- */

static const char *const space_names[OP_MAX_WINDOW][OP_MAX_WINDOW] = {
    {"x"}, {"y", "x"}, {"z", "y", "x"}};

static void axis_name(char *out, int rank, int dim, bool matrix)
{
    if (!matrix && rank >= 3 && rank <= 2 + OP_MAX_WINDOW)
        snprintf(out, WL_NAME, "%s",
                 dim == 0   ? "n"
                 : dim == 1 ? "k"
                            : space_names[rank - 3][dim - 2]);
    else if (dim >= rank - 2)
        snprintf(out, WL_NAME, "%s", dim == rank - 1 ? "n" : "m");
    else
        snprintf(out, WL_NAME, "b%d", dim);
}

static int add_axis(struct domain *d, const char *name, int64_t extent)
{
    snprintf(d->name[d->nr], WL_NAME, "%s", name);
    d->extent[d->nr] = extent;
    return d->nr++;
}

/* Dimension 1 of a blocked or grouped array. */
static void add_channels(struct domain *d, const struct slot *s, int64_t groups)
{
    int64_t per_group = s->shape.dim[1] / groups;
    int64_t extent = (per_group + s->block - 1) / s->block;
    struct affine outer = {0};
    if (groups > 1)
        outer = affine_axis(add_axis(d, "g", groups), extent);
    outer = affine_add(outer, affine_axis(add_axis(d, "k", extent), 1));
    d->at[1] = (struct position){.whole = outer, .outer = outer, .split = s->block > 1};
    d->idx[1] = outer;
}

struct domain make_domain(const struct slot *s, bool matrix, int64_t groups)
{
    struct domain d = {.rank = s->shape.rank};
    for (int i = 0; i < s->shape.rank; i++) {
        if (i == 1 && (s->block > 1 || groups > 1)) {
            add_channels(&d, s, groups);
            continue;
        }
        char name[WL_NAME];
        axis_name(name, s->shape.rank, i, matrix);
        d.idx[i] = d.at[i].whole = affine_axis(add_axis(&d, name, s->shape.dim[i]), 1);
    }
    if (s->block > 1) {
        struct position *k = &d.at[1];
        k->lane = affine_axis(add_axis(&d, "ki", s->block), 1);
        for (int i = 0; i < WL_MAX_AXES; i++)
            k->whole.coef[i] *= s->block;
        k->whole = affine_add(k->whole, k->lane);
        d.idx[s->shape.rank] = k->lane;
    }
    if (!d.nr)
        add_axis(&d, "n", 1);
    return d;
}

int make_stage(struct maker *m, const char *name, int out, enum wl_combine combine,
               const struct domain *d)
{
    int s = workload_stage(m->w, name, out, combine);
    for (int i = 0; i < d->nr; i++)
        workload_axis(m->w, s, d->name[i], d->extent[i], false);
    if (out == m->out)
        memcpy(m->w->stage[s].out_idx, d->idx, sizeof d->idx);
    return s;
}

int make_temp(struct maker *m, const char *name, const struct domain *d)
{
    struct layout l = layout_plain(d->nr, d->extent);
    return workload_tensor(m->w, name, WL_TEMP, &l);
}

const struct wl_expr *load_temp(struct maker *m, int temp, const struct domain *d)
{
    struct affine idx[LAYOUT_MAX_DIMS];
    for (int i = 0; i < d->nr; i++)
        idx[i] = affine_axis(i, 1);
    return wl_load(m->w, temp, idx);
}

/* ---- loads ---- */

struct position at_axis(int axis, int64_t coef, int64_t base)
{
    struct position p = {.whole = affine_axis(axis, coef)};
    p.whole.base = base;
    return p;
}

/* May the index leave [0, extent) over the axes of the stage? */
static bool may_leave(const struct wl_stage *s, const struct affine *a, int64_t extent)
{
    int64_t low = a->base, high = a->base;
    for (int i = 0; i < s->nr_spatial + s->nr_reduce; i++) {
        int64_t reach = a->coef[i] * (s->extent[i] - 1);
        if (reach < 0)
            low += reach;
        else
            high += reach;
    }
    return low < 0 || high >= extent;
}

const struct wl_expr *load_slot(struct maker *m, int stage, int slot, const struct position *at,
                                float pad)
{
    const struct slot *s = &m->k->slot[slot];
    const struct wl_stage *st = &m->w->stage[stage];
    if (s->role == SLOT_LITERAL)
        return wl_literal(m->w, s->literal);
    const struct wl_tensor *t = &m->w->tensor[m->tensor[slot]];
    struct affine idx[LAYOUT_MAX_DIMS] = {0};
    for (int i = 0; i < s->shape.rank; i++) {
        bool blocked = s->block > 1 && i == 1;
        assert(!blocked || at[i].split);
        /* Broadcast dimensions stay at 0; others keep their axis even where its extent is 1. */
        if (s->shape.dim[i] > 1 || !may_leave(st, &at[i].whole, 1))
            idx[i] = blocked ? at[i].outer : at[i].whole;
        if (blocked)
            idx[s->shape.rank] = at[i].lane;
    }
    bool guard = false;
    for (int i = 0; i < t->nr_dims; i++)
        guard |= may_leave(st, &idx[i], t->dim[i]);
    return guard ? wl_load_guarded(m->w, m->tensor[slot], idx, pad)
                 : wl_load(m->w, m->tensor[slot], idx);
}

/* ---- operators on elements ---- */

static const struct wl_expr *lit(struct workload *w, double v)
{
    return wl_literal(w, (float)v);
}

static const struct wl_expr *add(struct workload *w, const struct wl_expr *a,
                                 const struct wl_expr *b)
{
    return wl_binary(w, WL_ADD, a, b);
}

static const struct wl_expr *mul(struct workload *w, const struct wl_expr *a,
                                 const struct wl_expr *b)
{
    return wl_binary(w, WL_MUL, a, b);
}

static const struct wl_expr *clamp(struct workload *w, const struct wl_expr *x, float low,
                                   float high)
{
    if (low > -INFINITY)
        x = wl_binary(w, WL_MAX, x, wl_literal(w, low));
    return high < INFINITY ? wl_binary(w, WL_MIN, x, wl_literal(w, high)) : x;
}

/* max(x, 0) + below * t, with t = min(x, 0), or exp(t) - 1 */
static const struct wl_expr *two_sided(struct workload *w, const struct wl_expr *x,
                                       const struct wl_expr *below, bool exponential)
{
    const struct wl_expr *low = wl_binary(w, WL_MIN, x, lit(w, 0));
    if (exponential)
        low = add(w, wl_unary(w, WL_EXP, low), lit(w, -1));
    return add(w, wl_binary(w, WL_MAX, x, lit(w, 0)), mul(w, below, low));
}

static const struct wl_expr *trunc_of(struct workload *w, const struct wl_expr *x)
{
    const struct wl_expr *high = wl_binary(w, WL_MAX, x, lit(w, 0));
    const struct wl_expr *low = wl_binary(w, WL_MAX, wl_unary(w, WL_NEG, x), lit(w, 0));
    return wl_binary(w, WL_SUB, wl_unary(w, WL_FLOOR, high), wl_unary(w, WL_FLOOR, low));
}

static const struct wl_expr *element1(struct workload *w, const struct op *op,
                                      const struct wl_expr *x)
{
    switch (op->kind) {
    case OP_RELU:
        return wl_binary(w, WL_MAX, x, lit(w, 0));
    case OP_LEAKY:
        if (op->a >= 0 && op->a <= 1)
            return wl_binary(w, WL_MAX, x, mul(w, x, wl_literal(w, op->a)));
        return two_sided(w, x, wl_literal(w, op->a), false);
    case OP_CLIP:
        return clamp(w, x, op->a, op->b);
    case OP_SIGMOID:
        return wl_binary(w, WL_DIV, lit(w, 1),
                         add(w, wl_unary(w, WL_EXP, wl_unary(w, WL_NEG, x)), lit(w, 1)));
    case OP_HARD_SIGMOID:
        return clamp(w, add(w, mul(w, x, wl_literal(w, op->a)), wl_literal(w, op->b)), 0, 1);
    case OP_HARD_SWISH:
        return mul(w, x, clamp(w, add(w, mul(w, x, lit(w, 1.0 / 6)), lit(w, 0.5)), 0, 1));
    case OP_GELU:
        return mul(w, mul(w, x, lit(w, 0.5)),
                   add(w, wl_unary(w, WL_ERF, mul(w, x, lit(w, 0.70710678118654752))), lit(w, 1)));
    case OP_GELU_TANH: { /* sqrt(2 / pi) (x + 0.044715 x^3) */
        const struct wl_expr *t = mul(w, x,
                                      add(w, mul(w, mul(w, x, x), lit(w, 0.035677408136300125)),
                                          lit(w, 0.79788456080286536)));
        return mul(w, mul(w, x, lit(w, 0.5)), add(w, wl_unary(w, WL_TANH, t), lit(w, 1)));
    }
    case OP_ELU:
        return two_sided(w, x, wl_literal(w, op->a), true);
    case OP_SELU:
        return mul(w, two_sided(w, x, wl_literal(w, op->a), true), wl_literal(w, op->b));
    case OP_SOFTPLUS: /* max(x, 0) + log(1 + exp(-|x|)) does not overflow */
        return add(w, wl_binary(w, WL_MAX, x, lit(w, 0)),
                   wl_unary(w, WL_LOG,
                            add(w, wl_unary(w, WL_EXP, wl_unary(w, WL_NEG, wl_unary(w, WL_ABS, x))),
                                lit(w, 1))));
    case OP_SOFTSIGN:
        return wl_binary(w, WL_DIV, x, add(w, wl_unary(w, WL_ABS, x), lit(w, 1)));
    case OP_RECIPROCAL:
        return wl_binary(w, WL_DIV, lit(w, 1), x);
    case OP_TANH:
        return wl_unary(w, WL_TANH, x);
    case OP_ERF:
        return wl_unary(w, WL_ERF, x);
    case OP_SQRT:
        return wl_unary(w, WL_SQRT, x);
    case OP_EXP:
        return wl_unary(w, WL_EXP, x);
    case OP_LOG:
        return wl_unary(w, WL_LOG, x);
    case OP_FLOOR:
        return wl_unary(w, WL_FLOOR, x);
    case OP_CEIL:
        return wl_unary(w, WL_NEG, wl_unary(w, WL_FLOOR, wl_unary(w, WL_NEG, x)));
    case OP_ROUND:
        return wl_unary(w, WL_ROUND, x);
    case OP_TRUNC:
        return trunc_of(w, x);
    case OP_SIGN:
        return wl_binary(w, WL_SUB, wl_binary(w, WL_LESS, lit(w, 0), x),
                         wl_binary(w, WL_LESS, x, lit(w, 0)));
    case OP_SIN:
        return wl_unary(w, WL_SIN, x);
    case OP_COS:
        return wl_unary(w, WL_COS, x);
    case OP_NOT:
        return wl_binary(w, WL_EQUAL, x, lit(w, 0));
    case OP_NEG:
        return wl_unary(w, WL_NEG, x);
    case OP_ABS:
        return wl_unary(w, WL_ABS, x);
    default:
        assert(0);
        return x;
    }
}

static const struct wl_expr *element2(struct workload *w, const struct op *op,
                                      const struct wl_expr *x, const struct wl_expr *y)
{
    static const enum wl_op binary[] = {
        [OP_ADD] = WL_ADD, [OP_SUB] = WL_SUB,   [OP_MUL] = WL_MUL,
        [OP_DIV] = WL_DIV, [OP_POW] = WL_POW,   [OP_MAX] = WL_MAX,
        [OP_MIN] = WL_MIN, [OP_LESS] = WL_LESS, [OP_EQUAL] = WL_EQUAL};
    switch (op->kind) {
    case OP_PRELU:
        return two_sided(w, x, y, false);
    case OP_LESS_EQUAL: /* not the reverse of "more": neither holds for no number */
        return add(w, wl_binary(w, WL_LESS, x, y), wl_binary(w, WL_EQUAL, x, y));
    case OP_MOD:
        return wl_binary(w, WL_SUB, x,
                         mul(w, y, wl_unary(w, WL_FLOOR, wl_binary(w, WL_DIV, x, y))));
    case OP_FMOD:
        return wl_binary(w, WL_SUB, x, mul(w, y, trunc_of(w, wl_binary(w, WL_DIV, x, y))));
    case OP_POW: /* powers that are cheap as products */
        if (y->op == WL_LITERAL && y->literal == 2)
            return mul(w, x, x);
        if (y->op == WL_LITERAL && y->literal == 0.5f)
            return wl_unary(w, WL_SQRT, x);
        return wl_binary(w, WL_POW, x, y);
    default:
        return wl_binary(w, binary[op->kind], x, y);
    }
}

const struct wl_expr *make_element(struct workload *w, const struct op *op,
                                   const struct wl_expr *const *in)
{
    if (op->kind == OP_WHERE) {
        const struct wl_expr *other = wl_binary(w, WL_EQUAL, in[0], lit(w, 0));
        return add(w, wl_binary(w, WL_KEEP, in[0], in[1]), wl_binary(w, WL_KEEP, other, in[2]));
    }
    return op_operands(op->kind) == 1 ? element1(w, op, in[0]) : element2(w, op, in[0], in[1]);
}

const struct wl_expr *make_epilogue(struct maker *m, int stage, const struct domain *d, int from,
                                    const struct wl_expr *first)
{
    const struct kernel *k = m->k;
    const struct wl_expr *have[KERNEL_SLOTS] = {0}, *last = first;
    if (from > 0)
        have[k->op[from - 1].out] = first;
    for (int i = from; i < k->nr_ops; i++) {
        const struct kernel_op *o = &k->op[i];
        const struct wl_expr *in[3] = {0};
        for (int j = 0; j < o->nr_in; j++) {
            int s = o->in[j];
            /* Lanes of padding must stay finite: there a divisor is 1. */
            float pad = op_divides(o->op.kind) && j == 1 ? 1 : 0;
            in[j] = have[s]
                        ? have[s]
                        : load_slot(m, stage, s, d->at + (d->rank - k->slot[s].shape.rank), pad);
        }
        last = have[o->out] = make_element(m->w, &o->op, in);
    }
    return last;
}

void make_out(struct maker *m, const struct domain *d, int temp)
{
    int s = make_stage(m, "out", m->out, WL_NONE, d);
    m->w->stage[s].body = make_epilogue(m, s, d, 1, load_temp(m, temp, d));
}

/* ---- the whole ---- */

static bool is_anchor_operand(const struct kernel *k, int slot)
{
    const struct kernel_op *o = &k->op[0];
    for (int i = 0; i < o->nr_in && !op_is_element(o->op.kind); i++)
        if (o->in[i] == slot)
            return true;
    return false;
}

/* x and w of the first operator; e, e1, ... further inputs; b, b1, ... further constants. */
static void operand_name(const struct kernel *k, int slot, char *out)
{
    const struct kernel_op *o = &k->op[0];
    if (is_anchor_operand(k, slot)) {
        int i = 0;
        while (o->in[i] != slot)
            i++;
        if (o->op.kind == OP_CONCAT)
            snprintf(out, WL_NAME, "x%d", i);
        else
            snprintf(out, WL_NAME, "%s", i ? "w" : "x");
        return;
    }
    const char *base = k->slot[slot].role == SLOT_CONST ? "b"
                       : op_is_element(o->op.kind)      ? "x"
                                                        : "e";
    int nr = 0;
    for (int i = 0; i < slot; i++)
        nr += k->slot[i].role == k->slot[slot].role && !is_anchor_operand(k, i);
    if (nr)
        snprintf(out, WL_NAME, "%s%d", base, nr);
    else
        snprintf(out, WL_NAME, "%s", base);
}

static void add_tensors(struct maker *m)
{
    for (int i = 0; i < m->k->nr_slots; i++) {
        const struct slot *s = &m->k->slot[i];
        m->tensor[i] = -1;
        if (s->role != SLOT_INPUT && s->role != SLOT_CONST)
            continue;
        char name[WL_NAME];
        operand_name(m->k, i, name);
        struct layout l = slot_layout(s);
        m->tensor[i] = workload_tensor(m->w, name, s->role == SLOT_INPUT ? WL_INPUT : WL_CONST, &l);
    }
    int last = m->k->op[m->k->nr_ops - 1].out;
    struct layout l = slot_layout(&m->k->slot[last]);
    m->out = m->tensor[last] = workload_tensor(m->w, "y", WL_OUTPUT, &l);
}

/* Kind of computation, for people and for rules that want to know. */
static const char *workload_kind(const struct kernel *k)
{
    static const char *const conv[] = {"conv1d", "conv2d", "conv3d"};
    const struct op *op = &k->op[0].op;
    const struct slot *in = &k->slot[k->op[0].in[0]];
    switch (op->kind) {
    case OP_CONV:
        if (op->groups > 1 && op->groups == in->shape.dim[1])
            return "depthwise";
        return conv[op->window.nr - 1];
    case OP_MATMUL:
        return k->slot[k->op[0].in[1]].role == SLOT_CONST ? "dense" : "matmul";
    case OP_POOL:
        return op->max ? "maxpool" : "avgpool";
    default:
        return op_is_element(op->kind) ? "elementwise" : op_text(op->kind);
    }
}

void make_workload(const struct kernel *k, struct task *t, int *tensor)
{
    struct maker m = {.k = k, .t = t, .w = &t->wl, .tensor = tensor};
    workload_init(m.w, workload_kind(k));
    add_tensors(&m);
    t->reduce_length = 1;
    switch (k->op[0].op.kind) {
    case OP_CONV:
        make_conv(&m);
        break;
    case OP_POOL:
        make_pool(&m);
        break;
    case OP_MATMUL:
        make_matmul(&m);
        break;
    case OP_REDUCE:
        make_reduce(&m);
        break;
    case OP_SOFTMAX:
        make_softmax(&m);
        break;
    case OP_LRN:
        make_lrn(&m);
        break;
    case OP_CONCAT:
        make_concat(&m);
        break;
    case OP_RELAYOUT:
        make_relayout(&m);
        break;
    case OP_GATHER:
        make_gather(&m);
        break;
    default:
        make_move(&m);
    }
}
