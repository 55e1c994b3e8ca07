/* SPDX-License-Identifier: Apache-2.0 */
/*
 * View: what a candidate makes of a nest, as its features and the estimate of its cost see it.
 * Private to engine/tensor.
 *
 * A *cut* is a level of the loops: what is inside it runs as one. The *footprint* of a
 * buffer at a cut is what the loops inside touch of it. Its *traffic* at a cut are the bytes that
 * enter a cache which holds just what is inside: the footprint with the innermost loop outside that
 * moves the buffer, whose steps may overlap, times the trips of the loops around that one. Where no
 * cut is named, a number is of a whole call.
 */
#ifndef ENGINE_TENSOR_NEST_VIEW_H
#define ENGINE_TENSOR_NEST_VIEW_H

#include "engine/tensor/plan.h"

/* whole nest, inside S0, S1, R0, S2, R1: the register tile */
enum cut { CUT_ALL, CUT_S0, CUT_S1, CUT_R0, CUT_S2, CUT_TILE, NR_CUTS };

enum { BUFFER_LOADS = 8 };

struct floop {
    int axis;
    double trips;
    enum cut cut; /* the innermost cut that it is outside of */
};

struct fbuffer {
    const struct wl_tensor *t;
    const struct affine *idx;
    uint32_t moved_by; /* axes */
    int asked;         /* conditions that a load meets */
    int nr_terms;      /* of its indices, those of a dimension one after the other */
    struct fterm {
        int dim, axis;
        double coef;
    } term[LAYOUT_MAX_DIMS * 2];
    double footprint[NR_CUTS], traffic[NR_CUTS];
};

struct nest_view {
    const struct nest_plan *n;
    const struct wl_stage *s;
    struct nest_shape sh;
    int nr_loops, nr_buffers;
    struct floop loop[WL_MAX_AXES * 5];
    double inner[NR_CUTS][WL_MAX_AXES]; /* extent of an axis inside a cut */
    struct fbuffer buffer[1 + BUFFER_LOADS];
    double set[NR_CUTS]; /* footprint of all buffers */
    double ops, divisions, calls, guards;
    double skipped; /* share of the taps */
};

void nest_view_init(struct nest_view *v, const struct nest_plan *n, const struct candidate *c);

/* Adds what an expression does at one point to ops, divisions, calls and guards. */
void nest_view_count_ops(struct nest_view *v, const struct wl_expr *e);

/* The buffer of a tensor of the workload; NULL where the anchor does not load it. */
struct fbuffer *nest_view_buffer(struct nest_view *v, int tensor);

/* How often what is inside a cut runs. */
double nest_view_trips(const struct nest_view *v, enum cut cut);

/* Traffic of a cache that holds `size` bytes: at the outermost cut whose buffers fit. */
double nest_view_traffic(const struct nest_view *v, double size);

/* sketch_cost.c: estimated cycles, of the nest's own loops; */
double estimate_anchor(const struct nest_view *v);

/* of a copy of `points` elements, made in `visits` parts; */
double estimate_copy(const struct nest_view *v, double points, double visits);

/* of a transform: its operations and moves of vectors, its steps, and the bytes that come from beyond
 * the first cache or, where these do not fit the second, from beyond that. */
struct transform_work {
    double ops, moved, steps, bytes;
    bool fits; /* the second cache */
};
double estimate_transform(const struct sketch_target *t, const struct transform_work *w);

#endif
