/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Operators on entry: one handler an ONNX operator name.
 *
 * A handler reads the inputs and attributes of the call, infers shapes and emits nodes of the kinds
 * of op.h. Errors are sticky: the first failed helper leaves its sentence in the call, later
 * helpers do nothing and return -1 or a default, so handlers need no checks between the steps as
 * long as they do not look into a value that is -1; call_value() is safe on it.
 *
 * To add an operator: a handler in the ops_*.c file it belongs to, a line in the table in ops.c,
 * and, if no kind of op.h can express it, a kind, its reference and its maker.
 */
#ifndef ENGINE_MODEL_OPS_H
#define ENGINE_MODEL_OPS_H

#include "engine/model/graph.h"

/*
 * Types of operands, and of what comes out: float32 alone; numbers, and the same comes out; all but
 * GRAPH_OTHER, and the same comes out; the same, and a truth comes out; the handler decides, by
 * setting `result`. Values emitted have the type `result`, which the first operand read decides.
 */
enum call_types { TYPES_FLOAT, TYPES_NUMBER, TYPES_ANY, TYPES_TRUTH, TYPES_OWN };

struct call {
    struct graph *g;
    const struct graph_call *c;
    struct err *e;
    int rc;  /* 0, or the first error */
    int arg; /* of the table: what tells operators with one handler apart */
    enum call_types types;
    enum graph_type result;
    bool has_result;
};

