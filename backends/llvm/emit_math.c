/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Elementary functions in IR.
 *
 * All polynomials are minimax fits of our own: Remez exchange at 50 digits on the interval and with
 * the weight that stands beside each, the coefficients then rounded to the type they are used in.
 * Coefficients are in order of rising degree.
 */
#include "backends/llvm/emit_math.h"

#include <assert.h>
#include <math.h>

/* A value's shape: a float or double type, and the integer type of its bits. */
struct shape {
    struct emitter *m;
    LLVMTypeRef f, i;
    unsigned lanes; /* 0: a scalar */
    bool is_double;
};

static LLVMTypeRef of_lanes(LLVMTypeRef element, unsigned lanes)
{
    return lanes ? LLVMVectorType(element, lanes) : element;
}

static struct shape shape_new(struct emitter *m, unsigned lanes, bool is_double)
{
    LLVMTypeRef f = is_double ? LLVMDoubleTypeInContext(m->ctx) : m->f32;
    return (struct shape){m, of_lanes(f, lanes), of_lanes(is_double ? m->i64 : m->i32, lanes),
                          lanes, is_double};
}

static struct shape shape_of(struct emitter *m, LLVMValueRef x)
{
    LLVMTypeRef t = LLVMTypeOf(x);
    bool vector = LLVMGetTypeKind(t) == LLVMVectorTypeKind;
    return shape_new(m, vector ? LLVMGetVectorSize(t) : 0, false);
}

static LLVMValueRef splat(const struct shape *s, LLVMValueRef c)
{
    LLVMValueRef v[64];
    assert(s->lanes <= 64);
    for (unsigned i = 0; i < s->lanes; i++)
        v[i] = c;
    return s->lanes ? LLVMConstVector(v, s->lanes) : c;
}

static LLVMValueRef real(const struct shape *s, double v)
{
    LLVMTypeRef element = s->lanes ? LLVMGetElementType(s->f) : s->f;
    return splat(s, LLVMConstReal(element, v));
}

static LLVMValueRef whole(const struct shape *s, int64_t v)
{
    LLVMTypeRef element = s->lanes ? LLVMGetElementType(s->i) : s->i;
    return splat(s, LLVMConstInt(element, (unsigned long long)v, true));
}

/* Operations. */

static LLVMValueRef add(const struct shape *s, LLVMValueRef a, LLVMValueRef b)
{
    s->m->ops++;
    return LLVMBuildFAdd(s->m->b, a, b, "");
}

static LLVMValueRef sub(const struct shape *s, LLVMValueRef a, LLVMValueRef b)
{
    s->m->ops++;
    return LLVMBuildFSub(s->m->b, a, b, "");
}

static LLVMValueRef mul(const struct shape *s, LLVMValueRef a, LLVMValueRef b)
{
    s->m->ops++;
    return LLVMBuildFMul(s->m->b, a, b, "");
}

static LLVMValueRef quotient(const struct shape *s, LLVMValueRef a, LLVMValueRef b)
{
    s->m->ops++;
    return LLVMBuildFDiv(s->m->b, a, b, "");
}

static LLVMValueRef fma_(const struct shape *s, LLVMValueRef a, LLVMValueRef b, LLVMValueRef c)
{
    LLVMTypeRef type = s->f;
    LLVMValueRef args[] = {a, b, c};
    s->m->ops++;
    return emit_intrinsic(s->m, "llvm.fmuladd", &type, 1, args, 3);
}

static LLVMValueRef unary(const struct shape *s, const char *name, LLVMValueRef x)
{
    LLVMTypeRef type = s->f;
    s->m->ops++;
    return emit_intrinsic(s->m, name, &type, 1, &x, 1);
}

static LLVMValueRef integer(const struct shape *s, LLVMOpcode op, LLVMValueRef a, LLVMValueRef b)
{
    s->m->ops++;
    return LLVMBuildBinOp(s->m->b, op, a, b, "");
}

static LLVMValueRef test(const struct shape *s, LLVMRealPredicate p, LLVMValueRef a, LLVMValueRef b)
{
    s->m->ops++;
    return LLVMBuildFCmp(s->m->b, p, a, b, "");
}

static LLVMValueRef choose(const struct shape *s, LLVMValueRef if_, LLVMValueRef a, LLVMValueRef b)
{
    s->m->ops++;
    return LLVMBuildSelect(s->m->b, if_, a, b, "");
}

