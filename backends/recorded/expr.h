/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Expr: constraints as people write them in Python, over named values. Nothing is ever executed.
 *
 * From loosest to tightest, as in Python: `a if c else b`; or; and; not; comparisons and `in`, which
 * chain (32 <= a*b <= 1024); | ^ & << >>; + -; * / // %; unary + - ~; **, which binds to the right
 * and tighter than a minus before it. Integers, floats, 'strings', True, False, None, (a, b) and [a, b]
 * behind `in`, and the functions abs min max int float round.
 *
 * As in Python: / gives a float; // and % floor, of floats too; `and` and `or` give one of their
 * operands; True counts as 1. Not as in Python: an integer that leaves 64 bits becomes a float, and
 * one float that leaves its range becomes infinite.
 *
 * A tree is immutable, in the arena it was parsed into, and may be evaluated by many threads.
 */
#ifndef BACKENDS_RECORDED_EXPR_H
#define BACKENDS_RECORDED_EXPR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "backends/recorded/recorded.h"
#include "engine/base/arena.h"
#include "engine/base/err.h"

struct expr;

/* Number of the variable of that name, -1 for none. */
typedef int expr_resolve(void *ctx, const char *name, size_t len);

/* ERR_INPUT with a sentence that names place and expression. */
int expr_parse(const char *text, expr_resolve *resolve, void *ctx, struct arena *a,
               struct expr **out, struct err *e);

/* Calls back for every variable that the expression reads, maybe more than once. */
void expr_variables(const struct expr *x, void (*found)(void *ctx, int variable), void *ctx);

enum expr_status {
    EXPR_FINE,
    EXPR_ZERO_DIVISION,
    EXPR_TYPE, /* "row" < 3, 1 % "x" */
};

/* `value` holds a pointer to the value of each variable. */
enum expr_status expr_eval(const struct expr *x, const struct recorded_value *const *value,
                           struct recorded_value *out);
bool expr_truth(const struct recorded_value *v);

/* What is known of a variable: its value (lo == hi, exact set), or that it is a number in between. */
struct expr_range {
    double lo, hi;
    const struct recorded_value *exact; /* NULL where several are possible */
};

/* False: the expression is false whatever the variables are within their ranges. A division by zero
 * counts as true, as constraints take it. */
bool expr_possible(const struct expr *x, const struct expr_range *range);

#endif
