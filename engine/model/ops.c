/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/model/ops.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "engine/base/strbuf.h"

/* More inputs than any operator of a real network; bounds what a hostile file costs. */
enum { MAX_INPUTS = 4096 };

/* name, handler, inputs it cannot do without, what tells operators with one handler apart */
#define OPERATORS(X)                                                                               \
    X("Abs", op_unary, 1, OP_ABS)                                                                  \
    X("Add", op_binary, 2, OP_ADD)                                                                 \
    X("AveragePool", op_pool, 1, 0)                                                                \
    X("BatchNormalization", op_batchnorm, 5, 0)                                                    \
    X("Cast", op_cast, 1, 0)                                                                       \
    X("Clip", op_clip, 1, 0)                                                                       \
    X("Concat", op_concat, 1, 0)                                                                   \
    X("Constant", op_constant, 0, 0)                                                               \
    X("ConstantOfShape", op_constant_of_shape, 1, 0)                                               \
    X("Conv", op_conv, 2, 0)                                                                       \
    X("DepthToSpace", op_space, 1, 1)                                                              \
    X("Div", op_binary, 2, OP_DIV)                                                                 \
    X("Dropout", op_dropout, 1, 0)                                                                 \
    X("Elu", op_unary, 1, OP_ELU)                                                                  \
    X("Erf", op_unary, 1, OP_ERF)                                                                  \
    X("Exp", op_unary, 1, OP_EXP)                                                                  \
    X("Expand", op_expand, 2, 0)                                                                   \
    X("Flatten", op_flatten, 1, 0)                                                                 \
    X("Gather", op_gather, 2, 0)                                                                   \
    X("Gelu", op_gelu, 1, 0)                                                                       \
    X("Gemm", op_gemm, 2, 0)                                                                       \
    X("GlobalAveragePool", op_global_pool, 1, REDUCE_MEAN)                                         \
    X("GlobalMaxPool", op_global_pool, 1, REDUCE_MAX)                                              \
    X("HardSigmoid", op_unary, 1, OP_HARD_SIGMOID)                                                 \
    X("HardSwish", op_unary, 1, OP_HARD_SWISH)                                                     \
    X("Identity", op_identity, 1, 0)                                                               \
    X("InstanceNormalization", op_instancenorm, 3, 0)                                              \
    X("LRN", op_lrn, 1, 0)                                                                         \
    X("LayerNormalization", op_layernorm, 2, 0)                                                    \
    X("LeakyRelu", op_unary, 1, OP_LEAKY)                                                          \
    X("Log", op_unary, 1, OP_LOG)                                                                  \
    X("LogSoftmax", op_softmax, 1, 1)                                                              \
    X("MatMul", op_matmul, 2, 0)                                                                   \
    X("Max", op_nary, 1, OP_MAX)                                                                   \
    X("MaxPool", op_pool, 1, 1)                                                                    \
    X("Mean", op_mean, 1, 0)                                                                       \
    X("Min", op_nary, 1, OP_MIN)                                                                   \
    X("Mish", op_mish, 1, 0)                                                                       \
    X("Mul", op_binary, 2, OP_MUL)                                                                 \
    X("Neg", op_unary, 1, OP_NEG)                                                                  \
    X("PRelu", op_binary, 2, OP_PRELU)                                                             \
    X("Pad", op_pad, 1, 0)                                                                         \
    X("Pow", op_binary, 2, OP_POW)                                                                 \
    X("Reciprocal", op_unary, 1, OP_RECIPROCAL)                                                    \
    X("ReduceMax", op_reduce, 1, REDUCE_MAX)                                                       \
    X("ReduceMean", op_reduce, 1, REDUCE_MEAN)                                                     \
    X("ReduceMin", op_reduce, 1, REDUCE_MIN)                                                       \
    X("ReduceProd", op_reduce, 1, REDUCE_PROD)                                                     \
    X("ReduceSum", op_reduce, 1, REDUCE_SUM)                                                       \
    X("Relu", op_unary, 1, OP_RELU)                                                                \
    X("Reshape", op_reshape, 1, 0)                                                                 \
    X("Selu", op_unary, 1, OP_SELU)                                                                \
    X("Shape", op_shape, 1, 0)                                                                     \
    X("Sigmoid", op_unary, 1, OP_SIGMOID)                                                          \
    X("Size", op_shape, 1, 1)                                                                      \
    X("Slice", op_slice, 1, 0)                                                                     \
    X("Softmax", op_softmax, 1, 0)                                                                 \
    X("Softplus", op_unary, 1, OP_SOFTPLUS)                                                        \
    X("Softsign", op_unary, 1, OP_SOFTSIGN)                                                        \
    X("SpaceToDepth", op_space, 1, 0)                                                              \
    X("Split", op_split, 1, 0)                                                                     \
    X("Sqrt", op_unary, 1, OP_SQRT)                                                                \
    X("Squeeze", op_squeeze, 1, 0)                                                                 \
    X("Sub", op_binary, 2, OP_SUB)                                                                 \
    X("Sum", op_nary, 1, OP_ADD)                                                                   \
    X("Tanh", op_unary, 1, OP_TANH)                                                                \
    X("Transpose", op_transpose, 1, 0)                                                             \
    X("Unsqueeze", op_unsqueeze, 1, 0)

