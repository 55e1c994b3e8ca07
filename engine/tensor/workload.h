/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Workload: the exact computation of a task.
 *
 * A workload is a list of tensors and a list of stages. A stage fills (a part of) one tensor: it has
 * spatial axes, and possibly reduction axes, each running from 0 to its extent; its body is an
 * expression over the axes that loads elements of other tensors at affine indices. With reduction
 * axes the body is combined over them:
 *
 *     out[out_idx(s)] = combine over r of body(s, r)        starting from the neutral element
 *     out[out_idx(s)] = body(s)                             without reduction axes
 *
 * Stages are in order: a stage reads inputs, constants and what earlier stages filled. Everything
 * the schedules do is derived from this; no operator is known by name here. Examples:
 *
 *   conv2d with padding, bias and relu:
 *     stage pad   [n, c, h, w]                = guarded load of x (0 outside)
 *     stage conv  [n, k, y, x | c, r, s] sum  = pad[n, c, y*sh + r*dh, x*sw + s*dw] * w[k, c, r, s]
 *     stage out   [n, k, y, x]                = max(conv[n, k, y, x] + b[k], 0)
 *
 * Tensors have *stored* dimensions (the array in memory) and a layout, which says how the stored
 * array relates to the logical one of the model (NCHW16c for NCHW). Indices are stored indices.
 * Constants are always in their plain logical layout: a schedule may repack them.
 *
 * A load whose index may leave the tensor must be `guarded`; it then yields `pad` there.
 *
 * Life cycle: workload_init() an empty one, fill it with the functions below, workload_finish()
 * checks it and computes text and hash; workload_release() frees all. Immutable after finish, and
 * then shared freely between threads. Expressions belong to the workload.
 */
#ifndef ENGINE_TENSOR_WORKLOAD_H
#define ENGINE_TENSOR_WORKLOAD_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/base/arena.h"
#include "engine/base/err.h"
#include "engine/tensor/layout.h"

enum { WL_MAX_AXES = 14, WL_MAX_TENSORS = 40, WL_MAX_STAGES = 40, WL_NAME = 24 };

enum wl_role {
    WL_INPUT,  /* varies from call to call (activations) */
    WL_CONST,  /* fixed for the life of a model (weights): may be repacked for a schedule */
    WL_TEMP,   /* filled by a stage, read by later ones, never seen outside */
    WL_OUTPUT, /* filled by stages, the result; exactly one */
};

struct wl_tensor {
    char name[WL_NAME];
    enum wl_role role;
    int nr_dims;
    int64_t dim[LAYOUT_MAX_DIMS]; /* stored extents == layout.p[].extent */
    struct layout layout;
};

/* base + sum of coef[a] * axis a, over the axes of the stage: spatial first, then reduction. */
struct affine {
    int64_t base;
    int64_t coef[WL_MAX_AXES];
};

/*
 * round: to the even one of two equally near. less, equal: 1 where it holds, else 0. keep(c, x): x
 * where c is not 0, else 0, whatever x is there.
 */
#define WL_OP_LIST(X)                                                                              \
    X(WL_LITERAL, "lit", 0)                                                                        \
    X(WL_LOAD, "load", 0)                                                                          \
    X(WL_TABLE, "table", 0)                                                                        \
    X(WL_PICK, "pick", 1)                                                                          \
    X(WL_ADD, "add", 2)                                                                            \
    X(WL_SUB, "sub", 2)                                                                            \
    X(WL_MUL, "mul", 2)                                                                            \
    X(WL_DIV, "div", 2)                                                                            \
    X(WL_MAX, "max", 2)                                                                            \
    X(WL_MIN, "min", 2)                                                                            \
    X(WL_POW, "pow", 2)                                                                            \
    X(WL_NEG, "neg", 1)                                                                            \
    X(WL_ABS, "abs", 1)                                                                            \
    X(WL_EXP, "exp", 1)                                                                            \
    X(WL_LOG, "log", 1)                                                                            \
    X(WL_SQRT, "sqrt", 1)                                                                          \
    X(WL_TANH, "tanh", 1)                                                                          \
    X(WL_ERF, "erf", 1)                                                                            \
    X(WL_FLOOR, "floor", 1)                                                                        \
    X(WL_ROUND, "round", 1)                                                                        \
    X(WL_SIN, "sin", 1)                                                                            \
    X(WL_COS, "cos", 1)                                                                            \
    X(WL_LESS, "less", 2)                                                                          \
    X(WL_EQUAL, "equal", 2)                                                                        \
    X(WL_KEEP, "keep", 2)

