/* SPDX-License-Identifier: Apache-2.0 */
/* Mutation: one knob of a candidate changed at random. Private to engine/search. */
#ifndef ENGINE_SEARCH_MUTATE_H
#define ENGINE_SEARCH_MUTATE_H

#include <stdbool.h>

#include "engine/search/space.h"

/*
 * Changes one knob of `c`: with probability 0.9 a split, else one of another kind, where the sketch
 * has both. Returns the knob, or -1 where nothing can be changed. Constraints are not asked.
 */
int mutate(const struct space *s, struct rng *r, struct candidate *c);

#endif
