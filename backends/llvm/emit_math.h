/* SPDX-License-Identifier: Apache-2.0 */
/*
 * exp, log, tanh, erf and pow as arithmetic: no calls, for a float32 vector of any length or a
 * scalar, on any processor (without fused multiply-add too).
 *
 * Greatest errors in units in the last place, of sweeps over float32 (tests/test_math.c): exp 1.0,
 * log 0.9, tanh 2.6, erf 2.0, pow 0.6. Results that are no normal numbers are as
 * C's Annex F has them: infinities, NaN, zeros with their signs, and denormals of exp, log and pow
 * within the same error. The rounding mode must be to nearest.
 */
#ifndef BACKENDS_LLVM_EMIT_MATH_H
#define BACKENDS_LLVM_EMIT_MATH_H

#include "backends/llvm/emit_internal.h"

LLVMValueRef emit_exp(struct emitter *m, LLVMValueRef x);
LLVMValueRef emit_log(struct emitter *m, LLVMValueRef x);
LLVMValueRef emit_tanh(struct emitter *m, LLVMValueRef x);
LLVMValueRef emit_erf(struct emitter *m, LLVMValueRef x);
LLVMValueRef emit_pow(struct emitter *m, LLVMValueRef x, LLVMValueRef y);

/* x to a constant power. Multiples of 1/4 from -3/2 to 4 become products and roots, at most 4
 * units off; the others are as emit_pow() has them. */
LLVMValueRef emit_pow_constant(struct emitter *m, LLVMValueRef x, float y);

#endif
