/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/model/reference.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- operators on elements ---- */

static double element1(const struct op *op, double x)
{
    double a = (double)op->a, b = (double)op->b;
    switch (op->kind) {
    case OP_RELU:
        return x > 0 ? x : 0;
    case OP_LEAKY:
        return x < 0 ? a * x : x;
    case OP_CLIP:
        return x < a ? fmin(a, b) : x > b ? b : x;
    case OP_SIGMOID:
        return 1 / (1 + exp(-x));
    case OP_HARD_SIGMOID:
        return fmax(0, fmin(1, a * x + b));
    case OP_HARD_SWISH:
        return x * fmax(0, fmin(1, x / 6 + 0.5));
    case OP_TANH:
        return tanh(x);
    case OP_ERF:
        return erf(x);
    case OP_GELU:
        return 0.5 * x * (1 + erf(x / sqrt(2)));
    case OP_GELU_TANH:
        return 0.5 * x * (1 + tanh(sqrt(2 / 3.14159265358979323846) * (x + 0.044715 * x * x * x)));
    case OP_ELU:
        return x < 0 ? a * expm1(x) : x;
    case OP_SELU:
        return b * (x <= 0 ? a * expm1(x) : x);
    case OP_SOFTPLUS:
        return x > 30 ? x : log1p(exp(x));
    case OP_SOFTSIGN:
        return x / (1 + fabs(x));
    case OP_SQRT:
        return sqrt(x);
    case OP_EXP:
        return exp(x);
    case OP_LOG:
        return log(x);
    case OP_NEG:
        return -x;
    case OP_ABS:
        return fabs(x);
    case OP_RECIPROCAL:
        return 1 / x;
    case OP_FLOOR:
        return floor(x);
    case OP_CEIL:
        return ceil(x);
    case OP_ROUND:
        return nearbyint(x);
    case OP_TRUNC:
        return trunc(x);
    case OP_SIGN:
        return x > 0 ? 1 : x < 0 ? -1 : 0;
    case OP_SIN:
        return sin(x);
    case OP_COS:
        return cos(x);
    case OP_NOT:
        return x < 0 || x > 0 ? 0 : 1;
    default:
        assert(0);
        return 0;
    }
}

static double element2(enum op_kind kind, double x, double y)
{
    switch (kind) {
    case OP_ADD:
        return x + y;
    case OP_SUB:
        return x - y;
    case OP_MUL:
        return x * y;
    case OP_DIV:
        return x / y;
    case OP_POW:
        return pow(x, y);
    case OP_MAX:
        return fmax(x, y);
    case OP_MIN:
        return fmin(x, y);
    case OP_PRELU:
        return x < 0 ? x * y : x;
    case OP_EQUAL:
        return x <= y && x >= y;
    case OP_LESS:
        return x < y;
    case OP_LESS_EQUAL:
        return x <= y;
    case OP_MOD:
        return x - y * floor(x / y);
    case OP_FMOD:
        return fmod(x, y);
    default:
        assert(0);
        return 0;
    }
}

/* Elements of `in` that a step in each dimension of `out` moves over; 0 where it is broadcast. */
static void broadcast_steps(const struct shape *in, const struct shape *out, int64_t *step)
{
    int64_t size = 1;
    for (int i = 1; i <= out->rank; i++) {
        int64_t extent = i <= in->rank ? in->dim[in->rank - i] : 1;
        step[out->rank - i] = extent == 1 ? 0 : size;
        size *= extent;
    }
}

/* Next index; false after the last. `at` and the offsets move along, one a list of steps. */
struct odometer {
    const struct shape *shape;
    int64_t at[LAYOUT_MAX_DIMS];
};

static bool advance(struct odometer *o, int nr, int64_t *const *step, int64_t *offset)
{
    for (int d = o->shape->rank; d-- > 0;) {
        for (int k = 0; k < nr; k++)
            offset[k] += step[k][d];
        if (++o->at[d] < o->shape->dim[d])
            return true;
        for (int k = 0; k < nr; k++)
            offset[k] -= step[k][d] * o->shape->dim[d];
        o->at[d] = 0;
    }
    return false;
}

static void run_element2(const struct op *op, const struct shape *const *shape,
                         const float *const *in, const struct shape *ys, float *y)
{
    int64_t step[2][LAYOUT_MAX_DIMS], offset[2] = {0, 0};
    broadcast_steps(shape[0], ys, step[0]);
    broadcast_steps(shape[1], ys, step[1]);
    struct odometer o = {.shape = ys};
    int64_t *const steps[] = {step[0], step[1]};
    do
        *y++ = (float)element2(op->kind, (double)in[0][offset[0]], (double)in[1][offset[1]]);
    while (advance(&o, 2, steps, offset));
}

static void run_where(const struct shape *const *shape, const float *const *in,
                      const struct shape *ys, float *y)
{
    int64_t step[3][LAYOUT_MAX_DIMS], offset[3] = {0};
    int64_t *const steps[] = {step[0], step[1], step[2]};
    for (int i = 0; i < 3; i++)
        broadcast_steps(shape[i], ys, step[i]);
    struct odometer o = {.shape = ys};
    do {
        float c = in[0][offset[0]];
        *y++ = c < 0 || c > 0 ? in[1][offset[1]] : in[2][offset[2]];
    } while (advance(&o, 3, steps, offset));
}

