/* SPDX-License-Identifier: Apache-2.0 */
/* Operators with windows over space or channels, and matrix products. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/model/ops.h"

/* Larger attributes are nonsense, and products of two of these still fit in 64 bits. */
#define MAX_ATTR (INT64_C(1) << 30)

/* Reads an attribute of one number a spatial dimension, or fills in the default. */
static void spatial_attr(struct call *c, const char *name, int nr, int64_t min, int64_t otherwise,
                         int64_t *out)
{
    int have = call_ints(c, name, nr, out);
    if (have >= 0 && have != nr)
        call_fail(c, ERR_INPUT, "has %d numbers in attribute \"%s\" where %d are needed", have,
                  name, nr);
    for (int i = 0; i < nr; i++) {
        if (have < 0)
            out[i] = otherwise;
        if (out[i] < min || out[i] > MAX_ATTR) {
            call_fail(c, ERR_INPUT, "has %lld in attribute \"%s\"", (long long)out[i], name);
            out[i] = min;
        }
    }
}

enum auto_pad { PAD_NOTSET, PAD_VALID, PAD_SAME_UPPER, PAD_SAME_LOWER };

static enum auto_pad read_auto_pad(struct call *c)
{
    static const char *const text[] = {"NOTSET", "VALID", "SAME_UPPER", "SAME_LOWER"};
    for (int i = 0; i < 4; i++)
        if (call_string_is(c, "auto_pad", text[i], i == PAD_NOTSET))
            return (enum auto_pad)i;
    call_fail(c, ERR_INPUT, "has an unknown value of attribute \"auto_pad\"");
    return PAD_NOTSET;
}

/* Strides, dilations and pads; size[] is already known. */
static void read_window(struct call *c, struct op_window *w, enum auto_pad mode)
{
    int64_t pads[2 * OP_MAX_WINDOW];
    spatial_attr(c, "strides", w->nr, 1, 1, w->stride);
    spatial_attr(c, "dilations", w->nr, 1, 1, w->dilation);
    if (mode != PAD_NOTSET)
        return;
    spatial_attr(c, "pads", 2 * w->nr, 0, 0, pads);
    memcpy(w->pad, pads, (size_t)w->nr * sizeof pads[0]);
    memcpy(w->pad_end, pads + w->nr, (size_t)w->nr * sizeof pads[0]);
}

/* Output extent of dimension `i`, and its pads where they follow from auto_pad. 0: nothing fits. */
static int64_t window_extent(struct op_window *w, int i, int64_t in, enum auto_pad mode, bool ceil)
{
    int64_t reach = (w->size[i] - 1) * w->dilation[i] + 1, stride = w->stride[i];
    if (mode == PAD_SAME_UPPER || mode == PAD_SAME_LOWER) {
        int64_t out = (in + stride - 1) / stride;
        int64_t pad = (out - 1) * stride + reach - in;
        pad = pad > 0 ? pad : 0;
        w->pad[i] = mode == PAD_SAME_UPPER ? pad / 2 : (pad + 1) / 2;
        w->pad_end[i] = pad - w->pad[i];
        return out;
    }
    int64_t room = in + w->pad[i] + w->pad_end[i] - reach;
    if (room < 0)
        return 0;
    if (!ceil)
        return room / stride + 1;
    int64_t out = (room + stride - 1) / stride + 1;
    /* A window that starts behind the input and its front padding does not count. */
    return (out - 1) * stride >= in + w->pad[i] ? out - 1 : out;
}

static void window_shape(struct call *c, struct op_window *w, const struct shape *x,
                         enum auto_pad mode, bool ceil, struct shape *out)
{
    for (int i = 0; i < w->nr && !c->rc; i++) {
        out->dim[2 + i] = window_extent(w, i, x->dim[2 + i], mode, ceil);
        if (out->dim[2 + i] < 1)
            call_fail(c, ERR_INPUT, "has a window that does not fit its input %s", shape_text(x).s);
    }
}

static int need_spatial(struct call *c, int x)
{
    const struct shape *s = &call_value(c, x)->shape;
    if (!c->rc && (s->rank < 3 || s->rank > 2 + OP_MAX_WINDOW))
        call_fail(c, ERR_UNSUPPORTED,
                  "has an input %s, it must be [N,C] and 1 to 3 dimensions of space",
                  shape_text(s).s);
    return c->rc ? 1 : s->rank - 2;
}

