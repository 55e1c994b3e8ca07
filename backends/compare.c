/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/compare.h"

#include <float.h>
#include <inttypes.h>
#include <math.h>

double compare_rms(const float *want, int64_t n)
{
    double squares = 0;
    int64_t nr = 0;
    for (int64_t i = 0; i < n; i++)
        if (isfinite(want[i])) {
            squares += (double)want[i] * (double)want[i];
            nr++;
        }
    return nr ? sqrt(squares / (double)nr) : 0;
}

static double element_error(double got, double want, double rms, double unit)
{
    if (!isfinite(want))
        return isnan(want) || got == want ? 0 : INFINITY;
    if (!isfinite(got))
        return INFINITY;
    /* DBL_MIN: an expected array of zeros has no scale, and 0 is still right there */
    return got == want ? 0 : fabs(got - want) / (unit * (fabs(want) + rms) + DBL_MIN);
}

struct comparison compare_output(const float *got, const float *want, int64_t n, double rms,
                                 int64_t reduce_length)
{
    double unit = 8 * (double)FLT_EPSILON * sqrt(reduce_length > 1 ? (double)reduce_length : 1);
    struct comparison c = {0};
    for (int64_t i = 0; i < n; i++) {
        double error = element_error((double)got[i], (double)want[i], rms, unit);
        if (error > c.error) {
            c.error = error;
            c.at = i;
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
