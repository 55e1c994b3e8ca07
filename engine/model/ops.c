/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/model/ops.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* More inputs than any operator of a real network; bounds what a hostile file costs. */
enum { MAX_INPUTS = 4096 };

/* What a parameter that is computed from constants may take. */
enum { COMPUTED_BYTES = 16 << 20 };

/*
 * name, handler, inputs it cannot do without, what tells operators with one handler apart, types of
 * its operands (ops.h), how many of its inputs are operands: those behind are constant parameters.
 */
enum { ALL_INPUTS = MAX_INPUTS };
#define OPERATORS(X)                                                                               \
    X("Abs", op_unary, 1, OP_ABS, TYPES_NUMBER, 1)                                                 \
    X("Add", op_binary, 2, OP_ADD, TYPES_NUMBER, 2)                                                \
    X("And", op_binary, 2, OP_MUL, TYPES_TRUTH, 2)                                                 \
    X("ArgMax", op_arg, 1, ARG_MAX, TYPES_OWN, 1)                                                  \
    X("ArgMin", op_arg, 1, ARG_MIN, TYPES_OWN, 1)                                                  \
    X("AveragePool", op_pool, 1, 0, TYPES_FLOAT, 1)                                                \
    X("BatchNormalization", op_batchnorm, 5, 0, TYPES_FLOAT, 5)                                    \
    X("Cast", op_cast, 1, 0, TYPES_OWN, 1)                                                         \
    X("CastLike", op_cast_like, 2, 0, TYPES_OWN, 2)                                                \
    X("Ceil", op_unary, 1, OP_CEIL, TYPES_FLOAT, 1)                                                \
    X("Celu", op_celu, 1, 0, TYPES_FLOAT, 1)                                                       \
    X("Clip", op_clip, 1, 0, TYPES_NUMBER, 3)                                                      \
    X("Concat", op_concat, 1, 0, TYPES_ANY, ALL_INPUTS)                                            \
    X("Constant", op_constant, 0, 0, TYPES_OWN, 0)                                                 \
    X("ConstantOfShape", op_constant_of_shape, 1, 0, TYPES_OWN, 0)                                 \
    X("Conv", op_conv, 2, 0, TYPES_FLOAT, 3)                                                       \
    X("ConvTranspose", op_conv_transpose, 2, 0, TYPES_FLOAT, 3)                                    \
    X("Cos", op_unary, 1, OP_COS, TYPES_FLOAT, 1)                                                  \
    X("Cosh", op_trig, 1, TRIG_COSH, TYPES_FLOAT, 1)                                               \
    X("CumSum", op_cumsum, 2, 0, TYPES_NUMBER, 1)                                                  \
    X("DepthToSpace", op_space, 1, 1, TYPES_ANY, 1)                                                \
    X("Div", op_binary, 2, OP_DIV, TYPES_NUMBER, 2)                                                \
    X("Dropout", op_dropout, 1, 0, TYPES_FLOAT, 1)                                                 \
    X("Elu", op_unary, 1, OP_ELU, TYPES_FLOAT, 1)                                                  \
    X("Equal", op_compare, 2, COMPARE_EQUAL, TYPES_TRUTH, 2)                                       \
    X("Erf", op_unary, 1, OP_ERF, TYPES_FLOAT, 1)                                                  \
    X("Exp", op_unary, 1, OP_EXP, TYPES_FLOAT, 1)                                                  \
    X("Expand", op_expand, 2, 0, TYPES_ANY, 1)                                                     \
    X("EyeLike", op_eye_like, 1, 0, TYPES_OWN, 1)                                                  \
    X("Flatten", op_flatten, 1, 0, TYPES_ANY, 1)                                                   \
    X("Floor", op_unary, 1, OP_FLOOR, TYPES_FLOAT, 1)                                              \
    X("Gather", op_gather, 2, 0, TYPES_ANY, 2)                                                     \
    X("GatherElements", op_gather_elements, 2, 0, TYPES_ANY, 2)                                    \
    X("GatherND", op_gather_nd, 2, 0, TYPES_ANY, 2)                                                \
    X("Gelu", op_gelu, 1, 0, TYPES_FLOAT, 1)                                                       \
    X("Gemm", op_gemm, 2, 0, TYPES_NUMBER, 3)                                                      \
    X("GlobalAveragePool", op_global_pool, 1, REDUCE_MEAN, TYPES_FLOAT, 1)                         \
    X("GlobalMaxPool", op_global_pool, 1, REDUCE_MAX, TYPES_FLOAT, 1)                              \
    X("Greater", op_compare, 2, COMPARE_GREATER, TYPES_TRUTH, 2)                                   \
    X("GreaterOrEqual", op_compare, 2, COMPARE_GREATER_EQUAL, TYPES_TRUTH, 2)                      \
    X("GroupNormalization", op_groupnorm, 3, 0, TYPES_FLOAT, 3)                                    \
    X("HardSigmoid", op_unary, 1, OP_HARD_SIGMOID, TYPES_FLOAT, 1)                                 \
    X("HardSwish", op_unary, 1, OP_HARD_SWISH, TYPES_FLOAT, 1)                                     \
    X("Hardmax", op_arg, 1, ARG_HARDMAX, TYPES_FLOAT, 1)                                           \
    X("Identity", op_identity, 1, 0, TYPES_OWN, 1)                                                 \
    X("InstanceNormalization", op_instancenorm, 3, 0, TYPES_FLOAT, 3)                              \
    X("IsInf", op_is_inf, 1, 0, TYPES_TRUTH, 1)                                                    \
    X("IsNaN", op_is_nan, 1, 0, TYPES_TRUTH, 1)                                                    \
    X("LRN", op_lrn, 1, 0, TYPES_FLOAT, 1)                                                         \
    X("LayerNormalization", op_layernorm, 2, 0, TYPES_FLOAT, 3)                                    \
    X("LeakyRelu", op_unary, 1, OP_LEAKY, TYPES_FLOAT, 1)                                          \
    X("Less", op_compare, 2, COMPARE_LESS, TYPES_TRUTH, 2)                                         \
    X("LessOrEqual", op_compare, 2, COMPARE_LESS_EQUAL, TYPES_TRUTH, 2)                            \
    X("Log", op_unary, 1, OP_LOG, TYPES_FLOAT, 1)                                                  \
    X("LogSoftmax", op_softmax, 1, 1, TYPES_FLOAT, 1)                                              \
    X("LpNormalization", op_lpnorm, 1, 0, TYPES_FLOAT, 1)                                          \
    X("MatMul", op_matmul, 2, 0, TYPES_NUMBER, 2)                                                  \
    X("Max", op_nary, 1, OP_MAX, TYPES_NUMBER, ALL_INPUTS)                                         \
    X("MaxPool", op_pool, 1, 1, TYPES_FLOAT, 1)                                                    \
    X("Mean", op_mean, 1, 0, TYPES_FLOAT, ALL_INPUTS)                                              \
    X("MeanVarianceNormalization", op_mvn, 1, 0, TYPES_FLOAT, 1)                                   \
    X("Min", op_nary, 1, OP_MIN, TYPES_NUMBER, ALL_INPUTS)                                         \
    X("Mish", op_mish, 1, 0, TYPES_FLOAT, 1)                                                       \
    X("Mod", op_mod, 2, 0, TYPES_NUMBER, 2)                                                        \
    X("Mul", op_binary, 2, OP_MUL, TYPES_NUMBER, 2)                                                \
    X("Neg", op_unary, 1, OP_NEG, TYPES_NUMBER, 1)                                                 \
    X("Not", op_unary, 1, OP_NOT, TYPES_TRUTH, 1)                                                  \
    X("OneHot", op_one_hot, 3, 0, TYPES_OWN, 1)                                                    \
    X("Or", op_binary, 2, OP_MAX, TYPES_TRUTH, 2)                                                  \
    X("PRelu", op_binary, 2, OP_PRELU, TYPES_NUMBER, 2)                                            \
    X("Pad", op_pad, 1, 0, TYPES_ANY, 1)                                                           \
    X("Pow", op_binary, 2, OP_POW, TYPES_NUMBER, 2)                                                \
    X("RMSNormalization", op_rmsnorm, 2, 0, TYPES_FLOAT, 2)                                        \
    X("Range", op_range, 3, 0, TYPES_OWN, 0)                                                       \
    X("Reciprocal", op_unary, 1, OP_RECIPROCAL, TYPES_FLOAT, 1)                                    \
    X("ReduceL1", op_reduce_of, 1, OF_L1, TYPES_NUMBER, 1)                                         \
    X("ReduceL2", op_reduce_of, 1, OF_L2, TYPES_FLOAT, 1)                                          \
    X("ReduceLogSum", op_reduce_of, 1, OF_LOG_SUM, TYPES_FLOAT, 1)                                 \
    X("ReduceLogSumExp", op_reduce_of, 1, OF_LOG_SUM_EXP, TYPES_FLOAT, 1)                          \
    X("ReduceMax", op_reduce, 1, REDUCE_MAX, TYPES_ANY, 1)                                         \
    X("ReduceMean", op_reduce, 1, REDUCE_MEAN, TYPES_FLOAT, 1)                                     \
    X("ReduceMin", op_reduce, 1, REDUCE_MIN, TYPES_ANY, 1)                                         \
    X("ReduceProd", op_reduce, 1, REDUCE_PROD, TYPES_NUMBER, 1)                                    \
    X("ReduceSum", op_reduce, 1, REDUCE_SUM, TYPES_NUMBER, 1)                                      \
    X("ReduceSumSquare", op_reduce_of, 1, OF_SUM_SQUARE, TYPES_NUMBER, 1)                          \
    X("Relu", op_unary, 1, OP_RELU, TYPES_NUMBER, 1)                                               \
    X("Reshape", op_reshape, 1, 0, TYPES_ANY, 1)                                                   \
    X("Resize", op_resize, 1, 0, TYPES_FLOAT, 1)                                                   \
    X("Round", op_unary, 1, OP_ROUND, TYPES_FLOAT, 1)                                              \
    X("Selu", op_unary, 1, OP_SELU, TYPES_FLOAT, 1)                                                \
    X("Shape", op_shape, 1, 0, TYPES_OWN, 1)                                                       \
    X("Shrink", op_shrink, 1, 0, TYPES_FLOAT, 1)                                                   \
    X("Sigmoid", op_unary, 1, OP_SIGMOID, TYPES_FLOAT, 1)                                          \
    X("Sign", op_unary, 1, OP_SIGN, TYPES_NUMBER, 1)                                               \
    X("Sin", op_unary, 1, OP_SIN, TYPES_FLOAT, 1)                                                  \
    X("Sinh", op_trig, 1, TRIG_SINH, TYPES_FLOAT, 1)                                               \
    X("Size", op_shape, 1, 1, TYPES_OWN, 1)                                                        \
    X("Slice", op_slice, 1, 0, TYPES_ANY, 1)                                                       \
    X("Softmax", op_softmax, 1, 0, TYPES_FLOAT, 1)                                                 \
    X("Softplus", op_unary, 1, OP_SOFTPLUS, TYPES_FLOAT, 1)                                        \
    X("Softsign", op_unary, 1, OP_SOFTSIGN, TYPES_FLOAT, 1)                                        \
    X("SpaceToDepth", op_space, 1, 0, TYPES_ANY, 1)                                                \
    X("Split", op_split, 1, 0, TYPES_ANY, 1)                                                       \
    X("Sqrt", op_unary, 1, OP_SQRT, TYPES_FLOAT, 1)                                                \
    X("Squeeze", op_squeeze, 1, 0, TYPES_ANY, 1)                                                   \
    X("Sub", op_binary, 2, OP_SUB, TYPES_NUMBER, 2)                                                \
    X("Sum", op_nary, 1, OP_ADD, TYPES_NUMBER, ALL_INPUTS)                                         \
    X("Swish", op_swish, 1, 0, TYPES_FLOAT, 1)                                                     \
    X("Tan", op_trig, 1, TRIG_TAN, TYPES_FLOAT, 1)                                                 \
    X("Tanh", op_unary, 1, OP_TANH, TYPES_FLOAT, 1)                                                \
    X("ThresholdedRelu", op_thresholded_relu, 1, 0, TYPES_FLOAT, 1)                                \
    X("Tile", op_tile, 1, 0, TYPES_ANY, 1)                                                         \
    X("Transpose", op_transpose, 1, 0, TYPES_ANY, 1)                                               \
    X("Trilu", op_trilu, 1, 0, TYPES_ANY, 1)                                                       \
    X("Unsqueeze", op_unsqueeze, 1, 0, TYPES_ANY, 1)                                               \
    X("Upsample", op_upsample, 1, 0, TYPES_FLOAT, 1)                                               \
    X("Where", op_where, 3, 0, TYPES_ANY, 3)                                                       \
    X("Xor", op_compare, 2, COMPARE_UNEQUAL, TYPES_TRUTH, 2)

