/* SPDX-License-Identifier: Apache-2.0 */
/* Features of candidates of the sketches of sketch.h; what they are is told in sketch_features.c.
 */
#ifndef ENGINE_TENSOR_SKETCH_FEATURES_H
#define ENGINE_TENSOR_SKETCH_FEATURES_H

#include "engine/search/space.h"

/* The `features` of these sketches: fills at most FEATURE_ROWS rows, returns their number. */
int sketch_features(const struct sketch *k, const struct candidate *c, float (*row)[FEATURES]);

#endif
