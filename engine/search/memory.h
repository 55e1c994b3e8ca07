/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory: what nearly every strategy begins with: its random numbers, the trials it knows and the
 * supply of new candidates. Private to engine/search.
 */
#ifndef ENGINE_SEARCH_MEMORY_H
#define ENGINE_SEARCH_MEMORY_H

#include "engine/search/history.h"

struct memory {
    struct strategy_env env;
    struct rng rng;
    struct supply supply;
    struct history history;
};

/* The struct must stay where it is. */
void memory_init(struct memory *m, const struct strategy_env *env);
void memory_release(struct memory *m);

/* Notes a trial; returns its cost, INFINITY where it failed or is not of the space. */
double memory_note(struct memory *m, const struct observation *o);

/* Is the candidate a trial with a known outcome? *cost_ns is INFINITY where it failed. */
bool memory_recall(const struct memory *m, const struct candidate *c, double *cost_ns);

/* A new proposal: takes the candidate; false where it is not new. */
bool memory_propose(struct memory *m, const struct candidate *c, enum origin origin, int64_t parent,
                    struct proposal *out);
/* A new random one; false where there is none left. */
bool memory_draw(struct memory *m, struct proposal *out);

#endif
