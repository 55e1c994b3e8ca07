/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Operators of a graph, after reading: few kinds, attributes resolved, shapes known.
 *
 * What a file calls Conv, Gemm, BatchNormalization or Clip is broken up on entry (ops_*.c) into
 * these kinds, each with one output: a bias is an addition, a batch normalisation is a
 * multiplication and an addition of constants, Gemm is a matrix product and what follows it. So
 * fusion has one case where the file formats have many.
 */
#ifndef ENGINE_MODEL_OP_H
#define ENGINE_MODEL_OP_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/tensor/layout.h"

enum { OP_MAX_WINDOW = 3 }; /* spatial dimensions of convolution and pooling */

struct shape {
    int rank;
    int64_t dim[LAYOUT_MAX_DIMS];
};

/*
 * Operators on elements: name, text in task names, operands, `twice` (how often the expression of
 * the first operand occurs in it), `lanes` (is the result finite where padding lanes hold zeros?).
 * Truth is 1 or 0; what is neither counts as true.
 */
#define OP_ELEMENT_LIST(X)                                                                         \
    X(OP_ADD, "add", 2, 1, true)                                                                   \
    X(OP_SUB, "sub", 2, 1, true)                                                                   \
    X(OP_MUL, "mul", 2, 1, true)                                                                   \
    X(OP_DIV, "div", 2, 1, false)                                                                  \
    X(OP_POW, "pow", 2, 1, false)                                                                  \
    X(OP_MAX, "max", 2, 1, true)                                                                   \
    X(OP_MIN, "min", 2, 1, true)                                                                   \
    X(OP_PRELU, "prelu", 2, 2, true)                                                               \
    X(OP_RELU, "relu", 1, 1, true)                                                                 \
    X(OP_LEAKY, "leaky", 1, 2, true)                                                               \
    X(OP_CLIP, "clip", 1, 1, true)                                                                 \
    X(OP_SIGMOID, "sigmoid", 1, 1, true)                                                           \
    X(OP_HARD_SIGMOID, "hsigmoid", 1, 1, true)                                                     \
    X(OP_HARD_SWISH, "hswish", 1, 2, true)                                                         \
    X(OP_TANH, "tanh", 1, 1, true)                                                                 \
    X(OP_ERF, "erf", 1, 1, true)                                                                   \
    X(OP_GELU, "gelu", 1, 2, true)                                                                 \
    X(OP_GELU_TANH, "gelu", 1, 4, true)                                                            \
    X(OP_ELU, "elu", 1, 2, true)                                                                   \
    X(OP_SELU, "selu", 1, 2, true)                                                                 \
    X(OP_SOFTPLUS, "softplus", 1, 2, true)                                                         \
    X(OP_SOFTSIGN, "softsign", 1, 2, true)                                                         \
    X(OP_SQRT, "sqrt", 1, 1, false)                                                                \
    X(OP_EXP, "exp", 1, 1, true)                                                                   \
    X(OP_LOG, "log", 1, 1, false)                                                                  \
    X(OP_NEG, "neg", 1, 1, true)                                                                   \
    X(OP_ABS, "abs", 1, 1, true)                                                                   \
    X(OP_RECIPROCAL, "recip", 1, 1, false)                                                         \
    X(OP_FLOOR, "floor", 1, 1, true)                                                               \
    X(OP_CEIL, "ceil", 1, 1, true)                                                                 \
    X(OP_ROUND, "round", 1, 1, true)                                                               \
    X(OP_TRUNC, "trunc", 1, 2, true)                                                               \
    X(OP_SIGN, "sign", 1, 2, true)                                                                 \
    X(OP_SIN, "sin", 1, 1, true)                                                                   \
    X(OP_COS, "cos", 1, 1, true)                                                                   \
    X(OP_NOT, "not", 1, 1, true)                                                                   \
    X(OP_EQUAL, "equal", 2, 1, true)                                                               \
    X(OP_LESS, "less", 2, 1, true)                                                                 \
    X(OP_LESS_EQUAL, "lesseq", 2, 2, true)                                                         \
    X(OP_MOD, "mod", 2, 2, false)                                                                  \
    X(OP_FMOD, "fmod", 2, 3, false)                                                                \
    X(OP_WHERE, "where", 3, 2, true)