static LLVMValueRef bits(const struct shape *s, LLVMValueRef x)
{
    return LLVMBuildBitCast(s->m->b, x, s->i, "");
}

static LLVMValueRef from_bits(const struct shape *s, LLVMValueRef x)
{
    return LLVMBuildBitCast(s->m->b, x, s->f, "");
}

/* x, but not above `high` (below `low`); NaN stays: the machine's min and max give their second
 * operand then. */
static LLVMValueRef at_most(const struct shape *s, LLVMValueRef x, double high)
{
    LLVMValueRef c = real(s, high);
    return choose(s, test(s, LLVMRealOLT, c, x), c, x);
}

static LLVMValueRef at_least(const struct shape *s, LLVMValueRef x, double low)
{
    LLVMValueRef c = real(s, low);
    return choose(s, test(s, LLVMRealOGT, c, x), c, x);
}

static LLVMValueRef sign_bit(const struct shape *s, LLVMValueRef x)
{
    int64_t mask = s->is_double ? INT64_MIN : (int64_t)INT32_MIN;
    return integer(s, LLVMAnd, bits(s, x), whole(s, mask));
}

/* `magnitude`, which has no sign, with the sign of `like`. */
static LLVMValueRef with_sign(const struct shape *s, LLVMValueRef magnitude, LLVMValueRef like)
{
    return from_bits(s, integer(s, LLVMOr, bits(s, magnitude), sign_bit(s, like)));
}

/* Even and odd terms apart: two chains of multiply-adds, half as long. */
static LLVMValueRef polynomial(const struct shape *s, LLVMValueRef x, const double *c, int nr)
{
    LLVMValueRef square = mul(s, x, x), part[2];
    for (int odd = 0; odd < 2; odd++) {
        int k = nr - 1 - ((nr - 1 - odd) & 1);
        part[odd] = real(s, c[k]);
        for (k -= 2; k >= 0; k -= 2)
            part[odd] = fma_(s, part[odd], square, real(s, c[k]));
    }
    return fma_(s, part[1], x, part[0]);
}

#define POLYNOMIAL(s, x, c) polynomial(s, x, c, (int)(sizeof(c) / sizeof *(c)))

/* Powers of e. */

/* An argument of exp: n * ln 2 + r, n an integer, |r| <= ln 2 / 2. */
struct reduced {
    LLVMValueRef n, r;
};

/* Adding 1.5 * 2^23 leaves the nearest integer in the low bits of the sum. */
static struct reduced reduce(const struct shape *s, LLVMValueRef x)
{
    /* ln 2 in two parts: products of the first one, 12 bits long, with n are exact. */
    const double log2_e = 0x1.715476p+0, ln2_high = 0x1.62ep-1, ln2_low = 0x1.0bfbe8p-15;
    LLVMValueRef magic = real(s, 0x1.8p23);
    LLVMValueRef sum = fma_(s, x, real(s, log2_e), magic), n = sub(s, sum, magic);
    LLVMValueRef r = fma_(s, n, real(s, -ln2_high), x);
    return (struct reduced){integer(s, LLVMSub, bits(s, sum), bits(s, magic)),
                            fma_(s, n, real(s, -ln2_low), r)};
}

/* 2^n for an exponent of a normal number. */
static LLVMValueRef power_of_two(const struct shape *s, LLVMValueRef n)
{
    int mantissa = s->is_double ? 52 : 23, bias = s->is_double ? 1023 : 127;
    LLVMValueRef biased = integer(s, LLVMAdd, n, whole(s, bias));
    return from_bits(s, integer(s, LLVMShl, biased, whole(s, mantissa)));
}

LLVMValueRef emit_exp(struct emitter *m, LLVMValueRef x)
{
    /* (e^r - 1 - r) / r^2 on |r| <= ln 2 / 2, degree 4; error to e^r below 2^-28 */
    static const double c[] = {0.49999994f, 0.166665196f, 0.0416684002f, 0.00836885069f,
                               0.00138143473f};
    struct shape s = shape_of(m, x);
    /* Beyond these bounds the result is infinity and 0, as at them. */
    struct reduced a = reduce(&s, at_least(&s, at_most(&s, x, 89), -104));
    LLVMValueRef p = fma_(&s, POLYNOMIAL(&s, a.r, c), mul(&s, a.r, a.r), a.r);
    p = add(&s, p, real(&s, 1));
    /* n is from -150 to 128: in two steps, of which the second rounds denormals once. */
    LLVMValueRef half = integer(&s, LLVMAShr, a.n, whole(&s, 1));
    p = mul(&s, p, power_of_two(&s, half));
    return mul(&s, p, power_of_two(&s, integer(&s, LLVMSub, a.n, half)));
}

