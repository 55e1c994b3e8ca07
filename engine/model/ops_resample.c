/* SPDX-License-Identifier: Apache-2.0 */
/* Operators that make space larger or smaller: padding, repetition, interpolation. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/model/ops.h"

/* Elements of dimension `axis` in the order of a list known here. */
static int gather_list(struct call *c, int x, int axis, const float *at, int64_t n)
{
    if (c->rc)
        return -1;
    return call_gather(c, x, graph_const_f32(c->g, "", 1, &n, at, c->e), axis, false);
}

/* ---- padding ---- */

enum pad_mode { PAD_CONSTANT, PAD_REFLECT, PAD_EDGE, PAD_WRAP };

static enum pad_mode read_pad_mode(struct call *c)
{
    static const char *const text[] = {"constant", "reflect", "edge", "wrap"};
    for (int i = 0; i < 4; i++)
        if (call_string_is(c, "mode", text[i], i == PAD_CONSTANT))
            return (enum pad_mode)i;
    call_fail(c, ERR_INPUT, "has an unknown value of attribute \"mode\"");
    return PAD_CONSTANT;
}

int call_pad(struct call *c, int x, const int64_t *front, double value, const struct shape *out)
{
    struct op op = {.kind = OP_PAD, .a = (float)value};
    const struct shape *xs = &call_value(c, x)->shape;
    bool moves = !c->rc && !shape_equal(xs, out);
    for (int i = 0; i < out->rank; i++) {
        op.at[i] = front[i];
        moves |= front[i] != 0;
    }
    if (call_is_empty(c, x) && shape_size(out) > 0)
        return graph_const_fill(c->g, "", c->result, out->rank, out->dim, value, c->e);
    return moves ? call_emit(c, &op, &x, 1, out) : c->rc ? -1 : x;
}

/* The element behind position `i` of an extent of n that goes on as the mode says. */
static int64_t continued(enum pad_mode mode, int64_t i, int64_t n)
{
    if (mode == PAD_EDGE || n == 1)
        return i < 0 ? 0 : i >= n ? n - 1 : i;
    int64_t period = mode == PAD_WRAP ? n : 2 * (n - 1);
    i = (i % period + period) % period;
    return i < n ? i : period - i;
}

static int pad_dimension(struct call *c, int x, int d, enum pad_mode mode, int64_t front,
                         int64_t extent)
{
    int64_t have = call_value(c, x)->shape.dim[d];
    if (c->rc || (!front && extent == have))
        return c->rc ? -1 : x;
    if (extent < 0 || have < 1)
        return call_fail(c, ERR_INPUT, "pads dimension %d from %lld to %lld", d, (long long)have,
                         (long long)extent);
    if (!call_may_make(c, extent))
        return -1;
    float *at = xmalloc((size_t)(extent + 1) * sizeof *at);
    for (int64_t i = 0; i < extent; i++)
        at[i] = (float)continued(mode, i - front, have);
    int y = gather_list(c, x, d, at, extent);
    free(at);
    return y;
}

void op_pad(struct call *c)
{
    int x = call_tensor(c, 0), nr;
    const struct shape xs = call_value(c, x)->shape;
    int64_t attr[2 * LAYOUT_MAX_DIMS], front[LAYOUT_MAX_DIMS] = {0};
    const int64_t *pads = attr, *axes = NULL;
    double value = call_float(c, "value", 0);
    int axis_nr = xs.rank;
    nr = call_ints(c, call_has(c, "paddings") ? "paddings" : "pads", 2 * LAYOUT_MAX_DIMS, attr);
    if (nr < 0)
        pads = call_const_ints(c, 1, 2 * LAYOUT_MAX_DIMS, &nr);
    if (call_in(c, 2) >= 0 && !graph_const_scalar(c->g, call_in(c, 2), &value))
        call_fail(c, ERR_UNSUPPORTED, "needs a constant number to pad with");
    if (call_in(c, 3) >= 0)
        axes = call_const_ints(c, 3, LAYOUT_MAX_DIMS, &axis_nr);
    enum pad_mode mode = read_pad_mode(c);
    if (!c->rc && nr != 2 * axis_nr)
        call_fail(c, ERR_INPUT, "has %d pads for %d dimensions", nr, axis_nr);
    struct shape out = xs;
    for (int i = 0; i < axis_nr && !c->rc; i++) {
        int k = axes ? call_axis(c, axes[i], xs.rank) : i;
        int64_t low = pads[i], high = pads[i + axis_nr];
        if (llabs(low) > INT32_MAX || llabs(high) > INT32_MAX)
            call_fail(c, ERR_INPUT, "pads by %lld and %lld", (long long)low, (long long)high);
        front[k] = low;
        out.dim[k] = xs.dim[k] + low + high;
    }
    if (mode == PAD_CONSTANT) {
        call_out(c, 0, call_pad(c, x, front, value, &out));
        return;
    }
    for (int d = 0; d < xs.rank; d++)
        x = pad_dimension(c, x, d, mode, front[d], out.dim[d]);
    call_out(c, 0, x);
}

