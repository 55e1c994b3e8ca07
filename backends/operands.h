/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Operands: one memfd that holds what a task is computed from and what must come out.
 *
 *   struct operands_head
 *   inputs, each in its stored layout
 *   constants, each a plain logical array
 *   expected output, in its stored layout
 *
 * Written once, sealed against any change, then sent to the runner with each request. Sealed, it
 * can be mapped without fear: it neither shrinks under a reader nor is it changed by a wild kernel.
 */
#ifndef BACKENDS_OPERANDS_H
#define BACKENDS_OPERANDS_H

#include <stddef.h>
#include <stdint.h>

#include "backends/runner.h"
#include "engine/base/err.h"
#include "engine/tensor/layout.h"
#include "engine/tensor/workload.h"

struct operand {
    enum wl_role role; /* WL_TEMP has no bytes */
    int64_t offset, bytes;
    struct layout layout; /* stored; of a constant plain */
};

struct operands_head {
    uint64_t magic;
    uint64_t id;   /* no two operands of a process have the same */
    int64_t bytes; /* of the whole */
    int64_t reduce_length;
    int nr_tensors, output;
    struct operand tensor[WL_MAX_TENSORS];
};

/* The parent's handle. */
struct operands {
    uint64_t id;
    int fd;
};

/* Maps what another process sent, read-only; NULL and a sentence where it is no such thing. The
 * caller unmaps head->bytes. */
const struct operands_head *operands_map(int fd, struct err *e);

static inline const float *operands_data(const struct operands_head *h, int tensor)
{
    return (const float *)((const char *)h + h->tensor[tensor].offset);
}

#endif
