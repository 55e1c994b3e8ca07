/* SPDX-License-Identifier: Apache-2.0 */
/* What handlers of operators emit: nodes, and the constants that go with them. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/model/ops.h"

struct shape_text shape_text(const struct shape *s)
{
    struct shape_text t = {"["};
    size_t used = 1;
    for (int i = 0; i < s->rank; i++)
        used += (size_t)snprintf(t.s + used, sizeof t.s - used, "%s%lld", i ? "," : "",
                                 (long long)s->dim[i]);
    snprintf(t.s + used, sizeof t.s - used, "]");
    return t;
}

int call_emit(struct call *c, const struct op *op, const int *in, int nr_in,
              const struct shape *out)
{
    for (int i = 0; i < nr_in && !c->rc; i++)
        if (in[i] < 0)
            call_fail(c, ERR_INPUT, "lacks an input");
    if (c->rc)
        return -1;
    if (shape_size(out) < 0)
        return call_fail(c, ERR_LIMIT, "would give %s, which is not a sensible size",
                         shape_text(out).s);
    if (shape_size(out) == 0) /* nothing to compute: no kernel has to know of such arrays */
        return graph_const_fill(c->g, "", c->result, out->rank, out->dim, 0, c->e);
    for (int i = 0; i < nr_in; i++)
        if (call_is_empty(c, in[i]))
            return call_fail(c, ERR_UNSUPPORTED, "makes elements of \"%s\", which has none",
                             c->g->value[in[i]]->name);
    int v = graph_add_node(c->g, op, call_name(c->c), in, nr_in, out);
    c->g->value[v]->type = c->result;
    return v;
}

int call_element1(struct call *c, enum op_kind kind, int x, double a, double b)
{
    struct op op = {.kind = kind, .a = (float)a, .b = (float)b};
    return call_emit(c, &op, &x, 1, &call_value(c, x)->shape);
}

bool shape_broadcast(const struct shape *a, const struct shape *b, struct shape *out)
{
    out->rank = a->rank > b->rank ? a->rank : b->rank;
    for (int i = 1; i <= out->rank; i++) {
        int64_t x = i <= a->rank ? a->dim[a->rank - i] : 1,
                y = i <= b->rank ? b->dim[b->rank - i] : 1;
        if (x != y && x != 1 && y != 1)
            return false;
        out->dim[out->rank - i] = x == 1 ? y : x;
    }
    return true;
}

int call_element2(struct call *c, enum op_kind kind, int x, int y)
{
    struct op op = {.kind = kind};
    struct shape out = {0};
    const struct shape *a = &call_value(c, x)->shape, *b = &call_value(c, y)->shape;
    if (!c->rc && !shape_broadcast(a, b, &out))
        return call_fail(c, ERR_INPUT, "cannot broadcast %s and %s", shape_text(a).s,
                         shape_text(b).s);
    return call_emit(c, &op, (int[]){x, y}, 2, &out);
}

int call_reshape(struct call *c, int v, const struct shape *shape)
{
    if (c->rc || v < 0)
        return -1;
    const struct value *x = c->g->value[v];
    if (shape_size(shape) != shape_size(&x->shape))
        return call_fail(c, ERR_INPUT, "cannot make %s of %s", shape_text(shape).s,
                         shape_text(&x->shape).s);
    if (shape_equal(shape, &x->shape))
        return v;
    if (x->is_const)
        return graph_const_view(c->g, v, shape);
    struct op op = {.kind = OP_RESHAPE};
    return call_emit(c, &op, &v, 1, shape);
}

/* Same elements, of another type: a view, since the value itself may be read as what it is, too. */
int call_retype(struct call *c, int v, enum graph_type type)
{
    const struct value *x = call_value(c, v);
    struct op op = {.kind = OP_RESHAPE};
    if (c->rc || v < 0 || x->type == type)
        return c->rc ? -1 : v;
    int y = call_emit(c, &op, &v, 1, &x->shape);
    if (y >= 0)
        c->g->value[y]->type = type;
    return y;
}

int call_literal(struct call *c, double v)
{
    float f = (float)v;
    return c->rc ? -1 : graph_const_f32(c->g, "", 0, NULL, &f, c->e);
}

bool call_may_make(struct call *c, int64_t n)
{
    enum { LARGEST = 1 << 24, IN_ALL = 1 << 26 };
    if (c->rc)
        return false;
    if (n >= 0 && n <= LARGEST && (c->g->nr_made += n) <= IN_ALL)
        return true;
    call_fail(c, ERR_LIMIT, "makes a constant of %lld elements, with others too many",
              (long long)n);
    return false;
}

int call_iota(struct call *c, int64_t n, int dim, int rank)
{
    if (!call_may_make(c, n))
        return -1;
    struct shape s = {.rank = rank};
    for (int i = 0; i < rank; i++)
        s.dim[i] = i == dim ? n : 1;
    float *all = xmalloc((size_t)n * sizeof *all);
    for (int64_t i = 0; i < n; i++)
        all[i] = (float)i;
    int v = graph_const_f32(c->g, "", s.rank, s.dim, all, c->e);
    free(all);
    return v;
}

void call_mark_scale(struct call *c, int v)
{
    if (c->rc || v < 0)
        return;
    struct value *x = c->g->value[v];
    (x->view_of >= 0 ? c->g->value[x->view_of] : x)->is_scale = true;
}

int call_reduce(struct call *c, int v, enum op_reduce how, unsigned axes)
{
    static const double neutral[] = {0, NAN, -INFINITY, INFINITY, 1};
    struct op op = {.kind = OP_REDUCE, .reduce = how, .axes = axes};
    struct shape out = call_value(c, v)->shape;
    for (int i = 0; i < out.rank; i++)
        if (axes >> i & 1)
            out.dim[i] = 1;
    if (axes && call_is_empty(c, v))
        return graph_const_fill(c->g, "", c->result, out.rank, out.dim, neutral[how], c->e);
    return axes ? call_emit(c, &op, &v, 1, &out) : v;
}

void call_out(struct call *c, int i, int v)
{
    if (!c->rc && i < c->c->nr_out)
        c->c->out[i] = v;
}
