/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Cache: what a runner keeps from one request to the next.
 *
 *   tasks      operands mapped, inputs copied where no kernel can change them
 *   constants  packed into the layout that some kernel reads
 *   buffers    outputs and scratch
 *   kernels    loaded code
 *
 * Each kind is bounded by number and bytes, and gives up what was not used for longest. What the
 * request in progress uses is never given up, even where that exceeds the bounds: pointers are
 * valid until the next cache_begin(). One thread.
 */
#ifndef BACKENDS_CACHE_H
#define BACKENDS_CACHE_H

#include <stddef.h>
#include <stdint.h>

#include "backends/backend.h"
#include "backends/operands.h"
#include "backends/region.h"
#include "engine/tensor/compare.h"

struct cache;

struct cached_task {
    const struct operands_head *head;
    struct region input[WL_MAX_TENSORS]; /* read-only */
    const float *want;                   /* expected output, logical */
    const float *stored;                 /* the same as a kernel stores it; NULL: it has padding */
    int64_t nr_want;
    struct tolerance tolerance; /* of `want` */
    float *unpacked; /* what `want` points to if not into the map */
    size_t bytes;
    uint64_t used;
};

struct cached_kernel {
    struct artifact artifact;
    struct loaded code;
    char *blob; /* encoded artifact: the key */
    size_t blob_bytes;
    uint64_t used;
};

/* `b` and `l` outlive the cache. */
struct cache *cache_new(const struct backend *b, struct loader *l);
void cache_free(struct cache *c);

/* A new request: nothing is in use. */
void cache_begin(struct cache *c);

/* NULL and a sentence on failure. The descriptor stays the caller's. */
struct cached_task *cache_task(struct cache *c, uint64_t id, int fd, struct err *e);
struct cached_kernel *cache_kernel(struct cache *c, const void *blob, size_t len, struct err *e);

/* Constant `tensor` of the task in the layout, read-only; NULL where memory does not suffice. */
const struct region *cache_constant(struct cache *c, const struct cached_task *t, int tensor,
                                    const struct layout *layout);

/* A writable buffer of exactly `bytes` that is not in use, contents undefined; NULL where memory
 * does not suffice. */
struct region *cache_buffer(struct cache *c, size_t bytes);

#endif
