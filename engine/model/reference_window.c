/* SPDX-License-Identifier: Apache-2.0 */
/* Convolution, matrix product and pooling of the reference: where its time goes. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/arena.h"
#include "engine/model/reference.h"

/* Output channels computed together: each element of the input is then converted once for four. */
enum { TOGETHER = 4 };

/* Three spatial dimensions, missing ones in front with extent 1. */
struct space {
    int64_t in[3], out[3], size[3], stride[3], dilation[3], pad[3];
};

static struct space space_of(const struct op_window *w, const struct shape *xs,
                             const struct shape *ys)
{
    struct space s;
    for (int i = 0; i < 3; i++) {
        int k = i - (3 - w->nr);
        bool have = k >= 0;
        s.in[i] = have ? xs->dim[2 + k] : 1;
        s.out[i] = have ? ys->dim[2 + k] : 1;
        s.size[i] = have ? w->size[k] : 1;
        s.stride[i] = have ? w->stride[k] : 1;
        s.dilation[i] = have ? w->dilation[k] : 1;
        s.pad[i] = have ? w->pad[k] : 0;
    }
    return s;
}

/* A window of one element over all of the input is one long row. */
static void flatten_pointwise(struct space *s)
{
    for (int i = 0; i < 3; i++)
        if (s->size[i] != 1 || s->stride[i] != 1 || s->pad[i] != 0 || s->in[i] != s->out[i])
            return;
    s->in[2] = s->out[2] = s->in[0] * s->in[1] * s->in[2];
    s->in[0] = s->in[1] = s->out[0] = s->out[1] = 1;
}

/* The x for which x * stride + offset is in [0, in): [*first, *end). */
static void valid_range(int64_t offset, int64_t stride, int64_t in, int64_t out, int64_t *first,
                        int64_t *end)
{
    *first = offset < 0 ? (-offset + stride - 1) / stride : 0;
    *end = in > offset ? (in - offset + stride - 1) / stride : 0;
    *end = *end > out ? out : *end;
}

/* acc[k][x] += w[k] * in[x * stride], for `nr` channels k. */
static void add_row(double *restrict acc, int64_t row, int64_t nr_x, const double *w, int nr,
                    const float *restrict in, int64_t stride)
{
    if (nr == TOGETHER && stride == 1) {
        double w0 = w[0], w1 = w[1], w2 = w[2], w3 = w[3];
        for (int64_t x = 0; x < nr_x; x++) {
            double v = (double)in[x];
            acc[x] += w0 * v;
            acc[row + x] += w1 * v;
            acc[2 * row + x] += w2 * v;
            acc[3 * row + x] += w3 * v;
        }
        return;
    }
    for (int k = 0; k < nr; k++)
        for (int64_t x = 0; x < nr_x; x++)
            acc[k * row + x] += w[k] * (double)in[x * stride];
}

/* One output row (z, y) of `nr` channels, from the input channels of one group. */
static void conv_row(const struct space *s, int64_t z, int64_t y, const float *x, int64_t channels,
                     const float *w, int64_t w_step, int nr, double *acc)
{
    int64_t row = s->out[2], area = s->size[0] * s->size[1] * s->size[2];
    for (int64_t c = 0; c < channels; c++)
        for (int64_t i = 0; i < area; i++) {
            int64_t q = i / (s->size[1] * s->size[2]), r = i / s->size[2] % s->size[1];
            int64_t iz = z * s->stride[0] + q * s->dilation[0] - s->pad[0];
            int64_t iy = y * s->stride[1] + r * s->dilation[1] - s->pad[1];
            if (iz < 0 || iz >= s->in[0] || iy < 0 || iy >= s->in[1])
                continue;
            int64_t offset = i % s->size[2] * s->dilation[2] - s->pad[2], first, end;
            valid_range(offset, s->stride[2], s->in[2], row, &first, &end);
            double weight[TOGETHER];
            for (int k = 0; k < nr; k++)
                weight[k] = (double)w[k * w_step + c * area + i];
            if (first < end)
                add_row(acc + first, row, end - first, weight, nr,
                        x + ((c * s->in[0] + iz) * s->in[1] + iy) * s->in[2] +
                            first * s->stride[2] + offset,
                        s->stride[2]);
        }
}

void reference_conv(const struct op *op, const struct shape *xs, const float *x,
                    const struct shape *ws, const float *w, const struct shape *ys, float *y)
{
    struct space s = space_of(&op->window, xs, ys);
    flatten_pointwise(&s);
    int64_t channels = ws->dim[1], per_group = ws->dim[0] / op->groups, row = s.out[2];
    int64_t in_size = s.in[0] * s.in[1] * s.in[2], out_size = s.out[0] * s.out[1] * row;
    int64_t w_step = channels * s.size[0] * s.size[1] * s.size[2];
    double *acc = xmalloc((size_t)(TOGETHER * row) * sizeof *acc);
    for (int64_t n = 0; n < xs->dim[0]; n++)
        for (int64_t g = 0; g < op->groups; g++)
            for (int64_t k = 0; k < per_group; k += TOGETHER) {
                int nr = per_group - k < TOGETHER ? (int)(per_group - k) : TOGETHER;
                int64_t out = n * ws->dim[0] + g * per_group + k;
                const float *from = x + (n * xs->dim[1] + g * channels) * in_size;
                for (int64_t i = 0; i < s.out[0] * s.out[1]; i++) {
                    memset(acc, 0, (size_t)(TOGETHER * row) * sizeof *acc);
                    conv_row(&s, i / s.out[1], i % s.out[1], from, channels,
                             w + (g * per_group + k) * w_step, w_step, nr, acc);
                    for (int j = 0; j < nr; j++)
                        for (int64_t v = 0; v < row; v++)
                            y[(out + j) * out_size + i * row + v] = (float)acc[j * row + v];
                }
            }
    free(acc);
}

