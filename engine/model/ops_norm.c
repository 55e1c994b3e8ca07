/* SPDX-License-Identifier: Apache-2.0 */
/* Normalisations: made of reductions and operators on elements. */
#include <string.h>

#include "engine/model/ops.h"

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

/* (x - mean) / sqrt(variance + epsilon) over `axes`; what is asked for in between. */
static int emit_normalise(struct call *c, int x, unsigned axes, double epsilon, int *mean,
                          int *inverse, int *variance_out)
{
    int m = call_reduce(c, x, REDUCE_MEAN, axes);
    int d = call_element2(c, OP_SUB, x, m);
    int variance = call_reduce(c, call_element2(c, OP_MUL, d, d), REDUCE_MEAN, axes);
    int spread = call_element1(c, OP_SQRT,
                               call_element2(c, OP_ADD, variance, call_literal(c, epsilon)), 0, 0);
    int factor = call_element1(c, OP_RECIPROCAL, spread, 0, 0);
    if (mean)
        *mean = m;
    if (inverse)
        *inverse = factor;
    if (variance_out)
        *variance_out = variance;
    return call_element2(c, OP_MUL, d, factor);
}

/* old * momentum + new * (1 - momentum), in the shape of a parameter. */
static int running(struct call *c, int old, int now, double momentum)
{
    int a = call_element2(c, OP_MUL, old, call_literal(c, momentum));
    int b = call_element2(c, OP_MUL, now, call_literal(c, 1 - momentum));
    int64_t channels = shape_size(&call_value(c, old)->shape);
    struct shape given = call_value(c, old)->shape, flat = {1, {channels}};
    b = call_reshape(c, b, &given);
    return call_reshape(c, call_element2(c, OP_ADD, a, b), &flat);
}

/* With the mean and the variance of the batch, and what becomes of the running ones. */
static void train_batchnorm(struct call *c, int x, const int *v, double epsilon)
{
    int rank = call_value(c, x)->shape.rank, mean, variance;
    unsigned axes = c->rc ? 1 : ((1u << rank) - 1) & ~2u;
    int y = emit_normalise(c, x, axes, epsilon, &mean, NULL, &variance);
    double momentum = call_float(c, "momentum", 0.9);
    call_out(c, 0, call_element2(c, OP_ADD, call_element2(c, OP_MUL, y, v[1]), v[2]));
    call_out(c, 1, running(c, v[3], mean, momentum));
    call_out(c, 2, running(c, v[4], variance, momentum));
}

/* y = x * s + t with s = scale / sqrt(var + epsilon), t = b - mean * s. */
void op_batchnorm(struct call *c)
{
    int x = call_tensor(c, 0);
    const struct shape xs = call_value(c, x)->shape;
    double epsilon = call_float(c, "epsilon", 1e-5);
    if (!c->rc && xs.rank < 2)
        call_fail(c, ERR_INPUT, "has an input %s without channels", shape_text(&xs).s);
    if (!c->rc && !call_int(c, "spatial", 1))
        call_fail(c, ERR_UNSUPPORTED, "is supported over space only");
    int v[5] = {-1};
    for (int i = 1; i < 5; i++)
        v[i] = channel_vector(c, call_tensor(c, i), xs.dim[1], xs.rank);
    if (call_int(c, "training_mode", 0)) {
        train_batchnorm(c, x, v, epsilon);
        return;
    }
    call_mark_scale(c, v[1]);
    call_mark_scale(c, v[4]);
    int spread =
        call_element1(c, OP_SQRT, call_element2(c, OP_ADD, v[4], call_literal(c, epsilon)), 0, 0);
    int scale = call_element2(c, OP_DIV, v[1], spread);
    int shift = call_element2(c, OP_SUB, v[2], call_element2(c, OP_MUL, v[3], scale));
    call_out(c, 0, call_element2(c, OP_ADD, call_element2(c, OP_MUL, x, scale), shift));
}

void op_layernorm(struct call *c)
{
    int x = call_tensor(c, 0), scale = call_tensor(c, 1), b = call_tensor(c, 2), mean, inverse;
    int rank = call_value(c, x)->shape.rank;
    int axis = call_axis(c, call_int(c, "axis", -1), rank);
    unsigned axes = c->rc ? 1 : ((1u << rank) - 1) & ~((1u << axis) - 1);
    int y = emit_normalise(c, x, axes, call_float(c, "epsilon", 1e-5), &mean, &inverse, NULL);
    y = call_element2(c, OP_MUL, y, scale);
    if (b >= 0)
        y = call_element2(c, OP_ADD, y, b);
    call_out(c, 0, y);
    call_out(c, 1, mean);
    call_out(c, 2, inverse);
}

