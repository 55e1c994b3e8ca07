/* SPDX-License-Identifier: Apache-2.0 */
/* Operators that move elements without computing. */
#include <stdlib.h>
#include <string.h>

#include "engine/model/ops.h"

/* A view of `v`, which may be an int64 constant too. */
static int view(struct call *c, int v, const struct shape *shape)
{
    if (call_is_shape(c, v)) {
        if (shape_size(shape) != shape_size(&call_value(c, v)->shape))
            return call_fail(c, ERR_INPUT, "cannot make %s of %s", shape_text(shape).s,
                             shape_text(&call_value(c, v)->shape).s);
        return graph_const_view(c->g, v, shape);
    }
    call_tensor(c, 0);
    return call_reshape(c, v, shape);
}

void op_reshape(struct call *c)
{
    int v = call_in(c, 0), nr;
    const struct shape xs = call_value(c, v)->shape;
    int64_t attr[LAYOUT_MAX_DIMS];
    const int64_t *want = attr;
    if (c->c->nr_in > 1)
        want = call_const_ints(c, 1, LAYOUT_MAX_DIMS, &nr);
    else
        nr = call_ints(c, "shape", LAYOUT_MAX_DIMS, attr);
    if (!c->rc && nr < 0)
        call_fail(c, ERR_INPUT, "lacks its shape");
    if (c->rc)
        return;
    struct shape out = {.rank = nr};
    int64_t known = 1;
    int open = -1;
    for (int i = 0; i < nr; i++) {
        out.dim[i] = want[i];
        if (want[i] == 0 && !call_int(c, "allowzero", 0) && i < xs.rank)
            out.dim[i] = xs.dim[i];
        if (want[i] == -1 && open < 0)
            open = i;
        else if (out.dim[i] < 0 || __builtin_mul_overflow(known, out.dim[i], &known))
            call_fail(c, ERR_INPUT, "asks for dimension %lld", (long long)want[i]);
    }
    if (open >= 0)
        out.dim[open] = known > 0 ? shape_size(&xs) / known : 0;
    call_out(c, 0, view(c, v, &out));
}

void op_flatten(struct call *c)
{
    int x = call_tensor(c, 0);
    const struct shape xs = call_value(c, x)->shape;
    int64_t given = call_int(c, "axis", 1);
    int axis = given == xs.rank ? xs.rank : call_axis(c, given, xs.rank);
    struct shape out = {2, {1, 1}};
    for (int i = 0; i < xs.rank; i++)
        out.dim[i >= axis] *= xs.dim[i];
    call_out(c, 0, call_reshape(c, x, &out));
}

void op_squeeze(struct call *c)
{
    int v = call_in(c, 0);
    const struct shape xs = call_value(c, v)->shape;
    bool have;
    unsigned axes = call_axes(c, 1, xs.rank, &have);
    struct shape out = {0};
    for (int i = 0; i < xs.rank; i++) {
        bool drop = have ? axes >> i & 1 : xs.dim[i] == 1;
        if (drop && xs.dim[i] != 1)
            call_fail(c, ERR_INPUT, "squeezes dimension %d of %s", i, shape_text(&xs).s);
        if (!drop)
            out.dim[out.rank++] = xs.dim[i];
    }
    call_out(c, 0, view(c, v, &out));
}

void op_unsqueeze(struct call *c)
{
    int v = call_in(c, 0), nr = 0;
    const struct shape xs = call_value(c, v)->shape;
    int64_t list[LAYOUT_MAX_DIMS];
    nr = call_ints(c, "axes", LAYOUT_MAX_DIMS, list);
    if (nr < 0)
        call_const_ints(c, 1, LAYOUT_MAX_DIMS, &nr);
    if (!c->rc && xs.rank + nr > LAYOUT_MAX_DIMS)
        call_fail(c, ERR_UNSUPPORTED, "makes more than %d dimensions", LAYOUT_MAX_DIMS);
    if (c->rc)
        return;
    bool have;
    struct shape out = {.rank = xs.rank + nr};
    unsigned axes = call_axes(c, 1, out.rank, &have);
    for (int i = 0, k = 0; i < out.rank && !c->rc; i++)
        out.dim[i] = axes >> i & 1 ? 1 : xs.dim[k++];
    call_out(c, 0, view(c, v, &out));
}

