/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Compare: a kernel's output against the expected one.
 *
 * The error of an element is in units of what the rounding of a sum of `reduce_length` terms may
 * come to: |got - want| / (8 * eps * sqrt(reduce_length) * (|want| + size)), where `size` is what
 * elements usually are, the root of their mean square. Of few elements that says little, the sum of
 * one may nearly cancel: then the size that an average of operands as task_fill() makes them has is
 * added. Not a number, or infinity, where neither is expected is an infinite error.
 */
#ifndef ENGINE_TENSOR_COMPARE_H
#define ENGINE_TENSOR_COMPARE_H

#include <stdint.h>

#include "engine/base/strbuf.h"
#include "engine/tensor/layout.h"

struct tolerance {
    double unit, size;
};

struct comparison {
    double error;  /* the largest; <= 1 passes; INFINITY for NaN where none is expected */
    int64_t at;    /* its element, the first of equals */
    int64_t wrong; /* elements with an error above 1 */
};

/* `skip` (may be NULL) marks elements that do not count: the padding of a stored array. */
struct tolerance tolerance_of(const float *want, const unsigned char *skip, int64_t n,
                              int64_t reduce_length);

struct comparison compare_output(const float *got, const float *want, const unsigned char *skip,
                                 int64_t n, struct tolerance t);

/* "element [0, 3, 5, 5] is 1.25, expected 0.5 (error 812 tolerances; 37 % of elements wrong)" for
 * arrays of the logical shape of `l`. */
void compare_explain(const struct comparison *c, const struct layout *l, const float *got,
                     const float *want, struct strbuf *out);

#endif
