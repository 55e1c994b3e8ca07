/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory: where arrays with known lives go in one block, so that those whose lives do not meet
 * share the same bytes.
 *
 * The largest first, each into the smallest gap it fits among those placed before whose lives meet
 * its own (best fit), else behind them. Networks come out at or near the bound: the most that lives
 * at one time.
 */
#ifndef ENGINE_MODEL_MEMORY_H
#define ENGINE_MODEL_MEMORY_H

#include <stdint.h>

struct memory_item {
    int64_t bytes;
    int first, last; /* steps at which it holds something, both included */
    int64_t offset;  /* the result; a multiple of `align` */
};

/* Places the items and returns the size of the block. `align` is a power of two. */
int64_t memory_place(struct memory_item *item, int nr, int64_t align);

/* No placement is smaller than this. */
int64_t memory_bound(const struct memory_item *item, int nr, int64_t align);

#endif
