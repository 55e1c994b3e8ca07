/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Compare: a kernel's output against the expected one.
 *
 * The measure is that of task_error() in engine/model/task.h, an error in units of the tolerance of
 * a sum of `reduce_length` terms; here over logical arrays only, and with a count of what is wrong.
 */
#ifndef BACKENDS_COMPARE_H
#define BACKENDS_COMPARE_H

#include <stdint.h>

#include "engine/base/strbuf.h"
#include "engine/tensor/layout.h"

struct comparison {
    double error;  /* the largest; <= 1 passes; INFINITY for NaN where none is expected */
    int64_t at;    /* its element, the first of equals */
    int64_t wrong; /* elements with an error above 1 */
};

/* Root of the mean square of the finite elements. */
double compare_rms(const float *want, int64_t n);

/* `rms` is compare_rms(want, n), which a caller with one `want` and many `got` computes once. */
struct comparison compare_output(const float *got, const float *want, int64_t n, double rms,
                                 int64_t reduce_length);

/* "element [0, 3, 5, 5] is 1.25, expected 0.5 (error 812 tolerances; 37 % of elements wrong)" for
 * arrays of the logical shape of `l`. */
void compare_explain(const struct comparison *c, const struct layout *l, const float *got,
                     const float *want, struct strbuf *out);

#endif