void op_identity(struct call *c)
{
    call_out(c, 0, call_in(c, 0));
}

void op_dropout(struct call *c)
{
    double ratio = 0.5, training = 0;
    if (call_in(c, 1) >= 0)
        graph_const_scalar(c->g, call_in(c, 1), &ratio);
    if (call_in(c, 2) >= 0 && !graph_const_scalar(c->g, call_in(c, 2), &training))
        training = 1;
    if ((training < 0 || training > 0) && ratio > 0)
        call_fail(c, ERR_UNSUPPORTED, "is supported in its inference form only");
    int x = call_tensor(c, 0);
    call_out(c, 0, x);
    const struct shape *s = &call_value(c, x)->shape;
    if (!c->rc && c->c->nr_out > 1) /* nothing is dropped */
        call_out(c, 1, graph_const_fill(c->g, "", GRAPH_BOOL, s->rank, s->dim, 1, c->e));
}

/* ---- movements ---- */

int call_transpose(struct call *c, int x, const int64_t *perm)
{
    const struct shape *xs = &call_value(c, x)->shape;
    struct op op = {.kind = OP_TRANSPOSE};
    struct shape out = {.rank = xs->rank};
    unsigned seen = 0;
    for (int i = 0; i < xs->rank && !c->rc; i++) {
        if (perm[i] < 0 || perm[i] >= xs->rank || seen >> perm[i] & 1)
            return call_fail(c, ERR_INPUT, "has no permutation in attribute \"perm\"");
        seen |= 1u << perm[i];
        op.at[i] = perm[i];
        out.dim[i] = xs->dim[perm[i]];
    }
    /* Moving dimensions of extent 1 moves no element. */
    int64_t last = -1;
    bool moves = false;
    for (int i = 0; i < xs->rank && !c->rc; i++)
        if (out.dim[i] != 1) {
            moves |= perm[i] < last;
            last = perm[i];
        }
    return moves ? call_emit(c, &op, &x, 1, &out) : call_reshape(c, x, &out);
}

void op_transpose(struct call *c)
{
    int x = call_tensor(c, 0);
    int rank = call_value(c, x)->shape.rank;
    int64_t perm[LAYOUT_MAX_DIMS];
    int nr = call_ints(c, "perm", LAYOUT_MAX_DIMS, perm);
    if (nr >= 0 && nr != rank)
        call_fail(c, ERR_INPUT, "has %d numbers in attribute \"perm\" for %d dimensions", nr, rank);
    for (int i = 0; i < rank && nr < 0; i++)
        perm[i] = rank - 1 - i;
    call_out(c, 0, call_transpose(c, x, perm));
}

/* Channels to blocks of space, or back: a view, a transposition, a view. */
void op_space(struct call *c)
{
    int x = call_tensor(c, 0);
    const struct shape xs = call_value(c, x)->shape;
    int64_t b = call_int(c, "blocksize", 0), n = xs.dim[0], ch = xs.dim[1], h = xs.dim[2],
            w = xs.dim[3];
    bool to_space = c->arg, crd = call_string_is(c, "mode", "CRD", false);
    if (!c->rc &&
        (xs.rank != 4 || b < 1 || b > 65536 || (to_space ? ch % (b * b) : h % b || w % b)))
        call_fail(c, ERR_INPUT, "has block size %lld, which does not divide its input %s",
                  (long long)b, shape_text(&xs).s);
    if (c->rc)
        return;
    struct shape cut = {6, {n, ch, h / b, b, w / b, b}}, out = {4, {n, ch * b * b, h / b, w / b}};
    int64_t perm[] = {0, 3, 5, 1, 2, 4};
    if (to_space) {
        int64_t k = ch / (b * b);
        cut = (struct shape){6, {n, crd ? k : b, b, crd ? b : k, h, w}};
        out = (struct shape){4, {n, k, h * b, w * b}};
        memcpy(perm, crd ? (int64_t[]){0, 1, 4, 2, 5, 3} : (int64_t[]){0, 3, 4, 1, 5, 2},
               sizeof perm);
    }
    x = call_transpose(c, call_reshape(c, x, &cut), perm);
    call_out(c, 0, call_reshape(c, x, &out));
}