int call_fail(struct call *c, int code, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

/* Many files name values and no nodes: then the first output names the node. */
const char *call_name(const struct graph_call *call);

/* Input `i`: -1 where it is left out. The second form fails unless its type is one of `types`. */
int call_in(struct call *c, int i);
int call_tensor(struct call *c, int i);

/* The least and the largest element of a constant whose elements are there; false for others. */
bool call_range(struct call *c, int v, double *low, double *high);

/* Counts the elements of a constant that an operator makes: false, and a failure, past what all of a
 * graph's may be. */
bool call_may_make(struct call *c, int64_t n);

/* Has `v` no elements? Handlers need not ask where then nothing comes out. */
bool call_is_empty(struct call *c, int v);

/* Never NULL: an empty value for -1. */
const struct value *call_value(struct call *c, int v);

/* Elements of an input that must be a constant of int64; *nr their number, at most `max`. */
const int64_t *call_const_ints(struct call *c, int i, int max, int *nr);
const float *call_const_floats(struct call *c, int i, int max, int *nr);

/* Is `v` an integer constant, the arithmetic of shapes? Short vectors of these are computed exactly
 * while the graph is read (fold.c). */
bool call_is_shape(struct call *c, int v);

bool call_has(struct call *c, const char *attr);
int64_t call_int(struct call *c, const char *attr, int64_t otherwise);
double call_float(struct call *c, const char *attr, double otherwise);
bool call_string_is(struct call *c, const char *attr, const char *text, bool otherwise);
/* Number of elements copied to out[], -1 where there is no such attribute. */
int call_ints(struct call *c, const char *attr, int max, int64_t *out);
int call_floats(struct call *c, const char *attr, int max, float *out);

/* Bits of the axes of a value with `rank` dimensions, of attribute "axes" or of input `i`; *given:
 * is there such a list? */
unsigned call_axes(struct call *c, int i, int rank, bool *given);

/* `axis` of a value of `rank` dimensions, counted from the end where negative. */
int call_axis(struct call *c, int64_t axis, int rank);

/* Nodes: each returns the number of the new value, or -1. */
int call_emit(struct call *c, const struct op *op, const int *in, int nr_in,
              const struct shape *out);
int call_element1(struct call *c, enum op_kind kind, int x, double a, double b);
int call_element2(struct call *c, enum op_kind kind, int x, int y);
int call_reshape(struct call *c, int v, const struct shape *shape);
int call_where(struct call *c, int condition, int x, int y);
int call_literal(struct call *c, double v);
/* 0, 1, ... n - 1 along dimension `dim` of `rank`; its type is `result`. */
int call_iota(struct call *c, int64_t n, int dim, int rank);
/* Elements `at` (whole numbers) of dimension `axis`: the dimensions of `at` take its place. */
int call_gather(struct call *c, int x, int at, int axis, bool wraps);
/* A part: from start[] on in steps of step[], of the shape `out`. */
int call_slice(struct call *c, int x, const int64_t *start, const int64_t *step,
               const struct shape *out);
int call_transpose(struct call *c, int x, const int64_t *perm);
int call_expand(struct call *c, int x, const struct shape *out);
/* Zeros in front and behind up to the shape `out`; negative crops. */
int call_pad(struct call *c, int x, const int64_t *front, double value, const struct shape *out);
int call_matmul(struct call *c, int a, int b, bool trans_a, bool trans_b);

/* The constant, in whatever shape it is seen here, multiplies activations or is a variance. */
void call_mark_scale(struct call *c, int v);
int call_reduce(struct call *c, int v, enum op_reduce how, unsigned axes);

int call_retype(struct call *c, int v, enum graph_type type);

void call_out(struct call *c, int i, int v);

/* The numpy rule: aligned at the last dimension, extents equal or 1. */
bool shape_broadcast(const struct shape *a, const struct shape *b, struct shape *out);

/* "[1,64,56,56]" for messages, in a buffer of the caller. */
struct shape_text {
    char s[LAYOUT_MAX_DIMS * 21 + 3];
};
struct shape_text shape_text(const struct shape *s);

/* What tells operators of one handler apart, where it is no kind of op.h. */
enum {
    COMPARE_EQUAL,
    COMPARE_UNEQUAL,
    COMPARE_LESS,
    COMPARE_LESS_EQUAL,
    COMPARE_GREATER,
    COMPARE_GREATER_EQUAL
};
enum { TRIG_TAN, TRIG_SINH, TRIG_COSH };
enum { OF_L1, OF_L2, OF_SUM_SQUARE, OF_LOG_SUM, OF_LOG_SUM_EXP };
enum { ARG_MAX, ARG_MIN, ARG_HARDMAX };

/* Handlers: ops_window.c, ops_element.c, ops_norm.c, ops_reduce.c, ops_shape.c, ops_index.c,
 * ops_resample.c, fold.c. */
void op_conv(struct call *c);
void op_pool(struct call *c);
void op_global_pool(struct call *c);
void op_gemm(struct call *c);
void op_matmul(struct call *c);
void op_lrn(struct call *c);

void op_unary(struct call *c);
void op_binary(struct call *c);
void op_nary(struct call *c);
void op_mean(struct call *c);
void op_clip(struct call *c);
void op_gelu(struct call *c);
void op_mish(struct call *c);
void op_compare(struct call *c);
void op_is_nan(struct call *c);
void op_is_inf(struct call *c);
void op_where(struct call *c);
void op_mod(struct call *c);
void op_celu(struct call *c);
void op_thresholded_relu(struct call *c);
void op_shrink(struct call *c);
void op_swish(struct call *c);
void op_trig(struct call *c);

void op_batchnorm(struct call *c);
void op_layernorm(struct call *c);
void op_instancenorm(struct call *c);
void op_groupnorm(struct call *c);
void op_rmsnorm(struct call *c);
void op_mvn(struct call *c);
void op_lpnorm(struct call *c);

void op_softmax(struct call *c);
void op_reduce(struct call *c);
void op_reduce_of(struct call *c);
void op_arg(struct call *c);

void op_reshape(struct call *c);
void op_flatten(struct call *c);
void op_squeeze(struct call *c);
void op_unsqueeze(struct call *c);
void op_identity(struct call *c);
void op_dropout(struct call *c);
void op_transpose(struct call *c);
void op_concat(struct call *c);
void op_pad(struct call *c);
void op_slice(struct call *c);
void op_split(struct call *c);
void op_expand(struct call *c);
void op_space(struct call *c);

void op_gather(struct call *c);
void op_gather_elements(struct call *c);
void op_gather_nd(struct call *c);
void op_one_hot(struct call *c);
void op_trilu(struct call *c);
void op_cumsum(struct call *c);

void op_tile(struct call *c);
void op_resize(struct call *c);
void op_upsample(struct call *c);
void op_conv_transpose(struct call *c);

void op_shape(struct call *c);
void op_range(struct call *c);
void op_eye_like(struct call *c);
void op_cast(struct call *c);
void op_cast_like(struct call *c);
void op_constant(struct call *c);
void op_constant_of_shape(struct call *c);

/* Arithmetic of int64 constants (shapes): true where the call was such and is done or has failed.
 */
bool fold_binary(struct call *c, enum op_kind kind, int x, int y);

#endif