/* ---- repetition ---- */

/* Each dimension that is repeated gets one in front of it, which is expanded. */
void op_tile(struct call *c)
{
    int x = call_tensor(c, 0), nr = 0;
    const struct shape xs = call_value(c, x)->shape;
    int64_t from_old[LAYOUT_MAX_DIMS];
    const int64_t *repeat = from_old;
    double tiles, axis;
    if (c->g->opset < 6) { /* tiles, axis */
        if (!graph_const_scalar(c->g, call_in(c, 1), &tiles) ||
            !graph_const_scalar(c->g, call_in(c, 2), &axis))
            call_fail(c, ERR_UNSUPPORTED, "needs constant numbers of tiles and axis");
        nr = xs.rank;
        int k = c->rc ? 0 : call_axis(c, (int64_t)axis, xs.rank);
        for (int i = 0; i < nr; i++)
            from_old[i] = i == k && !c->rc ? (int64_t)tiles : 1;
    } else {
        repeat = call_const_ints(c, 1, LAYOUT_MAX_DIMS, &nr);
    }
    if (!c->rc && nr != xs.rank)
        call_fail(c, ERR_INPUT, "has %d repetitions for %d dimensions", nr, xs.rank);
    struct shape cut = {0}, wide = {0}, out = xs;
    for (int i = 0; i < xs.rank && !c->rc; i++) {
        if (repeat[i] < 0 || repeat[i] > INT32_MAX)
            call_fail(c, ERR_INPUT, "repeats %lld times", (long long)repeat[i]);
        bool more = repeat[i] != 1 && xs.dim[i] != 1;
        if (cut.rank + 1 + more > LAYOUT_MAX_DIMS) {
            call_fail(c, ERR_UNSUPPORTED, "repeats %s in too many dimensions", shape_text(&xs).s);
            return;
        }
        if (more) {
            cut.dim[cut.rank++] = 1;
            wide.dim[wide.rank++] = repeat[i];
        }
        cut.dim[cut.rank++] = xs.dim[i];
        wide.dim[wide.rank++] = more ? xs.dim[i] : xs.dim[i] * repeat[i];
        out.dim[i] = xs.dim[i] * repeat[i];
    }
    x = call_expand(c, call_reshape(c, x, &cut), &wide);
    call_out(c, 0, call_reshape(c, x, &out));
}

/* ---- interpolation ---- */

enum { MAX_TAPS = 64, MAX_EXTENT = 1 << 24 };

enum coordinates {
    HALF_PIXEL,
    HALF_PIXEL_SYMMETRIC,
    PYTORCH_HALF_PIXEL,
    ALIGN_CORNERS,
    ASYMMETRIC,
    TF_HALF_PIXEL_FOR_NN,
    TF_CROP_AND_RESIZE,
};

enum nearest { ROUND_PREFER_FLOOR, ROUND_PREFER_CEIL, NEAREST_FLOOR, NEAREST_CEIL };

enum { NEAREST, LINEAR, CUBIC };

struct resize {
    int mode;
    enum coordinates coordinates;
    enum nearest nearest;
    bool antialias, exclude_outside;
    double cubic_a, extrapolation;
    /* Of one dimension. */
    double scale, start, end;
    int64_t in, out;
};

