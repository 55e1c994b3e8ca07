/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What an expression can be while some of its variables are open: interval arithmetic. Rounding is
 * monotone, so the ends of a sum or a product of doubles bound every sum and product in between as
 * the evaluator computes them, up to the integers that a double holds exactly. Where nothing simple
 * is known the answer is "anything".
 */
#include <math.h>

#include "backends/recorded/expr_private.h"

/* Numbers lo .. hi; or `any`: a text, a failure, whatever. */
struct span {
    double lo, hi;
    bool any;
};

static const struct span anything = {-INFINITY, INFINITY, true};

static struct span truth(bool can_be_false, bool can_be_true)
{
    return (struct span){can_be_false ? 0 : 1, can_be_true ? 1 : 0, false};
}

static bool can_be_true(struct span s)
{
    return s.any || s.lo != 0 || s.hi != 0;
}

static bool can_be_false(struct span s)
{
    return s.any || (s.lo <= 0 && s.hi >= 0);
}

/* Beyond 2^53 the evaluator's integers are exact and these are not. */
static struct span exact_only(struct span s)
{
    const double limit = 9007199254740992.0;
    return !s.any && s.lo >= -limit && s.hi <= limit ? s : anything;
}

static struct span hull(struct span a, struct span b)
{
    if (a.any || b.any)
        return anything;
    return (struct span){fmin(a.lo, b.lo), fmax(a.hi, b.hi), false};
}

static struct span product(struct span a, struct span b)
{
    double p[4] = {a.lo * b.lo, a.lo * b.hi, a.hi * b.lo, a.hi * b.hi};
    struct span s = {p[0], p[0], false};
    for (int i = 0; i < 4; i++) {
        if (isnan(p[i]))
            return anything;
        s.lo = fmin(s.lo, p[i]);
        s.hi = fmax(s.hi, p[i]);
    }
    return s;
}

static struct span quotient(enum expr_op op, struct span a, struct span b)
{
    if (b.lo <= 0 && b.hi >= 0)
        return anything; /* could fail */
    if (op == OP_MOD) {
        double m = fmax(fabs(b.lo), fabs(b.hi));
        return b.lo > 0 ? (struct span){0, m, false} : (struct span){-m, 0, false};
    }
    double q[4] = {a.lo / b.lo, a.lo / b.hi, a.hi / b.lo, a.hi / b.hi};
    struct span s = {q[0], q[0], false};
    for (int i = 0; i < 4; i++) {
        if (isnan(q[i]))
            return anything;
        s.lo = fmin(s.lo, q[i]);
        s.hi = fmax(s.hi, q[i]);
    }
    if (op == OP_FLOOR_DIV) /* of doubles it is not always the floor of the rounded quotient */
        s = (struct span){floor(s.lo) - 1, floor(s.hi) + 1, false};
    return s;
}

static struct span range_of(const struct expr *x, const struct expr_range *range);

static struct span compared(enum expr_cmp cmp, struct span a, struct span b)
{
    if (a.any || b.any)
        return truth(true, true);
    switch (cmp) {
    case CMP_LT:
        return truth(a.hi >= b.lo, a.lo < b.hi);
    case CMP_LE:
        return truth(a.hi > b.lo, a.lo <= b.hi);
    case CMP_GT:
        return truth(a.lo <= b.hi, a.hi > b.lo);
    case CMP_GE:
        return truth(a.lo < b.hi, a.hi >= b.lo);
    case CMP_EQ:
        return truth(a.lo != a.hi || b.lo != b.hi || a.lo != b.lo, a.lo <= b.hi && b.lo <= a.hi);
    case CMP_NE:
        return truth(a.lo <= b.hi && b.lo <= a.hi, a.lo != a.hi || b.lo != b.hi || a.lo != b.lo);
    default:
        return truth(true, true);
    }
}

