/* SPDX-License-Identifier: Apache-2.0 */
/* The tree of an expression. Private to expr.c, expr_eval.c and expr_range.c. */
#ifndef BACKENDS_RECORDED_EXPR_PRIVATE_H
#define BACKENDS_RECORDED_EXPR_PRIVATE_H

#include "backends/recorded/expr.h"

enum expr_op {
    OP_VALUE,
    OP_VARIABLE,
    OP_OR,
    OP_AND,
    OP_NOT,
    OP_CHAIN, /* comparisons: arg[0] cmp[0] arg[1] cmp[1] ... */
    OP_IF,    /* arg[0] if arg[1] else arg[2] */
    OP_BIT_OR,
    OP_BIT_XOR,
    OP_BIT_AND,
    OP_SHIFT_LEFT,
    OP_SHIFT_RIGHT,
    OP_ADD,
    OP_SUB,
    OP_MUL,
    OP_DIV,
    OP_FLOOR_DIV,
    OP_MOD,
    OP_POW,
    OP_MINUS,
    OP_PLUS,
    OP_INVERT,
    OP_ABS,
    OP_MIN,
    OP_MAX,
    OP_INT,
    OP_FLOAT,
    OP_ROUND,
    OP_LIST, /* the right side of `in` only */
};

enum expr_cmp { CMP_LT, CMP_LE, CMP_GT, CMP_GE, CMP_EQ, CMP_NE, CMP_IN, CMP_NOT_IN };

struct expr {
    enum expr_op op;
    int nr;
    int variable;
    struct recorded_value value;
    struct expr **arg;
    enum expr_cmp *cmp;
};

/* One operation of two numbers or, for comparisons, of any values; used on values and on the ends of
 * ranges alike. */
enum expr_status expr_binary(enum expr_op op, const struct recorded_value *a,
                             const struct recorded_value *b, struct recorded_value *out);
enum expr_status expr_compare(enum expr_cmp cmp, const struct recorded_value *a,
                              const struct recorded_value *b, bool *out);

static inline struct recorded_value value_int(int64_t i)
{
    return (struct recorded_value){.type = RECORDED_INT, .i = i, .num = (double)i};
}

static inline struct recorded_value value_real(double x)
{
    return (struct recorded_value){.type = RECORDED_REAL, .num = x};
}

static inline struct recorded_value value_bool(bool b)
{
    return (struct recorded_value){.type = RECORDED_BOOL, .i = b, .num = b};
}

#endif