/* With t = e^2|x| - 1 it is t / (t + 2): t keeps its precision where |x| is small, and the quotient
 * where t is large. */
LLVMValueRef emit_tanh(struct emitter *m, LLVMValueRef x)
{
    /* (e^r - 1 - r) / r^2 on |r| <= ln 2 / 2, degree 4; error to e^r - 1 below 2^-26 */
    static const double c[] = {0.49999997f, 0.16666542f, 0.0416672044f, 0.00836664531f,
                               0.00138824561f};
    struct shape s = shape_of(m, x);
    LLVMValueRef a = at_most(&s, unary(&s, "llvm.fabs", x), 10); /* 1 from 9.02 on */
    struct reduced d = reduce(&s, add(&s, a, a));
    LLVMValueRef p = fma_(&s, POLYNOMIAL(&s, d.r, c), mul(&s, d.r, d.r), d.r);
    LLVMValueRef scale = power_of_two(&s, d.n);
    LLVMValueRef t = fma_(&s, p, scale, sub(&s, scale, real(&s, 1)));
    return with_sign(&s, quotient(&s, t, add(&s, t, real(&s, 2))), x);
}

LLVMValueRef emit_erf(struct emitter *m, LLVMValueRef x)
{
    /* erf(a) / a - 1 in a^2, a <= 1.1, degree 6; relative error of erf below 2^-27 */
    static const double low[] = {0.128379166f,   -0.376125991f,    0.112832919f,   -0.026841443f,
                                 0.00516486354f, -0.000780579343f, 7.18800075e-05f};
    /* 1 - erf(a) in a - 2.5, 1.1 <= a <= 3.925, degree 12; error below 2^-25 */
    static const double high[] = {
        0.000406933366f,  -0.00217809528f, 0.00544658583f,   -0.00835304894f,  0.00861572288f,
        -0.00610387884f,  0.00281730527f,  -0.000569517841f, -0.000285682414f, 0.000278406747f,
        -6.22395819e-05f, -2.0938247e-05f, 9.17972829e-06f};
    struct shape s = shape_of(m, x);
    LLVMValueRef a = at_most(&s, unary(&s, "llvm.fabs", x), 3.9f); /* 1 from there on */
    LLVMValueRef near = fma_(&s, POLYNOMIAL(&s, mul(&s, a, a), low), a, a);
    LLVMValueRef far = POLYNOMIAL(&s, sub(&s, a, real(&s, 2.5)), high);
    far = sub(&s, real(&s, 1), far);
    LLVMValueRef is_near = test(&s, LLVMRealOLT, a, real(&s, 1.1f));
    return with_sign(&s, choose(&s, is_near, near, far), x);
}

/* Logarithm. */

/* A positive normal number as 2^e * (1 + f), sqrt(1/2) <= 1 + f < sqrt(2). */
struct parts {
    LLVMValueRef e, f; /* e: a real */
};

/* The exponent field, which is all of `x`, as a real. */
static LLVMValueRef exponent_as_real(const struct shape *s, LLVMValueRef x)
{
    if (!s->is_double) {
        s->m->ops++;
        return LLVMBuildSIToFP(s->m->b, integer(s, LLVMAShr, x, whole(s, 23)), s->f, "");
    }
    /* Not all processors convert integers of 64 bits, or shift them with their sign: made positive,
     * they are the low bits of a real of 2^52. */
    LLVMValueRef e = integer(s, LLVMAdd, x, whole(s, INT64_C(1024) << 52));
    e = integer(s, LLVMLShr, e, whole(s, 52));
    e = from_bits(s, integer(s, LLVMOr, e, whole(s, INT64_C(0x4330000000000000))));
    return sub(s, e, real(s, 0x1p52 + 1024));
}

