/* SPDX-License-Identifier: Apache-2.0 */
/* The value of an expression, by Python's rules. */
#include <math.h>
#include <string.h>

#include "backends/recorded/expr_private.h"

bool expr_truth(const struct recorded_value *v)
{
    switch (v->type) {
    case RECORDED_NULL:
        return false;
    case RECORDED_TEXT:
        return *v->text;
    case RECORDED_REAL:
        return v->num != 0;
    default:
        return v->i != 0;
    }
}

static bool is_number(const struct recorded_value *v)
{
    return v->type == RECORDED_BOOL || v->type == RECORDED_INT || v->type == RECORDED_REAL;
}

static enum expr_status floor_ints(enum expr_op op, int64_t a, int64_t b,
                                   struct recorded_value *out)
{
    if (b == 0)
        return EXPR_ZERO_DIVISION;
    if (b == -1) { /* INT64_MIN / -1 does not fit */
        *out = op == OP_MOD         ? value_int(0)
               : a == INT64_MIN     ? value_real(-(double)a)
                                    : value_int(-a);
        return EXPR_FINE;
    }
    int64_t q = a / b, r = a % b;
    if (r != 0 && (r < 0) != (b < 0)) {
        q--;
        r += b;
    }
    *out = value_int(op == OP_MOD ? r : q);
    return EXPR_FINE;
}

/* CPython's float_divmod(). */
static enum expr_status floor_reals(enum expr_op op, double a, double b,
                                    struct recorded_value *out)
{
    if (b == 0)
        return EXPR_ZERO_DIVISION;
    double mod = fmod(a, b), div = (a - mod) / b;
    if (mod != 0) {
        if ((b < 0) != (mod < 0)) {
            mod += b;
            div -= 1;
        }
    } else {
        mod = copysign(0, b);
    }
    double floored = div != 0 ? floor(div) : copysign(0, a / b);
    if (div - floored > 0.5)
        floored += 1;
    *out = value_real(op == OP_MOD ? mod : floored);
    return EXPR_FINE;
}

static enum expr_status power(const struct recorded_value *a, const struct recorded_value *b,
                              struct recorded_value *out)
{
    bool ints = a->type != RECORDED_REAL && b->type != RECORDED_REAL;
    if (a->num == 0 && b->num < 0)
        return EXPR_ZERO_DIVISION;
    if (a->num < 0 && b->num != floor(b->num))
        return EXPR_TYPE; /* complex */
    *out = value_real(pow(a->num, b->num));
    if (!ints || b->i < 0)
        return EXPR_FINE;
    int64_t x = 1, base = a->i;
    for (int64_t n = b->i; n > 0; n >>= 1) {
        if ((n & 1) && __builtin_mul_overflow(x, base, &x))
            return EXPR_FINE;
        if (n > 1 && __builtin_mul_overflow(base, base, &base))
            return EXPR_FINE;
    }
    *out = value_int(x);
    return EXPR_FINE;
}

static enum expr_status bitwise(enum expr_op op, int64_t a, int64_t b, struct recorded_value *out)
{
    if (op == OP_BIT_AND || op == OP_BIT_OR || op == OP_BIT_XOR) {
        *out = value_int(op == OP_BIT_AND ? a & b : op == OP_BIT_OR ? a | b : a ^ b);
        return EXPR_FINE;
    }
    if (b < 0)
        return EXPR_TYPE;
    if (op == OP_SHIFT_RIGHT)
        *out = value_int(b > 62 ? (a < 0 ? -1 : 0) : a >> b);
    else if (a != 0 && (b > 62 || (a < 0 ? -(a + 1) : a) > INT64_MAX >> b))
        *out = value_real(ldexp((double)a, b > 2000 ? 2000 : (int)b));
    else
        *out = value_int(a * (INT64_C(1) << (a ? b : 0)));
    return EXPR_FINE;
}