/* Longest vector of integers that is moved about here: of shapes, and a little more. */
enum { SHORT = LAYOUT_MAX_DIMS * 8 };

/* Are all inputs integers of shapes, together short enough? */
static bool are_shapes(struct call *c)
{
    int64_t nr = 0;
    for (int i = 0; i < c->c->nr_in; i++) {
        const struct value *v = call_value(c, call_in(c, i));
        if (!call_is_shape(c, call_in(c, i)) || v->shape.rank > 1)
            return false;
        nr += shape_size(&v->shape);
    }
    return nr <= SHORT;
}

static void concat_ints(struct call *c)
{
    int64_t all[SHORT];
    int used = 0;
    for (int i = 0; i < c->c->nr_in && !c->rc; i++) {
        int nr;
        const int64_t *v = call_const_ints(c, i, SHORT - used, &nr);
        for (int k = 0; k < nr; k++)
            all[used++] = v[k];
    }
    if (!c->rc)
        call_out(c, 0, graph_const_i64(c->g, "", 1, &(int64_t){used}, all, c->e));
}

/* Inputs one kernel reads; longer lists are joined in steps. */
enum { CONCAT_INPUTS = 24 };

static int emit_concat(struct call *c, const int *in, int nr, int axis)
{
    struct op op = {.kind = OP_CONCAT, .axis = axis};
    struct shape out = call_value(c, in[0])->shape;
    for (int i = 1; i < nr && !c->rc; i++) {
        const struct shape *s = &call_value(c, in[i])->shape;
        bool ok = s->rank == out.rank;
        for (int k = 0; ok && k < out.rank; k++)
            ok = k == axis || s->dim[k] == out.dim[k];
        if (!ok)
            return call_fail(c, ERR_INPUT, "cannot join %s and %s along dimension %d",
                             shape_text(&call_value(c, in[0])->shape).s, shape_text(s).s, axis);
        out.dim[axis] += s->dim[axis];
    }
    return nr == 1 ? in[0] : call_emit(c, &op, in, nr, &out);
}

void op_concat(struct call *c)
{
    if (are_shapes(c)) {
        concat_ints(c);
        return;
    }
    int nr = 0;
    int *in = ARENA_ARRAY(&c->g->arena, int, c->c->nr_in);
    for (int i = 0; i < c->c->nr_in; i++) {
        in[nr] = call_tensor(c, i);
        if (in[nr] < 0)
            call_fail(c, ERR_INPUT, "lacks input %d", i);
        /* The empty ones add nothing, but there must be one. */
        nr += !call_is_empty(c, in[nr]) || (i + 1 == c->c->nr_in && !nr);
    }
    if (!c->rc && !call_has(c, "axis") && c->g->opset >= 4)
        call_fail(c, ERR_INPUT, "lacks attribute \"axis\"");
    int rank = call_value(c, in[0])->shape.rank;
    int axis = call_axis(c, call_int(c, "axis", 1), rank);
    while (nr > CONCAT_INPUTS && !c->rc) {
        int made = 0;
        for (int i = 0; i < nr; i += CONCAT_INPUTS) {
            int part = nr - i < CONCAT_INPUTS ? nr - i : CONCAT_INPUTS;
            in[made++] = emit_concat(c, in + i, part, axis);
        }
        nr = made;
    }
    if (!c->rc)
        call_out(c, 0, emit_concat(c, in, nr, axis));
}

