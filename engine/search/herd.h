/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Herd: a population of measured candidates, for strategies that breed.
 *
 * Individual i is a candidate and its cost. Children are bred knob by knob, and made valid:
 * herd_settle() tries a breeder some times until its child keeps the constraints. Only individuals
 * of one sketch breed with each other. Private to engine/search.
 */
#ifndef ENGINE_SEARCH_HERD_H
#define ENGINE_SEARCH_HERD_H

#include "engine/search/memory.h"

enum { HERD_MAX = 64 };

struct individual {
    struct candidate c;
    double cost_ns;
    int64_t trial;
};

struct herd {
    int nr, size;
    struct individual v[HERD_MAX];
};

/* Index of the slowest and of the fastest; the herd is not empty. */
int herd_worst(const struct herd *h);
int herd_best(const struct herd *h);

/* Takes the individual in: at the end while there is room, else in the place of the slowest if it
 * is faster. */
void herd_join(struct herd *h, const struct individual *x);

/* One of the herd of this sketch, by a tournament of `rounds`; 1 is any. */
const struct individual *herd_pick(const struct herd *h, struct rng *r, int sketch, int rounds);

/* Value of knob k of `from` into `to`, which is of the same sketch. */
void knob_copy(const struct knob *k, const struct candidate *from, struct candidate *to);
bool knob_equal(const struct knob *k, const struct candidate *a, const struct candidate *b);

/*
 * Proposes a child: calls breed(ctx, out) until it gives one that is valid and new, at most TRIES
 * times, then mutates the last valid one. False where nothing new came.
 */
bool herd_settle(struct memory *m, void (*breed)(void *ctx, struct candidate *out), void *ctx,
                 int64_t parent, struct proposal *out);

#endif
