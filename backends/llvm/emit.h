/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From a loop program to LLVM IR.
 *
 * The IR is made so that no optimisation pass is needed: vectors are explicit, unrolled loops are
 * unrolled here, register buffers are SSA values joined by phis at serial loops and ifs, address
 * arithmetic is hoisted to the loop whose variable it last depends on, and what is left in the
 * innermost loop are loads at constant offsets from a few pointers, and arithmetic.
 *
 * Generated functions:
 *   squall_kernel(float **buf)                  called by the runner, or named for a library
 *   nest_N(float *buf..., i64 lo, hi, thread)   a nest, a range of its parallel iterations
 *   part_N(float **buf)                         a thread's share, called by GOMP_parallel
 */
#ifndef BACKENDS_LLVM_EMIT_H
#define BACKENDS_LLVM_EMIT_H

#include <llvm-c/Core.h>

#include "engine/base/err.h"
#include "engine/tensor/loop.h"

struct emit_target {
    const char *cpu, *features; /* function attributes */
    int lanes;
    /* Of a kernel that a linker puts beside others: its symbol, hidden. Parallel nests then run with
     * the threads that omp_set_num_threads() says. NULL: EMIT_ENTRY, with the program's threads. */
    const char *library_entry;
};

/* The kernel's arguments: program buffers that are memory, in the order of the pointers passed. */
struct emit_args {
    int nr;
    int buffer[LP_MAX_BUFFERS];
};

/* Fills `mod` (empty, its own context). ERR_LIMIT when the code would be too large. */
int emit_program(LLVMModuleRef mod, const struct loop_program *p, const struct emit_target *t,
                 struct emit_args *args, struct err *e);

/* Floats that one thread's copy of a per-thread buffer takes: its size rounded up to a line. */
int64_t emit_thread_stride(const struct lp_buffer *b);

#define EMIT_ENTRY "squall_kernel"

#endif
