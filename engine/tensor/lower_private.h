/* SPDX-License-Identifier: Apache-2.0 */
/*
 * State of a lowering; shared by lower.c (loops, tiles, nests), lower_expr.c (indices, expressions)
 * and lower_copy.c (packed constants, copies, producers). Private to engine/tensor.
 */
#ifndef ENGINE_TENSOR_LOWER_PRIVATE_H
#define ENGINE_TENSOR_LOWER_PRIVATE_H

#include "engine/tensor/plan.h"
#include "engine/tensor/sketch.h"

/* One loop of the nest that is being lowered. */
struct loop_var {
    int var, axis;
    enum level level;
    int64_t extent, stride;
    bool unroll; /* although its level is not unrolled: lower_skip.c */
    int64_t again; /* as lp_node's */
};

/* What an axis is, at a place in the program: an affine form and the values it takes. */
struct axis_value {
    struct lp_affine a;
    int64_t lo, hi;
};

/* A buffer in which the loads of a workload tensor find their elements. */
struct source {
    int tensor;
    int buf;
    enum { FROM_TENSOR, FROM_REGISTER, FROM_LOOPS, FROM_VALUE } kind;
    struct lp_affine at; /* FROM_REGISTER, FROM_LOOPS: the offset, whatever the load's index */
    const struct lp_expr *value; /* FROM_VALUE: the element itself */
    /* FROM_TENSOR: offset = sum of stride * (index - origin) */
    int64_t stride[LAYOUT_MAX_DIMS];
    struct lp_affine origin[LAYOUT_MAX_DIMS];
};

enum { MAX_SOURCES = WL_MAX_TENSORS + 8, MAX_LOOPS = WL_MAX_AXES * 6 };

struct lowering {
    const struct plan *p;
    const struct workload *w;
    struct loop_program *lp;
    int tensor_buf[WL_MAX_TENSORS]; /* -1 until used */
    bool failed;                    /* a limit of the loop program was met */
    int strip_var[WL_MAX_AXES];     /* of the loops around all nests; -1: of one step */
    bool in_strips;                 /* there are such loops */

    /* Of the current nest. */
    const struct nest_plan *n;
    const struct candidate *c;
    struct nest_shape sh;
    int nr_loops;
    struct loop_var loop[MAX_LOOPS]; /* in nest order */
    struct axis_value axis[WL_MAX_AXES];
    int nr_sources;
    struct source source[MAX_SOURCES];
    int lane_loop; /* index in loop[], -1 for none */
    /* Of taps that are no padding: asked by branches; known when code is made; and both, which is
     * what holds where the loads are that are being converted. */
    struct lp_cond rows, columns, given;
    struct lp_cond *assumed; /* where not NULL: what would be asked is taken as given, and noted here */
};

/* A list of nodes under construction. */
struct list {
    struct lp_node *first, **tail;
};

/* lower_expr.c */
struct list lower_list_new(void);
void lower_list_add(struct list *l, struct lp_node *n);

/* Names a loop variable; sets `failed` past the limit of a program, like all that follow. */
int lower_new_var(struct lowering *L, const char *name, int level);

/* A buffer of the program. */
int lower_new_buffer(struct lowering *L, const char *name, enum lp_scope scope, int64_t size);

/* The stored dimensions stay; what is logical is the weights that the transform is made of. */
void lower_transform_layout(const struct lowering *L, struct layout *l);

/* The buffer of a tensor of the workload, made when first asked for. */
int lower_tensor_buffer(struct lowering *L, int t);

/* Nodes and expressions, in the arena of the program. */
struct lp_node *lower_node_for(struct lowering *L, enum lp_loop kind, int var, int64_t extent,
                               struct lp_node *body);
struct lp_node *lower_node_store(struct lowering *L, int buf, const struct lp_affine *at,
                                 const struct lp_expr *value);
