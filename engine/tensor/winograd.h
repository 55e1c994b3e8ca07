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

/* Coefficients of the two-dimensional transforms, for m = 2 or 4 with a = m + 2; static arrays. */
const float *winograd_input_table(int m);  /* [a][a][a][a]: of d[r][s] in element (i, j) */
const float *winograd_output_table(int m); /* [m][m][a][a]: of element (i, j) in y[p][q] */

/* Weights [k, c, 3, 3] -> [a*a, k, c]. */
void winograd_weights(int m, int64_t k, int64_t c, const float *weights, float *out);

/*
 * The workload `w` with its convolution replaced by input transform, products and output transform;
 * the tensors of `w` keep their numbers. False where `w` has no 3x3 convolution of stride 1 on
 * channel-blocked activations with constant weights. `out` is initialised here and is for schedules
 * only: it has no text, and stages may overhang their tensors. `weights` gets the number of the
 * tensor of transformed weights, `from` that of the weights they come from.
 */
bool winograd_workload(const struct workload *w, int m, struct workload *out, int *weights,
                       int *from);

#endif
