/* SPDX-License-Identifier: Apache-2.0 */
/* Operators on elements. */
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
        call_mark_scale(c, c->g->value[x]->is_const ? x : y);
    y = align_old_broadcast(c, x, y);
    int z = call_element2(c, (enum op_kind)c->arg, x, y);
    /* Of integers: quotients are cut, powers may be an ulp off. */
    if (c->result == GRAPH_I64 && (c->arg == OP_DIV || c->arg == OP_POW)) {
        bool whole = c->arg == OP_POW && call_value(c, y)->type == GRAPH_I64;
        z = call_element1(c, whole ? OP_ROUND : OP_TRUNC, z, 0, 0);
    }
    call_out(c, 0, z);
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

/* A bound of Clip: attribute in old operator sets, else an input; false where that varies. */
static bool clip_bound(struct call *c, const char *attr, int i, double otherwise, double *v)
{
    *v = otherwise;
    int in = c->g->opset >= 11 ? call_in(c, i) : -1;
    if (in >= 0)
        return graph_const_scalar(c->g, in, v);
    *v = call_float(c, attr, otherwise);
    return true;
}

void op_clip(struct call *c)
{
    int x = call_tensor(c, 0);
    double low, high;
    bool known = clip_bound(c, "min", 1, -INFINITY, &low);
    if (!clip_bound(c, "max", 2, INFINITY, &high) || !known) {
        int low_in = call_tensor(c, 1), high_in = call_tensor(c, 2);
        x = low_in >= 0 ? call_element2(c, OP_MAX, x, low_in) : x;
        call_out(c, 0, high_in >= 0 ? call_element2(c, OP_MIN, x, high_in) : x);
        return;
    }
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

/* ---- comparisons and choices ---- */

void op_compare(struct call *c)
{
    int x = call_tensor(c, 0), y = call_tensor(c, 1);
    y = align_old_broadcast(c, x, y);
    bool swap = c->arg == COMPARE_GREATER || c->arg == COMPARE_GREATER_EQUAL;
    enum op_kind kind = c->arg == COMPARE_LESS || c->arg == COMPARE_GREATER ? OP_LESS
                        : c->arg == COMPARE_LESS_EQUAL || swap              ? OP_LESS_EQUAL
                                                                            : OP_EQUAL;
    int z = call_element2(c, kind, swap ? y : x, swap ? x : y);
    call_out(c, 0, c->arg == COMPARE_UNEQUAL ? call_element1(c, OP_NOT, z, 0, 0) : z);
}

void op_is_nan(struct call *c)
{
    int x = call_tensor(c, 0);
    call_out(c, 0, call_element1(c, OP_NOT, call_element2(c, OP_EQUAL, x, x), 0, 0));
}

void op_is_inf(struct call *c)
{
    int x = call_tensor(c, 0);
    bool below = call_int(c, "detect_negative", 1) != 0, above = call_int(c, "detect_positive", 1);
    if (below && above)
        x = call_element1(c, OP_ABS, x, 0, 0);
    double at = above ? INFINITY : below ? -INFINITY : NAN;
    call_out(c, 0, call_element2(c, OP_EQUAL, x, call_literal(c, at)));
}

int call_where(struct call *c, int condition, int x, int y)
{
    struct op op = {.kind = OP_WHERE};
    struct shape both, out = {0};
    const struct shape *cs = &call_value(c, condition)->shape, *xs = &call_value(c, x)->shape,
                       *ys = &call_value(c, y)->shape;
    if (!c->rc && (!shape_broadcast(xs, ys, &both) || !shape_broadcast(cs, &both, &out)))
        return call_fail(c, ERR_INPUT, "cannot broadcast %s, %s and %s", shape_text(cs).s,
                         shape_text(xs).s, shape_text(ys).s);
    return call_emit(c, &op, (int[]){condition, x, y}, 3, &out);
}

void op_where(struct call *c)
{
    int condition = call_tensor(c, 0);
    c->has_result = false; /* the type is that of the other two */
    int x = call_tensor(c, 1), y = call_tensor(c, 2);
    call_out(c, 0, call_where(c, condition, x, y));
}

void op_mod(struct call *c)
{
    int x = call_tensor(c, 0), y = call_tensor(c, 1);
    call_out(c, 0, call_element2(c, call_int(c, "fmod", 0) ? OP_FMOD : OP_MOD, x, y));
}

/* ---- made of others ---- */

/* alpha elu(x / alpha) */
void op_celu(struct call *c)
{
    double alpha = call_float(c, "alpha", 1);
    int x = call_element2(c, OP_MUL, call_tensor(c, 0), call_literal(c, 1 / alpha));
    x = call_element1(c, OP_ELU, x, 1, 0);
    call_out(c, 0, call_element2(c, OP_MUL, x, call_literal(c, alpha)));
}

void op_thresholded_relu(struct call *c)
{
    int x = call_tensor(c, 0), zero = call_literal(c, 0);
    int above = call_element2(c, OP_LESS, call_literal(c, call_float(c, "alpha", 1)), x);
    call_out(c, 0, call_where(c, above, x, zero));
}

void op_shrink(struct call *c)
{
    int x = call_tensor(c, 0), zero = call_literal(c, 0);
    double at = call_float(c, "lambd", 0.5), bias = call_float(c, "bias", 0);
    int above = call_element2(c, OP_LESS, call_literal(c, at), x);
    int below = call_element2(c, OP_LESS, x, call_literal(c, -at));
    int high = call_where(c, above, call_element2(c, OP_SUB, x, call_literal(c, bias)), zero);
    int low = call_element2(c, OP_ADD, x, call_literal(c, bias));
    call_out(c, 0, call_where(c, below, low, high));
}

void op_swish(struct call *c)
{
    int x = call_tensor(c, 0);
    int s = call_element2(c, OP_MUL, x, call_literal(c, call_float(c, "alpha", 1)));
    call_out(c, 0, call_element2(c, OP_MUL, x, call_element1(c, OP_SIGMOID, s, 0, 0)));
}

void op_trig(struct call *c)
{
    int x = call_tensor(c, 0), y;
    if (c->arg == TRIG_TAN) {
        y = call_element2(c, OP_DIV, call_element1(c, OP_SIN, x, 0, 0),
                          call_element1(c, OP_COS, x, 0, 0));
    } else {
        int up = call_element1(c, OP_EXP, x, 0, 0);
        int down = call_element1(c, OP_EXP, call_element1(c, OP_NEG, x, 0, 0), 0, 0);
        y = call_element2(c, c->arg == TRIG_SINH ? OP_SUB : OP_ADD, up, down);
        y = call_element2(c, OP_MUL, y, call_literal(c, 0.5));
    }
    call_out(c, 0, y);
}
