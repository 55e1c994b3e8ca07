/* SPDX-License-Identifier: Apache-2.0 */
/* State of the emitter; shared by emit.c (functions, loops), emit_value.c (addresses, values)
 * and emit_math.c (elementary functions). */
#ifndef BACKENDS_LLVM_EMIT_INTERNAL_H
#define BACKENDS_LLVM_EMIT_INTERNAL_H

#include "backends/llvm/emit.h"

enum { EMIT_MAX_DEPTH = 64, EMIT_MAX_OPS = 60000, EMIT_MAX_ASKED = 64 };

/* What a loop variable is at the moment. */
enum var_kind { VAR_NONE, VAR_CONST, VAR_VALUE, VAR_LANE };

struct var_state {
    enum var_kind kind;
    int64_t constant;
    LLVMValueRef value; /* i64 */
    int depth;          /* of the loop that it belongs to */
    bool counts;        /* the loop's iterations, from 0 on */
    bool again;         /* vectors at this value are loaded anew for each use */
};

/* A partial sum of an address or index, hoisted to the loop at `depth`. */
struct hoisted {
    LLVMValueRef from, value;
    int var, depth;
    int64_t coef;
    bool steps; /* value is a phi of the loop, to be moved on by coef at its end */
};

/* A load that may be used again in the same block. */
struct loaded_value {
    int buf;
    LLVMValueRef pointer, value, guard; /* guard: what it was loaded under, NULL for always */
    int64_t offset, step;
    bool is_vector;
};

/* The truth of a condition: known, one for all lanes, or one a lane. */
struct truth {
    enum { TRUTH_CONST, TRUTH_SCALAR, TRUTH_LANES } kind;
    bool yes;
    LLVMValueRef value;
};

/* A scalar condition that was computed in this block: lo <= base < hi. */
struct asked_range {
    LLVMValueRef base, value;
    int64_t lo, hi;
};

/* Two conditions that were joined in this block. */
struct joined {
    LLVMValueRef a, b, value;
};

struct emitter {
    const struct loop_program *p;
    const struct emit_target *target;
    LLVMContextRef ctx;
    LLVMModuleRef mod;
    LLVMBuilderRef b;
    LLVMTypeRef f32, i1, i32, i64, ptr, void_;
    LLVMValueRef zeros; /* a vector of zeros in memory: where guarded loads go that must not */

    LLVMValueRef fn;
    LLVMValueRef buf[LP_MAX_BUFFERS];  /* pointers; NULL for registers */
    LLVMValueRef *reg[LP_MAX_BUFFERS]; /* current values of register buffers */
    struct var_state var[LP_MAX_VARS];
    int lanes;      /* of the nest */
    bool in_vector; /* inside its vector loop */
    int depth;
    LLVMBasicBlockRef before[EMIT_MAX_DEPTH]; /* block from which loop `depth` is entered */
    LLVMBasicBlockRef entry[EMIT_MAX_DEPTH];  /* block that dominates its body */
    int nr_hoisted, cap_hoisted;
    struct hoisted *hoisted;
    int nr_loaded, cap_loaded;
    struct loaded_value *loaded;
    int nr_asked;
    struct asked_range asked[EMIT_MAX_ASKED];
    int nr_joined;
    struct joined joined[EMIT_MAX_ASKED];
    int nr_guards;
    struct truth guard[8]; /* what holds where the current value is used */
    int ops;               /* emitted so far, for the limit */
    bool too_large;
};

/* emit_value.c */
LLVMTypeRef emit_value_type(const struct emitter *m);
LLVMValueRef emit_splat(struct emitter *m, LLVMValueRef scalar);
struct truth emit_truth(struct emitter *m, const struct lp_cond *c);
LLVMValueRef emit_intrinsic(struct emitter *m, const char *name, LLVMTypeRef *overload,
                            unsigned nr_overload, LLVMValueRef *args, unsigned nr_args);
LLVMValueRef emit_expr(struct emitter *m, const struct lp_expr *e);
void emit_store(struct emitter *m, const struct lp_node *n);
/* Forget loads and conditions: a block ended. */
void emit_forget_loads(struct emitter *m);
/* The innermost loop ends here, and with it its hoisted values: pointers move on. */
void emit_steps(struct emitter *m);

#endif
