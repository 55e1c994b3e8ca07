/* SPDX-License-Identifier: Apache-2.0 */
/* Plan: which stages form which nest, and which knob means what. Private to engine/tensor; made by
 * sketch.c, read by its constraints and by lower.c. */
#ifndef ENGINE_TENSOR_PLAN_H
#define ENGINE_TENSOR_PLAN_H

#include "engine/tensor/sketch.h"

/* Where a producer or a packed copy is computed; the values of the at_ and pack_ knobs. */
enum place { PLACE_INLINE, PLACE_ROOT, PLACE_S0, PLACE_S1, PLACE_R0 };

/* Where a loop stands: around the register tile, inside it (the steps of the reduction, those
 * unrolled), of the tile, and its lanes. */
enum level { L_S0, L_S1, L_R0, L_S2, L_R1, L_RU, L_S3, L_LANE, NR_LEVELS };

enum { PLAN_MAX_PRODUCERS = 6, PLAN_MAX_PACKS = 4 };

struct producer {
    int stage;
    int knob; /* at_; -1: always inline */
};

/* Most operations in the unrolled body of a reduction: compile time is 25-30 us each. */
enum { MAX_BODY_OPS = 640 };

struct pack_plan {
    int tensor;
    int knob; /* pack_ */
};

enum { TRANSFORM_MAX = 6 };

/* out[i, j] = sum over r, s of matrix[i, r] matrix[j, s] x: of a nest that is such a transform. */
struct transform {
    const float *matrix; /* [rows][cols]; NULL for none */
    int rows, cols;
    int i, j, r, s; /* axes */
    const struct wl_expr *x;
};

/* A tap is on padding unless 0 <= at < extent, for each of a nest's. */
struct tap {
    struct affine at;
    int64_t extent;
};

struct nest_plan {
    int anchor, epilogue; /* stages; epilogue -1 for none */
    int vec;              /* the spatial axis in vectors, -1 for none */
    int across;           /* the reduction axis in vectors, -1 for none; then vec is -1 */
    int nr_producers;
    struct producer producer[PLAN_MAX_PRODUCERS];
    int nr_packs;
    struct pack_plan pack[PLAN_MAX_PACKS];
    int64_t extent[WL_MAX_AXES]; /* of the loops of an axis: the vector axis may be rounded up */
    int tile_knob[WL_MAX_AXES]; /* -1 where the extent is 1, or the axis fixed */
    int nr_taps;                /* what may be skipped, 0 for nothing ... */
    struct tap tap[LAYOUT_MAX_DIMS];
    int padded;                 /* ... and the producer, of those above, that pads; -1 for none */
    bool whole[WL_MAX_AXES];    /* all of the axis is in the register tile; it has no knob */
    struct transform transform; /* a nest of this kind has no knobs */
    int order_knob, unroll_knob, cache_knob, skip_knob;
    int nr_order, order_axis[WL_MAX_AXES]; /* what the order knob permutes */
    const struct plan *plan;
};

struct plan {
    const struct workload *w; /* what is lowered: the task's, or one derived from it */
    int derived, from;        /* tensor of transformed constants and what it is made of; -1 */
    enum layout_transform transform;
    const struct space *space;
    const struct sketch *sketch;
    struct sketch_target target;
    int nr_outer; /* the first axes of every anchor are strips: all nests are run for one before the
                     next, so that their loops are around the nests */
    int nr_nests;
    struct nest_plan nest[WL_MAX_STAGES];
};

/* The tile sizes of a nest under a candidate. */
struct nest_shape {
    int64_t s[WL_MAX_AXES][4];    /* spatial axis: S0 S1 S2 S3 */
    int64_t r[WL_MAX_AXES][2];    /* reduction axis (numbered from 0 after the spatial ones) */
    int64_t unrolled[WL_MAX_AXES];/* part of r[.][1] that is unrolled; divides it */
    int lanes;                    /* vector length, 1 where nothing is vectorised */
    int64_t vectors;              /* of the vector axis in S3: ceil(S3 / lanes); of a reduction
                                     axis in vectors: what is whole, extent / lanes */
    int64_t tile_vectors;         /* of the register tile */
    int64_t r0_trips;             /* product of R0 */
    int64_t unrolled_trips;       /* product of unrolled */
};

