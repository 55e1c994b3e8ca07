/* SPDX-License-Identifier: Apache-2.0 */
/* Operators on elements, normalisations, reductions. */
#include <float.h>
#include <math.h>
#include <string.h>

#include "engine/model/ops.h"

void op_unary(struct call *c)
{
    int x = call_tensor(c, 0);
    double a = 0, b = 0;
    switch (c->arg) {
    case OP_LEAKY:
        a = call_float(c, "alpha", 0.01);
        break;
    case OP_ELU:
        a = call_float(c, "alpha", 1);
        break;
    case OP_SELU:
        a = call_float(c, "alpha", 1.67326319217681884765625);
        b = call_float(c, "gamma", 1.05070102214813232421875);
        break;
    case OP_HARD_SIGMOID:
        a = call_float(c, "alpha", 0.2);
        b = call_float(c, "beta", 0.5);
        break;
    default:
        break;
    }
    call_out(c, 0, call_element1(c, (enum op_kind)c->arg, x, a, b));
}

/* The constant, in whatever shape it is seen here, multiplies activations or is a variance. */
static void mark_scale(struct call *c, int v)
{
    if (c->rc || v < 0)
        return;
    struct value *x = c->g->value[v];
    (x->view_of >= 0 ? c->g->value[x->view_of] : x)->is_scale = true;
}

/* Before operator set 7 an operand was aligned at `axis` instead of at the end. */
static int align_old_broadcast(struct call *c, int x, int y)
{
    if (c->g->opset >= 7 || !call_int(c, "broadcast", 0) || !call_has(c, "axis"))
        return y;
    const struct shape *xs = &call_value(c, x)->shape, ys = call_value(c, y)->shape;
    int axis = call_axis(c, call_int(c, "axis", 0), xs->rank > 0 ? xs->rank : 1);
    if (axis + ys.rank > xs->rank)
        return call_fail(c, ERR_INPUT, "cannot broadcast %s at axis %d of %s", shape_text(&ys).s,
                         axis, shape_text(xs).s);
    struct shape out = {.rank = xs->rank - axis};
    for (int i = 0; i < out.rank; i++)
        out.dim[i] = i < ys.rank ? ys.dim[i] : 1;
    return call_reshape(c, y, &out);
}

void op_binary(struct call *c)
{
    if (fold_binary(c, (enum op_kind)c->arg, call_in(c, 0), call_in(c, 1)))
        return;
    int x = call_tensor(c, 0), y = call_tensor(c, 1);
    if (!c->rc && c->arg == OP_MUL && c->g->value[x]->is_const != c->g->value[y]->is_const)
        mark_scale(c, c->g->value[x]->is_const ? x : y);
    y = align_old_broadcast(c, x, y);
    call_out(c, 0, call_element2(c, (enum op_kind)c->arg, x, y));
}

static int emit_chain(struct call *c, enum op_kind kind)
{
    int v = call_tensor(c, 0);
    for (int i = 1; i < c->c->nr_in; i++)
        v = call_element2(c, kind, v, call_tensor(c, i));
    return v;
}

void op_nary(struct call *c)
{
    call_out(c, 0, emit_chain(c, (enum op_kind)c->arg));
}

void op_mean(struct call *c)
{
    int v = emit_chain(c, OP_ADD);
    call_out(c, 0, call_element2(c, OP_MUL, v, call_literal(c, 1.0 / c->c->nr_in)));
}

/* A bound of Clip: attribute in old operator sets, else an input that must be a known number. */
static double clip_bound(struct call *c, const char *attr, int i, double otherwise)
{
    double v = otherwise;
    int in = c->g->opset >= 11 ? call_in(c, i) : -1;
    if (in < 0)
        return call_float(c, attr, otherwise);
    if (!graph_const_scalar(c->g, in, &v))
        call_fail(c, ERR_UNSUPPORTED, "needs a constant number as its input %d", i);
    return v;
}

void op_clip(struct call *c)
{
    int x = call_tensor(c, 0);
    double low = clip_bound(c, "min", 1, -INFINITY), high = clip_bound(c, "max", 2, INFINITY);
    if (low <= -(double)FLT_MAX && high >= (double)FLT_MAX)
        call_out(c, 0, x);
    else if (low >= 0 && low <= 0 && high >= (double)FLT_MAX)
        call_out(c, 0, call_element1(c, OP_RELU, x, 0, 0));
    else
        call_out(c, 0, call_element1(c, OP_CLIP, x, low, high));
}

void op_gelu(struct call *c)
{
    bool approximate = call_string_is(c, "approximate", "tanh", false);
    call_out(c, 0, call_element1(c, approximate ? OP_GELU_TANH : OP_GELU, call_tensor(c, 0), 0, 0));
}

void op_mish(struct call *c)
{
    int x = call_tensor(c, 0), t = call_element1(c, OP_SOFTPLUS, x, 0, 0);
    call_out(c, 0, call_element2(c, OP_MUL, x, call_element1(c, OP_TANH, t, 0, 0)));
}

/* ---- normalisations ---- */

/* A vector of one number a channel, shaped to broadcast against [N, C, ...] of `rank` dimensions.
 */
static int channel_vector(struct call *c, int v, int64_t channels, int rank)
{
    const struct shape *s = &call_value(c, v)->shape;
    if (!c->rc && (s->rank != 1 || s->dim[0] != channels))
        return call_fail(c, ERR_INPUT, "has a parameter %s where it has %lld channels",
                         shape_text(s).s, (long long)channels);
    struct shape out = {.rank = rank - 1};
    for (int i = 0; i < out.rank; i++)
        out.dim[i] = i ? 1 : channels;
    return call_reshape(c, v, &out);
}