enum wl_op {
#define WL_OP_ENUM(name, text, arity) name,
    WL_OP_LIST(WL_OP_ENUM) WL_NR_OPS
#undef WL_OP_ENUM
};

struct wl_expr {
    enum wl_op op;
    float literal;
    int tensor; /* WL_LOAD, WL_PICK */
    int dim;    /* WL_PICK: idx[dim] is what `a` says, cut to the extent; idx[dim] itself is 0 */
    bool guarded;
    float pad;
    struct affine idx[LAYOUT_MAX_DIMS]; /* WL_TABLE: idx[0] */
    const float *table; /* WL_TABLE: numbers known to the compiler; belongs to the caller */
    int nr_table;
    const struct wl_expr *a, *b;
};

enum wl_combine { WL_NONE, WL_SUM, WL_MAXIMUM, WL_MINIMUM, WL_PRODUCT };

struct wl_stage {
    char name[WL_NAME];
    int out;                 /* tensor */
    int nr_spatial, nr_reduce;
    char axis[WL_MAX_AXES][WL_NAME];
    int64_t extent[WL_MAX_AXES];
    struct affine out_idx[LAYOUT_MAX_DIMS]; /* over spatial axes; distinct points, distinct elements */
    enum wl_combine combine; /* WL_NONE exactly when nr_reduce == 0 */
    const struct wl_expr *body;
};

struct workload {
    char name[64]; /* kind of computation, for people: "conv2d", "matmul" */
    int nr_tensors, nr_stages;
    struct wl_tensor tensor[WL_MAX_TENSORS];
    struct wl_stage stage[WL_MAX_STAGES];
    double flops;  /* arithmetic operations a call, by convention 2 a multiply-add; set by the maker */
    char *text;    /* canonical text */
    char id[17];   /* hash of the text, 16 hexadecimal digits */
    struct arena arena;
};

void workload_init(struct workload *w, const char *name);
void workload_release(struct workload *w);

/* Adds a tensor, its stored dimensions taken from the layout; returns its number. Past the limits
 * above the workload is marked too large, and workload_finish() says so. */
int workload_tensor(struct workload *w, const char *name, enum wl_role role,
                    const struct layout *layout);

/* Adds a stage that fills `out`; its axes are added with workload_axis(), spatial ones first.
 * out_idx starts as the identity over the first spatial axes. Returns its number. */
int workload_stage(struct workload *w, const char *name, int out, enum wl_combine combine);
int workload_axis(struct workload *w, int stage, const char *name, int64_t extent, bool reduce);

const struct wl_expr *wl_literal(struct workload *w, float value);
/* The number table[idx]: axes in `idx` become constants of the code, so that factors of 0 and 1 cost
 * nothing. */
const struct wl_expr *wl_table(struct workload *w, const float *table, int nr, struct affine idx);
/* `idx` has one entry a stored dimension of `tensor`. */
const struct wl_expr *wl_load(struct workload *w, int tensor, const struct affine *idx);
const struct wl_expr *wl_load_guarded(struct workload *w, int tensor, const struct affine *idx,
                                      float pad);
/* Element of an input or constant whose index in stored dimension `dim` is a computed number. */
const struct wl_expr *wl_pick(struct workload *w, int tensor, const struct affine *idx, int dim,
                              const struct wl_expr *at);
const struct wl_expr *wl_unary(struct workload *w, enum wl_op op, const struct wl_expr *a);
const struct wl_expr *wl_binary(struct workload *w, enum wl_op op, const struct wl_expr *a,
                                const struct wl_expr *b);

/* Affine helpers: axis number `axis` times `coef` plus `base`. */
struct affine affine_const(int64_t base);
struct affine affine_axis(int axis, int64_t coef);
struct affine affine_add(struct affine a, struct affine b);

/* Checks indices, roles, extents (positive, sizes below 2^40 elements); fills text and id. */
int workload_finish(struct workload *w, struct err *e);

/* Bytes of all inputs, constants and the output: what a call must at least move. */
int64_t workload_bytes(const struct workload *w);

/* What a reduction begins with: combining it changes nothing. */
float wl_neutral(enum wl_combine how);

/* The only WL_OUTPUT tensor. */
int workload_output(const struct workload *w);

/*
 * Evaluates the stages one after the other by their definition, in double precision, without any
 * schedule. `stored` has one array a tensor, in stored layout; inputs and constants are read,
 * temporaries and output are written. For tests, and as a last resort for a task without an
 * independent reference. Slow.
 */
void workload_interpret(const struct workload *w, float *const *stored);

#endif
