/* SPDX-License-Identifier: Apache-2.0 */
/* Statistics of samples. Pure functions; no allocation beyond the stack. */
#ifndef ENGINE_SEARCH_STATS_H
#define ENGINE_SEARCH_STATS_H

/* Quantile q in [0, 1] by linear interpolation (Hyndman and Fan's type 7); NAN when n == 0. */
double stats_quantile(const double *x, int n, double q);
double stats_median(const double *x, int n);

/*
 * Wilcoxon's signed-rank test of paired samples: the one-sided p-value of the hypothesis that x is
 * not smaller than y. Exact for n <= 32 (ties get mid-ranks, zero differences are dropped, Wilcoxon
 * 1945); 1 when n == 0. The smallest p of n pairs is 2^-n.
 */
double stats_signed_rank(const double *x, const double *y, int n);

/* Distribution-free confidence interval of the median at level c (binomial ranks): lo and hi. */
void stats_median_interval(const double *x, int n, double c, double *lo, double *hi);

#endif
