/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The elementary functions that kernels contain: their error against double precision, in units in
 * the last place, swept over the bit patterns of floats; and what they are at the ends. Each one is
 * compiled for a scalar and for vectors, with and without fused multiply-add.
 */
#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <llvm-c/LLJIT.h>
#include <llvm-c/Object.h>
#include <llvm-c/Orc.h>
#include <llvm-c/Target.h>
#include <llvm-c/TargetMachine.h>

#include "backends/llvm/emit_math.h"
#include "engine/base/arena.h"

/* Every STEP-th of the 2^32 patterns; a prime, so that all exponents and many low bits occur. */
enum { STEP = 1999, PATTERNS = (int)((UINT64_C(1) << 32) / STEP) + 1 };

static const struct variant {
    const char *cpu; /* "" for this machine */
    unsigned lanes;  /* 0: a scalar */
    bool needs_avx2;
} variants[] = {
    {"", 0, false},       {"", 4, false},          {"", 8, false},         {"", 16, false},
    {"x86-64", 4, false}, {"x86-64-v2", 4, false}, {"x86-64-v3", 8, true}, {"x86-64", 0, false},
};
enum { NR_VARIANTS = sizeof variants / sizeof variants[0] };

typedef LLVMValueRef emit_fn(struct emitter *m, LLVMValueRef x, LLVMValueRef y, float constant);

static LLVMValueRef call_exp(struct emitter *m, LLVMValueRef x, LLVMValueRef y, float c)
{
    (void)y, (void)c;
    return emit_exp(m, x);
}

static LLVMValueRef call_log(struct emitter *m, LLVMValueRef x, LLVMValueRef y, float c)
{
    (void)y, (void)c;
    return emit_log(m, x);
}

static LLVMValueRef call_tanh(struct emitter *m, LLVMValueRef x, LLVMValueRef y, float c)
{
    (void)y, (void)c;
    return emit_tanh(m, x);
}

static LLVMValueRef call_erf(struct emitter *m, LLVMValueRef x, LLVMValueRef y, float c)
{
    (void)y, (void)c;
    return emit_erf(m, x);
}

static LLVMValueRef call_pow(struct emitter *m, LLVMValueRef x, LLVMValueRef y, float c)
{
    (void)c;
    return emit_pow(m, x, y);
}

static LLVMValueRef call_pow_constant(struct emitter *m, LLVMValueRef x, LLVMValueRef y, float c)
{
    (void)y;
    return emit_pow_constant(m, x, c);
}

/* A compiled function of one vector. */
struct compiled {
    LLVMOrcLLJITRef jit;
    void (*run)(const float *x, const float *y, float *out);
    int lanes;
};

static void must(LLVMErrorRef error)
{
    if (error)
        fail_msg("%s", LLVMGetErrorMessage(error));
}

static LLVMValueRef load(struct emitter *m, LLVMTypeRef type, LLVMValueRef fn, unsigned param)
{
    LLVMValueRef v = LLVMBuildLoad2(m->b, type, LLVMGetParam(fn, param), "");
    LLVMSetAlignment(v, 4);
    return v;
}

static void emit_module(LLVMModuleRef mod, unsigned lanes, emit_fn *emit, float constant)
{
    LLVMContextRef ctx = LLVMGetModuleContext(mod);
    struct emitter m = {.ctx = ctx,
                        .mod = mod,
                        .b = LLVMCreateBuilderInContext(ctx),
                        .f32 = LLVMFloatTypeInContext(ctx),
                        .i1 = LLVMInt1TypeInContext(ctx),
                        .i32 = LLVMInt32TypeInContext(ctx),
                        .i64 = LLVMInt64TypeInContext(ctx)};
    LLVMTypeRef ptr = LLVMPointerTypeInContext(ctx, 0), param[] = {ptr, ptr, ptr};
    LLVMTypeRef type = lanes ? LLVMVectorType(m.f32, lanes) : m.f32;
    LLVMValueRef fn =
        LLVMAddFunction(mod, "run", LLVMFunctionType(LLVMVoidTypeInContext(ctx), param, 3, false));
    LLVMPositionBuilderAtEnd(m.b, LLVMAppendBasicBlockInContext(ctx, fn, ""));
    LLVMValueRef v = emit(&m, load(&m, type, fn, 0), load(&m, type, fn, 1), constant);
    LLVMSetAlignment(LLVMBuildStore(m.b, v, LLVMGetParam(fn, 2)), 4);
    LLVMBuildRetVoid(m.b);
    LLVMDisposeBuilder(m.b);
}

