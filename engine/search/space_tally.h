/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tally: how many valid candidates there are, and how many behind each choice.
 *
 * Knobs are set in the order of a walk_plan. How many solutions the rest of a group has depends only
 * on its live knobs (walk_plan.live), so it is counted once for each of their values and kept: a
 * product of hundreds of millions is counted in the time of the thousands of states that differ.
 * With everything kept a candidate is drawn with equal chances by descending along the counts.
 * Private to engine/search.
 */
#ifndef ENGINE_SEARCH_SPACE_TALLY_H
#define ENGINE_SEARCH_SPACE_TALLY_H

#include "engine/search/space.h"

struct tally;

/*
 * Counts what a sketch's constraints (those of `use`, NULL: all) leave, at most `cap`; lists do not
 * count. `nodes` bounds the work; -1 where it did not suffice.
 */
int64_t tally_count(const struct sketch *k, const bool *use, int64_t cap, int64_t nodes);

/* All counts of a sketch, for drawing; NULL where `nodes` did not suffice or nothing is valid. */
struct tally *tally_new(const struct sketch *k, int64_t nodes);
void tally_free(struct tally *t);
int64_t tally_total(const struct tally *t);
/* Each candidate is as likely as the other. Many threads may draw at a time. */
void tally_draw(const struct tally *t, struct rng *r, struct candidate *out);

#endif