void op_conv(struct call *c)
{
    int x = call_tensor(c, 0), w = call_tensor(c, 1), b = call_tensor(c, 2);
    const struct shape xs = call_value(c, x)->shape, ws = call_value(c, w)->shape;
    struct op op = {.kind = OP_CONV, .window.nr = need_spatial(c, x)};
    op.groups = call_int(c, "group", 1);
    if (!c->rc &&
        (ws.rank != xs.rank || op.groups < 1 || op.groups > xs.dim[1] || xs.dim[1] % op.groups ||
         ws.dim[1] != xs.dim[1] / op.groups || ws.dim[0] % op.groups))
        call_fail(c, ERR_INPUT, "has input %s, weights %s and %lld groups, which do not match",
                  shape_text(&xs).s, shape_text(&ws).s, (long long)op.groups);
    int64_t kernel[OP_MAX_WINDOW];
    int nr = call_ints(c, "kernel_shape", OP_MAX_WINDOW, kernel);
    for (int i = 0; i < op.window.nr; i++) {
        op.window.size[i] = ws.dim[2 + i];
        if (!c->rc && nr >= 0 && (nr != op.window.nr || kernel[i] != ws.dim[2 + i]))
            call_fail(c, ERR_INPUT,
                      "has attribute \"kernel_shape\" that is not that of its weights %s",
                      shape_text(&ws).s);
    }
    enum auto_pad mode = read_auto_pad(c);
    read_window(c, &op.window, mode);
    struct shape out = {.rank = xs.rank, .dim = {xs.dim[0], ws.dim[0]}};
    window_shape(c, &op.window, &xs, mode, false, &out);
    int y = call_emit(c, &op, (int[]){x, w}, 2, &out);
    if (call_in(c, 2) >= 0) {
        struct shape bias = {.rank = xs.rank - 1, .dim = {ws.dim[0], 1, 1, 1}};
        y = call_element2(c, OP_ADD, y, call_reshape(c, b, &bias));
    }
    call_out(c, 0, y);
}

/* Where in a plane of the input tap `tap` of each window of `out` is: a constant [1, 1, ...]. */
static int tap_positions(struct call *c, const struct op_window *w, const int64_t *tap,
                         const struct shape *xs, const struct shape *out)
{
    struct shape s = *out;
    s.dim[0] = s.dim[1] = 1;
    bool columns = call_int(c, "storage_order", 0) != 0;
    int64_t n = shape_size(&s);
    if (!call_may_make(c, n))
        return -1;
    float *all = xmalloc((size_t)n * sizeof *all);
    for (int64_t i = 0; i < n; i++) {
        int64_t rest = i, at = 0, step = 1, k[OP_MAX_WINDOW];
        for (int d = w->nr; d-- > 0; rest /= s.dim[2 + d])
            k[d] = rest % s.dim[2 + d] * w->stride[d] + tap[d] * w->dilation[d] - w->pad[d];
        for (int j = 0; j < w->nr; j++) {
            int d = columns ? j : w->nr - 1 - j;
            at += k[d] * step;
            step *= xs->dim[2 + d];
        }
        all[i] = (float)at;
    }
    int v = graph_const_f32(c->g, "", s.rank, s.dim, all, c->e);
    free(all);
    return v;
}

/*
 * Where the maxima `y` were: for each tap a strided view of the padded input, compared with them;
 * the first tap comes last, so that of equals it wins. Positions are those in the whole of the
 * input.
 */
