/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Kernels of a plan, compiled when they are called, for `check`: a plan_runner in this process.
 *
 * Each task is built with the schedule of the run (conformance.h): of run 0 the default one, of
 * later runs one drawn at random, by the seed and the task. Buffers have marks behind them and
 * inputs are compared after the call: a kernel that writes where it may not is an error.
 */
#ifndef UI_CHECK_KERNELS_H
#define UI_CHECK_KERNELS_H

#include "backends/backend.h"
#include "engine/model/plan.h"

struct kernels {
    const struct backend *backend;
    const struct target *target;
    struct builder *builder;
    struct loader *loader;
    uint64_t seed;
    int run;
};

/* The target is borrowed, builder and loader are made. */
int kernels_open(struct kernels *k, const struct backend *b, const struct target *t, uint64_t seed,
                 struct err *e);
void kernels_close(struct kernels *k);

/* For struct plan_runner and struct conformance, with a struct kernels as context. */
int kernels_call(void *ctx, const struct task *task, float *const *stored, struct err *e);
void kernels_run(void *ctx, int run);

#endif
