/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Surrogate: the speed of a candidate guessed from its measured neighbours.
 *
 * Candidates of one sketch are points: a split gives a coordinate a level, log2(factor) over
 * log2(extent); an ordinal and the places of a permutation are scaled to [0, 1]; a choice or a flag
 * is at distance 1 from any other value. The guess is the mean of the nearest ones' speeds,
 * weighted by the inverse square of the distance, blended with the mean of the sketch, which is
 * itself blended with the mean of all: far from everything measured, and in a sketch measured
 * little, it says "as usual". Speed is fastest / cost, so failed trials count 0. Private to
 * engine/search.
 */
#ifndef ENGINE_SEARCH_SURROGATE_H
#define ENGINE_SEARCH_SURROGATE_H

#include "engine/search/space.h"

struct surrogate_sketch;

struct surrogate {
    const struct space *space;
    struct surrogate_sketch *sketch; /* one each */
    double best_ns;
    double mean; /* speed of all points */
};

void surrogate_init(struct surrogate *s, const struct space *space);
void surrogate_release(struct surrogate *s);

/* cost_ns is INFINITY for a failed trial. */
void surrogate_add(struct surrogate *s, const struct candidate *c, double cost_ns);

/* Brings the means up to date; call it between adding and scoring. */
void surrogate_fit(struct surrogate *s);

/* In [0, 1], higher is faster. */
double surrogate_score(const struct surrogate *s, const struct candidate *c);

#endif