struct lp_expr *lower_expr_new(struct lowering *L, enum lp_op op);
const struct lp_expr *lower_expr_load(struct lowering *L, int buf, const struct lp_affine *at);
const struct lp_expr *lower_expr_literal(struct lowering *L, float v);
const struct lp_expr *lower_expr_arith(struct lowering *L, enum wl_op op, const struct lp_expr *a,
                                       const struct lp_expr *b);

/* An affine form of axes, with the axes replaced by what they are. */
struct axis_value lower_value_of(const struct affine *f, const struct axis_value *axis);

/* `x` where the index is inside the tensor, `pad` elsewhere; `x` itself where it always is. */
const struct lp_expr *lower_guard(struct lowering *L, const struct lp_expr *x,
                                  const struct wl_tensor *t, const struct axis_value *idx,
                                  float pad);

/* Adds a range to a condition; of ranges that differ by a constant one is kept that implies all. Sets
 * `failed` where the condition has no room. */
void lower_ask(struct lowering *L, struct lp_cond *c, struct lp_range r);

/* What makes a condition hold at every value of `var`, which is below `extent`. */
struct lp_cond lower_for_all(struct lowering *L, const struct lp_cond *c, int var, int64_t extent);

/* Where the loads of a tensor find their elements in this nest; NULL: the tensor itself. */
const struct source *lower_find_source(const struct lowering *L, int tensor);

/* Expressions of the workload in terms of loop variables. */
const struct lp_expr *lower_convert(struct lowering *L, const struct wl_expr *e,
                                    const struct axis_value *axis);

/* Adds what must hold of a lane that is an element. */
void lower_add_lane_ranges(const struct lowering *L, struct lp_cond *cond);
const struct lp_expr *lower_convert_load(struct lowering *L, const struct wl_expr *e,
                                         const struct axis_value *axis);

/* lower.c */

/* Axes of the nest before it has loops: the strips alone. */
void lower_begin_axes(struct lowering *L);

/* The widest vectors that `extent` elements are a whole number of. */
int lower_lanes_of(const struct lowering *L, int64_t extent);

/* Wraps `body` in loop[i]. */
struct lp_node *lower_wrap_one(struct lowering *L, int i, struct lp_node *body);

/* acc combined with x, as the anchor says. */
const struct lp_expr *lower_combine(struct lowering *L, enum wl_combine c,
                                    const struct lp_expr *acc, const struct lp_expr *x);

/* The outermost loops of a nest, the first one outermost: in parallel, where threads are to share
 * the nest and do not share strips. */
struct lp_node *lower_outer_loops(struct lowering *L, int nr, const int *var, const int64_t *extent,
                                  struct lp_node *body);

/* `then` where the condition holds, else `other`. */
struct lp_node *lower_node_if(struct lowering *L, struct lp_cond cond, struct lp_node *then,
                              struct lp_node *other);

/* The store of an element that stage `s` fills. */
struct lp_node *lower_store_output(struct lowering *L, const struct wl_stage *s,
                                   const struct lp_expr *value);

/* Wraps `body` in the loops of levels from .. to, the first outermost. */
struct lp_node *lower_wrap(struct lowering *L, enum level from, enum level to,
                           struct lp_node *body);

/* lower_skip.c */

/* Decides what is to be known of taps on padding, and which loops are unrolled for it. */
void lower_skip_taps(struct lowering *L);

/* The update of the accumulator `acc` at `reg` by the anchor's body, in the loops inside S2. */
struct lp_node *lower_update(struct lowering *L, int acc, const struct lp_affine *reg);

/* lower_transform.c: the loops of a nest that is a transform. */
struct lp_node *lower_transform(struct lowering *L);

/* lower_copy.c */

/* Constants read by `body` that may be stored in the order of the loops are. */
void lower_pack_constants(struct lowering *L, const struct wl_expr *body);

/* The copies whose knob says `place`, as nodes for the start of the body of that level. */
struct lp_node *lower_fills_at(struct lowering *L, enum place place);

/* A producer in a nest of its own, before the anchor. */
void lower_root_producer(struct lowering *L, int stage);

#endif
