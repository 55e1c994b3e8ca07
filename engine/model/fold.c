/* SPDX-License-Identifier: Apache-2.0 */
/* What graphs compute about shapes: int64 constants, known while reading. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/model/ops.h"

/* Vectors of shape arithmetic are short; nothing longer is computed here. */
enum { MAX_INTS = 1024 };

static bool fold_one(enum op_kind kind, int64_t a, int64_t b, int64_t *out)
{
    switch (kind) {
    case OP_ADD:
        return !__builtin_add_overflow(a, b, out);
    case OP_SUB:
        return !__builtin_sub_overflow(a, b, out);
    case OP_MUL:
        return !__builtin_mul_overflow(a, b, out);
    case OP_DIV:
        if (b == 0 || (a == INT64_MIN && b == -1))
            return false;
        *out = a / b;
        return true;
    default:
        return false;
    }
}

bool fold_binary(struct call *c, enum op_kind kind, int x, int y)
{
    const struct value *a = call_value(c, x), *b = call_value(c, y);
    if (!call_is_shape(c, x) || !call_is_shape(c, y) || shape_size(&a->shape) > MAX_INTS ||
        shape_size(&b->shape) > MAX_INTS || a->shape.rank > 1 || b->shape.rank > 1)
        return false;
    int nr_a, nr_b;
    const int64_t *p = call_const_ints(c, 0, MAX_INTS, &nr_a);
    const int64_t *q = call_const_ints(c, 1, MAX_INTS, &nr_b);
    const struct shape *s = a->shape.rank >= b->shape.rank ? &a->shape : &b->shape;
    if (c->rc || (nr_a != nr_b && nr_a != 1 && nr_b != 1))
        return false;
    int64_t out[MAX_INTS];
    int nr = nr_a == 1 ? nr_b : nr_a;
    for (int i = 0; i < nr; i++)
        if (!fold_one(kind, p[nr_a == 1 ? 0 : i], q[nr_b == 1 ? 0 : i], &out[i]))
            return false;
    if (!c->rc && shape_size(s) != nr)
        s = shape_size(&a->shape) == nr ? &a->shape : &b->shape;
    if (!c->rc)
        call_out(c, 0, graph_const_i64(c->g, "", s->rank, s->dim, out, c->e));
    return true;
}

void op_shape(struct call *c)
{
    const struct shape *s = &call_value(c, call_in(c, 0))->shape;
    if (c->arg) { /* Size */
        int64_t size = shape_size(s);
        call_out(c, 0, graph_const_i64(c->g, "", 0, NULL, &size, c->e));
        return;
    }
    int64_t from = call_int(c, "start", 0), to = call_int(c, "end", s->rank);
    from += from < 0 ? s->rank : 0;
    to += to < 0 ? s->rank : 0;
    from = from < 0 ? 0 : from > s->rank ? s->rank : from;
    to = to < from ? from : to > s->rank ? s->rank : to;
    int64_t nr = to - from;
    call_out(c, 0, graph_const_i64(c->g, "", 1, &nr, s->dim + from, c->e));
}

/* Known floats as integers: exactly, however large, where they are few. */
static int floats_to_ints(struct call *c, int v)
{
    const struct value *x = call_value(c, v);
    int64_t out[MAX_INTS], nr = shape_size(&x->shape);
    const float *p = graph_const_data(c->g, v, sizeof out, NULL);
    for (int64_t i = 0; i < nr && p; i++) {
        if (!(fabsf(p[i]) < 0x1p62f))
            return call_fail(c, ERR_INPUT, "converts %g to an integer", (double)p[i]);
        out[i] = (int64_t)p[i];
    }
    if (!p)
        return call_fail(c, ERR_LIMIT, "converts what takes too much to compute");
    return graph_const_i64(c->g, x->name, x->shape.rank, x->shape.dim, out, c->e);
}

static void cast_to(struct call *c, enum graph_type to)
{
    int v = call_in(c, 0);
    const struct value *x = call_value(c, v);
    if (c->rc)
        return;
    if (to == GRAPH_OTHER)
        call_fail(c, ERR_UNSUPPORTED, "converts to a type other than float32, int32, int64, bool");
    else if (x->type == GRAPH_OTHER)
        call_tensor(c, 0); /* says why */
    else if (x->type == to && !x->refused)
        call_out(c, 0, v);
    else if (to == GRAPH_I64 && call_is_shape(c, v)) /* a narrow one: values stay */
        call_out(c, 0, graph_const_view(c->g, v, &x->shape));
    else if (to == GRAPH_I64 && x->type == GRAPH_F32 && x->is_const && !x->is_any &&
             shape_size(&x->shape) <= MAX_INTS)
        call_out(c, 0, floats_to_ints(c, v));
    else {
        struct op op = {.kind = to == GRAPH_BOOL                          ? OP_EQUAL
                                : to == GRAPH_I64 && x->type == GRAPH_F32 ? OP_TRUNC
                                                                          : OP_RESHAPE};
        const struct shape s = x->shape;
        c->result = to;
        int y =
            op.kind == OP_EQUAL
                ? call_element1(c, OP_NOT, call_element2(c, OP_EQUAL, v, call_literal(c, 0)), 0, 0)
                : call_emit(c, &op, &v, 1, &s);
        call_out(c, 0, y);
    }
    int y = c->c->nr_out ? c->c->out[0] : -1;
    if (!c->rc && y >= 0 && y != v)
        c->g->value[y]->refused = NULL;
}

static enum graph_type type_of(int64_t data_type)
{
    enum { FLOAT = 1, INT32 = 6, INT64 = 7, BOOL = 9 }; /* TensorProto.DataType */
    return data_type == FLOAT                         ? GRAPH_F32
           : data_type == INT32 || data_type == INT64 ? GRAPH_I64
           : data_type == BOOL                        ? GRAPH_BOOL
                                                      : GRAPH_OTHER;
}

