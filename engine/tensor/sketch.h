/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sketches: the loop structures of a workload with their knobs open; and their lowering.
 *
 * Words. A *nest* computes one stage of the workload, its anchor, and what is fused around it:
 *   producers   element-wise stages that only the anchor reads (padding, packing): computed inside
 *               the loads, at a level of the anchor's loops, or in a nest of their own before it
 *   epilogue    the element-wise stage that follows a reduction: done on the registers
 *
 * Every nest has the multi-level tiling of MetaSchedule, SSRSRS:
 *   S0 S1 R0 S2 R1 S3     S: a tile loop of every spatial axis, R: of every reduction axis
 * where S3 is the register tile: unrolled, its last axis in vectors of the target's lanes. Its sums
 * stay in registers over R1; over R0 they wait in the output or in a write cache.
 *
 * The sketches of a workload:
 *   tiled             its stages as they are
 *   winograd4, 2      of a 3x3 convolution: products in the domain of F(4x4,3x3), F(2x2,3x3); the
 *                     transforms before and after are nests without knobs (lower_transform.c)
 *   winograd4-strips  the same for one strip of tiles after the other
 *
 * Knobs of a nest (prefixed "name." when a workload has several):
 *   tile_<axis>   split: S axis in 4 factors (S0,S1,S2,S3), R axis in 2 (R0,R1)
 *   order         permutation of the spatial axes in S0, S1 and S2
 *   unroll        ordinal: how far the loops of R1 are unrolled
 *   write_cache   flag: partial sums wait in scratch memory of their own, not in the output
 *   skip_padding  flag: taps on padding are passed over where that is known, and the padded copy is not
 *                 needed where it is known of all (lower_skip.c)
 *   at_<stage>    choice: where a producer is computed: 0 in the loads, 1 before the nest,
 *                 2 inside S0, 3 inside S1, 4 inside R0
 *   pack_<input>  choice: where a variable operand is copied into reading order: 0 nowhere,
 *                 2 inside S0, 3 inside S1, 4 inside R0
 */
#ifndef ENGINE_TENSOR_SKETCH_H
#define ENGINE_TENSOR_SKETCH_H

#include "engine/base/err.h"
#include "engine/search/space.h"
#include "engine/tensor/loop.h"
#include "engine/tensor/workload.h"

/* What the sketches need to know of a target. */
struct sketch_target {
    int lanes;     /* float32 lanes of a vector */
    int registers; /* vector registers */
    int threads;   /* threads of a kernel */
    int64_t l1_bytes, l2_bytes;
};

/* Adds the sketches of `w` to the empty space `out`. `w` outlives the space. */
int sketches_of(const struct workload *w, const struct sketch_target *target, struct space *out,
                struct err *e);

/* The loop program of a valid candidate. ERR_LIMIT where it would be too large. */
int lower(const struct workload *w, const struct space *s, const struct candidate *c,
          struct loop_program *out, struct err *e);

#endif
