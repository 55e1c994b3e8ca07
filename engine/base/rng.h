/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Random numbers: xoshiro256** seeded by splitmix64 (Blackman and Vigna, 2018). The whole state is
 * the struct, so it can be stored; equal seeds give equal streams on every machine.
 */
#ifndef ENGINE_BASE_RNG_H
#define ENGINE_BASE_RNG_H

#include <stdint.h>

struct rng {
    uint64_t s[4];
};

void rng_seed(struct rng *r, uint64_t seed);
uint64_t rng_u64(struct rng *r);

/* Uniform in 0..n-1, without modulo bias; n > 0. */
uint64_t rng_below(struct rng *r, uint64_t n);

/* Uniform in [0, 1). */
double rng_unit(struct rng *r);

/* A seed for an independent stream named by `stream`, e.g. one a task. */
uint64_t rng_mix(uint64_t seed, uint64_t stream);

#endif
