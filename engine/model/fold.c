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
    if (c->rc || a->type != GRAPH_I64 || b->type != GRAPH_I64 || !a->is_const || !b->is_const)
        return false;
    int nr_a, nr_b;
    const int64_t *p = call_const_ints(c, 0, MAX_INTS, &nr_a);
    const int64_t *q = call_const_ints(c, 1, MAX_INTS, &nr_b);
    const struct shape *s = a->shape.rank >= b->shape.rank ? &a->shape : &b->shape;
    if (!c->rc && nr_a != nr_b && nr_a != 1 && nr_b != 1)
        call_fail(c, ERR_UNSUPPORTED, "computes with int64 of %d and %d elements", nr_a, nr_b);
    int64_t out[MAX_INTS];
    int nr = nr_a == 1 ? nr_b : nr_a;
    for (int i = 0; i < nr && !c->rc; i++)
        if (!fold_one(kind, p[nr_a == 1 ? 0 : i], q[nr_b == 1 ? 0 : i], &out[i]))
            call_fail(c, ERR_UNSUPPORTED, "cannot be computed for these int64 numbers");
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

static int ints_to_floats(struct call *c, int v)
{
    const struct value *x = call_value(c, v);
    if (x->is_fill)
        return graph_const_fill(c->g, x->name, GRAPH_F32, x->shape.rank, x->shape.dim, x->fill,
                                c->e);
    int nr;
    float out[MAX_INTS];
    const int64_t *p = call_const_ints(c, 0, MAX_INTS, &nr);
    for (int i = 0; i < nr; i++)
        out[i] = (float)p[i];
    return c->rc ? -1 : graph_const_f32(c->g, x->name, x->shape.rank, x->shape.dim, out, c->e);
}

static int floats_to_ints(struct call *c, int v)
{
    const struct value *x = call_value(c, v);
    int64_t out[MAX_INTS], nr = shape_size(&x->shape);
    const float *p = nr <= MAX_INTS ? graph_const_data(c->g, v, sizeof out, NULL) : NULL;
    if (!p)
        return call_fail(c, ERR_UNSUPPORTED, "converts numbers that are not known");
    for (int64_t i = 0; i < nr; i++) {
        if (!(fabsf(p[i]) < 0x1p62f))
            return call_fail(c, ERR_INPUT, "converts %g to an integer", (double)p[i]);
        out[i] = (int64_t)p[i];
    }
    return graph_const_i64(c->g, x->name, x->shape.rank, x->shape.dim, out, c->e);
}

void op_cast(struct call *c)
{
    enum { TO_FLOAT = 1, TO_INT32 = 6, TO_INT64 = 7 }; /* TensorProto.DataType */
    int v = call_in(c, 0);
    const struct value *x = call_value(c, v);
    int64_t to = call_int(c, "to", 0);
    if (x->type == GRAPH_F32 && to == TO_FLOAT)
        call_out(c, 0, v);
    else if (x->type == GRAPH_I64 && x->is_const && (to == TO_INT64 || to == TO_INT32))
        call_out(c, 0, v);
    else if (x->type == GRAPH_I64 && x->is_const && to == TO_FLOAT)
        call_out(c, 0, ints_to_floats(c, v));
    else if (x->type == GRAPH_F32 && x->is_const && (to == TO_INT64 || to == TO_INT32))
        call_out(c, 0, floats_to_ints(c, v));
    else
        call_fail(c, ERR_UNSUPPORTED,
                  "converts between types other than float32 and constant integers");
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
            type = c->g->value[a->i]->type;
    }
    if (c->rc)
        return;
    int v = graph_const_fill(c->g, c->c->out_name && c->c->nr_out ? c->c->out_name[0] : "", type,
                             nr, dim, fill, c->e);
    call_out(c, 0, v);
}