/* ---- matrix product ---- */

/* Sum of products in eight partial sums, which the compiler can keep in vectors. */
static double dot(const float *restrict a, const float *restrict b, int64_t n)
{
    double part[8] = {0};
    int64_t i = 0;
    for (; i + 8 <= n; i += 8)
        for (int k = 0; k < 8; k++)
            part[k] += (double)a[i + k] * (double)b[i + k];
    for (; i < n; i++)
        part[0] += (double)a[i] * (double)b[i];
    return ((part[0] + part[1]) + (part[2] + part[3])) +
           ((part[4] + part[5]) + (part[6] + part[7]));
}

static void product(const struct op *op, const float *a, const float *b, int64_t m, int64_t n,
                    int64_t k, float *y, double *acc, float *row)
{
    for (int64_t i = 0; i < m; i++) {
        for (int64_t j = 0; j < k; j++)
            row[j] = op->trans_a ? a[j * m + i] : a[i * k + j];
        if (op->trans_b) {
            for (int64_t j = 0; j < n; j++)
                y[i * n + j] = (float)dot(row, b + j * k, k);
            continue;
        }
        memset(acc, 0, (size_t)n * sizeof *acc);
        for (int64_t j = 0; j < k; j++)
            add_row(acc, n, n, &(double){(double)row[j]}, 1, b + j * n, 1);
        for (int64_t j = 0; j < n; j++)
            y[i * n + j] = (float)acc[j];
    }
}

/* Offset, in matrices, of operand `s` for matrix number `at` of the batch of `out`. */
static int64_t batch_offset(const struct shape *s, const struct shape *out, int64_t at)
{
    int64_t offset = 0, step = 1;
    for (int i = 3; i <= out->rank; i++) {
        int64_t k = at % out->dim[out->rank - i];
        at /= out->dim[out->rank - i];
        if (i <= s->rank) {
            offset += s->dim[s->rank - i] == 1 ? 0 : k * step;
            step *= s->dim[s->rank - i];
        }
    }
    return offset;
}

void reference_matmul(const struct op *op, const struct shape *as, const float *a,
                      const struct shape *bs, const float *b, const struct shape *ys, float *y)
{
    int64_t m = ys->dim[ys->rank - 2], n = ys->dim[ys->rank - 1];
    int64_t k = as->dim[as->rank - (op->trans_a ? 2 : 1)], batch = 1;
    for (int i = 0; i < ys->rank - 2; i++)
        batch *= ys->dim[i];
    double *acc = xmalloc((size_t)n * sizeof *acc);
    float *row = xmalloc((size_t)k * sizeof *row);
    for (int64_t i = 0; i < batch; i++)
        product(op, a + batch_offset(as, ys, i) * m * k, b + batch_offset(bs, ys, i) * k * n, m, n,
                k, y + i * m * n, acc, row);
    free(row);
    free(acc);
}

/* ---- pooling ---- */

/* One dimension of a window: first and last tap inside the input, and how many taps count. */
static int64_t taps(const struct op *op, const struct space *s, const int64_t *pad_end, int i,
                    int64_t at, int64_t *first, int64_t *end)
{
    int64_t start = at * s->stride[i] - s->pad[i], counted = 0;
    *first = s->size[i];
    *end = 0;
    for (int64_t r = 0; r < s->size[i]; r++) {
        int64_t k = start + r * s->dilation[i];
        bool inside = k >= 0 && k < s->in[i];
        counted += inside || (op->include_pad && k < s->in[i] + pad_end[i]);
        if (inside) {
            *first = r < *first ? r : *first;
            *end = r + 1;
        }
    }
    return counted;
}

static float pool_one(const struct op *op, const struct space *s, const int64_t *pad_end,
                      const float *x, const int64_t *at)
{
    int64_t first[3], end[3], count = 1;
    for (int i = 0; i < 3; i++)
        count *= taps(op, s, pad_end, i, at[i], &first[i], &end[i]);
    double v = op->max ? -INFINITY : 0;
    for (int64_t q = first[0]; q < end[0]; q++)
        for (int64_t r = first[1]; r < end[1]; r++)
            for (int64_t t = first[2]; t < end[2]; t++) {
                int64_t iz = at[0] * s->stride[0] + q * s->dilation[0] - s->pad[0];
                int64_t iy = at[1] * s->stride[1] + r * s->dilation[1] - s->pad[1];
                int64_t ix = at[2] * s->stride[2] + t * s->dilation[2] - s->pad[2];
                double e = (double)x[(iz * s->in[1] + iy) * s->in[2] + ix];
                v = op->max ? (e > v ? e : v) : v + e;
            }
    return (float)(op->max ? v : v / (double)count);
}

void reference_pool(const struct op *op, const struct shape *xs, const float *x,
                    const struct shape *ys, float *y)
{
    struct space s = space_of(&op->window, xs, ys);
    int64_t pad_end[3] = {0};
    for (int i = 0; i < op->window.nr; i++)
        pad_end[i + 3 - op->window.nr] = op->window.pad_end[i];
    int64_t planes = xs->dim[0] * xs->dim[1], size = s.in[0] * s.in[1] * s.in[2];
    for (int64_t p = 0; p < planes; p++) {
        int64_t at[3];
        for (at[0] = 0; at[0] < s.out[0]; at[0]++)
            for (at[1] = 0; at[1] < s.out[1]; at[1]++)
                for (at[2] = 0; at[2] < s.out[2]; at[2]++)
                    *y++ = pool_one(op, &s, pad_end, x + p * size, at);
    }
}
