/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/search/stats.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "engine/base/rng.h"

#define LEN(a) ((int)(sizeof(a) / sizeof *(a)))
#define NEAR(a, b) assert_true(fabs((a) - (b)) < 1e-12)

static void quantiles_interpolate_as_type_7(void **state)
{
    (void)state;
    const double x[] = {7, 1, 3, 5};
    NEAR(stats_quantile(x, 4, 0), 1);
    NEAR(stats_quantile(x, 4, 1), 7);
    NEAR(stats_quantile(x, 4, 0.25), 2.5);
    NEAR(stats_quantile(x, 4, 0.1), 1.6);
    NEAR(stats_median(x, 4), 4);
    NEAR(stats_median(x, 3), 3);
    NEAR(stats_median(x, 1), 7);
}

static void quantiles_of_equal_and_infinite_samples(void **state)
{
    (void)state;
    const double same[] = {2, 2, 2, 2, 2};
    NEAR(stats_quantile(same, 5, 0.3), 2);
    const double failed[] = {INFINITY, 1, INFINITY, INFINITY};
    assert_true(isinf(stats_median(failed, 4)));
    NEAR(stats_quantile(failed, 4, 0), 1);
}

static void quantile_of_nothing_is_not_a_number(void **state)
{
    (void)state;
    assert_true(isnan(stats_median(NULL, 0)));
    const double bad[] = {NAN, NAN};
    assert_true(isnan(stats_median(bad, 2)));
}

static void quantile_leaves_its_input_alone_at_any_length(void **state)
{
    (void)state;
    static double x[5001];
    for (int i = 0; i < LEN(x); i++)
        x[i] = (i * 2003) % LEN(x);
    for (int q = 0; q <= 100; q++)
        NEAR(stats_quantile(x, LEN(x), q / 100.0), q * 50);
    for (int i = 0; i < LEN(x); i++)
        NEAR(x[i], (i * 2003) % LEN(x));
}

static void signed_rank_of_all_faster_is_two_to_minus_n(void **state)
{
    (void)state;
    double x[32], y[32];
    for (int i = 0; i < 32; i++) {
        x[i] = 1;
        y[i] = 2 + i * 0.01;
    }
    NEAR(stats_signed_rank(x, y, 5), 1.0 / 32);
    NEAR(stats_signed_rank(x, y, 1), 0.5);
    for (int n = 1; n <= 32; n++)
        assert_true(stats_signed_rank(x, y, n) == ldexp(1, -n));
    NEAR(stats_signed_rank(y, x, 5), 1);
}

static void signed_rank_matches_the_published_table(void **state)
{
    (void)state;
    /* Differences 1..10 with negative ranks that sum to T: P(T <= t), Wilcoxon's table for n = 10.
     */
    static const struct {
        double negative[4];
        double p;
    } row[] = {
        {{1, 2, 5, 0}, 25 / 1024.0}, /* T = 8 */
        {{1, 2, 3, 4}, 43 / 1024.0}, /* T = 10 */
        {{3, 0, 0, 0}, 5 / 1024.0},  /* T = 3: {}, 1, 2, 3, 1+2 */
        {{5, 0, 0, 0}, 10 / 1024.0}, /* T = 5 */
    };
    for (int r = 0; r < LEN(row); r++) {
        double x[10], y[10] = {0};
        for (int i = 0; i < 10; i++)
            x[i] = -(i + 1);
        for (int i = 0; i < 4; i++) {
            if (row[r].negative[i] > 0)
                x[(int)row[r].negative[i] - 1] *= -1;
        }
        NEAR(stats_signed_rank(x, y, 10), row[r].p);
    }
}

/* All 2^n signs of the given sizes, counted by hand: what the exact distribution must be. */
static double by_enumeration(const double *d, const double *rank, int n)
{
    double seen = 0;
    for (int i = 0; i < n; i++)
        seen += d[i] > 0 ? rank[i] : 0;
    int at_least = 0;
    for (int signs = 0; signs < 1 << n; signs++) {
        double w = 0;
        for (int i = 0; i < n; i++)
            w += signs >> i & 1 ? rank[i] : 0;
        at_least += w >= seen;
    }
    return ldexp(at_least, -n);
}

static void signed_rank_is_exact_with_ties(void **state)
{
    (void)state;
    const double d[] = {1, -1, 1, 2, 2, -3}, rank[] = {2, 2, 2, 4.5, 4.5, 6};
    const double zero[6] = {0};
    NEAR(stats_signed_rank(zero, d, 6), by_enumeration(d, rank, 6));
}