static enum expr_status arithmetic(enum expr_op op, const struct recorded_value *a,
                                   const struct recorded_value *b, struct recorded_value *out)
{
    bool ints = a->type != RECORDED_REAL && b->type != RECORDED_REAL;
    int64_t i = 0;
    bool over = true;
    if (ints)
        over = op == OP_ADD   ? __builtin_add_overflow(a->i, b->i, &i)
               : op == OP_SUB ? __builtin_sub_overflow(a->i, b->i, &i)
                              : __builtin_mul_overflow(a->i, b->i, &i);
    if (!over)
        *out = value_int(i);
    else
        *out = value_real(op == OP_ADD   ? a->num + b->num
                          : op == OP_SUB ? a->num - b->num
                                         : a->num * b->num);
    return EXPR_FINE;
}

enum expr_status expr_binary(enum expr_op op, const struct recorded_value *a,
                             const struct recorded_value *b, struct recorded_value *out)
{
    if (!is_number(a) || !is_number(b))
        return EXPR_TYPE;
    bool ints = a->type != RECORDED_REAL && b->type != RECORDED_REAL;
    switch (op) {
    case OP_ADD:
    case OP_SUB:
    case OP_MUL:
        return arithmetic(op, a, b, out);
    case OP_DIV:
        if (b->num == 0)
            return EXPR_ZERO_DIVISION;
        *out = value_real(a->num / b->num);
        return EXPR_FINE;
    case OP_FLOOR_DIV:
    case OP_MOD:
        return ints ? floor_ints(op, a->i, b->i, out) : floor_reals(op, a->num, b->num, out);
    case OP_POW:
        return power(a, b, out);
    default:
        if (!ints)
            return EXPR_TYPE;
        if (a->type == RECORDED_BOOL && b->type == RECORDED_BOOL && op < OP_SHIFT_LEFT) {
            *out = value_bool(op == OP_BIT_AND  ? a->i & b->i
                              : op == OP_BIT_OR ? a->i | b->i
                                                : a->i ^ b->i);
            return EXPR_FINE;
        }
        return bitwise(op, a->i, b->i, out);
    }
}

static bool ordered(enum expr_cmp cmp, int sign)
{
    switch (cmp) {
    case CMP_LT:
        return sign < 0;
    case CMP_LE:
        return sign <= 0;
    case CMP_GT:
        return sign > 0;
    case CMP_GE:
        return sign >= 0;
    case CMP_EQ:
        return sign == 0;
    default:
        return sign != 0;
    }
}

enum expr_status expr_compare(enum expr_cmp cmp, const struct recorded_value *a,
                              const struct recorded_value *b, bool *out)
{
    if (is_number(a) && is_number(b)) {
        if (a->type != RECORDED_REAL && b->type != RECORDED_REAL)
            *out = ordered(cmp, (a->i > b->i) - (a->i < b->i));
        else if (isnan(a->num) || isnan(b->num))
            *out = cmp == CMP_NE;
        else
            *out = ordered(cmp, (a->num > b->num) - (a->num < b->num));
        return EXPR_FINE;
    }
    if (a->type == RECORDED_TEXT && b->type == RECORDED_TEXT) {
        *out = ordered(cmp, strcmp(a->text, b->text));
        return EXPR_FINE;
    }
    if (cmp != CMP_EQ && cmp != CMP_NE)
        return EXPR_TYPE;
    bool equal = a->type == RECORDED_NULL && b->type == RECORDED_NULL;
    *out = equal == (cmp == CMP_EQ);
    return EXPR_FINE;
}

static enum expr_status contained(const struct expr *list, enum expr_cmp cmp,
                                  const struct recorded_value *left,
                                  const struct recorded_value *const *value, bool *out)
{
    bool found = false;
    for (int i = 0; i < list->nr && !found; i++) {
        struct recorded_value v;
        enum expr_status s = expr_eval(list->arg[i], value, &v);
        s = s ? s : expr_compare(CMP_EQ, left, &v, &found);
        if (s)
            return s;
    }
    *out = found == (cmp == CMP_IN);
    return EXPR_FINE;
}

