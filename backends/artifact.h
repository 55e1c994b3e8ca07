/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Artifact: a built kernel on its way to the runner.
 *
 * The kernel is called with an array of pointers, one a buffer, in the order of buf[]:
 *   BUF_INPUT    operand in the stored layout of the workload's tensor
 *   BUF_CONST    constant packed from its logical array into `layout`
 *   BUF_OUTPUT   result in the stored layout of the workload's output
 *   BUF_SCRATCH  `bytes` of zeroed memory, contents free
 * All are aligned to 64 bytes and may be read (not written) up to 64 bytes past their end.
 */
#ifndef BACKENDS_ARTIFACT_H
#define BACKENDS_ARTIFACT_H

#include <stddef.h>
#include <stdint.h>

#include "engine/base/err.h"
#include "engine/base/strbuf.h"
#include "engine/tensor/layout.h"
#include "engine/tensor/workload.h"

enum buffer_role { BUF_INPUT, BUF_CONST, BUF_OUTPUT, BUF_SCRATCH };

struct buffer {
    enum buffer_role role;
    int tensor;           /* of the workload; -1 for scratch */
    int64_t bytes;
    struct layout layout; /* BUF_CONST: packed; INPUT, OUTPUT: as the workload's tensor */
};

enum { ARTIFACT_MAX_BUFFERS = WL_MAX_TENSORS + 8 };

struct artifact {
    char backend[16];
    char entry[32];       /* symbol */
    int threads;
    int nr_buffers;
    struct buffer buf[ARTIFACT_MAX_BUFFERS];
    void *code;           /* malloc */
    size_t code_bytes;
};

void artifact_release(struct artifact *a);

/* One flat blob for the way between processes; the decoder checks every length. */
void artifact_encode(const struct artifact *a, struct strbuf *out);
int artifact_decode(const void *data, size_t len, struct artifact *a, struct err *e);

#endif