void op_instancenorm(struct call *c)
{
    int x = call_tensor(c, 0);
    const struct shape xs = call_value(c, x)->shape;
    if (!c->rc && xs.rank < 3)
        call_fail(c, ERR_INPUT, "has an input %s without space", shape_text(&xs).s);
    unsigned axes = c->rc ? 1 : ((1u << xs.rank) - 1) & ~3u;
    int y = emit_normalise(c, x, axes, call_float(c, "epsilon", 1e-5), NULL, NULL, NULL);
    int scale = channel_vector(c, call_tensor(c, 1), xs.dim[1], xs.rank);
    int b = channel_vector(c, call_tensor(c, 2), xs.dim[1], xs.rank);
    call_out(c, 0, call_element2(c, OP_ADD, call_element2(c, OP_MUL, y, scale), b));
}

/* Channels in groups: as instances, but several channels at a time. */
void op_groupnorm(struct call *c)
{
    int x = call_tensor(c, 0), scale = call_tensor(c, 1), b = call_tensor(c, 2);
    const struct shape xs = call_value(c, x)->shape, ss = call_value(c, scale)->shape;
    int64_t groups = call_int(c, "num_groups", 0);
    if (!c->rc && (xs.rank < 2 || groups < 1 || xs.dim[1] % groups || shape_size(&xs) < 1))
        call_fail(c, ERR_INPUT, "has %lld groups of the channels of %s", (long long)groups,
                  shape_text(&xs).s);
    if (c->rc)
        return;
    struct shape cut = {3, {xs.dim[0], groups, shape_size(&xs) / xs.dim[0] / groups}};
    int y = emit_normalise(c, call_reshape(c, x, &cut), 4u, call_float(c, "epsilon", 1e-5), NULL,
                           NULL, NULL);
    /* Before operator set 21 there was one factor a group. */
    bool a_group = ss.rank == 1 && ss.dim[0] == groups && ss.dim[0] != xs.dim[1];
    int rank = a_group ? 3 : xs.rank;
    int64_t nr = a_group ? groups : xs.dim[1];
    y = a_group ? y : call_reshape(c, y, &xs);
    y = call_element2(c, OP_MUL, y, channel_vector(c, scale, nr, rank));
    y = call_element2(c, OP_ADD, y, channel_vector(c, b, nr, rank));
    call_out(c, 0, call_reshape(c, y, &xs));
}

void op_rmsnorm(struct call *c)
{
    int x = call_tensor(c, 0), scale = call_tensor(c, 1);
    int rank = call_value(c, x)->shape.rank, axis = call_axis(c, call_int(c, "axis", -1), rank);
    unsigned axes = c->rc ? 1 : ((1u << rank) - 1) & ~((1u << axis) - 1);
    int mean = call_reduce(c, call_element2(c, OP_MUL, x, x), REDUCE_MEAN, axes);
    mean = call_element2(c, OP_ADD, mean, call_literal(c, call_float(c, "epsilon", 1e-5)));
    int factor = call_element1(c, OP_RECIPROCAL, call_element1(c, OP_SQRT, mean, 0, 0), 0, 0);
    call_out(c, 0, call_element2(c, OP_MUL, call_element2(c, OP_MUL, x, factor), scale));
}

/* The standard's function divides by the deviation and a little more. */
void op_mvn(struct call *c)
{
    int x = call_tensor(c, 0), rank = call_value(c, x)->shape.rank;
    bool given;
    unsigned axes = call_axes(c, 1, rank, &given);
    if (!given)
        axes = 13u & ((1u << rank) - 1); /* 0, 2, 3 */
    int d = call_element2(c, OP_SUB, x, call_reduce(c, x, REDUCE_MEAN, axes));
    int variance = call_reduce(c, call_element2(c, OP_MUL, d, d), REDUCE_MEAN, axes);
    int spread =
        call_element2(c, OP_ADD, call_element1(c, OP_SQRT, variance, 0, 0), call_literal(c, 1e-9));
    call_out(c, 0, call_element2(c, OP_DIV, d, spread));
}

void op_lpnorm(struct call *c)
{
    int x = call_tensor(c, 0), rank = call_value(c, x)->shape.rank;
    int64_t p = call_int(c, "p", 2);
    unsigned axis = 1u << call_axis(c, call_int(c, "axis", -1), rank);
    if (p != 1 && p != 2)
        call_fail(c, ERR_INPUT, "has %lld in attribute \"p\"", (long long)p);
    int size = p == 1 ? call_element1(c, OP_ABS, x, 0, 0) : call_element2(c, OP_MUL, x, x);
    size = call_reduce(c, size, REDUCE_SUM, axis);
    size = p == 1 ? size : call_element1(c, OP_SQRT, size, 0, 0);
    int zero = call_element2(c, OP_EQUAL, size, call_literal(c, 0));
    size = call_element2(c, OP_ADD, size, zero); /* of zeros it gives zeros */
    call_out(c, 0, call_element2(c, OP_DIV, x, size));
}
