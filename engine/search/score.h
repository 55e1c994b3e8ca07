/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Score: how good a strategy is over time, on a space of which every value is known.
 *
 * After Willemsen et al., "A methodology for comparing optimization algorithms for auto-tuning",
 * Future Generation Computer Systems 159 (2024). Words, for a space of N valid values, of which f*
 * is the best and m the median:
 *
 *   cut-off   f(p) = f* + (m - f*)(1 - p). Random search is expected to need
 *             k(p) = ceil(i / (N + 1 - i)) evaluations for it, i counting the values worse than it
 *   budget    of time, from T(.01) to T(.95), where T(p) = k(p) * median cost of an evaluation
 *   baseline  B(t), what random search has after t: the value of the expected rank of the best of
 *             k = t / tau draws without replacement, tau being the mean cost of an evaluation that
 *             gives a value, with those that fail on its way
 *   curve     S(t), what the strategy has: the value of the mean rank, over many runs, of the best
 *             so far, at SCORE_GRID equally spaced times
 *   score     the mean over the grid of P(t) = (S(t) - B(t)) / (f* - B(t)): 0 is as good as random
 *             search, 1 the optimum at once, and there is no lower bound
 *
 * The budget thus asks how hard a space is for random search, not how large it is. That random
 * search scores 0 checks budget, baseline, curve and clock together.
 *
 * The median cost counts failed evaluations as they come, tau by their share: they differ on
 * purpose. Equal values share the least of their ranks. Everything here is minimised, and pure.
 */
#ifndef ENGINE_SEARCH_SCORE_H
#define ENGINE_SEARCH_SCORE_H

#include <stdint.h>

#include "engine/base/err.h"

enum { SCORE_GRID = 500 };

struct score_cut {
    double value;        /* f(p) */
    int worse;           /* i: values worse than it */
    int64_t evaluations; /* k(p), at least 1 */
};

struct score_space {
    int nr, nr_valid;
    double *sorted; /* valid values, ascending */
    double median;
    double median_cost_s, tau_s;
    struct score_cut from, to; /* p = .01 and .95 */
    double from_s, to_s;
    double baseline[SCORE_GRID]; /* B at the times of the grid */
};

/*
 * value[i] is NAN where evaluation i fails, cost_s[i] NAN where its cost is unknown; such a cost is
 * counted in no mean. An error where nothing is valid or no cost is known. Release it afterwards.
 */
int score_space_init(struct score_space *s, int nr, const double *value, const double *cost_s,
                     struct err *e);
void score_space_release(struct score_space *s);

struct score_cut score_cut(const struct score_space *s, double p);

/* Time j of the grid, seconds. */
double score_time(const struct score_space *s, int j);

/* B_k: the value that random search is taken to have after k >= 1 evaluations. */
double score_baseline(const struct score_space *s, int64_t k);

/* The exact expectation of the best of k draws, which differs from B_k; for tests. */
double score_expectation(const struct score_space *s, int64_t k);

/* Valid values below `value`. */
int score_rank(const struct score_space *s, double value);

/* A run: when it had improved, and to what; ascending in time. A zeroed one is valid and empty. */
struct score_run {
    struct score_step {
        double at_s, value;
    } * step;
    int nr, cap;
};

/* Adds a step if it is an improvement. */
void score_run_add(struct score_run *r, double at_s, double value);
void score_run_release(struct score_run *r);

/* Adds the run's rank at every time of the grid to sum[]; before its first value it is the last. */
void score_add_ranks(const struct score_space *s, const struct score_run *r,
                     double sum[SCORE_GRID]);

/* S over the grid, of the ranks of `runs` runs summed up. */
void score_values(const struct score_space *s, const double sum[SCORE_GRID], int runs,
                  double value[SCORE_GRID]);

/* P over the grid; returns the score, its mean. */
double score_curve(const struct score_space *s, const double sum[SCORE_GRID], int runs,
                   double p[SCORE_GRID]);

/*
 * Standard error of the score of these runs: standard deviation over 200 draws, with replacement,
 * of as many of them (Efron's bootstrap; a fixed seed). 0 for a single run.
 */
double score_error(const struct score_space *s, const struct score_run *run, int runs);

#endif
