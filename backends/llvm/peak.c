/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/llvm/peak.h"

#include <llvm-c/Core.h>
#include <llvm-c/LLJIT.h>
#include <llvm-c/Orc.h>

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "engine/base/clock.h"

/* Two multiply-adds a cycle with a latency of four to five cycles: ten or more have to be under way. */
enum { SUMS_OF_16 = 12, SUMS_OF_32 = 24, TRIPS = 20000, REPEATS = 12 };

typedef void (*peak_fn)(float *out, int64_t trips);

static void set_attribute(LLVMContextRef ctx, LLVMValueRef fn, const char *key, const char *value)
{
    LLVMAddAttributeAtIndex(fn, (LLVMAttributeIndex)LLVMAttributeFunctionIndex,
                            LLVMCreateStringAttribute(ctx, key, (unsigned)strlen(key), value,
                                                      (unsigned)strlen(value)));
}

/* void peak(float *out, i64 trips): sums[i] = sums[i] * x + x, trips times; stored at the end. */
static void emit_peak(LLVMModuleRef mod, const char *cpu, const char *features, int lanes, int sums)
{
    LLVMContextRef ctx = LLVMGetModuleContext(mod);
    LLVMBuilderRef b = LLVMCreateBuilderInContext(ctx);
    LLVMTypeRef i64 = LLVMInt64TypeInContext(ctx), f32 = LLVMFloatTypeInContext(ctx);
    LLVMTypeRef vec = LLVMVectorType(f32, (unsigned)lanes);
    LLVMTypeRef param[] = {LLVMPointerTypeInContext(ctx, 0), i64};
    LLVMValueRef fn = LLVMAddFunction(
        mod, "peak", LLVMFunctionType(LLVMVoidTypeInContext(ctx), param, 2, false));
    char bits[16];
    snprintf(bits, sizeof bits, "%d", lanes * 32);
    set_attribute(ctx, fn, "target-cpu", cpu);
    set_attribute(ctx, fn, "target-features", features);
    set_attribute(ctx, fn, "prefer-vector-width", bits);
    set_attribute(ctx, fn, "min-legal-vector-width", bits);
    LLVMValueRef out = LLVMGetParam(fn, 0), trips = LLVMGetParam(fn, 1);
    LLVMBasicBlockRef start = LLVMAppendBasicBlockInContext(ctx, fn, "");
    LLVMBasicBlockRef loop = LLVMAppendBasicBlockInContext(ctx, fn, "");
    LLVMBasicBlockRef end = LLVMAppendBasicBlockInContext(ctx, fn, "");
    LLVMPositionBuilderAtEnd(b, start);
    LLVMValueRef x = LLVMBuildLoad2(b, vec, out, "");
    LLVMBuildBr(b, loop);
    LLVMPositionBuilderAtEnd(b, loop);
    LLVMValueRef i = LLVMBuildPhi(b, i64, ""), sum[SUMS_OF_32], next[SUMS_OF_32];
    for (int k = 0; k < sums; k++) {
        sum[k] = LLVMBuildPhi(b, vec, "");
        LLVMAddIncoming(sum[k], &x, &start, 1);
    }
    unsigned id = LLVMLookupIntrinsicID("llvm.fmuladd", strlen("llvm.fmuladd"));
    LLVMValueRef fma = LLVMGetIntrinsicDeclaration(mod, id, &vec, 1);
    for (int k = 0; k < sums; k++) {
        LLVMValueRef args[] = {sum[k], x, x};
        next[k] = LLVMBuildCall2(b, LLVMIntrinsicGetType(ctx, id, &vec, 1), fma, args, 3, "");
        LLVMAddIncoming(sum[k], &next[k], &loop, 1);
    }
    LLVMValueRef zero = LLVMConstInt(i64, 0, false), one = LLVMConstInt(i64, 1, false);
    LLVMValueRef inc = LLVMBuildAdd(b, i, one, "");
    LLVMAddIncoming(i, &zero, &start, 1);
    LLVMAddIncoming(i, &inc, &loop, 1);
    LLVMBuildCondBr(b, LLVMBuildICmp(b, LLVMIntSLT, inc, trips, ""), loop, end);
    LLVMPositionBuilderAtEnd(b, end);
    LLVMValueRef total = next[0];
    for (int k = 1; k < sums; k++)
        total = LLVMBuildFAdd(b, total, next[k], "");
    LLVMBuildStore(b, total, out);
    LLVMBuildRetVoid(b);
    LLVMDisposeBuilder(b);
}

static double time_peak(peak_fn peak, int lanes, int sums)
{
    double best = 0;
    for (int r = 0; r < REPEATS; r++) {
        _Alignas(64) float x[64] = {0}; /* zeros stay zeros: no denormals, no infinities */
        int64_t start = clock_mono_ns();
        peak(x, TRIPS);
        double ns = (double)(clock_mono_ns() - start);
        double gflops = 2.0 * lanes * sums * TRIPS / ns;
        if (ns > 0 && gflops > best)
            best = gflops;
    }
    return best;
}

double measure_peak_gflops(LLVMTargetMachineRef machine, const char *cpu, const char *features,
                           int lanes, int registers)
{
    int sums = registers >= 32 ? SUMS_OF_32 : SUMS_OF_16;
    LLVMContextRef ctx = LLVMContextCreate();
    LLVMModuleRef mod = LLVMModuleCreateWithNameInContext("peak", ctx);
    LLVMTargetDataRef data = LLVMCreateTargetDataLayout(machine);
    LLVMSetModuleDataLayout(mod, data);
    LLVMDisposeTargetData(data);
    emit_peak(mod, cpu, features, lanes, sums);
    LLVMMemoryBufferRef object = NULL;
    LLVMOrcLLJITRef jit = NULL;
    LLVMOrcExecutorAddress address = 0;
    double gflops = 0;
    char *text = NULL;
    if (LLVMTargetMachineEmitToMemoryBuffer(machine, mod, LLVMObjectFile, &text, &object)) {
        LLVMDisposeMessage(text);
        goto out;
    }
    LLVMErrorRef error = LLVMOrcCreateLLJIT(&jit, NULL);
    if (!error)
        error = LLVMOrcLLJITAddObjectFile(jit, LLVMOrcLLJITGetMainJITDylib(jit), object);
    else
        LLVMDisposeMemoryBuffer(object);
    if (!error)
        error = LLVMOrcLLJITLookup(jit, &address, "peak");
    if (!error) {
        void *pointer = (void *)(uintptr_t)address;
        peak_fn peak;
        memcpy(&peak, &pointer, sizeof peak);
        gflops = time_peak(peak, lanes, sums);
    }
    LLVMConsumeError(error);
    if (jit)
        LLVMConsumeError(LLVMOrcDisposeLLJIT(jit));
out:
    LLVMDisposeModule(mod);
    LLVMContextDispose(ctx);
    return gflops;
}
