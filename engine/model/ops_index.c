/* SPDX-License-Identifier: Apache-2.0 */
/* Operators that take elements by their numbers, or make them from their positions. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/model/ops.h"

/* Gather of a short vector of shapes: exact, and known at once. */
static bool gather_shapes(struct call *c)
{
    enum { SHORT = LAYOUT_MAX_DIMS * 8 };
    const struct value *x = call_value(c, call_in(c, 0)), *i = call_value(c, call_in(c, 1));
    if (!call_is_shape(c, call_in(c, 0)) || !call_is_shape(c, call_in(c, 1)) ||
        x->shape.rank != 1 || shape_size(&x->shape) > SHORT || shape_size(&i->shape) > SHORT)
        return false;
    int nr, nr_at;
    const int64_t *v = call_const_ints(c, 0, SHORT, &nr);
    const int64_t *at = call_const_ints(c, 1, SHORT, &nr_at);
    int64_t out[SHORT];
    for (int k = 0; k < nr_at && !c->rc; k++)
        out[k] = v[call_axis(c, at[k], nr)];
    if (!c->rc)
        call_out(c, 0, graph_const_i64(c->g, "", i->shape.rank, i->shape.dim, out, c->e));
    return true;
}

/* Constant indices that are evenly spaced are a slice; false where they are not. */
static bool gather_slice(struct call *c, int x, int at, int axis, const struct shape *out)
{
    enum { LONGEST = 1 << 16 };
    const struct value *i = call_value(c, at);
    int64_t n = shape_size(&i->shape), extent = call_value(c, x)->shape.dim[axis];
    const float *v = i->is_const && !i->is_any && n > 0 && n <= LONGEST
                         ? graph_const_data(c->g, at, (size_t)LONGEST * sizeof *v, NULL)
                         : NULL;
    if (!v)
        return false;
    int64_t start[LAYOUT_MAX_DIMS] = {0}, step[LAYOUT_MAX_DIMS];
    for (int d = 0; d < LAYOUT_MAX_DIMS; d++)
        step[d] = 1;
    for (int64_t k = 0; k < n; k++) {
        int64_t p = (int64_t)v[k] + (v[k] < 0 ? extent : 0);
        if (!(fabsf(v[k]) <= (float)extent) || p < 0 || p >= extent)
            call_fail(c, ERR_INPUT, "takes element %g of %lld", (double)v[k], (long long)extent);
        if (k == 0)
            start[axis] = p;
        else if (k == 1)
            step[axis] = p - start[axis];
        if (c->rc || p != start[axis] + k * step[axis] || step[axis] == 0)
            return false;
    }
    struct shape cut = call_value(c, x)->shape;
    cut.dim[axis] = n;
    call_out(c, 0, call_reshape(c, call_slice(c, x, start, step, &cut), out));
    return true;
}

/* Whole numbers as operands, whatever the type of what is taken. */
static int read_indices(struct call *c, int i)
{
    enum graph_type result = c->result;
    int at = call_tensor(c, i);
    c->result = result;
    if (!c->rc && call_value(c, at)->type != GRAPH_I64)
        call_fail(c, ERR_INPUT, "has indices \"%s\" that are no integers", call_value(c, at)->name);
    return at;
}

/* May one be below 0? Of constants we know. */
static bool may_wrap(struct call *c, int at)
{
    double low, high;
    return !call_range(c, at, &low, &high) || low < 0;
}

int call_gather(struct call *c, int x, int at, int axis, bool wraps)
{
    const struct shape *xs = &call_value(c, x)->shape, *is = &call_value(c, at)->shape;
    struct op op = {.kind = OP_GATHER, .axis = axis, .wraps = wraps};
    struct shape out = {.rank = xs->rank - 1 + is->rank};
    if (c->rc)
        return -1;
    if (out.rank > LAYOUT_MAX_DIMS)
        return call_fail(c, ERR_UNSUPPORTED, "makes more than %d dimensions", LAYOUT_MAX_DIMS);
    for (int i = 0; i < out.rank; i++)
        out.dim[i] = i < axis              ? xs->dim[i]
                     : i < axis + is->rank ? is->dim[i - axis]
                                           : xs->dim[i - is->rank + 1];
    return call_emit(c, &op, (int[]){x, at}, 2, &out);
}