/* ---- movements ---- */

/* Copies out[index] from in[offset + sum of index * step]. */
static void gather(const float *in, int64_t offset, int64_t *step, const struct shape *ys, float *y)
{
    struct odometer o = {.shape = ys};
    do
        *y++ = in[offset];
    while (advance(&o, 1, &step, &offset));
}

static void strides(const struct shape *s, int64_t *stride)
{
    int64_t size = 1;
    for (int i = s->rank; i-- > 0; size *= s->dim[i])
        stride[i] = size;
}

static void run_transpose(const struct op *op, const struct shape *xs, const float *x,
                          const struct shape *ys, float *y)
{
    int64_t stride[LAYOUT_MAX_DIMS], step[LAYOUT_MAX_DIMS];
    strides(xs, stride);
    for (int i = 0; i < ys->rank; i++)
        step[i] = stride[op->at[i]];
    gather(x, 0, step, ys, y);
}

static void run_slice(const struct op *op, const struct shape *xs, const float *x,
                      const struct shape *ys, float *y)
{
    int64_t stride[LAYOUT_MAX_DIMS], step[LAYOUT_MAX_DIMS], offset = 0;
    strides(xs, stride);
    for (int i = 0; i < ys->rank; i++) {
        step[i] = stride[i] * op->step[i];
        offset += stride[i] * op->at[i];
    }
    gather(x, offset, step, ys, y);
}

static void run_pad(const struct op *op, const struct shape *xs, const float *x,
                    const struct shape *ys, float *y)
{
    int64_t stride[LAYOUT_MAX_DIMS];
    strides(xs, stride);
    struct odometer o = {.shape = ys};
    do {
        int64_t from = 0;
        bool inside = true;
        for (int i = 0; i < ys->rank; i++) {
            int64_t k = o.at[i] - op->at[i];
            inside &= k >= 0 && k < xs->dim[i];
            from += k * stride[i];
        }
        *y++ = inside ? x[from] : op->a;
    } while (advance(&o, 0, NULL, NULL));
}

/* Indices beyond the end are cut to it. */
static int64_t picked(const struct op *op, float at, int64_t extent)
{
    double k = trunc((double)at) + (op->wraps && at < 0 ? (double)extent : 0);
    return !(k > 0) ? 0 : k > (double)(extent - 1) ? extent - 1 : (int64_t)k;
}

static void run_gather(const struct op *op, const struct shape *const *shape,
                       const float *const *in, const struct shape *ys, float *y)
{
    const struct shape *xs = shape[0], *is = shape[1];
    int64_t stride[LAYOUT_MAX_DIMS], list[LAYOUT_MAX_DIMS];
    strides(xs, stride);
    strides(is, list);
    struct odometer o = {.shape = ys};
    do {
        int64_t from = 0, index = 0;
        for (int i = 0; i < ys->rank; i++) {
            bool in_list = i >= op->axis && i < op->axis + is->rank;
            if (op->each || in_list)
                index += o.at[i] * list[op->each ? i : i - op->axis];
            if (op->each ? i != op->axis : !in_list)
                from += o.at[i] * stride[op->each || i < op->axis ? i : i - is->rank + 1];
        }
        from += picked(op, in[1][index], xs->dim[op->axis]) * stride[op->axis];
        *y++ = in[0][from];
    } while (advance(&o, 0, NULL, NULL));
}

static void run_concat(const struct op *op, int nr_in, const struct shape *const *shape,
                       const float *const *in, const struct shape *ys, float *y)
{
    int64_t outer = 1, inner = 1;
    for (int i = 0; i < ys->rank; i++) {
        outer *= i < op->axis ? ys->dim[i] : 1;
        inner *= i > op->axis ? ys->dim[i] : 1;
    }
    for (int64_t o = 0; o < outer; o++)
        for (int k = 0; k < nr_in; k++) {
            int64_t n = shape[k]->dim[op->axis] * inner;
            memcpy(y, in[k] + o * n, (size_t)n * sizeof *y);
            y += n;
        }
}

/* ---- over sets of axes ---- */

/* Splits the dimensions of `s` in those of `axes` and the others, as shapes with steps. */
struct cut {
    struct shape inside, outside;
    int64_t in_step[LAYOUT_MAX_DIMS], out_step[LAYOUT_MAX_DIMS];
};

static struct cut cut_axes(const struct shape *s, unsigned axes)
{
    struct cut c = {0};
    int64_t stride[LAYOUT_MAX_DIMS];
    strides(s, stride);
    for (int i = 0; i < s->rank; i++) {
        if (axes >> i & 1) {
            c.in_step[c.inside.rank] = stride[i];
            c.inside.dim[c.inside.rank++] = s->dim[i];
        } else {
            c.out_step[c.outside.rank] = stride[i];
            c.outside.dim[c.outside.rank++] = s->dim[i];
        }
    }
    return c;
}

