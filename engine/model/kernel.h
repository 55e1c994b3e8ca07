/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Kernel: the operators of one fused group, on their own.
 *
 * A short straight-line program over slots. Slots are the operands of the group, its numbers, what
 * passes between its operators, and its result. The first operator may be of any kind; all that
 * follow are operators on elements, of the shape of the result. A kernel knows no graph: the task
 * that is made of it keeps it as what its reference computes.
 */
#ifndef ENGINE_MODEL_KERNEL_H
#define ENGINE_MODEL_KERNEL_H

#include "engine/base/err.h"
#include "engine/model/op.h"
#include "engine/model/task.h"

/* Tensors of a workload: operands, and up to five that its maker adds. */
enum {
    KERNEL_OPS = 24,
    KERNEL_INPUTS = 24,
    KERNEL_OPERANDS = WL_MAX_TENSORS - 8,
    KERNEL_SLOTS = 80
};

enum slot_role { SLOT_INPUT, SLOT_CONST, SLOT_LITERAL, SLOT_INNER, SLOT_OUTPUT };

struct slot {
    enum slot_role role;
    struct shape shape;
    int block;     /* channel block in memory; 1 for plain */
    float literal; /* SLOT_LITERAL */
    int value;     /* of the graph it comes from, or -1 */
};

struct kernel_op {
    struct op op;
    int nr_in, in[KERNEL_INPUTS], out;
};

struct kernel {
    int nr_slots, nr_ops;
    struct slot slot[KERNEL_SLOTS];
    struct kernel_op op[KERNEL_OPS];
    char where[96]; /* first node */
};

/* A shape stored plain (block 1) or with dimension 1 cut into blocks. */
struct layout slot_layout(const struct slot *s);

/*
 * Makes the task of a kernel: workload, reference, name, weight 1. slot_tensor[] gets for each slot
 * the tensor of the workload, -1 where it has none. The caller frees with task_free(); NULL and a
 * sentence on failure.
 */
struct task *kernel_task(const struct kernel *k, int *slot_tensor, struct err *e);

/* Name of the task and its count of arithmetic operations (names.c). */
void kernel_name(const struct kernel *k, char *out, size_t size);
double kernel_flops(const struct kernel *k);

/* Runs the operators on logical arrays, one a slot; SLOT_LITERAL and SLOT_INNER are not needed. */
void kernel_run(const struct kernel *k, float *const *array);

#endif