void op_gather(struct call *c)
{
    if (gather_shapes(c))
        return;
    int x = call_tensor(c, 0), at = read_indices(c, 1);
    const struct shape xs = call_value(c, x)->shape, is = call_value(c, at)->shape;
    int axis = call_axis(c, call_int(c, "axis", 0), xs.rank);
    struct shape out = {.rank = xs.rank - 1 + is.rank};
    for (int i = 0; i < out.rank && out.rank <= LAYOUT_MAX_DIMS; i++)
        out.dim[i] = i < axis             ? xs.dim[i]
                     : i < axis + is.rank ? is.dim[i - axis]
                                          : xs.dim[i - is.rank + 1];
    if (c->rc || (out.rank <= LAYOUT_MAX_DIMS && gather_slice(c, x, at, axis, &out)))
        return;
    call_out(c, 0, call_gather(c, x, at, axis, may_wrap(c, at)));
}

void op_gather_elements(struct call *c)
{
    int x = call_tensor(c, 0), at = read_indices(c, 1);
    const struct shape xs = call_value(c, x)->shape, is = call_value(c, at)->shape;
    struct op op = {.kind = OP_GATHER, .each = true};
    op.axis = call_axis(c, call_int(c, "axis", 0), xs.rank);
    op.wraps = may_wrap(c, at);
    bool fits = xs.rank == is.rank;
    for (int i = 0; fits && i < xs.rank; i++)
        fits = i == op.axis || is.dim[i] <= xs.dim[i];
    if (!c->rc && !fits)
        call_fail(c, ERR_INPUT, "has indices %s into %s", shape_text(&is).s, shape_text(&xs).s);
    call_out(c, 0, call_emit(c, &op, (int[]){x, at}, 2, &is));
}

/* Numbers of the elements that the rows of `at` name, each within its part of the batch. */
static int linear_indices(struct call *c, int at, const struct shape *xs, int batch, int64_t k)
{
    const struct shape is = call_value(c, at)->shape;
    struct shape list = {.rank = is.rank - 1}, parts = {.rank = is.rank - 1};
    float extent[LAYOUT_MAX_DIMS], step[LAYOUT_MAX_DIMS];
    int64_t size = 1, nr_parts = 1;
    for (int i = (int)k; i-- > 0; size *= xs->dim[batch + i]) {
        extent[i] = (float)xs->dim[batch + i];
        step[i] = (float)size;
    }
    for (int i = 0; i < list.rank; i++) {
        list.dim[i] = is.dim[i];
        parts.dim[i] = i < batch ? is.dim[i] : 1;
        nr_parts *= parts.dim[i];
    }
    int extents = graph_const_f32(c->g, "", 1, &k, extent, c->e);
    int steps = graph_const_f32(c->g, "", 1, &k, step, c->e);
    int below = call_element2(c, OP_LESS, at, call_literal(c, 0));
    at = call_element2(c, OP_ADD, at, call_element2(c, OP_MUL, below, extents));
    at = call_reduce(c, call_element2(c, OP_MUL, at, steps), REDUCE_SUM, 1u << (is.rank - 1));
    at = call_reshape(c, at, &list);
    if (!batch)
        return at;
    int part = call_reshape(c, call_iota(c, nr_parts, 0, 1), &parts);
    return call_element2(c, OP_ADD, at,
                         call_element2(c, OP_MUL, part, call_literal(c, (double)size)));
}

/* The last dimension of the indices counts through the first ones of x: as one, it is a Gather. */
void op_gather_nd(struct call *c)
{
    int x = call_tensor(c, 0), at = read_indices(c, 1);
    const struct shape xs = call_value(c, x)->shape, is = call_value(c, at)->shape;
    int64_t k = is.rank ? is.dim[is.rank - 1] : 0, given = call_int(c, "batch_dims", 0);
    bool fits = is.rank >= 1 && given >= 0 && given < is.rank && k >= 1 && k <= xs.rank - given;
    for (int i = 0; fits && i < given; i++)
        fits = xs.dim[i] == is.dim[i];
    if (!c->rc && !fits)
        call_fail(c, ERR_INPUT, "has indices %s into %s", shape_text(&is).s, shape_text(&xs).s);
    if (c->rc)
        return;
    int batch = (int)given;
    struct shape flat = {.rank = 1, .dim = {1}};
    for (int i = 0; i < xs.rank; i++) {
        if (i < batch + k)
            flat.dim[0] *= xs.dim[i];
        else
            flat.dim[flat.rank++] = xs.dim[i];
    }
    enum graph_type result = c->result;
    c->result = GRAPH_I64;
    at = linear_indices(c, at, &xs, batch, k);
    c->result = result;
    call_out(c, 0, call_gather(c, call_reshape(c, x, &flat), at, 0, false));
}

/* ---- from positions ---- */

/* One element of a vector, as a scalar. */
static int pick_one(struct call *c, int v, int64_t i)
{
    int64_t step = 1;
    int one = call_slice(c, v, &i, &step, &(struct shape){1, {1}});
    return call_reshape(c, one, &(struct shape){0});
}

