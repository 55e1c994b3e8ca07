/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makers: from the operators of a kernel to the stages of its workload.
 *
 * What schedules rely on:
 *   - padding is a stage "pad" of its own, injective, with a guarded load, there only when
 * something outside the input is read, and of exactly the extents that are read;
 *   - a reduction is a stage of its own on spatial axes in the order of the output's memory;
 *   - all operators on elements after it are one stage "out" on the same spatial axes;
 *   - axes are named n, g (group), k (output channel, or block of them), z, y, x, ki (lane of the
 *     block) | c, q, r, s, ci for what has windows, and b0, b1, ..., m, n | k for matrices.
 */
#ifndef ENGINE_MODEL_MAKE_H
#define ENGINE_MODEL_MAKE_H

#include "engine/model/kernel.h"

struct maker {
    const struct kernel *k;
    struct task *t;
    struct workload *w;
    int *tensor; /* of each slot, or -1 */
    int out;     /* the output tensor */
};

/* Where a stage is in one logical dimension: whole == outer * block + lane if it is split. */
struct position {
    struct affine whole, outer, lane;
    bool split;
};

/* The spatial axes of a stage that fills an array of `shape`, and what they mean. */
struct domain {
    int nr;
    char name[WL_MAX_AXES][WL_NAME];
    int64_t extent[WL_MAX_AXES];
    int rank;
    struct position at[LAYOUT_MAX_DIMS]; /* of each logical dimension */
    struct affine idx[LAYOUT_MAX_DIMS];  /* of each stored dimension of the output */
};

/* `matrix`: names m and n instead of those of space. `groups` > 1 gets an axis g before k. */
struct domain make_domain(const struct slot *s, bool matrix, int64_t groups);

/* Adds the axes of the domain to a new stage that fills `out` at idx (the output) or identity. */
int make_stage(struct maker *m, const char *name, int out, enum wl_combine combine,
               const struct domain *d);

/* A temporary with one dimension for each axis of the domain. */
int make_temp(struct maker *m, const char *name, const struct domain *d);
const struct wl_expr *load_temp(struct maker *m, int temp, const struct domain *d);

/* Element of a slot at a position in each of its dimensions; `pad` outside, where it can be. */
const struct wl_expr *load_slot(struct maker *m, int stage, int slot, const struct position *at,
                                float pad);

/* Position of one axis times `coef`, plus `base`. */
struct position at_axis(int axis, int64_t coef, int64_t base);

/* The operators on elements from number `from` on, `first` being the result of those before. */
const struct wl_expr *make_epilogue(struct maker *m, int stage, const struct domain *d, int from,
                                    const struct wl_expr *first);

/* Stage "out" over the output: the rest of the kernel on what is in `temp`. */
void make_out(struct maker *m, const struct domain *d, int temp);

/* One operator on elements. */
const struct wl_expr *make_element(struct workload *w, const struct op *op,
                                   const struct wl_expr *const *in);

/* The workload of the kernel, up to workload_finish(); also data and reduce_length of the task. */
void make_workload(const struct kernel *k, struct task *t, int *tensor);

void make_conv(struct maker *m);
void make_pool(struct maker *m);
void make_matmul(struct maker *m);
void make_reduce(struct maker *m);
void make_softmax(struct maker *m);
void make_lrn(struct maker *m);
void make_concat(struct maker *m);
void make_relayout(struct maker *m);
void make_gather(struct maker *m);
void make_move(struct maker *m); /* transpose, pad, slice, operators on elements */

#endif