static struct span chained(const struct expr *x, const struct expr_range *range)
{
    bool all = true, one_fails = false, any = false;
    struct span left = range_of(x->arg[0], range);
    any = left.any;
    for (int i = 1; i < x->nr; i++) {
        if (x->cmp[i - 1] >= CMP_IN) {
            one_fails = true;
            any = true;
            continue;
        }
        struct span right = range_of(x->arg[i], range);
        struct span s = compared(x->cmp[i - 1], left, right);
        any = any || right.any;
        all = all && can_be_true(s);
        one_fails = one_fails || can_be_false(s);
        left = right;
    }
    /* A failure inside counts as true, and it comes before a comparison that is false. */
    return any ? anything : truth(one_fails, all);
}

static struct span whole(const struct expr *x, const struct expr_range *range)
{
    struct span a = range_of(x->arg[0], range), b;
    if (x->op == OP_AND || x->op == OP_OR) {
        b = range_of(x->arg[1], range);
        bool and = x->op == OP_AND;
        if (!a.any && and && !can_be_true(a))
            return truth(true, false);
        if (!a.any && !and && !can_be_false(a))
            return a;
        if (a.any)
            return anything;
        if (and && !b.any && !can_be_true(b))
            return truth(true, false);
        return hull(a, b);
    }
    if (a.any)
        return anything;
    switch (x->op) {
    case OP_NOT:
        return truth(can_be_true(a), can_be_false(a));
    case OP_MINUS:
        return (struct span){-a.hi, -a.lo, false};
    case OP_PLUS:
    case OP_FLOAT:
        return a;
    case OP_ADD:
    case OP_SUB:
    case OP_MUL:
    case OP_DIV:
    case OP_FLOOR_DIV:
    case OP_MOD:
        break;
    default:
        return anything;
    }
    b = range_of(x->arg[1], range);
    if (b.any)
        return anything;
    if (x->op == OP_MUL)
        return exact_only(product(a, b));
    if (x->op != OP_ADD && x->op != OP_SUB)
        return exact_only(quotient(x->op, a, b));
    struct span s = x->op == OP_ADD ? (struct span){a.lo + b.lo, a.hi + b.hi, false}
                                    : (struct span){a.lo - b.hi, a.hi - b.lo, false};
    return exact_only(s);
}

static struct span of_value(const struct recorded_value *v)
{
    if (v->type == RECORDED_NULL || v->type == RECORDED_TEXT || isnan(v->num))
        return anything;
    return exact_only((struct span){v->num, v->num, false});
}

static struct span extreme(const struct expr *x, const struct expr_range *range)
{
    struct span s = range_of(x->arg[0], range);
    for (int i = 1; i < x->nr; i++) {
        struct span b = range_of(x->arg[i], range);
        if (s.any || b.any)
            return anything;
        s = x->op == OP_MIN ? (struct span){fmin(s.lo, b.lo), fmin(s.hi, b.hi), false}
                            : (struct span){fmax(s.lo, b.lo), fmax(s.hi, b.hi), false};
    }
    return s;
}

static struct span range_of(const struct expr *x, const struct expr_range *range)
{
    switch (x->op) {
    case OP_VALUE:
        return of_value(&x->value);
    case OP_VARIABLE:
        if (range[x->variable].exact)
            return of_value(range[x->variable].exact);
        if (!(range[x->variable].lo <= range[x->variable].hi))
            return anything;
        return exact_only((struct span){range[x->variable].lo, range[x->variable].hi, false});
    case OP_CHAIN:
        return chained(x, range);
    case OP_IF: {
        struct span c = range_of(x->arg[1], range);
        if (c.any)
            return anything;
        if (!can_be_true(c))
            return range_of(x->arg[2], range);
        if (!can_be_false(c))
            return range_of(x->arg[0], range);
        return hull(range_of(x->arg[0], range), range_of(x->arg[2], range));
    }
    case OP_MIN:
    case OP_MAX:
        return extreme(x, range);
    case OP_LIST:
        return anything;
    default:
        return whole(x, range);
    }
}

bool expr_possible(const struct expr *x, const struct expr_range *range)
{
    return can_be_true(range_of(x, range));
}