/* ---- parts ---- */

int call_slice(struct call *c, int x, const int64_t *start, const int64_t *step,
               const struct shape *out)
{
    struct op op = {.kind = OP_SLICE};
    bool whole = shape_equal(&call_value(c, x)->shape, out);
    for (int i = 0; i < out->rank; i++) {
        op.at[i] = start[i];
        op.step[i] = step[i];
        whole = whole && (step[i] == 1 || out->dim[i] == 1);
    }
    return whole ? x : call_emit(c, &op, &x, 1, out);
}

/* Start and count of a slice of one dimension, by the rules of numpy. */
static void slice_range(int64_t extent, int64_t *start, int64_t end, int64_t step, int64_t *count)
{
    int64_t low = step > 0 ? 0 : -1, high = step > 0 ? extent : extent - 1;
    int64_t s = *start < 0 && *start >= -extent ? *start + extent : *start;
    int64_t t = end < 0 && end >= -extent ? end + extent : end;
    s = s < 0 ? (*start < 0 && step < 0 ? -1 : 0) : s > high ? high : s;
    t = t < low ? low : t > extent ? extent : t;
    int64_t span = step > 0 ? t - s : s - t, size = step > 0 ? step : -step;
    *start = s;
    *count = span > 0 ? (span + size - 1) / size : 0;
}

/* Slice of an int64 vector, as of the shape of something. */
static void slice_ints(struct call *c, int64_t start, int64_t step, int64_t count)
{
    int nr;
    int64_t out[SHORT];
    const int64_t *v = call_const_ints(c, 0, SHORT, &nr);
    for (int64_t i = 0; i < count && !c->rc; i++)
        out[i] = v[start + i * step];
    if (!c->rc)
        call_out(c, 0, graph_const_i64(c->g, "", 1, &count, out, c->e));
}

void op_slice(struct call *c)
{
    int v = call_in(c, 0), nr = 0, nr_end = 0, nr_axes = -1, nr_steps = -1;
    const struct shape xs = call_value(c, v)->shape;
    int64_t buf[3][LAYOUT_MAX_DIMS];
    const int64_t *start = buf[0], *end = buf[1], *axes = buf[2], *steps = NULL;
    if (c->c->nr_in == 1) {
        nr = call_ints(c, "starts", LAYOUT_MAX_DIMS, buf[0]);
        nr_end = call_ints(c, "ends", LAYOUT_MAX_DIMS, buf[1]);
        nr_axes = call_ints(c, "axes", LAYOUT_MAX_DIMS, buf[2]);
    } else {
        start = call_const_ints(c, 1, LAYOUT_MAX_DIMS, &nr);
        end = call_const_ints(c, 2, LAYOUT_MAX_DIMS, &nr_end);
        if (call_in(c, 3) >= 0)
            axes = call_const_ints(c, 3, LAYOUT_MAX_DIMS, &nr_axes);
        if (call_in(c, 4) >= 0)
            steps = call_const_ints(c, 4, LAYOUT_MAX_DIMS, &nr_steps);
    }
    if (!c->rc && (nr < 0 || nr != nr_end || (nr_axes >= 0 && nr_axes != nr) ||
                   (nr_steps >= 0 && nr_steps != nr)))
        call_fail(c, ERR_INPUT, "has lists of starts, ends, axes and steps that do not match");
    int64_t at[LAYOUT_MAX_DIMS] = {0}, by[LAYOUT_MAX_DIMS];
    for (int i = 0; i < LAYOUT_MAX_DIMS; i++)
        by[i] = 1;
    struct shape out = xs;
    for (int i = 0; i < nr && !c->rc; i++) {
        int k = call_axis(c, nr_axes >= 0 ? axes[i] : i, xs.rank);
        by[k] = steps ? steps[i] : 1;
        if (!c->rc && (by[k] == 0 || llabs(by[k]) > INT32_MAX))
            call_fail(c, ERR_INPUT, "has step %lld", (long long)by[k]);
        at[k] = start[i];
        if (!c->rc)
            slice_range(xs.dim[k], &at[k], end[i], by[k], &out.dim[k]);
    }
    if (call_is_shape(c, v) && xs.rank == 1 && xs.dim[0] <= SHORT) {
        slice_ints(c, at[0], by[0], out.dim[0]);
        return;
    }
    call_out(c, 0, c->rc ? -1 : call_slice(c, call_tensor(c, 0), at, by, &out));
}