static void signed_rank_drops_equal_pairs(void **state)
{
    (void)state;
    const double x[] = {1, 5, 1, 5, 1}, y[] = {2, 5, 3, 5, 4};
    NEAR(stats_signed_rank(x, y, 5), 1.0 / 8);
    NEAR(stats_signed_rank(x, x, 5), 1);
    NEAR(stats_signed_rank(x, y, 0), 1);
}

static void signed_rank_of_many_pairs_joins_the_exact_one(void **state)
{
    (void)state;
    /* The same evidence, with one pair more or less: no jump where the approximation takes over. */
    double x[33], y[33];
    for (int i = 0; i < 33; i++) {
        x[i] = 0;
        y[i] = (i % 3 ? 1 : -1) * (1 + (i * 7) % 33);
    }
    double exact = stats_signed_rank(x, y, 32), approx = stats_signed_rank(x, y, 33);
    assert_true(exact > 0 && approx > 0 && exact < 0.2);
    assert_true(fabs(exact - approx) < 0.02);
}

static void signed_rank_keeps_its_level_under_no_difference(void **state)
{
    (void)state;
    struct rng r;
    rng_seed(&r, 1);
    int rejected = 0, runs = 4000;
    for (int i = 0; i < runs; i++) {
        double x[12], y[12];
        for (int j = 0; j < 12; j++) {
            x[j] = rng_unit(&r);
            y[j] = rng_unit(&r);
        }
        rejected += stats_signed_rank(x, y, 12) <= 0.05;
    }
    assert_in_range(rejected, (int)(0.03 * runs), (int)(0.06 * runs));
}

static void median_interval_uses_binomial_ranks(void **state)
{
    (void)state;
    double x[20], lo, hi;
    for (int i = 0; i < 20; i++)
        x[(i * 7) % 20] = i + 1;
    /* n = 10 at 95 %: the 2nd and 9th, 97.9 % in truth; n = 20: the 6th and 15th. */
    double ten[10];
    for (int i = 0; i < 10; i++)
        ten[i] = 10 - i;
    stats_median_interval(ten, 10, 0.95, &lo, &hi);
    NEAR(lo, 2);
    NEAR(hi, 9);
    stats_median_interval(x, 20, 0.95, &lo, &hi);
    NEAR(lo, 6);
    NEAR(hi, 15);
}

static void median_interval_of_few_samples_is_their_range(void **state)
{
    (void)state;
    const double x[] = {3, 1, 2};
    double lo, hi;
    stats_median_interval(x, 3, 0.95, &lo, &hi);
    NEAR(lo, 1);
    NEAR(hi, 3);
    stats_median_interval(x, 1, 0.95, &lo, &hi);
    NEAR(lo, 3);
    NEAR(hi, 3);
    stats_median_interval(x, 0, 0.95, &lo, &hi);
    assert_true(isnan(lo) && isnan(hi));
}

static void median_interval_covers_as_often_as_it_says(void **state)
{
    (void)state;
    struct rng r;
    rng_seed(&r, 2);
    int covered = 0, runs = 2000;
    for (int i = 0; i < runs; i++) {
        double x[25], lo, hi;
        for (int j = 0; j < 25; j++)
            x[j] = rng_unit(&r);
        stats_median_interval(x, 25, 0.9, &lo, &hi);
        covered += lo <= 0.5 && 0.5 <= hi;
    }
    assert_in_range(covered, (int)(0.89 * runs), (int)(0.98 * runs));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(quantiles_interpolate_as_type_7),
        cmocka_unit_test(quantiles_of_equal_and_infinite_samples),
        cmocka_unit_test(quantile_of_nothing_is_not_a_number),
        cmocka_unit_test(quantile_leaves_its_input_alone_at_any_length),
        cmocka_unit_test(signed_rank_of_all_faster_is_two_to_minus_n),
        cmocka_unit_test(signed_rank_matches_the_published_table),
        cmocka_unit_test(signed_rank_is_exact_with_ties),
        cmocka_unit_test(signed_rank_drops_equal_pairs),
        cmocka_unit_test(signed_rank_of_many_pairs_joins_the_exact_one),
        cmocka_unit_test(signed_rank_keeps_its_level_under_no_difference),
        cmocka_unit_test(median_interval_uses_binomial_ranks),
        cmocka_unit_test(median_interval_of_few_samples_is_their_range),
        cmocka_unit_test(median_interval_covers_as_often_as_it_says),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