static LLVMMemoryBufferRef emit_object(const struct variant *v, emit_fn *emit, float constant)
{
    char *triple = LLVMGetDefaultTargetTriple(), *text = NULL;
    char *cpu = LLVMGetHostCPUName(), *features = LLVMGetHostCPUFeatures();
    LLVMTargetRef target;
    assert_false(LLVMGetTargetFromTriple(triple, &target, &text));
    LLVMTargetMachineRef machine =
        LLVMCreateTargetMachine(target, triple, *v->cpu ? v->cpu : cpu, *v->cpu ? "" : features,
                                LLVMCodeGenLevelDefault, LLVMRelocPIC, LLVMCodeModelSmall);
    LLVMContextRef ctx = LLVMContextCreate();
    LLVMModuleRef mod = LLVMModuleCreateWithNameInContext("math", ctx);
    LLVMTargetDataRef data = LLVMCreateTargetDataLayout(machine);
    LLVMSetTarget(mod, triple);
    LLVMSetModuleDataLayout(mod, data);
    emit_module(mod, v->lanes, emit, constant);
    LLVMMemoryBufferRef object;
    if (LLVMTargetMachineEmitToMemoryBuffer(machine, mod, LLVMObjectFile, &text, &object))
        fail_msg("%s", text);
    LLVMDisposeTargetData(data);
    LLVMDisposeModule(mod);
    LLVMContextDispose(ctx);
    LLVMDisposeTargetMachine(machine);
    LLVMDisposeMessage(triple);
    LLVMDisposeMessage(cpu);
    LLVMDisposeMessage(features);
    return object;
}

/* The functions are arithmetic: an object that calls another function would name it. */
static void check_symbols(LLVMMemoryBufferRef object)
{
    char *text = NULL;
    LLVMBinaryRef binary = LLVMCreateBinary(object, NULL, &text);
    LLVMSymbolIteratorRef i = LLVMObjectFileCopySymbolIterator(binary);
    for (; !LLVMObjectFileIsSymbolIteratorAtEnd(binary, i); LLVMMoveToNextSymbol(i)) {
        const char *name = LLVMGetSymbolName(i);
        if (*name && *name != '.' && strcmp(name, "run") != 0 && strcmp(name, "math") != 0)
            fail_msg("the object refers to \"%s\"", name);
    }
    LLVMDisposeSymbolIterator(i);
    LLVMDisposeBinary(binary);
}

static struct compiled compile(const struct variant *v, emit_fn *emit, float constant)
{
    struct compiled c = {.lanes = v->lanes ? (int)v->lanes : 1};
    LLVMMemoryBufferRef object = emit_object(v, emit, constant);
    check_symbols(object);
    must(LLVMOrcCreateLLJIT(&c.jit, NULL));
    must(LLVMOrcLLJITAddObjectFile(c.jit, LLVMOrcLLJITGetMainJITDylib(c.jit), object));
    LLVMOrcExecutorAddress address = 0;
    must(LLVMOrcLLJITLookup(c.jit, &address, "run"));
    void *pointer = (void *)(uintptr_t)address;
    memcpy(&c.run, &pointer, sizeof c.run);
    return c;
}

static void run_all(const struct compiled *c, const float *x, const float *y, float *out, int nr)
{
    for (int i = 0; i < nr; i += c->lanes)
        c->run(x + i, y + i, out + i);
}

