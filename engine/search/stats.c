/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/search/stats.h"

#include <math.h>
#include <stdbool.h>

/*
 * The k-th smallest, k from 0: the range that holds it is narrowed by pivots from inside it, so
 * that neither a copy nor a limit on n is needed. NAN elements are never inside and never chosen.
 */
static double order_statistic(const double *x, int n, int k)
{
    double lo = 0, hi = 0; /* the answer is above lo and below hi, once they are set */
    bool has_lo = false, has_hi = false;
    for (;;) {
        int inside = 0;
        for (int i = 0; i < n; i++)
            inside += !isnan(x[i]) && (!has_lo || x[i] > lo) && (!has_hi || x[i] < hi);
        if (inside == 0)
            return NAN;
        double pivot = 0;
        int at = inside / 2, less = 0, equal = 0;
        for (int i = 0; i < n; i++) {
            if (!isnan(x[i]) && (!has_lo || x[i] > lo) && (!has_hi || x[i] < hi) && at-- == 0)
                pivot = x[i];
        }
        for (int i = 0; i < n; i++) {
            less += x[i] < pivot;
            equal += x[i] == pivot;
        }
        if (k < less) {
            hi = pivot;
            has_hi = true;
        } else if (k < less + equal) {
            return pivot;
        } else {
            lo = pivot;
            has_lo = true;
        }
    }
}

double stats_quantile(const double *x, int n, double q)
{
    if (n <= 0)
        return NAN;
    double h = (n - 1) * fmin(fmax(q, 0), 1);
    int k = (int)floor(h);
    double low = order_statistic(x, n, k);
    if (h == k)
        return low;
    double high = order_statistic(x, n, k + 1);
    return high == low ? low : low + (h - k) * (high - low);
}

double stats_median(const double *x, int n)
{
    return stats_quantile(x, n, 0.5);
}

enum { EXACT_PAIRS = 32 };

/*
 * P(W >= w) where each of the n ranks is summed with probability 1/2. Ranks come doubled, which
 * makes mid-ranks integers; ties are thus exact too. 2^32 outcomes fit in a double's 53 bits.
 */
static double rank_sum_tail(const int *rank2, int n, int w2)
{
    double ways[EXACT_PAIRS * (EXACT_PAIRS + 1) + 1] = {1};
    int sum = 0;
    for (int i = 0; i < n; i++) {
        for (int s = sum; s >= 0; s--)
            ways[s + rank2[i]] += ways[s];
        sum += rank2[i];
    }
    double tail = 0;
    for (int s = w2; s <= sum; s++)
        tail += ways[s];
    return ldexp(tail, -n);
}

/* The difference of pair i as the test counts it: 0 is no evidence, nor is what is not a number. */
static double difference(const double *x, const double *y, int i)
{
    double d = y[i] - x[i];
    return isnan(d) ? 0 : d;
}

/* Twice the mid-rank of |d_i| among the differences that are not 0; *ties: how many are equal. */
static int doubled_rank(const double *x, const double *y, int n, int i, int *ties)
{
    double d = fabs(difference(x, y, i));
    int less = 0, equal = 0;
    for (int j = 0; j < n; j++) {
        double other = fabs(difference(x, y, j));
        less += other > 0 && other < d;
        equal += other == d;
    }
    *ties = equal;
    return 2 * less + equal + 1;
}

double stats_signed_rank(const double *x, const double *y, int n)
{
    int rank2[EXACT_PAIRS], nr = 0, ties;
    long w2 = 0;
    double variance = 0;
    for (int i = 0; i < n; i++) {
        double d = difference(x, y, i);
        if (d == 0)
            continue;
        int r2 = doubled_rank(x, y, n, i, &ties);
        if (nr < EXACT_PAIRS)
            rank2[nr] = r2;
        nr++;
        w2 += d > 0 ? r2 : 0;
        variance += (double)r2 * r2 / 16; /* sum of rank^2 / 4, right under ties */
    }
    if (nr == 0)
        return 1;
    if (nr <= EXACT_PAIRS)
        return rank_sum_tail(rank2, nr, (int)w2);
    /* The normal approximation with a continuity correction of half a rank. */
    double mean = (double)nr * (nr + 1) / 4;
    double z = ((double)w2 / 2 - 0.5 - mean) / sqrt(variance);
    return 0.5 * erfc(z / sqrt(2));
}

/*
 * The interval of the k-th smallest to the k-th largest misses the median with probability
 * 2 P(Bin(n, 1/2) < k); k is the largest that keeps this below 1 - c. Too few samples for the level
 * give the whole range.
 */
void stats_median_interval(const double *x, int n, double c, double *lo, double *hi)
{
    if (n <= 0) {
        *lo = *hi = NAN;
        return;
    }
    double log_term = -n * log(2), below = 0; /* logarithms: 2^-n vanishes for large n */
    int k = 0;
    for (int i = 0; i < (n + 1) / 2; i++) {
        below += exp(log_term);
        if (2 * below > 1 - c)
            break;
        k = i + 1;
        log_term += log((double)(n - i) / (i + 1));
    }
    if (k < 1)
        k = 1;
    *lo = order_statistic(x, n, k - 1);
    *hi = order_statistic(x, n, n - k);
}