void nest_shape(const struct nest_plan *n, const struct candidate *c, struct nest_shape *out);

/* The order of the spatial axes at S0, S1 and S2: as permuted, what is not permuted in place. */
void nest_order(const struct nest_plan *n, const struct candidate *c, int order[WL_MAX_AXES]);

/* A loop around the register tile. */
struct nest_loop {
    int axis;
    enum level level;
    int64_t extent, stride;
};
enum { NEST_LOOPS = WL_MAX_AXES * 4 };

/* The loops around the register tile, outermost first, those of one step left out; loops of an axis
 * that follow each other with nothing between them are one, at the level of the innermost. Returns
 * their number, at most NEST_LOOPS. */
int nest_loops(const struct nest_plan *n, const struct candidate *c, const struct nest_shape *sh,
               struct nest_loop *out);

/*
 * The order of the register tile's axes, outermost first. Axes that move the same loads are a *side*
 * of it, as the rows and columns of an image are; its longest side is outermost, and in a side the
 * longest axis. What is read for the other sides is then kept beside the sums in the fewest
 * registers: of 12 sums, four pixels by three vectors of channels, the three and one of the four at
 * a time, which are the 16 that AVX2 has.
 */
struct nest_tile {
    int order[WL_MAX_AXES];
    int64_t longest; /* the length of the longest side, in vectors */
    /* Values of a step of the reduction that find no register beside the sums: those of the sides
     * but the longest are wanted, and one of that. Of them, where they are vectors along one axis,
     * the last of that are loaded anew for each sum, as part of its operation; the rest is spilled. */
    int64_t over, again;
    int again_axis; /* -1 for none */
};
void nest_tile(const struct nest_plan *n, const struct nest_shape *sh, struct nest_tile *out);

/* The `twins` of these sketches. */
uint64_t sketch_twins(const struct sketch *k, const struct candidate *c);

/* What axis `a` of the anchor covers inside `place`: the extent of its loops below it. */
int64_t nest_inner_extent(const struct nest_plan *n, const struct nest_shape *sh, int a,
                          enum place place);

/* The extent along a dimension of what a load with index `idx` touches inside `place`. */
int64_t nest_box_extent(const struct nest_plan *n, const struct nest_shape *sh,
                        const struct affine *idx, enum place place);

/* The only load of `tensor` in an expression: NULL for none, and `*nr` counts them. */
const struct wl_expr *expr_find_load(const struct wl_expr *e, int tensor, int *nr);

/* May a copy of what this load reads be laid out in the order of the loops: does every index depend
 * on one axis only, and every axis occur in one index only? */
bool load_is_separable(const struct wl_expr *load, int nr_dims, int nr_axes);

/* Finds the taps of a nest that may lie on padding. */
void plan_taps(struct nest_plan *n);

/* Is padding computed where it is read? */
bool nest_pads_inline(const struct nest_plan *n, const struct candidate *c);

/* How the code gets to know that such a tap is one, if it is to be skipped: by a branch around what
 * reads a row; when it is made; or not, so that the tap is like others. */
enum tap_kind { TAP_BRANCH, TAP_KNOWN, TAP_ASKED };
enum tap_kind tap_kind(const struct nest_plan *n, const struct nest_shape *sh,
                       const struct candidate *c, const struct tap *t);

/* Decides `vec` and `across`, from the packs and fixed axes. */
void plan_lanes(struct nest_plan *n);

enum place knob_place(const struct plan *p, int knob, const struct candidate *c);

#endif