static const struct op_entry {
    const char *name;
    void (*handle)(struct call *c);
    int min_in, arg;
} entries[] = {
#define OPERATOR_ROW(name, handle, min_in, arg) {name, handle, min_in, arg},
    OPERATORS(OPERATOR_ROW)
#undef OPERATOR_ROW
};

enum { NR_ENTRIES = sizeof entries / sizeof entries[0] };

const char *graph_operators(void)
{
#define OPERATOR_NAME(name, handle, min_in, arg) name " "
    return OPERATORS(OPERATOR_NAME);
#undef OPERATOR_NAME
}

/* Many files name values and no nodes: then the first output names the node. */
static const char *node_name(const struct graph_call *call)
{
    if (call->name && *call->name)
        return call->name;
    return call->nr_out && call->out_name && call->out_name[0] ? call->out_name[0] : "";
}

static int vfail(struct err *e, const struct graph_call *call, int code, const char *text)
{
    return err_set(e, code, "operator \"%s\" of node \"%s\" %s", call->op, node_name(call), text);
}

int call_fail(struct call *c, int code, const char *fmt, ...)
{
    if (c->rc)
        return -1;
    char text[512];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    c->rc = code;
    vfail(c->e, c->c, code, text);
    return -1;
}

int graph_node(struct graph *g, const struct graph_call *call, struct err *e)
{
    const struct op_entry *entry = NULL;
    for (int i = 0; i < NR_ENTRIES && !entry; i++)
        if (strcmp(entries[i].name, call->op) == 0)
            entry = &entries[i];
    if (!entry) {
        struct strbuf sb = {0};
        strbuf_addf(&sb, "is not supported; supported are: %s", graph_operators());
        int rc = vfail(e, call, ERR_UNSUPPORTED, strbuf_text(&sb));
        strbuf_release(&sb);
        return rc;
    }
    struct call c = {.g = g, .c = call, .e = e, .arg = entry->arg};
    for (int i = 0; i < call->nr_out; i++)
        call->out[i] = -1;
    for (int i = 0; i < call->nr_in; i++)
        if (call->in[i] < -1 || call->in[i] >= g->nr_values)
            call_fail(&c, ERR_INPUT, "reads a value that does not exist");
    if (call->nr_in < entry->min_in || call->nr_in > MAX_INPUTS)
        call_fail(&c, ERR_INPUT, "has %d inputs, it needs at least %d", call->nr_in, entry->min_in);
    for (int i = 0; i < entry->min_in && i < call->nr_in; i++)
        if (call->in[i] == -1)
            call_fail(&c, ERR_INPUT, "lacks input %d", i);
    if (!c.rc)
        entry->handle(&c);
    if (!c.rc && call->nr_out > 0 && call->out[0] < 0) {
        c.rc = call->out[0] == -1 ? ERR_UNSUPPORTED : call->out[0];
        if (e && e->code)
            err_prefix(e, "operator \"%s\" of node \"%s\"", call->op, node_name(call));
        else
            vfail(e, call, c.rc, "has no result");
    }
    if (!c.rc && call->nr_out > 0 && call->out_name && call->out_name[0] && *call->out_name[0] &&
        !*g->value[call->out[0]]->name)
        g->value[call->out[0]]->name = arena_strdup(&g->arena, call->out_name[0]);
    return c.rc;
}

/* ---- inputs ---- */

int call_in(struct call *c, int i)
{
    return i < c->c->nr_in ? c->c->in[i] : -1;
}

const struct value *call_value(struct call *c, int v)
{
    static const struct value none;
    return v >= 0 && v < c->g->nr_values ? c->g->value[v] : &none;
}

int call_tensor(struct call *c, int i)
{
    int v = call_in(c, i);
    if (c->rc || v < 0)
        return -1;
    const struct value *x = c->g->value[v];
    if (x->type != GRAPH_F32)
        return call_fail(c, ERR_UNSUPPORTED, "computes with \"%s\", which is not float32", x->name);
    if (shape_size(&x->shape) < 1)
        return call_fail(c, ERR_UNSUPPORTED, "reads \"%s\", which has no elements", x->name);
    return v;
}

