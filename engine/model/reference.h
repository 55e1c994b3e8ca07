/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reference: every kind of operator in plain loops over logical, row-major float arrays, sums in
 * double precision. It knows nothing of workloads, stages and layouts, so that it can tell when
 * those are wrong; and it computes folded constants.
 */
#ifndef ENGINE_MODEL_REFERENCE_H
#define ENGINE_MODEL_REFERENCE_H

#include "engine/model/op.h"

/* One operator. Shapes fit the operator as the graph inferred them. `out` overlaps no input. */
void reference_op(const struct op *op, int nr_in, const struct shape *const *shape,
                  const float *const *in, const struct shape *out_shape, float *out);

/* Files of the reference: what one of them asks of another. */
void reference_conv(const struct op *op, const struct shape *xs, const float *x,
                    const struct shape *ws, const float *w, const struct shape *ys, float *y);
void reference_matmul(const struct op *op, const struct shape *as, const float *a,
                      const struct shape *bs, const float *b, const struct shape *ys, float *y);
void reference_pool(const struct op *op, const struct shape *xs, const float *x,
                    const struct shape *ys, float *y);

#endif
