/* SPDX-License-Identifier: Apache-2.0 */
/* The process in which a compiled model is measured; for cmd_bench.c. */
#ifndef UI_BENCH_CHILD_H
#define UI_BENCH_CHILD_H

#include <stdint.h>

#include "engine/base/err.h"

enum { BENCH_MAX_RUNS = 100000 };

struct bench_result {
    int nr, threads;
    double create_ns;
    char why[512]; /* what failed; "" where nothing did */
    double ns[BENCH_MAX_RUNS];
};

struct bench_call {
    const char *library, *name;
    const float *const *in; /* shared memory */
    float *const *out;
    int threads, runs; /* runs 0: what fills two seconds */
};

/* Zeroed memory that a child shares; lives as long as the process. NULL where there is none. */
void *bench_shared(int64_t bytes);

/* Loads and runs the library in a child; *r and the outputs are in shared memory. */
int bench_in_child(const struct bench_call *c, struct bench_result *r, struct err *e);

#endif
