/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Scales and shifts by constants, as batch normalisation and what stands for it leave behind.
 *
 * Each node that multiplies by or adds a constant, of one number or one number a channel, is merged
 * into what precedes it, if nobody else sees that:
 *
 *     x / c               -> x * (1/c)                   x - c        -> x + (-c)
 *     (x * a) * c         -> x * (a c)                   (x + a) + c  -> x + (a + c)
 *     (x + a) * c         -> (x * c) + (a c)
 *     conv(x, w) * c      -> conv(x, w c)                matmul(x, w) * c -> matmul(x, w c)
 *
 * so a chain behind a product ends as the product and one addition, and any other chain as one
 * multiplication and one addition. The new constants are nodes too, computed when somebody asks.
 * Also a padding with zeros moves into the convolution that reads it, and lists joined again and
 * again are joined step by step.
 */
#include <stdlib.h>

#include "engine/model/graph.h"

static struct node *producer(struct graph *g, int v)
{
    int n = g->value[v]->node;
    return n >= 0 ? g->node[n] : NULL;
}

/* The node behind `v` if it computes with activations and only one node reads it. */
static struct node *private_producer(struct graph *g, int v)
{
    struct node *n = producer(g, v);
    return n && n->live && !n->constant && g->value[v]->nr_uses == 1 && !g->value[v]->is_output
               ? n
               : NULL;
}

/* The channel dimension of what products give: 1 of [N,C,...], else the last. */
static int channel_dim(const struct shape *s)
{
    return s->rank >= 3 ? 1 : s->rank - 1;
}

/* Is `v` a constant of one number, or one a channel of an array of shape `s`? */
static bool is_per_channel(const struct graph *g, int v, const struct shape *s, int channel)
{
    const struct value *c = g->value[v];
    if (!c->is_const || c->shape.rank > s->rank)
        return false;
    for (int i = 0; i < c->shape.rank; i++)
        if (i + s->rank - c->shape.rank != channel && c->shape.dim[i] != 1)
            return false;
    return true;
}

/* Operand 1 a per-channel constant, operand 0 of the shape of the result? Swaps them if that helps.
 */
static bool is_affine(struct graph *g, struct node *n)
{
    bool commutes = n->op.kind == OP_ADD || n->op.kind == OP_MUL;
    if (!commutes && n->op.kind != OP_SUB && n->op.kind != OP_DIV)
        return false;
    if (g->value[n->out]->type != GRAPH_F32) /* a reciprocal would be inexact where it may not be */
        return false;
    if (commutes && g->value[n->in[0]]->is_const) {
        int swap = n->in[0];
        n->in[0] = n->in[1];
        n->in[1] = swap;
    }
    const struct shape *s = &g->value[n->out]->shape;
    if (!shape_equal(s, &g->value[n->in[0]]->shape) || s->rank < 1)
        return false;
    /* Behind a matrix product of any rank the channel is last; else as in [N,C,...]. */
    return is_per_channel(g, n->in[1], s, channel_dim(s)) ||
           is_per_channel(g, n->in[1], s, s->rank - 1);
}

static void broadcast_shape(const struct shape *a, const struct shape *b, struct shape *out)
{
    out->rank = a->rank > b->rank ? a->rank : b->rank;
    for (int i = 1; i <= out->rank; i++) {
        int64_t x = i <= a->rank ? a->dim[a->rank - i] : 1,
                y = i <= b->rank ? b->dim[b->rank - i] : 1;
        out->dim[out->rank - i] = x > y ? x : y;
    }
}

/* a op b of constants; b < 0 for an operator with one operand. */
static int combine(struct graph *g, enum op_kind kind, int a, int b)
{
    struct op op = {.kind = kind};
    struct shape s = g->value[a]->shape;
    if (b >= 0)
        broadcast_shape(&g->value[a]->shape, &g->value[b]->shape, &s);
    int v = graph_add_node(g, &op, "", (int[]){a, b}, b >= 0 ? 2 : 1, &s);
    g->value[v]->nr_uses = 1;
    return v;
}

/* May constants `a` and `b` of an array with shape `s` be combined into one of one dimension? */
static bool same_channel(const struct graph *g, int a, int b, const struct shape *s)
{
    struct shape both;
    broadcast_shape(&g->value[a]->shape, &g->value[b]->shape, &both);
    int wide = 0;
    for (int i = 0; i < both.rank; i++)
        wide += both.dim[i] != 1;
    return wide <= 1 && both.rank <= s->rank;
}

/* The constant c of conv(x, w) * c in the shape that scales w; -1 where it cannot. */
static int weight_scale(struct graph *g, const struct node *product, int c)
{
    const struct shape *ys = &g->value[product->out]->shape;
    const struct shape *ws = &g->value[product->in[1]]->shape;
    bool conv = product->op.kind == OP_CONV;
    if (!g->value[product->in[1]]->is_const || !is_per_channel(g, c, ys, conv ? 1 : ys->rank - 1))
        return -1;
    int64_t nr = shape_size(&g->value[c]->shape);
    struct shape s = {.rank = ws->rank};
    for (int i = 0; i < s.rank; i++)
        s.dim[i] = 1;
    s.dim[conv ? 0 : product->op.trans_b ? ws->rank - 2 : ws->rank - 1] = nr;
    return graph_const_view(g, c, &s);
}