static int emit_indices(struct call *c, const struct op *op, int x, int y)
{
    enum { MAX_TAPS = 64, EXACT = 1 << 24 };
    const struct op_window *w = &op->window;
    const struct shape xs = call_value(c, x)->shape, ys = call_value(c, y)->shape;
    struct shape wide = xs, plane = {.rank = xs.rank};
    int64_t front[LAYOUT_MAX_DIMS] = {0}, step[LAYOUT_MAX_DIMS], taps = 1, size = 1;
    for (int i = 0; i < LAYOUT_MAX_DIMS; i++)
        step[i] = plane.dim[i] = 1;
    for (int i = 0; i < w->nr; i++) {
        front[2 + i] = w->pad[i];
        step[2 + i] = w->stride[i];
        wide.dim[2 + i] =
            (ys.dim[2 + i] - 1) * w->stride[i] + (w->size[i] - 1) * w->dilation[i] + 1;
        taps *= w->size[i];
        size *= xs.dim[2 + i];
    }
    if (c->rc || taps > MAX_TAPS || shape_size(&xs) > EXACT)
        return call_fail(c, ERR_UNSUPPORTED, "gives positions of windows that are too large");
    int padded = call_pad(c, x, front, -INFINITY, &wide), at = -1;
    enum graph_type result = c->result;
    for (int64_t t = taps; t-- > 0;) {
        int64_t tap[OP_MAX_WINDOW], start[LAYOUT_MAX_DIMS] = {0}, rest = t;
        for (int d = w->nr; d-- > 0; rest /= w->size[d]) {
            tap[d] = rest % w->size[d];
            start[2 + d] = tap[d] * w->dilation[d];
        }
        int seen = call_element2(c, OP_EQUAL, call_slice(c, padded, start, step, &ys), y);
        int here = tap_positions(c, w, tap, &xs, &ys);
        c->result = GRAPH_I64;
        at = call_where(c, seen, here, at >= 0 ? at : call_literal(c, 0));
        c->result = result;
    }
    plane.dim[0] = xs.dim[0];
    plane.dim[1] = xs.dim[1];
    int planes = call_iota(c, xs.dim[0] * xs.dim[1], 0, 1);
    planes = call_element2(c, OP_MUL, planes, call_literal(c, (double)size));
    c->result = GRAPH_I64;
    at = call_element2(c, OP_ADD, at, call_reshape(c, planes, &plane));
    c->result = result;
    return at;
}

void op_pool(struct call *c)
{
    int x = call_tensor(c, 0);
    const struct shape xs = call_value(c, x)->shape;
    struct op op = {.kind = OP_POOL, .max = c->arg, .window.nr = need_spatial(c, x)};
    if (!c->rc && !call_has(c, "kernel_shape"))
        call_fail(c, ERR_INPUT, "lacks attribute \"kernel_shape\"");
    spatial_attr(c, "kernel_shape", op.window.nr, 1, 1, op.window.size);
    enum auto_pad mode = read_auto_pad(c);
    read_window(c, &op.window, mode);
    op.include_pad = call_int(c, "count_include_pad", 0) != 0;
    bool ceil = call_int(c, "ceil_mode", 0) != 0;
    struct shape out = xs;
    window_shape(c, &op.window, &xs, mode, ceil, &out);
    for (int i = 0; i < op.window.nr && !c->rc; i++)
        if (op.window.pad[i] > (op.window.size[i] - 1) * op.window.dilation[i] ||
            (out.dim[2 + i] - 1) * op.window.stride[i] >= xs.dim[2 + i] + op.window.pad[i])
            call_fail(c, ERR_INPUT, "has a window that lies in its padding alone");
    int y = call_emit(c, &op, &x, 1, &out);
    call_out(c, 0, y);
    if (op.max && c->c->nr_out > 1)
        call_out(c, 1, emit_indices(c, &op, x, y));
}

void op_global_pool(struct call *c)
{
    int x = call_tensor(c, 0), nr = need_spatial(c, x);
    call_out(c, 0, call_reduce(c, x, (enum op_reduce)c->arg, ((1u << nr) - 1) << 2));
}

void op_lrn(struct call *c)
{
    int x = call_tensor(c, 0);
    const struct shape xs = call_value(c, x)->shape;
    struct op op = {.kind = OP_LRN,
                    .a = (float)call_float(c, "alpha", 1e-4),
                    .b = (float)call_float(c, "beta", 0.75),
                    .c = (float)call_float(c, "bias", 1),
                    .size = call_int(c, "size", 0)};
    if (!c->rc && (op.size < 1 || op.size > MAX_ATTR))
        call_fail(c, ERR_INPUT, "has %lld in attribute \"size\"", (long long)op.size);
    if (!c->rc && xs.rank < 2)
        call_fail(c, ERR_INPUT, "has an input %s without channels", shape_text(&xs).s);
    call_out(c, 0, call_emit(c, &op, &x, 1, &xs));
}