static struct parts split_exponent(const struct shape *s, LLVMValueRef x)
{
    int64_t root_half = s->is_double ? INT64_C(0x3fe6a09e667f3bcd) : 0x3f3504f3;
    int64_t field = -(INT64_C(1) << (s->is_double ? 52 : 23));
    LLVMValueRef all = bits(s, x), above = integer(s, LLVMSub, all, whole(s, root_half));
    LLVMValueRef exponent = integer(s, LLVMAnd, above, whole(s, field));
    LLVMValueRef mantissa = from_bits(s, integer(s, LLVMSub, all, exponent));
    return (struct parts){exponent_as_real(s, exponent), sub(s, mantissa, real(s, 1))};
}

/* The logarithm of x >= 0 or NaN, `y` where x is a positive finite number. */
static LLVMValueRef log_at_ends(const struct shape *s, LLVMValueRef x, LLVMValueRef y)
{
    y = choose(s, test(s, LLVMRealOLT, x, real(s, INFINITY)), y, x); /* infinity and NaN stay */
    return choose(s, test(s, LLVMRealOEQ, x, real(s, 0)), real(s, -INFINITY), y);
}

LLVMValueRef emit_log(struct emitter *m, LLVMValueRef x)
{
    /* (log(1 + f) - f + f^2 / 2) / f^3 between sqrt(1/2) and sqrt(2), degree 7; error relative to
     * the logarithm below 2^-27 */
    static const double c[] = {0.333333313f, -0.250008196f, 0.200012267f, -0.166233599f,
                               0.142017499f, -0.131601542f, 0.127616212f, -0.0763462782f};
    /* ln 2 in two parts, the first of ten bits: its products with exponents are exact. */
    const double ln2_high = 0.693359375, ln2_low = -2.12194440e-4f;
    struct shape s = shape_of(m, x);
    LLVMValueRef is_small = test(&s, LLVMRealOLT, x, real(&s, 0x1p-126));
    struct parts p = split_exponent(&s, choose(&s, is_small, mul(&s, x, real(&s, 0x1p23)), x));
    p.e = sub(&s, p.e, choose(&s, is_small, real(&s, 23), real(&s, 0)));
    LLVMValueRef square = mul(&s, p.f, p.f);
    LLVMValueRef cubic = mul(&s, POLYNOMIAL(&s, p.f, c), p.f);
    LLVMValueRef y = fma_(&s, cubic, square, mul(&s, p.e, real(&s, ln2_low)));
    y = add(&s, p.f, fma_(&s, square, real(&s, -0.5), y));
    y = log_at_ends(&s, x, fma_(&s, p.e, real(&s, ln2_high), y));
    return choose(&s, test(&s, LLVMRealOLT, x, real(&s, 0)), real(&s, NAN), y);
}

/* Powers. */

static LLVMValueRef is_integer(const struct shape *s, LLVMValueRef magnitude)
{
    LLVMValueRef two23 = real(s, 0x1p23);
    LLVMValueRef rounded = sub(s, add(s, magnitude, two23), two23);
    LLVMValueRef large = test(s, LLVMRealOGE, magnitude, two23);
    return integer(s, LLVMOr, large, test(s, LLVMRealOEQ, rounded, magnitude));
}

/* log2 of a positive number or zero, in double precision: the logarithm of a float is needed to ten
 * bits more than a float has, as the power may be 2^127. */
static LLVMValueRef log2_wide(const struct shape *s, LLVMValueRef x)
{
    /* log2(1 + f) / f between sqrt(1/2) and sqrt(2), degree 12; relative error below 2^-35 */
    static const double c[] = {1.4426950408687056,   -0.72134752086870191, 0.48089836139503433,
                               -0.36067367483841295, 0.28853729350894969,  -0.24045316507784562,
                               0.20617535836533202,  -0.18030061217017332, 0.15876982008321916,
                               -0.14315635482582884, 0.14474826921722825,  -0.1428397163863257,
                               0.077371090192707909};
    struct parts p = split_exponent(s, x);
    return log_at_ends(s, x, fma_(s, POLYNOMIAL(s, p.f, c), p.f, p.e));
}

/* 2^t, 0 or infinity where that is beyond a float. */
static LLVMValueRef exp2_wide(const struct shape *s, LLVMValueRef t)
{
    /* 2^r on |r| <= 1/2, degree 6; relative error below 2^-29 */
    static const double c[] = {1.0000000005550147,    0.69314720576573785,   0.24022646886225624,
                               0.055503287146219694,  0.0096184892514615365, 0.001339995651781648,
                               0.00015345781014009069};
    LLVMValueRef magic = real(s, 0x1.8p52);
    t = at_least(s, at_most(s, t, 200), -200);
    LLVMValueRef sum = add(s, t, magic), r = sub(s, t, sub(s, sum, magic));
    LLVMValueRef n = integer(s, LLVMSub, bits(s, sum), bits(s, magic));
    return mul(s, POLYNOMIAL(s, r, c), power_of_two(s, n));
}