static float from_bits(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* Distance in units in the last place of a float of the size of `want`. */
static double ulps(float got, double want)
{
    float rounded = (float)want;
    if (isnan(want) || isnan(got))
        return isnan(want) && isnan(got) ? 0 : INFINITY;
    if (isinf(rounded) || isinf(got) || want == 0)
        return got == rounded && !signbit(got) == !signbit(rounded) ? 0 : INFINITY;
    int e;
    frexp(want, &e);
    return fabs((double)got - want) / ldexp(1, (e < -125 ? -125 : e) - 24);
}

/* Where functions change their ways, and what is no normal number. */
static const float notable[] = {0,
                                1,
                                2,
                                3,
                                0.5f,
                                0.25f,
                                0.75f,
                                1.5f,
                                2.5f,
                                5,
                                7,
                                8,
                                1.1f,
                                1.0999999f,
                                0.34657359f,
                                0.3465736f,
                                0.70710677f,
                                0.70710683f,
                                1.4142135f,
                                1.4142137f,
                                3.8325f,
                                3.8999f,
                                3.9f,
                                3.9001f,
                                4,
                                9.01f,
                                9.02f,
                                10,
                                16,
                                87.336f,
                                88.72283f,
                                88.72284f,
                                89,
                                103.27f,
                                103.97208f,
                                103.97209f,
                                104,
                                127,
                                128,
                                149,
                                150,
                                8388607,
                                8388608,
                                8388609,
                                16777215,
                                16777216,
                                16777218,
                                0x1p-149f,
                                0x1p-127f,
                                0x1.fffffcp-127f,
                                0x1p-126f,
                                0x1.fffffep-1f,
                                0x1.000002p0f,
                                FLT_MAX,
                                INFINITY,
                                NAN};
enum { NR_NOTABLE = sizeof notable / sizeof notable[0], NR_INPUTS = PATTERNS + 2 * NR_NOTABLE };

/* The inputs of a sweep, padded to whole vectors. */
static float *sweep(void)
{
    float *x = xcalloc(NR_INPUTS + 16, sizeof *x);
    for (int i = 0; i < PATTERNS; i++)
        x[i] = from_bits((uint32_t)i * STEP);
    for (int i = 0; i < 2 * NR_NOTABLE; i++)
        x[PATTERNS + i] = i & 1 ? -notable[i / 2] : notable[i / 2];
    return x;
}

static bool runs_here(const struct variant *v)
{
    return !v->needs_avx2 || (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"));
}

/* Compiles for every variant and compares with `want`; fails above `limit`. */
static void check(const char *name, emit_fn *emit, float constant, const float *x, const float *y,
                  const double *want, int nr, double limit)
{
    float *got = xcalloc((size_t)nr + 16, sizeof *got);
    for (int k = 0; k < NR_VARIANTS; k++) {
        if (!runs_here(&variants[k]))
            continue;
        struct compiled c = compile(&variants[k], emit, constant);
        run_all(&c, x, y, got, nr);
        must(LLVMOrcDisposeLLJIT(c.jit));
        double worst = 0;
        int at = 0;
        for (int i = 0; i < nr; i++) {
            double u = ulps(got[i], want[i]);
            if (u > worst) {
                worst = u;
                at = i;
            }
        }
        if (getenv("SQUALL_TEST_VERBOSE"))
            printf("%s %g, %s %u lanes: %.3f ulp at %a\n", name, (double)constant, variants[k].cpu,
                   variants[k].lanes, worst, (double)x[at]);
        if (!(worst <= limit))
            fail_msg("%s(%a, %a) %s %u lanes: %a, expected %a: %g ulp", name, (double)x[at],
                     (double)(y == x ? constant : y[at]), variants[k].cpu, variants[k].lanes,
                     (double)got[at], want[at], worst);
    }
    free(got);
}

static void check_unary(const char *name, emit_fn *emit, double (*reference)(double), double limit)
{
    float *x = sweep();
    double *want = xcalloc(NR_INPUTS, sizeof *want);
    for (int i = 0; i < NR_INPUTS; i++)
        want[i] = reference((double)x[i]);
    check(name, emit, 0, x, x, want, NR_INPUTS, limit);
    free(want);
    free(x);
}

static void exp_is_accurate(void **state)
{
    (void)state;
    check_unary("exp", call_exp, exp, 1.05);
}

static void log_is_accurate(void **state)
{
    (void)state;
    check_unary("log", call_log, log, 0.9);
}

static void tanh_is_accurate(void **state)
{
    (void)state;
    check_unary("tanh", call_tanh, tanh, 2.7);
}

static void erf_is_accurate(void **state)
{
    (void)state;
    check_unary("erf", call_erf, erf, 2.1);
}

/* Where the true value rounds to them, 0, 1 and infinity are reached, and not only nearly. */
static void ends_are_exact(void **state)
{
    (void)state;
    static const float x[16] = {88.72284f, 1000, INFINITY, -103.98f, -1000, -INFINITY, -0.0f, 0};
    static const float big[16] = {9.02f, 50, INFINITY, -9.02f, -INFINITY, 3.93f, -3.93f, -0.0f};
    static const float e[] = {INFINITY, INFINITY, INFINITY, 0, 0, 0, 1, 1};
    static const float one[] = {1, 1, 1, -1, -1};
    float out[16];
    for (int k = 0; k < NR_VARIANTS; k++) {
        if (!runs_here(&variants[k]))
            continue;
        struct compiled c = compile(&variants[k], call_exp, 0);
        run_all(&c, x, x, out, 8);
        assert_memory_equal(out, e, sizeof e);
        must(LLVMOrcDisposeLLJIT(c.jit));
        c = compile(&variants[k], call_tanh, 0);
        run_all(&c, big, big, out, 8);
        assert_memory_equal(out, one, sizeof one);
        assert_true(out[7] == 0 && signbit(out[7]));
        must(LLVMOrcDisposeLLJIT(c.jit));
        c = compile(&variants[k], call_erf, 0);
        run_all(&c, big, big, out, 8);
        assert_memory_equal(out, one, sizeof one);
        assert_true(out[5] == 1 && out[6] == -1 && out[7] == 0 && signbit(out[7]));
        must(LLVMOrcDisposeLLJIT(c.jit));
    }
}

/* All pairs of notable numbers, which have every special case of C's powf, and pairs whose power is
 * a normal number. */
static void powers_are_accurate(void **state)
{
    (void)state;
    enum { ALL = 4 * NR_NOTABLE * NR_NOTABLE, MORE = 200000, NR = ALL + MORE };
    float *x = xcalloc(NR + 16, sizeof *x), *y = xcalloc(NR + 16, sizeof *y);
    double *want = xcalloc(NR, sizeof *want);
    for (int i = 0; i < ALL; i++) {
        int a = i / (2 * NR_NOTABLE), b = i % (2 * NR_NOTABLE);
        x[i] = a & 1 ? -notable[a / 2] : notable[a / 2];
        y[i] = b & 1 ? -notable[b / 2] : notable[b / 2];
    }
    uint32_t random = 1;
    for (int i = ALL; i < NR; i++) {
        x[i] = from_bits((random = random * 1664525 + 1013904223) >> 1);
        random = random * 1664525 + 1013904223;
        double most = 128 / fmax(fabs(log2((double)x[i])), 1e-3);
        y[i] = (float)(((double)random * 0x1p-31 - 1) * most);
    }
    for (int i = 0; i < NR; i++)
        want[i] = pow((double)x[i], (double)y[i]);
    check("pow", call_pow, 0, x, y, want, NR, 0.7);
    free(x);
    free(y);
    free(want);
}

static void check_constant(const float *x, double *want, float y, double limit)
{
    int nr = 0;
    float *some = xcalloc(NR_INPUTS + 16, sizeof *some);
    for (int i = 0; i < NR_INPUTS; i += i < PATTERNS ? 16 : 1) {
        some[nr] = x[i];
        want[nr++] = pow((double)x[i], (double)y);
    }
    check("pow by constant", call_pow_constant, y, some, some, want, nr, limit);
    free(some);
}

static void constant_powers_are_accurate(void **state)
{
    (void)state;
    static const float other[] = {0.1f, 1.0f / 3, 2.2f, -0.6f, 5, -7, 17, 1e-3f, 40.5f};
    float *x = sweep();
    double *want = xcalloc(NR_INPUTS, sizeof *want);
    for (int quarters = -16; quarters <= 16; quarters++)
        check_constant(x, want, 0.25f * (float)quarters, 3.6);
    for (size_t i = 0; i < sizeof other / sizeof other[0]; i++)
        check_constant(x, want, other[i], 0.7);
    check_constant(x, want, INFINITY, 0);
    check_constant(x, want, NAN, 0);
    free(x);
    free(want);
}

int main(void)
{
    LLVMInitializeNativeTarget();
    LLVMInitializeNativeAsmPrinter();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(exp_is_accurate),
        cmocka_unit_test(log_is_accurate),
        cmocka_unit_test(tanh_is_accurate),
        cmocka_unit_test(erf_is_accurate),
        cmocka_unit_test(ends_are_exact),
        cmocka_unit_test(powers_are_accurate),
        cmocka_unit_test(constant_powers_are_accurate),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
