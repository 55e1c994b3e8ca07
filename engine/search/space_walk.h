/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Walk: the valid candidates of a space one after another, found lazily by a depth-first search
 * that prunes.
 *
 * Knobs are set in an order in which those that share a constraint stand together; a constraint is
 * asked as soon as the last knob it reads is set, and one that can judge a part earlier (possible())
 * whenever a knob that it reads is set. Knobs linked by constraints, directly or through
 * others, form a *group*: groups do not influence each other, so a group without a solution ends
 * the sketch at once, and counts multiply. Private to engine/search.
 */
#ifndef ENGINE_SEARCH_SPACE_WALK_H
#define ENGINE_SEARCH_SPACE_WALK_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/search/space.h"

/* At depth d the constraints ask[check[d]] .. ask[check[d + 1] - 1] are asked, and of
 * guess[part[d]] .. guess[part[d + 1] - 1] whether they are still possible. */
struct walk_plan {
    const struct sketch *sketch;
    int order[SKETCH_MAX_KNOBS];    /* knob set at depth d */
    int group[SKETCH_MAX_KNOBS];    /* of depth d; contiguous, ascending from 0 */
    uint64_t set[SKETCH_MAX_KNOBS]; /* knobs set at depth d, the one of d included */
    /* Knobs set before depth d that a constraint asked at d or deeper reads: all that the rest of
     * the search depends on. */
    uint64_t live[SKETCH_MAX_KNOBS + 1];
    int check[SKETCH_MAX_KNOBS + 1], part[SKETCH_MAX_KNOBS + 1];
    int *ask, *guess; /* malloc */
};

/* `use` NULL: all constraints; else those whose element is true. */
void walk_plan_init(struct walk_plan *p, const struct sketch *k, const bool *use);
void walk_plan_release(struct walk_plan *p);

/* Do the constraints of depth `depth` allow the knobs of `c` set so far? */
bool walk_plan_allows(const struct walk_plan *p, int depth, const struct candidate *c);

struct space_walk {
    const struct space *space;
    int sketch, end;    /* the sketch under way, and the one to stop before */
    struct rng *rng;    /* random values and order of values; NULL: in order */
    int64_t nodes_left; /* the search stops when it is 0, and goes on when raised */
    bool cut;           /* it stopped so: the value it stands at is not examined */
    struct walk_plan plan;
    bool planned;
    int lo, hi, depth;             /* depths searched, and where the search stands */
    bool done[SKETCH_MAX_KNOBS];   /* group has had a solution */
    int32_t start[CAND_MAX_SLOTS]; /* per slot: the value its knob began with at this depth */
    struct candidate c;
};

/* Walks `sketch`, or all sketches in turn when it is -1. Release it afterwards. */
void space_walk_init(struct space_walk *w, const struct space *s, int sketch);
void space_walk_release(struct space_walk *w);

/* The next valid candidate. False at the end, and where `cut` is set. */
bool space_walk_next(struct space_walk *w, struct candidate *out);

#endif
