/* SPDX-License-Identifier: Apache-2.0 */
/* Reductions over axes. */
#include "engine/model/ops.h"

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

/* The axes of the call: no list means all, and an empty one may mean none. */
static unsigned axes_of(struct call *c, int rank)
{
    bool given;
    unsigned axes = call_axes(c, 1, rank, &given);
    return axes || call_int(c, "noop_with_empty_axes", 0) ? axes : (1u << rank) - 1;
}

static int emit_reduce(struct call *c, int x, enum op_reduce how)
{
    return call_reduce(c, x, how, axes_of(c, call_value(c, x)->shape.rank));
}

/* The result, without the axes that are gone. */
static void give_reduced(struct call *c, int x, int y)
{
    const struct shape xs = call_value(c, x)->shape;
    struct shape out = {0};
    unsigned axes = axes_of(c, xs.rank);
    for (int i = 0; i < xs.rank; i++)
        if (!(axes >> i & 1))
            out.dim[out.rank++] = xs.dim[i];
    call_out(c, 0, call_int(c, "keepdims", 1) ? y : call_reshape(c, y, &out));
}

void op_reduce(struct call *c)
{
    int x = call_tensor(c, 0);
    give_reduced(c, x, emit_reduce(c, x, (enum op_reduce)c->arg));
}

/* Sums of something, and something of sums. */
void op_reduce_of(struct call *c)
{
    int x = call_tensor(c, 0), y = x, max = -1;
    if (c->arg == OF_L1)
        y = call_element1(c, OP_ABS, x, 0, 0);
    else if (c->arg == OF_L2 || c->arg == OF_SUM_SQUARE)
        y = call_element2(c, OP_MUL, x, x);
    else if (c->arg == OF_LOG_SUM_EXP) {
        max = emit_reduce(c, x, REDUCE_MAX);
        y = call_element1(c, OP_EXP, call_element2(c, OP_SUB, x, max), 0, 0);
    }
    y = emit_reduce(c, y, REDUCE_SUM);
    if (c->arg == OF_L2)
        y = call_element1(c, OP_SQRT, y, 0, 0);
    if (c->arg == OF_LOG_SUM || c->arg == OF_LOG_SUM_EXP)
        y = call_element1(c, OP_LOG, y, 0, 0);
    if (max >= 0)
        y = call_element2(c, OP_ADD, y, max);
    give_reduced(c, x, y);
}

/*
 * Where the extreme is: of the positions that hold it the first, or the last. Two reductions with a
 * comparison between them; the positions are a constant.
 */
void op_arg(struct call *c)
{
    int x = call_tensor(c, 0);
    const struct shape xs = call_value(c, x)->shape;
    bool hard = c->arg == ARG_HARDMAX;
    int axis = call_axis(c, call_int(c, "axis", hard ? -1 : 0), xs.rank);
    if (hard && c->g->opset < 13 && axis != xs.rank - 1)
        call_fail(c, ERR_UNSUPPORTED, "is supported along the last axis only");
    bool last = call_int(c, "select_last_index", 0) != 0;
    int best = call_reduce(c, x, c->arg == ARG_MIN ? REDUCE_MIN : REDUCE_MAX, 1u << axis);
    int at = call_iota(c, c->rc ? 1 : xs.dim[axis], axis, xs.rank);
    int never = call_literal(c, last ? -1 : c->rc ? 0 : (double)xs.dim[axis]);
    c->result = hard ? GRAPH_F32 : GRAPH_I64;
    int y = call_where(c, call_element2(c, OP_EQUAL, x, best), at, never);
    y = call_reduce(c, y, last ? REDUCE_MAX : REDUCE_MIN, 1u << axis);
    struct shape out = {0};
    for (int i = 0; i < xs.rank; i++)
        if (i != axis)
            out.dim[out.rank++] = xs.dim[i];
    if (hard)
        y = call_element2(c, OP_EQUAL, at, y);
    call_out(c, 0, hard || call_int(c, "keepdims", 1) ? y : call_reshape(c, y, &out));
}