void op_split(struct call *c)
{
    int x = call_tensor(c, 0), nr = 0, nr_out = c->c->nr_out;
    const struct shape xs = call_value(c, x)->shape;
    int axis = call_axis(c, call_int(c, "axis", 0), xs.rank);
    enum { MAX_PARTS = 1024 };
    int64_t attr[MAX_PARTS];
    const int64_t *part = attr;
    nr = call_ints(c, "split", MAX_PARTS, attr);
    if (nr < 0 && call_in(c, 1) >= 0)
        part = call_const_ints(c, 1, MAX_PARTS, &nr);
    if (!c->rc && nr < 0) {
        int64_t extent = xs.dim[axis], each = nr_out > 0 ? (extent + nr_out - 1) / nr_out : 1;
        nr = nr_out < MAX_PARTS ? nr_out : MAX_PARTS;
        for (int i = 0; i < nr; i++, extent -= each)
            attr[i] = extent < each ? (extent > 0 ? extent : 0) : each;
    }
    int64_t at[LAYOUT_MAX_DIMS] = {0}, by[LAYOUT_MAX_DIMS];
    for (int i = 0; i < LAYOUT_MAX_DIMS; i++)
        by[i] = 1;
    for (int i = 0; i < nr && !c->rc; i++) {
        struct shape out = xs;
        out.dim[axis] = part[i];
        if (part[i] < 0 || part[i] > xs.dim[axis] - at[axis])
            call_fail(c, ERR_INPUT, "cannot cut a part of %lld from dimension %d of %s",
                      (long long)part[i], axis, shape_text(&xs).s);
        call_out(c, i, call_slice(c, x, at, by, &out));
        at[axis] += part[i];
    }
    if (!c->rc && at[axis] != xs.dim[axis])
        call_fail(c, ERR_INPUT, "has parts that do not add up to dimension %d of %s", axis,
                  shape_text(&xs).s);
}

int call_expand(struct call *c, int x, const struct shape *out)
{
    /* A product with one whose result is larger than its operands. */
    struct op op = {.kind = OP_MUL};
    if (!c->rc && shape_equal(&call_value(c, x)->shape, out))
        return x;
    return call_emit(c, &op, (int[]){x, call_literal(c, 1)}, 2, out);
}

void op_expand(struct call *c)
{
    int x = call_tensor(c, 0), nr;
    const int64_t *dim = call_const_ints(c, 1, LAYOUT_MAX_DIMS, &nr);
    const struct shape *xs = &call_value(c, x)->shape;
    struct shape out = {.rank = nr > xs->rank ? nr : xs->rank};
    for (int i = 1; i <= out.rank && !c->rc; i++) {
        int64_t have = i <= xs->rank ? xs->dim[xs->rank - i] : 1, want = i <= nr ? dim[nr - i] : 1;
        if (have != want && have != 1 && want != 1)
            call_fail(c, ERR_INPUT, "cannot broadcast %s to %lld in dimension %d", shape_text(xs).s,
                      (long long)want, out.rank - i);
        out.dim[out.rank - i] = have == 1 ? want : have;
    }
    call_out(c, 0, call_expand(c, x, &out));
}
