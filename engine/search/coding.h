/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Coding: a candidate as a vector of numbers, for models that split or compare by coordinates.
 *
 *   sketch       its number, where the space has several; knobs of different sketches share
 *                coordinates, which a model tells apart by this one
 *   split        log2 of the factor, a coordinate a level
 *   ordinal      the index; with five values or more also how often 2 divides the value, for
 *                hardware likes 64 and 128 alike, and 96 between them less
 *   choice       of n = 3 .. 16 values n coordinates, of which one is 1; else the index
 *   flag         0 or 1
 *   permutation  where each thing stands
 *
 * Knobs of one value have no coordinate. Private to engine/search.
 */
#ifndef ENGINE_SEARCH_CODING_H
#define ENGINE_SEARCH_CODING_H

#include "engine/search/space.h"

struct coding {
    const struct space *space;
    int nr_dims; /* of the widest sketch; coordinates that a sketch does not have are 0 */
};

void coding_init(struct coding *c, const struct space *space);

/* Writes nr_dims numbers. */
void coding_write(const struct coding *c, const struct candidate *cand, float *x);

/*
 * How far apart two candidates are: the sum over the knobs of distances from 0 to 1, or of their
 * squares, by which the ends of a knob are farther from each other than both from its middle
 * together. Candidates of different sketches are as far apart as can be.
 */
double coding_distance(const struct coding *c, const struct candidate *a, const struct candidate *b,
                       bool squared);

#endif
