/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/tensor/compare.h"

#include <float.h>
#include <inttypes.h>
#include <math.h>

struct tolerance tolerance_of(const float *want, const unsigned char *skip, int64_t n,
                              int64_t reduce_length)
{
    double squares = 0, length = reduce_length > 1 ? (double)reduce_length : 1;
    int64_t nr = 0;
    for (int64_t i = 0; i < n; i++)
        if (isfinite(want[i]) && !(skip && skip[i])) {
            squares += (double)want[i] * (double)want[i];
            nr++;
        }
    struct tolerance t = {.unit = 8 * (double)FLT_EPSILON * sqrt(length)};
    if (nr)
        t.size = sqrt(squares / (double)nr) + 0.5 / (sqrt(length) * (double)nr);
    return t;
}

static double element_error(double got, double want, struct tolerance t)
{
    if (!isfinite(want))
        return isnan(want) || got == want ? 0 : INFINITY;
    if (!isfinite(got))
        return INFINITY;
    /* DBL_MIN: an expected array of zeros has no scale, and 0 is still right there */
    return got == want ? 0 : fabs(got - want) / (t.unit * (fabs(want) + t.size) + DBL_MIN);
}

struct comparison compare_output(const float *got, const float *want, const unsigned char *skip,
                                 int64_t n, struct tolerance t)
{
    struct comparison c = {0};
    double most = 0; /* of c.error and 1: what is below is neither the largest nor wrong */
    for (int64_t i = 0; i < n; i++) {
        if (skip && skip[i])
            continue;
        double off = fabs((double)got[i] - (double)want[i]);
        if (off <= most * (t.unit * (fabs((double)want[i]) + t.size)) && off <= DBL_MAX)
            continue;
        double error = element_error((double)got[i], (double)want[i], t);
        if (error > c.error) {
            c.error = error;
            c.at = i;
            most = fmin(error, 1);
        }
        c.wrong += error > 1;
    }
    return c;
}

static void explain_index(const struct layout *l, int64_t at, struct strbuf *out)
{
    int64_t stride = layout_logical_size(l);
    strbuf_addc(out, '[');
    for (int d = 0; d < l->nr_l; d++) {
        stride /= l->l[d];
        strbuf_addf(out, "%s%" PRId64, d ? ", " : "", at / stride);
        at %= stride;
    }
    strbuf_addc(out, ']');
}

void compare_explain(const struct comparison *c, const struct layout *l, const float *got,
                     const float *want, struct strbuf *out)
{
    double g = (double)got[c->at], w = (double)want[c->at];
    double percent = 100 * (double)c->wrong / (double)layout_logical_size(l);
    strbuf_adds(out, "element ");
    explain_index(l, c->at, out);
    if (isnan(g))
        strbuf_addf(out, " is not a number or was never written, expected %.9g (", w);
    else
        strbuf_addf(out, " is %.9g, expected %.9g (", g, w);
    if (isfinite(c->error))
        strbuf_addf(out, "error %.4g tolerances; ", c->error);
    strbuf_addf(out, "%.3g %% of elements wrong)", percent);
}