/* y = x * s + t with s = scale / sqrt(var + epsilon), t = b - mean * s. */
void op_batchnorm(struct call *c)
{
    int x = call_tensor(c, 0);
    const struct shape xs = call_value(c, x)->shape;
    double epsilon = call_float(c, "epsilon", 1e-5);
    if (!c->rc && xs.rank < 2)
        call_fail(c, ERR_INPUT, "has an input %s without channels", shape_text(&xs).s);
    if (!c->rc && (call_int(c, "training_mode", 0) || !call_int(c, "spatial", 1)))
        call_fail(c, ERR_UNSUPPORTED, "is supported in its inference form over space only");
    int v[5] = {-1};
    for (int i = 1; i < 5; i++)
        v[i] = channel_vector(c, call_tensor(c, i), xs.dim[1], xs.rank);
    mark_scale(c, v[1]);
    mark_scale(c, v[4]);
    int spread =
        call_element1(c, OP_SQRT, call_element2(c, OP_ADD, v[4], call_literal(c, epsilon)), 0, 0);
    int scale = call_element2(c, OP_DIV, v[1], spread);
    int shift = call_element2(c, OP_SUB, v[2], call_element2(c, OP_MUL, v[3], scale));
    call_out(c, 0, call_element2(c, OP_ADD, call_element2(c, OP_MUL, x, scale), shift));
}

/* (x - mean) / sqrt(variance + epsilon) over `axes`; *mean and *inverse get what is in between. */
static int emit_normalise(struct call *c, int x, unsigned axes, double epsilon, int *mean,
                          int *inverse)
{
    *mean = call_reduce(c, x, REDUCE_MEAN, axes);
    int d = call_element2(c, OP_SUB, x, *mean);
    int variance = call_reduce(c, call_element2(c, OP_MUL, d, d), REDUCE_MEAN, axes);
    int spread = call_element1(c, OP_SQRT,
                               call_element2(c, OP_ADD, variance, call_literal(c, epsilon)), 0, 0);
    *inverse = call_element1(c, OP_RECIPROCAL, spread, 0, 0);
    return call_element2(c, OP_MUL, d, *inverse);
}

void op_layernorm(struct call *c)
{
    int x = call_tensor(c, 0), scale = call_tensor(c, 1), b = call_tensor(c, 2), mean, inverse;
    int rank = call_value(c, x)->shape.rank;
    int axis = call_axis(c, call_int(c, "axis", -1), rank);
    unsigned axes = c->rc ? 1 : ((1u << rank) - 1) & ~((1u << axis) - 1);
    int y = emit_normalise(c, x, axes, call_float(c, "epsilon", 1e-5), &mean, &inverse);
    y = call_element2(c, OP_MUL, y, scale);
    if (b >= 0)
        y = call_element2(c, OP_ADD, y, b);
    call_out(c, 0, y);
    call_out(c, 1, mean);
    call_out(c, 2, inverse);
}

void op_instancenorm(struct call *c)
{
    int x = call_tensor(c, 0), mean, inverse;
    const struct shape xs = call_value(c, x)->shape;
    if (!c->rc && xs.rank < 3)
        call_fail(c, ERR_INPUT, "has an input %s without space", shape_text(&xs).s);
    unsigned axes = c->rc ? 1 : ((1u << xs.rank) - 1) & ~3u;
    int y = emit_normalise(c, x, axes, call_float(c, "epsilon", 1e-5), &mean, &inverse);
    int scale = channel_vector(c, call_tensor(c, 1), xs.dim[1], xs.rank);
    int b = channel_vector(c, call_tensor(c, 2), xs.dim[1], xs.rank);
    call_out(c, 0, call_element2(c, OP_ADD, call_element2(c, OP_MUL, y, scale), b));
}

/* ---- reductions ---- */

/* Before operator set 13 all dimensions from `axis` on were one. */
void op_softmax(struct call *c)
{
    int x = call_tensor(c, 0);
    const struct shape xs = call_value(c, x)->shape;
    struct op op = {.kind = OP_SOFTMAX, .log = c->arg};
    bool flat = c->g->opset < 13;
    int64_t given = call_int(c, "axis", flat ? 1 : -1);
    int axis = flat && given == xs.rank ? xs.rank : call_axis(c, given, xs.rank);
    if (c->rc)
        return;
    op.axes = flat ? ((1u << xs.rank) - 1) & ~((1u << axis) - 1) : 1u << axis;
    call_out(c, 0, call_emit(c, &op, &x, 1, &xs));
}

/* Bits of the axes in attribute or input; 0 where there are none. */
static unsigned read_axes(struct call *c, int rank)
{
    int64_t list[LAYOUT_MAX_DIMS];
    const int64_t *axes = list;
    int nr = call_ints(c, "axes", LAYOUT_MAX_DIMS, list);
    if (nr < 0 && call_in(c, 1) >= 0)
        axes = call_const_ints(c, 1, LAYOUT_MAX_DIMS, &nr);
    unsigned set = 0;
    for (int i = 0; i < nr && !c->rc; i++)
        set |= 1u << call_axis(c, axes[i], rank);
    return set;
}

void op_reduce(struct call *c)
{
    int x = call_tensor(c, 0);
    const struct shape xs = call_value(c, x)->shape;
    unsigned axes = read_axes(c, xs.rank);
    if (!axes && !call_int(c, "noop_with_empty_axes", 0))
        axes = (1u << xs.rank) - 1;
    int y = call_reduce(c, x, (enum op_reduce)c->arg, axes);
    if (!call_int(c, "keepdims", 1)) {
        struct shape out = {0};
        for (int i = 0; i < xs.rank; i++)
            if (!(axes >> i & 1))
                out.dim[out.rank++] = xs.dim[i];
        y = call_reshape(c, y, &out);
    }
    call_out(c, 0, y);
}
