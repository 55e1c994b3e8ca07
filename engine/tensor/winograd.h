/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Winograd's minimal filtering for 3x3 convolutions of stride 1: F(m x m, 3 x 3) computes m x m
 * outputs from a = m + 2 by a + 2 inputs with a * a multiplications a channel, instead of 9 * m * m
 * (Winograd 1980; Lavin and Gray, "Fast Algorithms for Convolutional Neural Networks", 2016):
 *
 *     Y = A^T [ (G g G^T) . (B^T d B) ] A
 *
 * F(2x2) saves a factor of 2.25 and loses next to no precision, F(4x4) saves 4 and loses half a
 * decimal digit: a task's tolerance decides whether its results pass.
 */
#ifndef ENGINE_TENSOR_WINOGRAD_H
#define ENGINE_TENSOR_WINOGRAD_H

#include <stdint.h>

#include "engine/base/arena.h"
#include "engine/tensor/workload.h"

enum { WINOGRAD_MAX_A = 6 };

/* The matrices of the transforms, row after row, for m = 2 or 4 with a = m + 2; static arrays. */
const float *winograd_input_table(int m);  /* B^T: [a][a] */
const float *winograd_output_table(int m); /* A^T: [m][a] */

/* Weights [k, c, 3, 3] -> [a*a, k, c]. */
void winograd_weights(int m, int64_t k, int64_t c, const float *weights, float *out);

/* The tiles of m by m outputs that a convolution has, and its channels, padded to whole blocks. */
struct winograd_tiles {
    int64_t images, rows, cols, channels_in, channels_out;
};

/* False where `w` has no 3x3 convolution of stride 1 on channel-blocked activations with constant
 * weights. */
bool winograd_tiles(const struct workload *w, int m, struct winograd_tiles *out);

/* What is transformed, multiplied and transformed back before the next part is: so many tiles in
 * each direction. Strips at the end may overhang. */
struct winograd_strip {
    int64_t images, rows, cols;
};

/* Axes of the strips: the first ones of each stage that is no producer. */
enum { WINOGRAD_STRIP_AXES = 3 };

/*
 * The workload `w`, which has tiles, with its convolution replaced by input transform, products and
 * output transform; the tensors of `w` keep their numbers. The temporary tensors between the three
 * hold one strip: the stages are to be run one after the other for every strip. `out` is initialised
 * here and is for schedules only: it has no text, and stages may overhang their tensors. `weights`
 * gets the number of the tensor of transformed weights, `from` that of the weights they come from.
 */
void winograd_workload(const struct workload *w, int m, const struct winograd_strip *strip,
                       struct workload *out, int *weights, int *from);

#endif