/* ---- matrix products ---- */

int call_matmul(struct call *c, int a, int b, bool trans_a, bool trans_b)
{
    struct op op = {.kind = OP_MATMUL, .trans_a = trans_a, .trans_b = trans_b};
    const struct shape *as = &call_value(c, a)->shape, *bs = &call_value(c, b)->shape;
    if (c->rc)
        return -1;
    struct shape out = {.rank = as->rank > bs->rank ? as->rank : bs->rank};
    int64_t ka = as->dim[as->rank - (trans_a ? 2 : 1)], kb = bs->dim[bs->rank - (trans_b ? 1 : 2)];
    bool ok = ka == kb;
    out.dim[out.rank - 2] = as->dim[as->rank - (trans_a ? 1 : 2)];
    out.dim[out.rank - 1] = bs->dim[bs->rank - (trans_b ? 2 : 1)];
    for (int i = 3; i <= out.rank; i++) {
        int64_t p = i <= as->rank ? as->dim[as->rank - i] : 1;
        int64_t q = i <= bs->rank ? bs->dim[bs->rank - i] : 1;
        ok = ok && (p == q || p == 1 || q == 1);
        out.dim[out.rank - i] = p == 1 ? q : p;
    }
    if (!ok)
        return call_fail(c, ERR_INPUT, "cannot multiply %s and %s", shape_text(as).s,
                         shape_text(bs).s);
    return call_emit(c, &op, (int[]){a, b}, 2, &out);
}

void op_gemm(struct call *c)
{
    int a = call_tensor(c, 0), b = call_tensor(c, 1), d = call_tensor(c, 2);
    double alpha = call_float(c, "alpha", 1), beta = call_float(c, "beta", 1);
    bool trans_a = call_int(c, "transA", 0) != 0, trans_b = call_int(c, "transB", 0) != 0;
    if (!c->rc && (call_value(c, a)->shape.rank != 2 || call_value(c, b)->shape.rank != 2))
        call_fail(c, ERR_INPUT, "needs matrices, it has %s and %s",
                  shape_text(&call_value(c, a)->shape).s, shape_text(&call_value(c, b)->shape).s);
    int y = call_matmul(c, a, b, trans_a, trans_b);
    if (alpha < 1 || alpha > 1)
        y = call_element2(c, OP_MUL, y, call_literal(c, alpha));
    if (d >= 0 && (beta < 0 || beta > 0)) {
        struct shape out = call_value(c, y)->shape;
        if (beta < 1 || beta > 1)
            d = call_element2(c, OP_MUL, d, call_literal(c, beta));
        y = call_element2(c, OP_ADD, y, d);
        if (!c->rc && !shape_equal(&out, &call_value(c, y)->shape))
            call_fail(c, ERR_INPUT, "adds %s to %s", shape_text(&call_value(c, d)->shape).s,
                      shape_text(&out).s);
    }
    call_out(c, 0, y);
}

void op_matmul(struct call *c)
{
    int a = call_tensor(c, 0), b = call_tensor(c, 1);
    const struct shape as = call_value(c, a)->shape, bs = call_value(c, b)->shape;
    if (!c->rc && (as.rank < 1 || bs.rank < 1))
        call_fail(c, ERR_INPUT, "multiplies a scalar");
    /* A vector is a row on the left and a column on the right, and leaves no dimension behind. */
    if (as.rank == 1)
        a = call_reshape(c, a, &(struct shape){2, {1, as.dim[0]}});
    if (bs.rank == 1)
        b = call_reshape(c, b, &(struct shape){2, {bs.dim[0], 1}});
    int y = call_matmul(c, a, b, false, false);
    if (!c->rc && (as.rank == 1 || bs.rank == 1)) {
        struct shape full = call_value(c, y)->shape, out = {0};
        for (int i = 0; i < full.rank; i++)
            if (!(as.rank == 1 && i == full.rank - 2) && !(bs.rank == 1 && i == full.rank - 1))
                out.dim[out.rank++] = full.dim[i];
        y = call_reshape(c, y, &out);
    }
    call_out(c, 0, y);
}