void op_one_hot(struct call *c)
{
    int at = call_tensor(c, 0);
    const struct shape is = call_value(c, at)->shape;
    int axis = call_axis(c, call_int(c, "axis", -1), is.rank + 1);
    double depth = 0;
    if (!c->rc && !graph_const_scalar(c->g, call_in(c, 1), &depth))
        call_fail(c, ERR_UNSUPPORTED, "needs a constant depth");
    c->has_result = false;
    int values = call_tensor(c, 2);
    if (!c->rc && (is.rank == LAYOUT_MAX_DIMS || call_value(c, values)->shape.rank != 1 ||
                   call_value(c, values)->shape.dim[0] != 2))
        call_fail(c, ERR_INPUT, "needs two values");
    if (c->rc)
        return;
    struct shape wide = {.rank = is.rank + 1};
    for (int i = 0; i < wide.rank; i++)
        wide.dim[i] = i == axis ? 1 : is.dim[i - (i > axis)];
    int below = call_element2(c, OP_LESS, at, call_literal(c, 0));
    at = call_element2(c, OP_ADD, at, call_element2(c, OP_MUL, below, call_literal(c, depth)));
    int hot = call_element2(c, OP_EQUAL, call_reshape(c, at, &wide),
                            call_iota(c, (int64_t)depth, axis, wide.rank));
    call_out(c, 0, call_where(c, hot, pick_one(c, values, 1), pick_one(c, values, 0)));
}

/* A constant of n x m with 1 where the column is at least (or most) the row and `k`. */
static int triangle(struct call *c, int64_t n, int64_t m, int64_t k, bool upper)
{
    if (!call_may_make(c, m > 0 && n > INT64_MAX / m ? -1 : n * m))
        return -1;
    float *all = xmalloc((size_t)(n * m) * sizeof *all);
    for (int64_t i = 0; i < n * m; i++)
        all[i] = upper ? i % m >= i / m + k : i % m <= i / m + k;
    int v = graph_const_f32(c->g, "", 2, (int64_t[]){n, m}, all, c->e);
    free(all);
    return v;
}

void op_trilu(struct call *c)
{
    int x = call_tensor(c, 0);
    const struct shape xs = call_value(c, x)->shape;
    double k = 0;
    if (call_in(c, 1) >= 0 && !graph_const_scalar(c->g, call_in(c, 1), &k))
        call_fail(c, ERR_UNSUPPORTED, "needs a constant diagonal");
    if (!c->rc && (xs.rank < 2 || fabs(k) > 1e9))
        call_fail(c, ERR_INPUT, "has an input %s", shape_text(&xs).s);
    if (call_is_empty(c, x)) {
        call_out(c, 0, x);
        return;
    }
    int mask = c->rc ? -1
                     : triangle(c, xs.dim[xs.rank - 2], xs.dim[xs.rank - 1], (int64_t)k,
                                call_int(c, "upper", 1) != 0);
    call_out(c, 0, call_where(c, mask, x, call_literal(c, 0)));
}

/* Along the last dimension a product with a triangle of ones. */
void op_cumsum(struct call *c)
{
    int x = call_tensor(c, 0);
    const struct shape xs = call_value(c, x)->shape;
    double given = 0;
    enum { LONGEST = 4096 };
    if (!c->rc && !graph_const_scalar(c->g, call_in(c, 1), &given))
        call_fail(c, ERR_UNSUPPORTED, "needs a constant axis");
    int axis = call_axis(c, (int64_t)given, xs.rank);
    if (!c->rc && (shape_size(&xs) < 1 || xs.dim[axis] > LONGEST))
        call_fail(c, ERR_LIMIT, "is supported along up to %d elements", LONGEST);
    if (c->rc)
        return;
    int64_t n = xs.dim[axis], perm[LAYOUT_MAX_DIMS], exclusive = call_int(c, "exclusive", 0) != 0;
    bool reverse = call_int(c, "reverse", 0) != 0;
    for (int i = 0; i < xs.rank; i++)
        perm[i] = i;
    perm[axis] = xs.rank - 1;
    perm[xs.rank - 1] = axis;
    int ones = triangle(c, n, n, reverse ? -exclusive : exclusive, !reverse);
    int y = call_transpose(c, x, perm);
    const struct shape ys = call_value(c, y)->shape;
    y = call_reshape(c, y, &(struct shape){2, {shape_size(&ys) / n, n}});
    y = call_reshape(c, call_matmul(c, y, ones, false, false), &ys);
    call_out(c, 0, call_transpose(c, y, perm));
}