static void fold_mul(struct graph *g, struct node *n, struct node *before)
{
    int c = n->in[1];
    const struct shape *s = &g->value[n->out]->shape;
    if (before->op.kind == OP_CONV || before->op.kind == OP_MATMUL) {
        int scale = weight_scale(g, before, c);
        if (scale < 0)
            return;
        int w = combine(g, OP_MUL, before->in[1], scale);
        n->op = before->op;
        n->in[0] = before->in[0];
        n->in[1] = w;
        before->live = false;
    } else if (before->op.kind == OP_MUL && is_affine(g, before) &&
               same_channel(g, before->in[1], c, s)) {
        n->in[1] = combine(g, OP_MUL, before->in[1], c);
        n->in[0] = before->in[0];
        before->live = false;
    } else if (before->op.kind == OP_ADD && is_affine(g, before) &&
               same_channel(g, before->in[1], c, s)) {
        int shift = combine(g, OP_MUL, before->in[1], c);
        before->op.kind = OP_MUL;
        before->in[1] = c;
        n->op.kind = OP_ADD;
        n->in[1] = shift;
        struct node *behind = private_producer(g, before->in[0]);
        if (behind)
            fold_mul(g, before, behind);
    }
}

static void fold_affine(struct graph *g, struct node *n)
{
    if (n->op.kind == OP_SUB || n->op.kind == OP_DIV) {
        n->in[1] = combine(g, n->op.kind == OP_SUB ? OP_NEG : OP_RECIPROCAL, n->in[1], -1);
        n->op.kind = n->op.kind == OP_SUB ? OP_ADD : OP_MUL;
    }
    struct node *before = private_producer(g, n->in[0]);
    if (!before)
        return;
    if (n->op.kind == OP_MUL) {
        fold_mul(g, n, before);
    } else if (before->op.kind == OP_ADD && is_affine(g, before) &&
               same_channel(g, before->in[1], n->in[1], &g->value[n->out]->shape)) {
        n->in[1] = combine(g, OP_ADD, before->in[1], n->in[1]);
        n->in[0] = before->in[0];
        before->live = false;
    }
}

/* A padding with zeros in space, in front of a convolution. */
static void fold_pad(struct graph *g, struct node *n)
{
    struct node *pad = producer(g, n->in[0]);
    if (n->op.kind != OP_CONV || !pad || pad->op.kind != OP_PAD || pad->op.a < 0 || pad->op.a > 0)
        return;
    const struct shape *xs = &g->value[pad->in[0]]->shape, *ps = &g->value[pad->out]->shape;
    for (int i = 0; i < xs->rank; i++) {
        int64_t low = pad->op.at[i], high = ps->dim[i] - xs->dim[i] - low;
        if (low < 0 || high < 0 || (i < 2 && low + high > 0))
            return;
    }
    for (int i = 0; i < n->op.window.nr; i++) {
        int64_t low = pad->op.at[2 + i];
        n->op.window.pad[i] += low;
        n->op.window.pad_end[i] += ps->dim[2 + i] - xs->dim[2 + i] - low;
    }
    g->value[pad->out]->nr_uses--;
    n->in[0] = pad->in[0];
    g->value[n->in[0]]->nr_uses++;
}

/*
 * Dense networks join a growing list again and again: [a,b], [a,b,c], ... A list that starts with
 * all of an earlier one takes that one's result, so that each element is placed or copied once.
 */
static void fold_concat(struct graph *g, int at)
{
    enum { LOOK_BACK = 400 }; /* nodes */
    struct node *n = g->node[at], *best = NULL;
    for (int i = at - 1; i >= 0 && i >= at - LOOK_BACK; i--) {
        struct node *m = g->node[i];
        if (!m->live || m->constant || m->op.kind != OP_CONCAT || m->op.axis != n->op.axis ||
            m->nr_in > n->nr_in || (best && m->nr_in <= best->nr_in))
            continue;
        int same = 0;
        while (same < m->nr_in && m->in[same] == n->in[same])
            same++;
        if (same == m->nr_in && m->nr_in < n->nr_in)
            best = m;
    }
    if (!best)
        return;
    int nr = best->nr_in;
    for (int i = 0; i < nr; i++)
        g->value[n->in[i]]->nr_uses--;
    n->in[0] = best->out;
    g->value[best->out]->nr_uses++;
    for (int i = nr; i < n->nr_in; i++)
        n->in[i - nr + 1] = n->in[i];
    n->nr_in -= nr - 1;
}

void graph_simplify(struct graph *g)
{
    int nr = g->nr_nodes;      /* constants are added behind */
    for (int i = nr; i-- > 0;) /* from the longest list on: the shorter still stand as they were */
        if (g->node[i]->live && !g->node[i]->constant && g->node[i]->op.kind == OP_CONCAT)
            fold_concat(g, i);
    for (int i = 0; i < nr; i++) {
        struct node *n = g->node[i];
        if (!n->live || n->constant)
            continue;
        fold_pad(g, n);
        if (is_affine(g, n))
            fold_affine(g, n);
    }
}
