/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Domain of one knob: walk it, draw from it, count it.
 *
 * `v` is always the first of the knob's own slots. Every domain has at least one value. The order
 * of a split is that of its factors read as a word, outermost first; of a permutation, the
 * lexicographic one. Private to engine/search.
 */
#ifndef ENGINE_SEARCH_SPACE_DOMAIN_H
#define ENGINE_SEARCH_SPACE_DOMAIN_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/base/rng.h"
#include "engine/search/space.h"

/* The product of the first ten primes is above 2^31. */
enum { MAX_PRIMES = 9 };

struct prime_power {
    int32_t p;
    int e;
};

/* Prime factors of 1 <= n < 2^31, ascending; returns how many. */
int factorise(int64_t n, struct prime_power out[MAX_PRIMES]);

bool domain_contains(const struct knob *k, const int32_t *v);
void domain_first(const struct knob *k, int32_t *v);

/* The value after `v`; after the last one comes the first again, and the result is false. */
bool domain_next(const struct knob *k, int32_t *v);

/* A random value: splits as TVM's SamplePerfectTile draws them, all else uniformly. */
void domain_draw(const struct knob *k, struct rng *r, int32_t *v);

/* Number of values, at most `cap`. */
int64_t domain_size(const struct knob *k, int64_t cap);

/* a * b, at most `cap`; both >= 0. */
int64_t mul_cap(int64_t a, int64_t b, int64_t cap);

#endif
