/* SPDX-License-Identifier: Apache-2.0 */
/*
 * List: the candidates of a sketch one by one, where a file says which there are and no rule does.
 *
 * Rows of slots in ascending order without duplicates, in the sketch. Private to engine/search.
 */
#ifndef ENGINE_SEARCH_SPACE_LIST_H
#define ENGINE_SEARCH_SPACE_LIST_H

#include "engine/search/space.h"

/* The slots of entry `i`. */
static inline const int32_t *list_at(const struct sketch *k, int i)
{
    return k->listed + (size_t)i * (size_t)k->nr_slots;
}

/* Number of the entry, -1 where the candidate is not in the list. */
int list_find(const struct sketch *k, const int32_t *v);

/* Entry `i` as a candidate of the sketch. */
void list_get(const struct sketch *k, int i, struct candidate *out);

/* Whether the constraints hold for it. */
bool list_allows(const struct sketch *k, int i, struct candidate *out);

/* Number of entries for which the constraints hold, at most `cap`. */
int64_t list_count(const struct sketch *k, int64_t cap);

/* A random one of them, each as likely as the other. False where there is none. */
bool list_sample(const struct sketch *k, struct rng *r, struct candidate *out);

#endif