const int64_t *call_const_ints(struct call *c, int i, int max, int *nr)
{
    *nr = 0;
    const struct value *v = call_value(c, call_in(c, i));
    if (c->rc)
        return NULL;
    if (v->type != GRAPH_I64 || !v->is_const) {
        call_fail(c, ERR_UNSUPPORTED, "needs input %d to be a constant of int64", i);
        return NULL;
    }
    int64_t size = shape_size(&v->shape);
    if (size > max) {
        call_fail(c, ERR_INPUT, "has %lld elements in input %d, at most %d make sense",
                  (long long)size, i, max);
        return NULL;
    }
    *nr = (int)size;
    if (v->i64)
        return v->i64;
    int64_t *all = ARENA_ARRAY(&c->g->arena, int64_t, size + 1);
    for (int64_t k = 0; k < size; k++)
        all[k] = (int64_t)v->fill;
    return all;
}

/* ---- attributes ---- */

static const struct graph_attr *find(struct call *c, const char *name)
{
    for (int i = 0; i < c->c->nr_attr; i++)
        if (strcmp(c->c->attr[i].name, name) == 0)
            return &c->c->attr[i];
    return NULL;
}

static const struct graph_attr *find_kind(struct call *c, const char *name,
                                          enum graph_attr_kind kind)
{
    static const char *const text[] = {"an int", "a float", "a string",
                                       "ints",   "floats",  "a tensor"};
    const struct graph_attr *a = find(c, name);
    if (a && a->kind != kind) {
        call_fail(c, ERR_INPUT, "has attribute \"%s\" of a wrong type, it must be %s", name,
                  text[kind]);
        return NULL;
    }
    return a;
}

bool call_has(struct call *c, const char *attr)
{
    return find(c, attr) != NULL;
}

int64_t call_int(struct call *c, const char *attr, int64_t otherwise)
{
    const struct graph_attr *a = find_kind(c, attr, ATTR_INT);
    return a ? a->i : otherwise;
}

double call_float(struct call *c, const char *attr, double otherwise)
{
    const struct graph_attr *a = find(c, attr);
    if (a && a->kind == ATTR_INT) /* a script writes 1 for 1.0 */
        return (double)a->i;
    a = find_kind(c, attr, ATTR_FLOAT);
    return a ? a->f : otherwise;
}

bool call_string_is(struct call *c, const char *attr, const char *text, bool otherwise)
{
    const struct graph_attr *a = find_kind(c, attr, ATTR_STRING);
    if (!a)
        return otherwise;
    return a->nr == strlen(text) && memcmp(a->s, text, a->nr) == 0;
}

int call_ints(struct call *c, const char *attr, int max, int64_t *out)
{
    const struct graph_attr *a = find_kind(c, attr, ATTR_INTS);
    if (!a)
        return -1;
    if (a->nr > (size_t)max) {
        call_fail(c, ERR_INPUT, "has %zu numbers in attribute \"%s\", at most %d make sense", a->nr,
                  attr, max);
        return -1;
    }
    for (size_t i = 0; i < a->nr; i++)
        out[i] = a->ints[i];
    return (int)a->nr;
}

int call_axis(struct call *c, int64_t axis, int rank)
{
    if (axis < -rank || axis >= rank) {
        call_fail(c, ERR_INPUT, "has axis %lld of an input with %d dimensions", (long long)axis,
                  rank);
        return 0;
    }
    return (int)(axis < 0 ? axis + rank : axis);
}

/* ---- nodes ---- */

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
    if (shape_size(out) < 1)
        return call_fail(c, ERR_LIMIT, "would give %s, which is %s", shape_text(out).s,
                         shape_size(out) == 0 ? "empty" : "not a sensible size");
    return graph_add_node(c->g, op, node_name(c->c), in, nr_in, out);
}

int call_element1(struct call *c, enum op_kind kind, int x, double a, double b)
{
    struct op op = {.kind = kind, .a = (float)a, .b = (float)b};
    return call_emit(c, &op, &x, 1, &call_value(c, x)->shape);
}

/* The numpy rule: aligned at the last dimension, extents equal or 1. */
static bool broadcast(const struct shape *a, const struct shape *b, struct shape *out)
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
    if (!c->rc && !broadcast(a, b, &out))
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

int call_literal(struct call *c, double v)
{
    float f = (float)v;
    return c->rc ? -1 : graph_const_f32(c->g, "", 0, NULL, &f, c->e);
}

int call_reduce(struct call *c, int v, enum op_reduce how, unsigned axes)
{
    struct op op = {.kind = OP_REDUCE, .reduce = how, .axes = axes};
    struct shape out = call_value(c, v)->shape;
    for (int i = 0; i < out.rank; i++)
        if (axes >> i & 1)
            out.dim[i] = 1;
    return axes ? call_emit(c, &op, &v, 1, &out) : v;
}

void call_out(struct call *c, int i, int v)
{
    if (!c->rc && i < c->c->nr_out)
        c->c->out[i] = v;
}