static enum expr_status eval_chain(const struct expr *x, const struct recorded_value *const *value,
                                   struct recorded_value *out)
{
    struct recorded_value left, right = {0};
    bool holds = true;
    enum expr_status s = expr_eval(x->arg[0], value, &left);
    for (int i = 1; i < x->nr && !s && holds; i++) {
        enum expr_cmp cmp = x->cmp[i - 1];
        if (cmp >= CMP_IN) {
            s = contained(x->arg[i], cmp, &left, value, &holds);
            continue;
        }
        s = expr_eval(x->arg[i], value, &right);
        s = s ? s : expr_compare(cmp, &left, &right, &holds);
        left = right;
    }
    *out = value_bool(holds);
    return s;
}

static enum expr_status to_int(enum expr_op op, const struct recorded_value *v,
                               struct recorded_value *out)
{
    if (v->type != RECORDED_REAL) {
        *out = value_int(v->i);
        return EXPR_FINE;
    }
    double x = op == OP_INT ? trunc(v->num) : nearbyint(v->num);
    if (!isfinite(x))
        return EXPR_TYPE;
    *out = fabs(x) < 9e18 ? value_int((int64_t)x) : value_real(x);
    return EXPR_FINE;
}

static enum expr_status eval_unary(const struct expr *x, const struct recorded_value *v,
                                   struct recorded_value *out)
{
    static const struct recorded_value zero = {.type = RECORDED_INT};
    if (x->op == OP_NOT) {
        *out = value_bool(!expr_truth(v));
        return EXPR_FINE;
    }
    if (!is_number(v))
        return EXPR_TYPE;
    switch (x->op) {
    case OP_MINUS:
        if (v->type == RECORDED_REAL) {
            *out = value_real(-v->num);
            return EXPR_FINE;
        }
        return expr_binary(OP_SUB, &zero, v, out);
    case OP_PLUS:
        return v->type == RECORDED_REAL ? (*out = *v, EXPR_FINE) : to_int(OP_INT, v, out);
    case OP_INVERT:
        if (v->type == RECORDED_REAL)
            return EXPR_TYPE;
        *out = value_int(~v->i);
        return EXPR_FINE;
    case OP_ABS:
        if (v->type == RECORDED_REAL || v->i == INT64_MIN)
            *out = value_real(fabs(v->num));
        else
            *out = value_int(v->i < 0 ? -v->i : v->i);
        return EXPR_FINE;
    case OP_FLOAT:
        *out = value_real(v->num);
        return EXPR_FINE;
    default:
        return to_int(x->op, v, out);
    }
}

static enum expr_status eval_extreme(const struct expr *x,
                                     const struct recorded_value *const *value,
                                     struct recorded_value *out)
{
    enum expr_status s = expr_eval(x->arg[0], value, out);
    for (int i = 1; i < x->nr && !s; i++) {
        struct recorded_value v;
        bool take = false;
        s = expr_eval(x->arg[i], value, &v);
        s = s ? s : expr_compare(x->op == OP_MIN ? CMP_LT : CMP_GT, &v, out, &take);
        if (take)
            *out = v;
    }
    return s;
}

enum expr_status expr_eval(const struct expr *x, const struct recorded_value *const *value,
                           struct recorded_value *out)
{
    struct recorded_value a, b;
    enum expr_status s;
    switch (x->op) {
    case OP_VALUE:
        *out = x->value;
        return EXPR_FINE;
    case OP_VARIABLE:
        *out = *value[x->variable];
        return EXPR_FINE;
    case OP_OR:
    case OP_AND:
        s = expr_eval(x->arg[0], value, out);
        return s || expr_truth(out) == (x->op == OP_OR) ? s : expr_eval(x->arg[1], value, out);
    case OP_CHAIN:
        return eval_chain(x, value, out);
    case OP_IF:
        s = expr_eval(x->arg[1], value, &a);
        return s ? s : expr_eval(x->arg[expr_truth(&a) ? 0 : 2], value, out);
    case OP_MIN:
    case OP_MAX:
        return eval_extreme(x, value, out);
    case OP_LIST:
        return EXPR_TYPE;
    default:
        s = expr_eval(x->arg[0], value, &a);
        if (s)
            return s;
        if (x->nr == 1)
            return eval_unary(x, &a, out);
        s = expr_eval(x->arg[1], value, &b);
        return s ? s : expr_binary(x->op, &a, &b, out);
    }
}