void op_cast(struct call *c)
{
    if (c->g->opset >= 6) {
        cast_to(c, type_of(call_int(c, "to", 0)));
        return;
    }
    bool integer =
        call_string_is(c, "to", "INT64", false) || call_string_is(c, "to", "INT32", false);
    cast_to(c, call_string_is(c, "to", "FLOAT", false)  ? GRAPH_F32
               : integer                                ? GRAPH_I64
               : call_string_is(c, "to", "BOOL", false) ? GRAPH_BOOL
                                                        : GRAPH_OTHER);
}

void op_cast_like(struct call *c)
{
    const struct value *like = call_value(c, call_in(c, 1));
    cast_to(c, like->refused ? GRAPH_OTHER : like->type);
}

void op_range(struct call *c)
{
    double at[3] = {0};
    const struct value *v = call_value(c, call_in(c, 0));
    for (int i = 0; i < 3 && !c->rc; i++)
        if (!graph_const_scalar(c->g, call_in(c, i), &at[i]))
            call_fail(c, ERR_UNSUPPORTED, "needs input %d to be a constant number", i);
    double nr = ceil((at[1] - at[0]) / at[2]);
    if (!c->rc && (v->refused || !(nr < 1e9)))
        call_fail(c, ERR_LIMIT, "counts from %g to %g by %g", at[0], at[1], at[2]);
    int64_t n = !c->rc && nr > 0 ? (int64_t)nr : 0;
    if (!call_may_make(c, n))
        return;
    float *f = xmalloc((size_t)(n + 1) * sizeof *f);
    int64_t *k = xmalloc((size_t)(n + 1) * sizeof *k);
    for (int64_t i = 0; i < n; i++) {
        f[i] = (float)(at[0] + (double)i * at[2]);
        k[i] = (int64_t)at[0] + i * (int64_t)at[2];
    }
    call_out(c, 0,
             v->type == GRAPH_I64 ? graph_const_i64(c->g, "", 1, &n, k, c->e)
                                  : graph_const_f32(c->g, "", 1, &n, f, c->e));
    free(f);
    free(k);
}

void op_eye_like(struct call *c)
{
    const struct value *x = call_value(c, call_in(c, 0));
    const struct shape s = x->shape;
    int64_t k = call_int(c, "k", 0), n = shape_size(&s);
    enum graph_type type = call_has(c, "dtype") ? type_of(call_int(c, "dtype", 0)) : x->type;
    if (type == GRAPH_OTHER || (x->refused && !call_has(c, "dtype")))
        call_fail(c, ERR_UNSUPPORTED, "makes a type other than float32, int32, int64, bool");
    if (!c->rc && s.rank != 2)
        call_fail(c, ERR_INPUT, "has an input %s, it must be a matrix", shape_text(&s).s);
    if (!call_may_make(c, n))
        return;
    float *all = xcalloc((size_t)n + 1, sizeof *all);
    for (int64_t i = 0; i < n; i++)
        all[i] = i % s.dim[1] - i / s.dim[1] == k;
    int v = graph_const_f32(c->g, "", 2, s.dim, all, c->e);
    if (v >= 0)
        c->g->value[v]->type = type;
    free(all);
    call_out(c, 0, v);
}

void op_constant(struct call *c)
{
    for (int i = 0; i < c->c->nr_attr && !c->rc; i++) {
        const struct graph_attr *a = &c->c->attr[i];
        int64_t nr = (int64_t)a->nr;
        if (strcmp(a->name, "value") == 0 && a->kind == ATTR_VALUE && a->i >= 0 &&
            a->i < c->g->nr_values)
            call_out(c, 0, (int)a->i);
        else if (strcmp(a->name, "value_float") == 0)
            call_out(c, 0, call_literal(c, call_float(c, a->name, 0)));
        else if (strcmp(a->name, "value_int") == 0)
            call_out(c, 0, graph_const_i64(c->g, "", 0, NULL, &a->i, c->e));
        else if (strcmp(a->name, "value_floats") == 0 && a->kind == ATTR_FLOATS)
            call_out(c, 0, graph_const_f32(c->g, "", 1, &nr, a->floats, c->e));
        else if (strcmp(a->name, "value_ints") == 0 && a->kind == ATTR_INTS)
            call_out(c, 0, graph_const_i64(c->g, "", 1, &nr, a->ints, c->e));
    }
    if (!c->rc && (c->c->nr_out < 1 || c->c->out[0] < 0))
        call_fail(c, ERR_UNSUPPORTED, "has no value that can be read");
}

void op_constant_of_shape(struct call *c)
{
    int nr;
    const int64_t *dim = call_const_ints(c, 0, LAYOUT_MAX_DIMS, &nr);
    double fill = 0;
    enum graph_type type = GRAPH_F32;
    for (int i = 0; i < c->c->nr_attr && !c->rc; i++) {
        const struct graph_attr *a = &c->c->attr[i];
        if (strcmp(a->name, "value") != 0)
            continue;
        if (a->kind != ATTR_VALUE || a->i < 0 || a->i >= c->g->nr_values ||
            !graph_const_scalar(c->g, (int)a->i, &fill))
            call_fail(c, ERR_INPUT, "needs one number as its attribute \"value\"");
        else
            type = c->g->value[a->i]->refused ? GRAPH_OTHER : c->g->value[a->i]->type;
    }
    if (c->rc)
        return;
    int v = graph_const_fill(c->g, c->c->out_name && c->c->nr_out ? c->c->out_name[0] : "", type,
                             nr, dim, fill, c->e);
    call_out(c, 0, v);
}