/* One of a list of names that an attribute may have; the first is the default. */
static int read_choice(struct call *c, const char *attr, const char *const *name, int nr)
{
    for (int i = 0; i < nr; i++)
        if (call_string_is(c, attr, name[i], i == 0))
            return i;
    call_fail(c, ERR_INPUT, "has an unknown value of attribute \"%s\"", attr);
    return 0;
}

/* Where position `i` of the output lies in the input. */
static double source_of(const struct resize *r, int64_t i)
{
    double x = (double)i, in = (double)r->in, out = (double)r->out;
    switch (r->coordinates) {
    case PYTORCH_HALF_PIXEL:
        return r->out > 1 ? (x + 0.5) / r->scale - 0.5 : 0;
    case ALIGN_CORNERS:
        return r->out > 1 ? x * (in - 1) / (out - 1) : 0;
    case ASYMMETRIC:
        return x / r->scale;
    case TF_HALF_PIXEL_FOR_NN:
        return (x + 0.5) / r->scale;
    case TF_CROP_AND_RESIZE:
        return r->out > 1 ? r->start * (in - 1) + x * (r->end - r->start) * (in - 1) / (out - 1)
                          : 0.5 * (r->start + r->end) * (in - 1);
    case HALF_PIXEL_SYMMETRIC:
        return in / 2 * (1 - out / (r->scale * in)) + (x + 0.5) / r->scale - 0.5;
    default:
        return (x + 0.5) / r->scale - 0.5;
    }
}

static double nearest_of(enum nearest how, double x)
{
    switch (how) {
    case ROUND_PREFER_FLOOR:
        return ceil(x - 0.5);
    case ROUND_PREFER_CEIL:
        return floor(x + 0.5);
    case NEAREST_FLOOR:
        return floor(x);
    default:
        return ceil(x);
    }
}

/* Weight of an element at distance `x` (Keys, 1981, for the cubic one). */
static double kernel_at(const struct resize *r, double x)
{
    double a = r->cubic_a;
    x = fabs(x);
    if (r->mode == LINEAR)
        return x < 1 ? 1 - x : 0;
    return x <= 1  ? ((a + 2) * x - (a + 3)) * x * x + 1
           : x < 2 ? ((a * x - 5 * a) * x + 8 * a) * x - 4 * a
                   : 0;
}

/* Half of the width of the window, in elements of the input. */
static int64_t reach_of(const struct resize *r, double *shrink)
{
    *shrink = r->antialias && r->scale < 1 ? r->scale : 1;
    double reach = ceil((r->mode == LINEAR ? 1 : 2) / *shrink);
    return r->mode == NEAREST ? 1 : reach < MAX_TAPS ? (int64_t)reach : MAX_TAPS;
}

/*
 * The taps of output position `i`: at[t] and weight[t] for `nr` of them. A window that leaves the
 * input reads its edge, or nothing where that is excluded.
 */
static void taps_of(const struct resize *r, int64_t i, int64_t nr, double *at, double *weight)
{
    double x = source_of(r, i), shrink, sum = 0, last = (double)(r->in - 1);
    int64_t reach = reach_of(r, &shrink);
    bool outside = r->coordinates == TF_CROP_AND_RESIZE && (x < 0 || x > last);
    for (int64_t t = 0; t < nr; t++) {
        double k = r->mode == NEAREST ? nearest_of(r->nearest, x)
                                      : floor(x) - (double)reach + 1 + (double)t;
        weight[t] = r->mode == NEAREST ? 1 : kernel_at(r, (k - x) * shrink);
        if (r->exclude_outside && (k < 0 || k > last))
            weight[t] = 0;
        at[t] = k < 0 ? 0 : k > last ? last : k;
        sum += weight[t];
    }
    for (int64_t t = 0; t < nr; t++)
        weight[t] = outside ? 0 : sum < 0 || sum > 0 ? weight[t] / sum : 0;
}

