/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/search/score.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/arena.h"
#include "engine/base/rng.h"
#include "engine/search/stats.h"

static const double P_FROM = 0.01, P_TO = 0.95;
/* The budget holds at least this many evaluations, however easy the space. */
enum { LEAST_EVALUATIONS = 2, REDRAWS = 200 };

static int ascending(const void *pa, const void *pb)
{
    double a = *(const double *)pa, b = *(const double *)pb;
    return (a > b) - (a < b);
}

/* Median and mean of costs; a NAN one is left out. */
static void count_costs(struct score_space *s, const double *value, const double *cost_s)
{
    double *known = xmalloc((size_t)s->nr * sizeof *known), sum[2] = {0};
    int nr = 0, of[2] = {0}, invalid = s->nr - s->nr_valid;
    for (int i = 0; i < s->nr; i++) {
        if (isnan(cost_s[i]))
            continue;
        known[nr++] = cost_s[i];
        sum[isnan(value[i])] += cost_s[i];
        of[isnan(value[i])]++;
    }
    s->median_cost_s = stats_median(known, nr);
    s->tau_s = of[0] ? sum[0] / of[0] : 0;
    if (of[1])
        s->tau_s += (double)invalid / s->nr * (sum[1] / of[1]);
    free(known);
}

int score_space_init(struct score_space *s, int nr, const double *value, const double *cost_s,
                     struct err *e)
{
    memset(s, 0, sizeof *s);
    s->nr = nr;
    s->sorted = xmalloc((size_t)(nr + 1) * sizeof *s->sorted);
    for (int i = 0; i < nr; i++) {
        if (!isnan(value[i]))
            s->sorted[s->nr_valid++] = value[i];
    }
    if (s->nr_valid == 0)
        return err_set(e, ERR_INPUT, "no configuration has a value");
    qsort(s->sorted, (size_t)s->nr_valid, sizeof *s->sorted, ascending);
    s->median = stats_median(s->sorted, s->nr_valid);
    count_costs(s, value, cost_s);
    if (!(s->tau_s > 0) || !(s->median_cost_s > 0))
        return err_set(e, ERR_INPUT, "no configuration that has a value has a cost");
    s->from = score_cut(s, P_FROM);
    s->to = score_cut(s, P_TO);
    if (s->to.evaluations < s->from.evaluations + LEAST_EVALUATIONS)
        s->to.evaluations = s->from.evaluations + LEAST_EVALUATIONS;
    s->from_s = (double)s->from.evaluations * s->median_cost_s;
    s->to_s = (double)s->to.evaluations * s->median_cost_s;
    for (int j = 0; j < SCORE_GRID; j++) {
        /* rint() rounds half to even, as the published code does. */
        double k = rint(score_time(s, j) / s->tau_s);
        s->baseline[j] = score_baseline(s, k < 1 ? 1 : (int64_t)k);
    }
    return 0;
}

void score_space_release(struct score_space *s)
{
    free(s->sorted);
    memset(s, 0, sizeof *s);
}

static double descending(const struct score_space *s, int i)
{
    return s->sorted[s->nr_valid - 1 - i];
}

struct score_cut score_cut(const struct score_space *s, double p)
{
    double best = s->sorted[0];
    struct score_cut c = {.value = best + (s->median - best) * (1 - p)};
    while (c.worse < s->nr_valid - 1 && descending(s, c.worse) > c.value)
        c.worse++;
    int64_t left = s->nr_valid + 1 - c.worse;
    c.evaluations = (c.worse + left - 1) / left;
    if (c.evaluations < 1)
        c.evaluations = 1;
    return c;
}

double score_time(const struct score_space *s, int j)
{
    return s->from_s + (s->to_s - s->from_s) * j / (SCORE_GRID - 1);
}

double score_baseline(const struct score_space *s, int64_t k)
{
    double rank = rint((double)k * (s->nr_valid + 1) / ((double)k + 1));
    return descending(s, rank < s->nr_valid ? (int)rank : s->nr_valid - 1);
}

/* sum over j of y_j * C(N - j, k - 1) / C(N, k), the weights from one another. */
double score_expectation(const struct score_space *s, int64_t k)
{
    int64_t nr = s->nr_valid;
    if (k > nr)
        k = nr;
    double sum = 0, weight = (double)k / (double)nr;
    for (int64_t j = 1; j <= nr - k + 1; j++) {
        sum += s->sorted[j - 1] * weight;
        if (j < nr)
            weight *= (double)(nr - j - k + 1) / (double)(nr - j);
    }
    return sum;
}

int score_rank(const struct score_space *s, double value)
{
    int lo = 0, hi = s->nr_valid;
    while (lo < hi) {
        int mid = lo + (hi - lo) / 2;
        if (s->sorted[mid] < value)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

void score_run_add(struct score_run *r, double at_s, double value)
{
    if (isnan(value) || (r->nr && value >= r->step[r->nr - 1].value))
        return;
    GROW(r->step, r->nr, r->cap);
    r->step[r->nr++] = (struct score_step){at_s, value};
}

void score_run_release(struct score_run *r)
{
    free(r->step);
    memset(r, 0, sizeof *r);
}

void score_add_ranks(const struct score_space *s, const struct score_run *r, double sum[SCORE_GRID])
{
    int rank = s->nr_valid - 1, next = 0;
    for (int j = 0; j < SCORE_GRID; j++) {
        double now = score_time(s, j);
        for (; next < r->nr && r->step[next].at_s <= now; next++)
            rank = score_rank(s, r->step[next].value);
        sum[j] += rank;
    }
}

void score_values(const struct score_space *s, const double sum[SCORE_GRID], int runs,
                  double value[SCORE_GRID])
{
    for (int j = 0; j < SCORE_GRID; j++) {
        double rank = rint(sum[j] / runs);
        value[j] = s->sorted[rank < s->nr_valid ? (int)rank : s->nr_valid - 1];
    }
}

double score_curve(const struct score_space *s, const double sum[SCORE_GRID], int runs,
                   double p[SCORE_GRID])
{
    double total = 0, best = s->sorted[0], value[SCORE_GRID];
    score_values(s, sum, runs, value);
    for (int j = 0; j < SCORE_GRID; j++) {
        double b = s->baseline[j];
        /* Where the baseline is the optimum there is nothing left to gain. */
        p[j] = b != best ? (value[j] - b) / (best - b) : 0;
        total += p[j];
    }
    return total / SCORE_GRID;
}

double score_error(const struct score_space *s, const struct score_run *run, int runs)
{
    if (runs < 2)
        return 0;
    double *rank = xcalloc((size_t)runs * SCORE_GRID, sizeof *rank);
    for (int i = 0; i < runs; i++)
        score_add_ranks(s, &run[i], rank + (size_t)i * SCORE_GRID);
    struct rng rng;
    rng_seed(&rng, 1);
    double mean = 0, squares = 0;
    for (int draw = 1; draw <= REDRAWS; draw++) {
        double sum[SCORE_GRID] = {0}, p[SCORE_GRID];
        for (int i = 0; i < runs; i++) {
            const double *one = rank + rng_below(&rng, (uint64_t)runs) * SCORE_GRID;
            for (int j = 0; j < SCORE_GRID; j++)
                sum[j] += one[j];
        }
        double x = score_curve(s, sum, runs, p), before = x - mean;
        mean += before / draw;
        squares += before * (x - mean);
    }
    free(rank);
    return sqrt(squares / (REDRAWS - 1));
}
