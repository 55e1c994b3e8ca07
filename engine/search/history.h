/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a strategy remembers: sets of candidates, the trials it knows, and the supply of candidates
 * that are not trials yet. Everything is indexed in order of arrival, so that no result depends on
 * addresses or on the hash. Private to engine/search.
 */
#ifndef ENGINE_SEARCH_HISTORY_H
#define ENGINE_SEARCH_HISTORY_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/search/space.h"
#include "engine/search/space_walk.h"
#include "engine/search/strategy.h"

/* A set of candidates; a zeroed struct is valid and empty. */
struct candset {
    struct candidate *v;
    int nr, cap;
    int32_t *bucket; /* index + 1 into v, 0 for none; open addressing */
    int nr_buckets;
};

/* Index of the candidate, -1 where it is not in the set. */
int candset_find(const struct candset *s, const struct candidate *c);
/* Index of the candidate, which is added where it was not yet in the set. */
int candset_add(struct candset *s, const struct candidate *c);
void candset_release(struct candset *s);

/* The first index that came with a number; a zeroed struct is valid and empty. */
struct idmap {
    uint64_t *id;
    int *index; /* + 1, 0 where the place is free; open addressing */
    int nr, nr_places;
};

/* The index, -1 where the number is not in the map. */
int idmap_find(const struct idmap *m, uint64_t id);
/* The same after adding it with `index` where it was not yet in the map. */
int idmap_add(struct idmap *m, uint64_t id, int index);
void idmap_release(struct idmap *m);

/* What a candidate and its twins (struct sketch) have in common. */
uint64_t twins_of(const struct space *s, const struct candidate *c);

struct fact {
    int64_t trial;
    enum trial_status status;
    double cost_ns; /* INFINITY unless ok */
};

/* The trials known, one a candidate. */
struct history {
    const struct space *space;
    struct candset set;
    struct fact *fact; /* of set.v[i] */
    struct idmap twins; /* of the trials that are ok: indices */
    int cap;
};

/* Adds the trials known before the phase. */
void history_init(struct history *h, const struct strategy_env *env);
void history_release(struct history *h);

/* Returns the index. A trial that is ok replaces what was known of the candidate, no other does. */
int history_add(struct history *h, const struct candidate *c, int64_t trial,
                enum trial_status status, double cost_ns);

/* Index of the trial of a candidate, or of a twin that is ok; -1 where there is neither. */
int history_find(const struct history *h, const struct candidate *c);

/* Indices of the trials that are ok, fastest first, at most `max`; the caller frees *out. */
int history_best(const struct history *h, int max, int **out);

/* Candidates that are neither trials of the task nor proposed before, and no twins of such. */
struct supply {
    const struct strategy_env *env; /* the strategy's own copy */
    struct rng *rng;
    struct candset proposed;
    struct idmap twins; /* of those */
    struct space_walk walk;
    bool empty;
};

/* What is known before the phase is never new, whatever env->seen says. */
void supply_init(struct supply *s, const struct strategy_env *env, struct rng *rng);
void supply_release(struct supply *s);

bool supply_is_new(const struct supply *s, const struct candidate *c);
/* Marks a candidate as proposed; false where it was not new. */
bool supply_take(struct supply *s, const struct candidate *c);
/*
 * Takes a new one at random: by sampling, and where that finds known ones only, the next one of an
 * enumeration. Returns false when the space holds no more, or none that a bounded search finds.
 */
bool supply_draw(struct supply *s, struct candidate *out);

/* A proposal that is no step from another trial. */
void proposal_init(struct proposal *p, const struct candidate *c, enum origin origin);

#endif