/* A sum of gathers, one a tap, each times its weight. */
static int resize_dimension(struct call *c, const struct resize *r, int x, int d)
{
    double shrink, at[2 * MAX_TAPS], weight[2 * MAX_TAPS];
    int64_t nr = r->mode == NEAREST ? 1 : 2 * reach_of(r, &shrink), n = r->out;
    if (c->rc || r->in < 1 || n < 1 || n > MAX_EXTENT || r->in > MAX_EXTENT || nr > MAX_TAPS)
        return call_fail(c, ERR_LIMIT, "resizes dimension %d from %lld to %lld", d,
                         (long long)r->in, (long long)n);
    if (!call_may_make(c, 2 * nr * n))
        return -1;
    int rank = call_value(c, x)->shape.rank, y = -1;
    struct shape along = {.rank = rank - d, .dim = {n, 1, 1, 1, 1, 1, 1, 1}};
    float *list = xmalloc((size_t)(2 * n) * sizeof *list), *factor = list + n;
    bool crop = r->coordinates == TF_CROP_AND_RESIZE, plain = r->mode == NEAREST && !crop;
    for (int64_t t = 0; t < nr; t++) {
        for (int64_t i = 0; i < n; i++) {
            taps_of(r, i, nr, at, weight);
            list[i] = (float)at[t];
            factor[i] = (float)weight[t];
        }
        int part = gather_list(c, x, d, list, n);
        if (!plain)
            part = call_element2(c, OP_MUL, part,
                                 graph_const_f32(c->g, "", along.rank, along.dim, factor, c->e));
        y = t ? call_element2(c, OP_ADD, y, part) : part;
    }
    for (int64_t i = 0; i < n && crop; i++) { /* what lies outside is one number */
        taps_of(r, i, nr, at, weight);
        double sum = 0;
        for (int64_t t = 0; t < nr; t++)
            sum += weight[t];
        factor[i] = sum > 0.5 ? 1 : 0;
    }
    if (crop)
        y = call_where(c, graph_const_f32(c->g, "", along.rank, along.dim, factor, c->e), y,
                       call_literal(c, r->extrapolation));
    free(list);
    return y;
}

/* Sizes that keep the shape of the image: the scales become one. */
static void keep_aspect(struct call *c, int nr, const int *axis, const struct shape *xs,
                        int64_t *size, double *scale)
{
    static const char *const policy[] = {"stretch", "not_larger", "not_smaller"};
    int how = read_choice(c, "keep_aspect_ratio_policy", policy, 3);
    if (how == 0 || c->rc)
        return;
    double one = how == 1 ? INFINITY : 0;
    for (int i = 0; i < nr; i++)
        one = how == 1 ? fmin(one, scale[i]) : fmax(one, scale[i]);
    for (int i = 0; i < nr; i++) {
        scale[i] = one;
        size[i] = (int64_t)floor(one * (double)xs->dim[axis[i]] + 0.5);
    }
}

/* New extents and scales of the axes, from the inputs `scales_in` and `sizes_in`. */
static void read_sizes(struct call *c, int scales_in, int sizes_in, int nr, const int *axis,
                       const struct shape *xs, int64_t *size, double *scale)
{
    int have = 0;
    if (call_in(c, sizes_in) >= 0) {
        const int64_t *v = call_const_ints(c, sizes_in, LAYOUT_MAX_DIMS, &have);
        for (int i = 0; i < have && have == nr && !c->rc; i++) {
            size[i] = v[i];
            scale[i] = (double)v[i] / (double)xs->dim[axis[i]];
        }
        if (have == nr)
            keep_aspect(c, nr, axis, xs, size, scale);
    } else if (call_in(c, scales_in) >= 0) {
        const float *v = call_const_floats(c, scales_in, LAYOUT_MAX_DIMS, &have);
        for (int i = 0; i < have && have == nr && !c->rc; i++) {
            double product = floor((double)xs->dim[axis[i]] * (double)v[i]);
            scale[i] = (double)v[i];
            size[i] = product >= 1 && product < 1e9 ? (int64_t)product : -1;
        }
    }
    for (int i = 0; i < nr && !c->rc; i++)
        if (have != nr || size[i] < 1 || size[i] > MAX_EXTENT || xs->dim[axis[i]] < 1)
            call_fail(c, ERR_INPUT, "has %d scales or sizes that do not fit %s", have,
                      shape_text(xs).s);
}