static double reduce_one(enum op_reduce how, const float *x, struct cut *c)
{
    static const double neutral[] = {0, 0, -INFINITY, INFINITY, 1};
    struct odometer o = {.shape = &c->inside};
    double v = neutral[how];
    int64_t offset = 0, n = 0;
    int64_t *const steps[] = {c->in_step};
    do {
        double e = (double)x[offset];
        v = how == REDUCE_MAX    ? fmax(v, e)
            : how == REDUCE_MIN  ? fmin(v, e)
            : how == REDUCE_PROD ? v * e
                                 : v + e;
        n++;
    } while (advance(&o, 1, steps, &offset));
    return how == REDUCE_MEAN ? v / (double)n : v;
}

static void run_reduce(const struct op *op, const struct shape *xs, const float *x, float *y)
{
    struct cut c = cut_axes(xs, op->axes);
    struct odometer o = {.shape = &c.outside};
    int64_t offset = 0;
    int64_t *const steps[] = {c.out_step};
    do
        *y++ = (float)reduce_one(op->reduce, x + offset, &c);
    while (advance(&o, 1, steps, &offset));
}

static void softmax_one(bool log_of, const float *x, struct cut *c, float *y)
{
    double max = reduce_one(REDUCE_MAX, x, c), sum = 0;
    int64_t *const steps[] = {c->in_step};
    struct odometer o = {.shape = &c->inside};
    int64_t offset = 0;
    do
        sum += exp((double)x[offset] - max);
    while (advance(&o, 1, steps, &offset));
    offset = 0;
    o = (struct odometer){.shape = &c->inside};
    do {
        double d = (double)x[offset] - max;
        y[offset] = (float)(log_of ? d - log(sum) : exp(d) / sum);
    } while (advance(&o, 1, steps, &offset));
}

static void run_softmax(const struct op *op, const struct shape *xs, const float *x, float *y)
{
    struct cut c = cut_axes(xs, op->axes);
    struct odometer o = {.shape = &c.outside};
    int64_t offset = 0;
    int64_t *const steps[] = {c.out_step};
    do
        softmax_one(op->log, x + offset, &c, y + offset);
    while (advance(&o, 1, steps, &offset));
}

static void run_lrn(const struct op *op, const struct shape *xs, const float *x, float *y)
{
    int64_t channels = xs->dim[1], area = 1, before = (op->size - 1) / 2;
    for (int i = 2; i < xs->rank; i++)
        area *= xs->dim[i];
    for (int64_t n = 0; n < xs->dim[0]; n++, x += channels * area, y += channels * area)
        for (int64_t c = 0; c < channels; c++)
            for (int64_t i = 0; i < area; i++) {
                double sum = 0;
                int64_t first = c - before < 0 ? 0 : c - before, end = c - before + op->size;
                for (int64_t k = first; k < end && k < channels; k++)
                    sum += (double)x[k * area + i] * (double)x[k * area + i];
                double t = (double)op->c + (double)op->a / (double)op->size * sum;
                y[c * area + i] = (float)((double)x[c * area + i] / pow(t, (double)op->b));
            }
}

void reference_op(const struct op *op, int nr_in, const struct shape *const *shape,
                  const float *const *in, const struct shape *out_shape, float *out)
{
    int64_t size = shape_size(out_shape);
    switch (op->kind) {
    case OP_CONV:
        reference_conv(op, shape[0], in[0], shape[1], in[1], out_shape, out);
        break;
    case OP_MATMUL:
        reference_matmul(op, shape[0], in[0], shape[1], in[1], out_shape, out);
        break;
    case OP_POOL:
        reference_pool(op, shape[0], in[0], out_shape, out);
        break;
    case OP_REDUCE:
        run_reduce(op, shape[0], in[0], out);
        break;
    case OP_SOFTMAX:
        run_softmax(op, shape[0], in[0], out);
        break;
    case OP_LRN:
        run_lrn(op, shape[0], in[0], out);
        break;
    case OP_CONCAT:
        run_concat(op, nr_in, shape, in, out_shape, out);
        break;
    case OP_TRANSPOSE:
        run_transpose(op, shape[0], in[0], out_shape, out);
        break;
    case OP_GATHER:
        run_gather(op, shape, in, out_shape, out);
        break;
    case OP_PAD:
        run_pad(op, shape[0], in[0], out_shape, out);
        break;
    case OP_SLICE:
        run_slice(op, shape[0], in[0], out_shape, out);
        break;
    case OP_RESHAPE:
    case OP_RELAYOUT:
        memcpy(out, in[0], (size_t)size * sizeof *out);
        break;
    default:
        if (op->kind == OP_WHERE) {
            run_where(shape, in, out_shape, out);
        } else if (op_operands(op->kind) == 2) {
            run_element2(op, shape, in, out_shape, out);
        } else {
            for (int64_t i = 0; i < size; i++)
                out[i] = (float)element1(op, (double)in[0][i]);
        }
    }
}