static const struct op_entry {
    const char *name;
    void (*handle)(struct call *c);
    int min_in, arg;
    enum call_types types;
    int operands;
} entries[] = {
#define OPERATOR_ROW(name, handle, min_in, arg, types, nr) {name, handle, min_in, arg, types, nr},
    OPERATORS(OPERATOR_ROW)
#undef OPERATOR_ROW
};

enum { NR_ENTRIES = sizeof entries / sizeof entries[0] };

const char *graph_operators(void)
{
#define OPERATOR_NAME(name, handle, min_in, arg, types, nr) name " "
    return OPERATORS(OPERATOR_NAME);
#undef OPERATOR_NAME
}

const char *call_name(const struct graph_call *call)
{
    if (call->name && *call->name)
        return call->name;
    return call->nr_out && call->out_name && call->out_name[0] ? call->out_name[0] : "";
}

static int vfail(struct err *e, const struct graph_call *call, int code, const char *text)
{
    return err_set(e, code, "operator \"%s\" of node \"%s\" %s", call->op, call_name(call), text);
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

static const struct op_entry *find_entry(const char *op)
{
    for (int i = 0; i < NR_ENTRIES; i++)
        if (strcmp(entries[i].name, op) == 0)
            return &entries[i];
    return NULL;
}

bool graph_is_parameter(const char *op, int i)
{
    const struct op_entry *entry = find_entry(op);
    return entry && i >= entry->operands;
}

int graph_node(struct graph *g, const struct graph_call *call, struct err *e)
{
    const struct op_entry *entry = find_entry(call->op);
    if (!entry)
        return vfail(e, call, ERR_UNSUPPORTED, "is not supported; squall check --help lists all");
    struct call c = {.g = g, .c = call, .e = e, .arg = entry->arg, .types = entry->types};
    c.result = c.types == TYPES_TRUTH ? GRAPH_BOOL : GRAPH_F32;
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
            err_prefix(e, "operator \"%s\" of node \"%s\"", call->op, call_name(call));
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
    return i >= 0 && i < c->c->nr_in ? c->c->in[i] : -1;
}

const struct value *call_value(struct call *c, int v)
{
    static const struct value none;
    return v >= 0 && v < c->g->nr_values ? c->g->value[v] : &none;
}

bool call_range(struct call *c, int v, double *low, double *high)
{
    struct value *x = v >= 0 && !c->rc ? c->g->value[v] : NULL;
    if (!x || !x->is_const || x->is_any || (!x->is_fill && !x->f32 && !x->i64))
        return false;
    if (!x->has_range) { /* once: many nodes may read a long one */
        x->low = x->is_fill ? x->fill : INFINITY;
        x->high = x->is_fill ? x->fill : -INFINITY;
        for (int64_t i = 0, n = x->is_fill ? 0 : shape_size(&x->shape); i < n; i++) {
            double e = x->i64 ? (double)x->i64[i] : (double)x->f32[i];
            x->low = e < x->low ? e : x->low;
            x->high = e > x->high ? e : x->high;
        }
        x->has_range = true;
    }
    *low = x->low;
    *high = x->high;
    return true;
}

/* Has float32 all of the integers of a constant, as far as they are known? */
static bool is_exact(struct call *c, int v)
{
    enum { EXACT = 1 << 24 };
    double low, high;
    return !call_range(c, v, &low, &high) || (low >= -EXACT && high <= EXACT);
}

int call_tensor(struct call *c, int i)
{
    int v = call_in(c, i);
    if (c->rc || v < 0)
        return -1;
    const struct value *x = c->g->value[v];
    bool integer = x->type == GRAPH_I64, truth = x->type == GRAPH_BOOL;
    if (x->type == GRAPH_OTHER || x->refused)
        return call_fail(c, ERR_UNSUPPORTED,
                         "computes with \"%s\", which is %s; float32, int32, int64 and bool are "
                         "supported",
                         x->name, x->refused ? x->refused : "of another type");
    if ((integer && c->types == TYPES_FLOAT) ||
        (truth && (c->types == TYPES_FLOAT || c->types == TYPES_NUMBER)))
        return call_fail(c, ERR_UNSUPPORTED, "computes with \"%s\", which is %s", x->name,
                         truth ? "bool" : "of integers");
    if (integer && !is_exact(c, v))
        return call_fail(c, ERR_UNSUPPORTED,
                         "computes with \"%s\", which has integers beyond 2^24: kernels hold them "
                         "in float32",
                         x->name);
    if (!c->has_result && c->types != TYPES_TRUTH)
        c->result = x->type;
    c->has_result = true;
    return v;
}

bool call_is_empty(struct call *c, int v)
{
    return !c->rc && v >= 0 && shape_size(&c->g->value[v]->shape) == 0;
}

/* Integers of a constant that an operator has computed as float32. */
static const int64_t *computed_ints(struct call *c, int v, int64_t size)
{
    const float *p = graph_const_data(c->g, v, COMPUTED_BYTES, NULL);
    int64_t *all = p ? ARENA_ARRAY(&c->g->arena, int64_t, size + 1) : NULL;
    for (int64_t k = 0; k < size && p; k++)
        all[k] = fabsf(p[k]) < 0x1p62f ? (int64_t)p[k] : 0;
    if (!p)
        call_fail(c, ERR_LIMIT, "has a parameter that takes too much to compute");
    return all;
}

const int64_t *call_const_ints(struct call *c, int i, int max, int *nr)
{
    *nr = 0;
    const struct value *v = call_value(c, call_in(c, i));
    if (c->rc)
        return NULL;
    bool integer = v->type == GRAPH_I64 || v->type == GRAPH_BOOL;
    if (!integer || !v->is_const || v->is_any) {
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
    if (!v->is_fill)
        return computed_ints(c, call_in(c, i), size);
    int64_t *all = ARENA_ARRAY(&c->g->arena, int64_t, size + 1);
    for (int64_t k = 0; k < size; k++)
        all[k] = (int64_t)v->fill;
    return all;
}

const float *call_const_floats(struct call *c, int i, int max, int *nr)
{
    *nr = 0;
    const struct value *v = call_value(c, call_in(c, i));
    if (c->rc)
        return NULL;
    int64_t size = shape_size(&v->shape);
    if (!v->is_const || v->is_any || size > max) {
        call_fail(c, ERR_UNSUPPORTED, "needs input %d to be a constant of at most %d numbers", i,
                  max);
        return NULL;
    }
    const float *p = graph_const_data(c->g, call_in(c, i), COMPUTED_BYTES, NULL);
    if (!p)
        call_fail(c, ERR_LIMIT, "has a parameter that takes too much to compute");
    *nr = p ? (int)size : 0;
    return p;
}

bool call_is_shape(struct call *c, int v)
{
    const struct value *x = call_value(c, v);
    return !c->rc && v >= 0 && x->type == GRAPH_I64 && x->is_const && !x->is_any && !x->refused;
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

int call_floats(struct call *c, const char *attr, int max, float *out)
{
    const struct graph_attr *a = find_kind(c, attr, ATTR_FLOATS);
    if (a && a->nr > (size_t)max)
        call_fail(c, ERR_INPUT, "has %zu numbers in attribute \"%s\", at most %d make sense", a->nr,
                  attr, max);
    if (!a || c->rc)
        return -1;
    for (size_t i = 0; i < a->nr; i++)
        out[i] = a->floats[i];
    return (int)a->nr;
}

unsigned call_axes(struct call *c, int i, int rank, bool *given)
{
    int64_t list[LAYOUT_MAX_DIMS];
    const int64_t *axes = list;
    int nr = call_ints(c, "axes", LAYOUT_MAX_DIMS, list);
    if (nr < 0 && call_in(c, i) >= 0)
        axes = call_const_ints(c, i, LAYOUT_MAX_DIMS, &nr);
    *given = nr >= 0;
    unsigned set = 0;
    for (int k = 0; k < nr && !c->rc; k++) {
        unsigned bit = 1u << call_axis(c, axes[k], rank);
        if (set & bit)
            call_fail(c, ERR_INPUT, "has axis %lld twice", (long long)axes[k]);
        set |= bit;
    }
    return set;
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