static void read_resize(struct call *c, struct resize *r)
{
    static const char *const modes[] = {"nearest", "linear", "cubic"};
    static const char *const where[] = {
        "half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners",
        "asymmetric", "tf_half_pixel_for_nn", "tf_crop_and_resize"};
    static const char *const round[] = {"round_prefer_floor", "round_prefer_ceil", "floor", "ceil"};
    r->mode = read_choice(c, "mode", modes, 3);
    r->coordinates = (enum coordinates)read_choice(c, "coordinate_transformation_mode", where, 7);
    r->nearest = (enum nearest)read_choice(c, "nearest_mode", round, 4);
    r->antialias = call_int(c, "antialias", 0) != 0;
    r->exclude_outside = call_int(c, "exclude_outside", 0) != 0;
    r->cubic_a = call_float(c, "cubic_coeff_a", -0.75);
    r->extrapolation = call_float(c, "extrapolation_value", 0);
    if (c->g->opset < 11) {
        r->coordinates = ASYMMETRIC;
        r->nearest = NEAREST_FLOOR;
    }
}

/* The axes of the call, all where there is no list; their number. */
static int read_axis_list(struct call *c, int rank, int *axis)
{
    int64_t list[LAYOUT_MAX_DIMS];
    int nr = call_ints(c, "axes", LAYOUT_MAX_DIMS, list);
    for (int i = 0; i < (nr < 0 ? rank : nr); i++)
        axis[i] = nr < 0 ? i : call_axis(c, list[i], rank);
    return nr < 0 ? rank : nr;
}

void op_resize(struct call *c)
{
    int x = call_tensor(c, 0), axis[LAYOUT_MAX_DIMS], nr_roi = 0;
    const struct shape xs = call_value(c, x)->shape;
    bool old = c->g->opset < 11;
    struct resize r = {0};
    int64_t size[LAYOUT_MAX_DIMS] = {0};
    double scale[LAYOUT_MAX_DIMS] = {0};
    const float *roi = NULL;
    read_resize(c, &r);
    int nr = read_axis_list(c, xs.rank, axis);
    read_sizes(c, old ? 1 : 2, old ? -1 : 3, nr, axis, &xs, size, scale);
    if (r.coordinates == TF_CROP_AND_RESIZE)
        roi = call_const_floats(c, 1, 2 * LAYOUT_MAX_DIMS, &nr_roi);
    if (!c->rc && roi && nr_roi != 2 * nr)
        call_fail(c, ERR_INPUT, "has a region of %d numbers for %d axes", nr_roi, nr);
    for (int i = 0; i < nr && !c->rc; i++) {
        r.in = xs.dim[axis[i]];
        r.out = size[i];
        r.scale = scale[i];
        r.start = roi ? (double)roi[i] : 0;
        r.end = roi ? (double)roi[i + nr] : 1;
        bool whole = r.start <= 0 && r.start >= 0 && r.end >= 1 && r.end <= 1;
        if (r.in != r.out || r.scale < 1 || r.scale > 1 || !whole)
            x = resize_dimension(c, &r, x, axis[i]);
    }
    call_out(c, 0, x);
}

void op_upsample(struct call *c)
{
    static const char *const modes[] = {"nearest", "linear"};
    int x = call_tensor(c, 0), nr = 0;
    const struct shape xs = call_value(c, x)->shape;
    struct resize r = {.coordinates = ASYMMETRIC, .nearest = NEAREST_FLOOR};
    float attr[LAYOUT_MAX_DIMS];
    const float *scale = attr;
    r.mode =
        call_string_is(c, "mode", "bilinear", false) ? LINEAR : read_choice(c, "mode", modes, 2);
    nr = call_floats(c, "scales", LAYOUT_MAX_DIMS, attr);
    if (nr < 0)
        scale = call_const_floats(c, 1, LAYOUT_MAX_DIMS, &nr);
    if (!c->rc && nr != xs.rank)
        call_fail(c, ERR_INPUT, "has %d scales for %d dimensions", nr, xs.rank);
    for (int d = 0; d < xs.rank && !c->rc; d++) {
        r.in = xs.dim[d];
        r.scale = (double)scale[d];
        double product = floor((double)r.in * r.scale);
        r.out = product >= 1 && product < MAX_EXTENT ? (int64_t)product : -1;
        if (r.scale < 1 || r.scale > 1)
            x = resize_dimension(c, &r, x, d);
    }
    call_out(c, 0, x);
}
