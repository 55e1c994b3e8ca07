/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/search/judge.h"

#include <math.h>
#include <stdio.h>

#include "engine/search/stats.h"

/* A spread below this is that of the clock, not of the measurement. */
static const double MIN_SPREAD = 1e-4;

/* P(T > t), t >= 0, with `df` degrees of freedom (Abramowitz and Stegun 26.7.3 and 26.7.4). */
static double student_tail(double t, int df)
{
    double a = atan(t / sqrt(df)), c = cos(a), sum, term;
    if (df % 2) {
        sum = term = df > 1 ? c : 0;
        for (int k = 3; k <= df - 2; k += 2)
            sum += term *= c * c * (k - 1) / k;
        return 0.5 - (a + sin(a) * sum) / M_PI;
    }
    sum = term = 1;
    for (int k = 2; k <= df - 2; k += 2)
        sum += term *= c * c * (k - 1) / k;
    return 0.5 - sin(a) * sum / 2;
}

/* One-sided p of "the mean of log(ref / sample) is not above 0". */
static double paired_t(const struct observation *o, int n)
{
    double mean = 0, square = 0;
    for (int i = 0; i < n; i++)
        mean += log(o->ref_ns[i] / o->sample_ns[i]) / n;
    for (int i = 0; i < n; i++) {
        double d = log(o->ref_ns[i] / o->sample_ns[i]) - mean;
        square += d * d;
    }
    double spread = fmax(sqrt(square / (n - 1)), MIN_SPREAD);
    double t = mean / spread * sqrt(n);
    return t > 0 ? fmax(student_tail(t, n - 1), 0) : 1;
}

static double paired_p(const struct observation *o, int n, double level)
{
    double p = stats_signed_rank(o->sample_ns, o->ref_ns, n), floor_p = ldexp(1, -n);
    if (p > floor_p || floor_p <= level)
        return p;
    return fmin(p, paired_t(o, n));
}

/* n >= MIN_PAIRS. */
static bool all_slower(const double *ratio, int n)
{
    for (int i = 0; i < n; i++)
        if (ratio[i] <= 1)
            return false;
    return true;
}

static struct judgement judge_pairs(const struct observation *o, int n, int family)
{
    double ratio[TRIAL_MAX_SAMPLES], level = FAMILY_ALPHA / (family > 1 ? family : 1);
    for (int i = 0; i < n; i++)
        ratio[i] = o->sample_ns[i] / o->ref_ns[i];
    bool slower = all_slower(ratio, n);
    struct judgement j = {VERDICT_NOISE, 1, 1 - stats_median(ratio, n), true};
    j.p = paired_p(o, n, level);
    if (j.p <= level && j.gain >= MIN_GAIN)
        j.verdict = VERDICT_BETTER;
    else if ((slower && j.gain <= -MIN_GAIN) ||
             (j.gain < 0 && stats_signed_rank(o->ref_ns, o->sample_ns, n) <= 0.05))
        j.verdict = VERDICT_WORSE;
    return j;
}

static struct judgement judge_costs(const struct observation *o, double incumbent_ns)
{
    struct judgement j = {VERDICT_NOISE, NAN, 1 - o->cost_ns / incumbent_ns, false};
    if (j.gain > MIN_GAIN)
        j.verdict = VERDICT_BETTER;
    else if (j.gain < -MIN_GAIN)
        j.verdict = VERDICT_WORSE;
    return j;
}

struct judgement judge(const struct observation *o, int64_t incumbent, double incumbent_ns,
                       int family)
{
    /* Cut means that the first sample was far above the incumbent: slow, not broken. */
    if (o->status == TRIAL_CUT)
        return (struct judgement){VERDICT_WORSE, NAN, NAN, false};
    if (o->status != TRIAL_OK || !(o->cost_ns > 0) || !isfinite(o->cost_ns))
        return (struct judgement){VERDICT_FAILED, NAN, NAN, false};
    int n = o->nr_ref < o->nr_samples ? o->nr_ref : o->nr_samples;
    if (n > TRIAL_MAX_SAMPLES)
        n = TRIAL_MAX_SAMPLES;
    for (int i = 0; i < n; i++) {
        if (!(o->sample_ns[i] > 0 && o->ref_ns[i] > 0))
            n = 0; /* no times at all: nothing is concluded from them */
    }
    /* Pairs with another trial say nothing about the incumbent. */
    if (n >= MIN_PAIRS && o->parent == incumbent)
        return judge_pairs(o, n, family);
    return judge_costs(o, incumbent_ns);
}

void judgement_text(const struct judgement *j, const struct observation *o, const char *step,
                    char *out, int size)
{
    char tail[64] = "";
    double percent = fabs(j->gain) * 100;
    if (isnan(j->gain)) {
        const char *reason = o->status == TRIAL_OK    ? "no usable time"
                             : o->status == TRIAL_CUT ? "cut, far slower"
                                                      : trial_status_name(o->status);
        snprintf(tail, sizeof tail, "%s", reason);
    } else {
        int n =
            snprintf(tail, sizeof tail, "%.1f %% %s", percent, j->gain > 0 ? "faster" : "slower");
        if (!isnan(j->p) && j->verdict != VERDICT_WORSE)
            snprintf(tail + n, sizeof tail - (size_t)n, ", p = %.2g", j->p);
    }
    snprintf(out, (size_t)size, "%s%s%s", step, *step ? ": " : "", tail);
}