enum op_kind {
#define OP_ELEMENT_ENUM(name, text, arity, twice, lanes) name,
    OP_ELEMENT_LIST(OP_ELEMENT_ENUM) OP_NR_ELEMENT,
#undef OP_ELEMENT_ENUM
    OP_CONV = OP_NR_ELEMENT, /* x [N,C,...], w [K,C/groups,...] -> [N,K,...] */
    OP_MATMUL,               /* a [...,M,K], b [...,K,N] or transposed -> [...,M,N] */
    OP_POOL,                 /* x [N,C,...] */
    OP_REDUCE,               /* over a set of axes, which stay with extent 1 */
    OP_SOFTMAX,              /* over a set of axes */
    OP_LRN,                  /* x [N,C,...], over channels */
    OP_CONCAT,               /* any number of inputs */
    OP_TRANSPOSE,
    OP_GATHER, /* x, whole numbers: those elements of dimension `axis` */
    OP_PAD,    /* constant, in front and behind; negative crops */
    OP_SLICE,
    OP_RESHAPE,  /* same elements in the same order: a view */
    OP_RELAYOUT, /* same logical array, other stored layout */
    OP_NR_KINDS,
};

enum op_reduce { REDUCE_SUM, REDUCE_MEAN, REDUCE_MAX, REDUCE_MIN, REDUCE_PROD };

/* Windows of convolution and pooling, one entry a spatial dimension, outermost first. */
struct op_window {
    int nr;
    int64_t size[OP_MAX_WINDOW], stride[OP_MAX_WINDOW], dilation[OP_MAX_WINDOW];
    int64_t pad[OP_MAX_WINDOW];     /* in front */
    int64_t pad_end[OP_MAX_WINDOW]; /* behind; only counts for averages that include it */
};

struct op {
    enum op_kind kind;
    /* OP_LEAKY, OP_ELU: a is the slope; OP_CLIP: a, b the bounds; OP_HARD_SIGMOID: a x + b;
     * OP_SELU: a alpha, b gamma; OP_LRN: a alpha, b beta, c bias; OP_PAD: a the value */
    float a, b, c;
    struct op_window window;       /* OP_CONV, OP_POOL */
    int64_t groups;                /* OP_CONV */
    bool max, include_pad;         /* OP_POOL */
    bool trans_a, trans_b;         /* OP_MATMUL */
    bool log;                      /* OP_SOFTMAX: its logarithm */
    enum op_reduce reduce;         /* OP_REDUCE */
    unsigned axes;                 /* OP_REDUCE, OP_SOFTMAX: bit set */
    int axis;                      /* OP_CONCAT, OP_GATHER */
    bool each;                     /* OP_GATHER: an index for each element of the result */
    bool wraps;                    /* OP_GATHER: indices below 0 count from the end */
    int64_t size;                  /* OP_LRN: channels in the window */
    int64_t at[LAYOUT_MAX_DIMS];   /* OP_PAD: in front; OP_SLICE: start; OP_TRANSPOSE: input axis */
    int64_t step[LAYOUT_MAX_DIMS]; /* OP_SLICE */
};

static inline bool op_is_element(enum op_kind kind)
{
    return kind < OP_NR_ELEMENT;
}

/* Is its second operand a divisor? */
static inline bool op_divides(enum op_kind kind)
{
    return kind == OP_DIV || kind == OP_MOD || kind == OP_FMOD;
}

/* Text of a kind in task names: "conv", "relu". */
const char *op_text(enum op_kind kind);
int op_operands(enum op_kind kind); /* of an element operator: 1 to 3 */
int op_repeats(enum op_kind kind);  /* occurrences of the first operand in its expression */
bool op_keeps_lanes(enum op_kind kind);

/* Elements, or -1 past 2^31: no array of a network is larger. */
int64_t shape_size(const struct shape *s);
bool shape_equal(const struct shape *a, const struct shape *b);

#endif
