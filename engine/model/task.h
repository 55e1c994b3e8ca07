/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Task: one distinct kernel to tune, with a weight.
 *
 * A task couples a workload (what the schedules see) with what is known of it independently of any
 * schedule: the fill of its operands, and a reference that computes its output from the model's own
 * operators, in plain loops over logical arrays. Immutable once made; shared between threads.
 */
#ifndef ENGINE_MODEL_TASK_H
#define ENGINE_MODEL_TASK_H

#include <stdint.h>

#include "engine/base/err.h"
#include "engine/tensor/workload.h"

struct task;

struct task {
    char name[96];  /* unique in its list, readable, no blanks: "conv2d_64x56x56_3x3_64_relu" */
    double weight;  /* how often the model runs it */
    char where[96]; /* first node of the model it stands for; "" for a named workload */
    struct workload wl;
    /*
     * Reference: reads the logical arrays of inputs and constants, logical[t] for tensor t of the
     * workload, and fills the logical array of the output. NULL: use workload_interpret().
     * Any thread; takes up to seconds on large tasks. `ctx` is owned by the task.
     */
    void (*reference)(const void *ctx, float *const *logical);
    void *ctx;
    void (*ctx_free)(void *ctx);
    int64_t reduce_length; /* longest sum in an output element: scales the tolerated error */
    /* Constants with a meaning of their own (1/count of a pooling window) have their logical data
     * here, NULL where any values do. Owned by the task. */
    float *data[WL_MAX_TENSORS];
};

struct task_list {
    struct task **task;
    int nr, cap;
    char name[128]; /* of the model: file name without folder and extension */
};

/* A zeroed list is valid and empty. */
void task_list_release(struct task_list *l);

/* Adds `t` (allocated with xcalloc, ownership moves); or, where an equal workload is already there,
 * adds its weight to that one and frees `t`. Makes names unique by appending _2, _3 ... */
void task_list_add(struct task_list *l, struct task *t);

void task_free(struct task *t);

/*
 * Fills the logical array of tensor `i` of the task, an input or a constant: its own data if it has
 * any, else reproducible values, uniform in [-1, 1) for inputs, and scaled by 1/sqrt(fan-in) for
 * constants of two or more dimensions, so that outputs stay near 1 and errors show.
 */
void task_fill(const struct task *t, int i, float *logical);

/*
 * Computes the expected output, in *stored* layout, of the filled task: allocates, fills, calls the
 * reference, packs. The caller frees. NULL and a sentence where memory does not suffice.
 */
float *task_expected(const struct task *t, struct err *e);

/*
 * Compares two logical or stored arrays of the task's output: the largest error in tolerances
 * (engine/tensor/compare.h), <= 1 passes; lanes of padding do not count. *at gets the element.
 */
double task_error(const struct task *t, const float *got, const float *want, int64_t n,
                  int64_t *at);

#endif