LLVMValueRef emit_pow(struct emitter *m, LLVMValueRef x, LLVMValueRef y)
{
    struct shape s = shape_of(m, x), wide = shape_new(m, s.lanes, true);
    LLVMValueRef a = unary(&s, "llvm.fabs", x), one = real(&s, 1), zero = real(&s, 0);
    LLVMValueRef log2_a = log2_wide(&wide, LLVMBuildFPExt(m->b, a, wide.f, ""));
    LLVMValueRef t = mul(&wide, log2_a, LLVMBuildFPExt(m->b, y, wide.f, ""));
    /* 1 to any power and anything to the power of 0 are 1, even where the other one is NaN. */
    LLVMValueRef is_one =
        integer(&s, LLVMOr, test(&s, LLVMRealOEQ, a, one), test(&s, LLVMRealOEQ, y, zero));
    t = choose(&wide, is_one, real(&wide, 0), t);
    LLVMValueRef power = LLVMBuildFPTrunc(m->b, exp2_wide(&wide, t), s.f, "");

    LLVMValueRef b = unary(&s, "llvm.fabs", y), whole_y = is_integer(&s, b);
    LLVMValueRef half = is_integer(&s, mul(&s, b, real(&s, 0.5)));
    LLVMValueRef odd = LLVMBuildAnd(m->b, whole_y, LLVMBuildNot(m->b, half, ""), "");
    LLVMValueRef sign = choose(&s, odd, sign_bit(&s, x), whole(&s, 0));
    power = from_bits(&s, integer(&s, LLVMOr, bits(&s, power), sign));
    LLVMValueRef undefined =
        LLVMBuildAnd(m->b, test(&s, LLVMRealOLT, x, zero), LLVMBuildNot(m->b, whole_y, ""), "");
    undefined = LLVMBuildAnd(m->b, undefined, test(&s, LLVMRealOGT, x, real(&s, -INFINITY)), "");
    return choose(&s, undefined, real(&s, NAN), power);
}

/* x^n, n > 0. */
static LLVMValueRef product(const struct shape *s, LLVMValueRef x, int n)
{
    LLVMValueRef even = n > 1 ? product(s, x, n / 2) : NULL;
    if (!even)
        return x;
    even = mul(s, even, even);
    return n & 1 ? mul(s, even, x) : even;
}

/* A power that is no integer is positive at -0 and -infinity: there it is that of +0, +infinity. */
static LLVMValueRef positive_ends(const struct shape *s, LLVMValueRef x)
{
    LLVMValueRef is_low = test(s, LLVMRealOEQ, x, real(s, -INFINITY));
    return choose(s, is_low, real(s, INFINITY), add(s, x, real(s, 0)));
}

/* x^(quarters / 4), 0 < quarters < 4: roots neither overflow nor underflow. */
static LLVMValueRef roots(const struct shape *s, LLVMValueRef x, int quarters)
{
    LLVMValueRef half = unary(s, "llvm.sqrt", x);
    if (quarters == 2)
        return half;
    LLVMValueRef quarter = unary(s, "llvm.sqrt", half);
    return quarters == 1 ? quarter : mul(s, half, quarter);
}

LLVMValueRef emit_pow_constant(struct emitter *m, LLVMValueRef x, float y)
{
    struct shape s = shape_of(m, x);
    float quarters = fabsf(y) * 4;
    if (!(y >= -1.5f && y <= 4) || quarters != truncf(quarters))
        return emit_pow(m, x, real(&s, (double)y));
    int n = (int)quarters / 4, rest = (int)quarters % 4;
    if (rest)
        x = positive_ends(&s, x);
    LLVMValueRef one = real(&s, 1), root = rest ? roots(&s, x, rest) : NULL;
    /* What is multiplied is inverted before: x^n may overflow or be denormal where x^-n is not. */
    if (n && y < 0)
        x = quotient(&s, one, x);
    if (root && y < 0)
        root = quotient(&s, one, root);
    LLVMValueRef power = n ? product(&s, x, n) : one;
    return !root ? power : n ? mul(&s, power, root) : root;
}
