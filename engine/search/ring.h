/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ring: the candidates that differ from one in a single knob.
 *
 * Wider than space_neighbours(): an ordinal, too, takes any of its values, for what is one step
 * away in the order may be far in what it does; of a long one, the values at a distance of a power
 * of two and its ends. Private to engine/search.
 */
#ifndef ENGINE_SEARCH_RING_H
#define ENGINE_SEARCH_RING_H

#include "engine/search/space.h"

struct ring_member {
    struct candidate c;
    int knob; /* in which it differs, -1 for none or several */
    int from; /* the caller's number of what it differs from */
};

/* A list of candidates; a zeroed struct is valid and empty. */
struct ring {
    struct ring_member *v;
    int nr, cap;
};

/* Appends the ring of `c`, the valid ones, in knob order. */
void ring_around(struct ring *r, const struct space *s, const struct candidate *c, int from);
/* The same for one knob. */
void ring_along(struct ring *r, const struct space *s, const struct candidate *c, int knob,
                int from);
/* Appends a candidate, which is not checked. */
void ring_add(struct ring *r, const struct candidate *c, int knob, int from);
void ring_release(struct ring *r);

#endif
