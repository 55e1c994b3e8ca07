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

struct call {
    struct graph *g;
    const struct graph_call *c;
    struct err *e;
    int rc;  /* 0, or the first error */
    int arg; /* of the table: what tells operators with one handler apart */
};

int call_fail(struct call *c, int code, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

/* Input `i`: -1 where it is left out. The second form fails unless it is float32. */
int call_in(struct call *c, int i);
int call_tensor(struct call *c, int i);

/* Never NULL: an empty value for -1. */
const struct value *call_value(struct call *c, int v);

/* Elements of an input that must be a constant of int64; *nr their number, at most `max`. */
const int64_t *call_const_ints(struct call *c, int i, int max, int *nr);

bool call_has(struct call *c, const char *attr);
int64_t call_int(struct call *c, const char *attr, int64_t otherwise);
double call_float(struct call *c, const char *attr, double otherwise);
bool call_string_is(struct call *c, const char *attr, const char *text, bool otherwise);
/* Number of elements copied to out[], -1 where there is no such attribute. */
int call_ints(struct call *c, const char *attr, int max, int64_t *out);

/* `axis` of a value of `rank` dimensions, counted from the end where negative. */
int call_axis(struct call *c, int64_t axis, int rank);

/* Nodes: each returns the number of the new value, or -1. */
int call_emit(struct call *c, const struct op *op, const int *in, int nr_in,
              const struct shape *out);
int call_element1(struct call *c, enum op_kind kind, int x, double a, double b);
int call_element2(struct call *c, enum op_kind kind, int x, int y);
int call_reshape(struct call *c, int v, const struct shape *shape);
int call_literal(struct call *c, double v);
int call_reduce(struct call *c, int v, enum op_reduce how, unsigned axes);

void call_out(struct call *c, int i, int v);

/* "[1,64,56,56]" for messages, in a buffer of the caller. */
struct shape_text {
    char s[LAYOUT_MAX_DIMS * 21 + 3];
};
struct shape_text shape_text(const struct shape *s);

/* Handlers: ops_window.c, ops_element.c, ops_shape.c. */
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
void op_batchnorm(struct call *c);
void op_layernorm(struct call *c);
void op_instancenorm(struct call *c);
void op_softmax(struct call *c);
void op_reduce(struct call *c);

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
void op_gather(struct call *c);
void op_expand(struct call *c);
void op_space(struct call *c);
void op_shape(struct call *c);
void op_cast(struct call *c);
void op_constant(struct call *c);
void op_constant_of_shape(struct call *c);

/* Arithmetic of int64 constants (shapes): true where the call was such and is done or has failed.
 */
bool fold_binary(struct call *c, enum op_kind kind, int x, int y);

#endif
