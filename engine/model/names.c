/* SPDX-License-Identifier: Apache-2.0 */
/* What people call a kernel, and how much it computes. */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "engine/base/strbuf.h"
#include "engine/model/kernel.h"

static void dims(struct strbuf *sb, const struct shape *s, int from)
{
    for (int i = from; i < s->rank; i++)
        strbuf_addf(sb, "%s%lld", i == from ? "_" : "x", (long long)s->dim[i]);
}

/* Channels and space; the batch only where there is one. */
static void feature_dims(struct strbuf *sb, const struct shape *s)
{
    if (s->rank >= 3 && s->dim[0] != 1)
        strbuf_addf(sb, "_n%lld", (long long)s->dim[0]);
    dims(sb, s, s->rank >= 3);
}

static void same_or_all(struct strbuf *sb, const char *prefix, const int64_t *v, int nr)
{
    bool same = true;
    for (int i = 1; i < nr; i++)
        same = same && v[i] == v[0];
    for (int i = 0; i < (same ? 1 : nr); i++)
        strbuf_addf(sb, "%s%lld", i ? "x" : prefix, (long long)v[i]);
}

static void window(struct strbuf *sb, const struct op_window *w)
{
    for (int i = 0; i < w->nr; i++)
        strbuf_addf(sb, "%s%lld", i ? "x" : "_", (long long)w->size[i]);
    same_or_all(sb, "s", w->stride, w->nr);
    for (int i = 0; i < w->nr; i++)
        if (w->dilation[i] != 1) {
            same_or_all(sb, "d", w->dilation, w->nr);
            break;
        }
}

static void conv_name(struct strbuf *sb, const struct op *op, const struct shape *x,
                      const struct shape *w)
{
    bool depthwise = op->groups > 1 && op->groups == x->dim[1];
    if (depthwise)
        strbuf_adds(sb, "depthwise");
    else
        strbuf_addf(sb, "conv%dd", op->window.nr);
    feature_dims(sb, x);
    if (!depthwise || w->dim[0] != x->dim[1])
        strbuf_addf(sb, "_k%lld", (long long)w->dim[0]);
    window(sb, &op->window);
    if (!depthwise && op->groups > 1)
        strbuf_addf(sb, "_g%lld", (long long)op->groups);
}

static void matmul_name(struct strbuf *sb, const struct kernel *k)
{
    const struct kernel_op *o = &k->op[0];
    const struct shape *a = &k->slot[o->in[0]].shape, *y = &k->slot[o->out].shape;
    strbuf_adds(sb, k->slot[o->in[1]].role == SLOT_CONST ? "dense" : "matmul");
    dims(sb, y, 0);
    strbuf_addf(sb, "x%lld", (long long)a->dim[a->rank - (o->op.trans_a ? 2 : 1)]);
}

static const char *const reduce_text[] = {"sum", "mean", "max", "min", "prod"};

static void first_name(struct strbuf *sb, const struct kernel *k)
{
    const struct kernel_op *o = &k->op[0];
    const struct slot *x = &k->slot[o->in[0]], *y = &k->slot[o->out];
    switch (o->op.kind) {
    case OP_CONV:
        conv_name(sb, &o->op, &x->shape, &k->slot[o->in[1]].shape);
        break;
    case OP_MATMUL:
        matmul_name(sb, k);
        break;
    case OP_POOL:
        strbuf_adds(sb, o->op.max ? "maxpool" : "avgpool");
        feature_dims(sb, &x->shape);
        window(sb, &o->op.window);
        break;
    case OP_REDUCE:
        strbuf_adds(sb, reduce_text[o->op.reduce]);
        feature_dims(sb, &x->shape);
        break;
    case OP_RELAYOUT:
        strbuf_adds(sb, x->block > 1 ? "unpack" : "pack");
        feature_dims(sb, &x->shape);
        break;
    default:
        strbuf_adds(sb, o->op.kind == OP_SOFTMAX && o->op.log ? "logsoftmax" : op_text(o->op.kind));
        if (!op_is_element(o->op.kind))
            feature_dims(sb, &y->shape);
    }
}

/* A constant added behind a product is a bias, which nearly all have: not worth a word. */
static bool is_bias(const struct kernel *k, int i)
{
    const struct kernel_op *o = &k->op[i];
    bool product = k->op[0].op.kind == OP_CONV || k->op[0].op.kind == OP_MATMUL;
    return i == 1 && product && o->op.kind == OP_ADD &&
           (k->slot[o->in[0]].role == SLOT_CONST || k->slot[o->in[1]].role == SLOT_CONST);
}

void kernel_name(const struct kernel *k, char *out, size_t size)
{
    struct strbuf sb = {0};
    first_name(&sb, k);
    for (int i = 1; i < k->nr_ops; i++)
        if (!is_bias(k, i))
            strbuf_addf(&sb, "_%s", op_text(k->op[i].op.kind));
    if (op_is_element(k->op[0].op.kind))
        feature_dims(&sb, &k->slot[k->op[k->nr_ops - 1].out].shape);
    snprintf(out, size, "%s", strbuf_text(&sb));
    strbuf_release(&sb);
}

static double product(const int64_t *v, int nr)
{
    double n = 1;
    for (int i = 0; i < nr; i++)
        n *= (double)v[i];
    return n;
}

/*
 * Convolutions and matrix products count their multiply-adds alone, the padded taps included, as
 * everybody does, so that rates can be compared; anything else counts one an operation.
 */
double kernel_flops(const struct kernel *k)
{
    const struct kernel_op *o = &k->op[0];
    const struct shape *x = &k->slot[o->in[0]].shape, *y = &k->slot[o->out].shape;
    double out = (double)shape_size(y), in = (double)shape_size(x), rest = out * (k->nr_ops - 1);
    switch (o->op.kind) {
    case OP_CONV: {
        const struct shape *w = &k->slot[o->in[1]].shape;
        return 2 * out * product(w->dim + 1, w->rank - 1);
    }
    case OP_MATMUL:
        return 2 * out * (double)x->dim[x->rank - (o->op.trans_a ? 2 : 1)];
    case OP_POOL:
        return out * product(o->op.window.size, o->op.window.nr) + rest;
    case OP_REDUCE:
        return in + rest;
    case OP_SOFTMAX: /* maximum, difference, exponential, sum, quotient */
        return 5 * in + rest;
    case OP_LRN: /* squares and sum over the window; scale, shift, power, product */
        return out * (2 * (double)o->op.size + 4) + rest;
    default:
        return op_is_element(o->op.kind) ? out + rest : rest;
    }
}
