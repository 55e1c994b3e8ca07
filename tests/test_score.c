/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "backends/recorded/recorded.h"
#include "engine/search/replay.h"
#include "engine/search/strategies.h"
#include "tests/shared_files.h"

#define LEN(a) ((int)(sizeof(a) / sizeof *(a)))

static void near(double got, double want, double relative)
{
    if (!(fabs(got - want) <= relative * fabs(want)))
        fail_msg("%.9g is not %.9g", got, want);
}

/* ---- by hand ---- */

/* Values 1 .. 100 at one second each. */
static void make_line(struct score_space *s, double last)
{
    double value[101], cost[101];
    for (int i = 0; i < 100; i++) {
        value[i] = (i * 37) % 100 + 1;
        cost[i] = 1;
    }
    value[100] = last;
    cost[100] = 5;
    assert_int_equal(score_space_init(s, 101, value, cost, NULL), 0);
}

static void budget_follows_the_difficulty(void **state)
{
    (void)state;
    struct score_space s;
    make_line(&s, NAN);
    assert_int_equal(s.nr_valid, 100);
    near(s.median, 50.5, 1e-12);
    /* f(.95) = 1 + 49.5 * .05 = 3.475: 97 values are worse, 97 / (101 - 97) rounded up. */
    near(s.to.value, 3.475, 1e-12);
    assert_int_equal(s.to.worse, 97);
    assert_int_equal(s.to.evaluations, 25);
    assert_int_equal(s.from.worse, 50); /* f(.01) = 50.005 */
    assert_int_equal(s.from.evaluations, 1);
    near(s.median_cost_s, 1, 1e-12);
    near(s.tau_s, 1 + 5.0 / 101, 1e-12);
    near(score_time(&s, 0), s.from_s, 1e-12);
    near(score_time(&s, SCORE_GRID - 1), 25, 1e-12);
    score_space_release(&s);
}

static void expectation_is_that_of_the_minimum_of_draws(void **state)
{
    (void)state;
    struct score_space s;
    make_line(&s, NAN);
    /* Of 1 .. N the minimum of k draws is (N + 1) / (k + 1) on average. */
    for (int k = 1; k <= 100; k++)
        near(score_expectation(&s, k), 101.0 / (k + 1), 1e-9);
    near(score_baseline(&s, 1), 50, 1e-12); /* rank 50.5, to even, from the worst */
    near(score_baseline(&s, 100), 1, 1e-12);
    near(score_baseline(&s, INT64_C(1) << 60), 1, 1e-12);
    score_space_release(&s);
}

static void equal_values_share_the_least_rank(void **state)
{
    (void)state;
    struct score_space s;
    double value[] = {3, 1, 2, 2, 2, NAN}, cost[] = {1, 1, 1, 1, 1, 1};
    assert_int_equal(score_space_init(&s, LEN(value), value, cost, NULL), 0);
    assert_int_equal(score_rank(&s, 1), 0);
    assert_int_equal(score_rank(&s, 2), 1);
    assert_int_equal(score_rank(&s, 3), 4);
    score_space_release(&s);
}

static void the_optimum_at_once_scores_one_and_nothing_less_than_zero(void **state)
{
    (void)state;
    struct score_space s;
    make_line(&s, NAN);
    double sum[SCORE_GRID] = {0}, p[SCORE_GRID];
    struct score_run best = {0}, never = {0};
    score_run_add(&best, 0.5, 7);
    score_run_add(&best, 0.6, 9); /* none */
    score_run_add(&best, 0.7, 1);
    score_run_add(&best, 0.8, NAN);
    assert_int_equal(best.nr, 2);
    score_add_ranks(&s, &best, sum);
    double score = score_curve(&s, sum, 1, p);
    near(score, 1, 1e-12);
    score_add_ranks(&s, &never, sum);
    assert_true(score_curve(&s, sum, 2, p) < 0);
    struct score_run both[] = {best, best, best};
    assert_true(score_error(&s, both, 3) < 1e-6); /* equal runs */
    both[2] = never;
    assert_true(score_error(&s, both, 3) > 0.1);
    score_run_release(&best);
    score_space_release(&s);
}

static void what_has_no_value_or_no_cost_is_refused_and_what_is_flat_is_not(void **state)
{
    (void)state;
    struct score_space s;
    struct err e = ERR_INIT;
    double none[] = {NAN, NAN}, one[] = {4, 4}, cost[] = {1, 1};
    assert_int_equal(score_space_init(&s, 2, none, cost, &e), ERR_INPUT);
    assert_string_equal(e.msg, "no configuration has a value");
    score_space_release(&s);
    err_clear(&e);
    assert_int_equal(score_space_init(&s, 2, one, none, &e), ERR_INPUT);
    score_space_release(&s);
    assert_int_equal(score_space_init(&s, 2, one, cost, NULL), 0);
    double sum[SCORE_GRID] = {0}, p[SCORE_GRID];
    near(score_curve(&s, sum, 1, p) + 1, 1, 1e-12);
    score_space_release(&s);
}

/* ---- on the recorded files ---- */

struct reference {
    const char *file;
    int nr_valid;
    double cut;
    int worse, evaluations;
    double median_cost, tau, from_s, to_s;
    double baseline[4], expectation[4]; /* after 1, 10, 100 and `evaluations` */
};

static const struct reference references[] = {
    {"convolution6_A6000",
     2266,
     .815771,
     2249,
     125,
     2.5827,
     3.3930,
     5.17,
     322.84,
     {1.59651, 1.011969, .826206, .815449},
     {1.872305, .99735, .819421, .811152}},
    {"convolution_A100",
     4201,
     .617618,
     4198,
     1050,
     2.4057,
     2.8969,
     4.81,
     2525.94,
     {1.833408, 1.028224, .820928, .615328},
     {2.289505, 1.008625, .774835, .609755}},
    {"convolution_MI250X",
     4362,
     1.61807,
     4279,
     51,
     1.6338,
     2.2006,
     3.27,
     83.32,
     {19.82976, 5.705245, 1.05858, 1.477064},
     {23.471817, 4.958735, 1.086787, 1.506159}},
    {"gemm_RTX3090_slim",
     17956,
     6.10388,
     17943,
     1282,
     .8840,
     1.0286,
     1.77,
     1133.33,
     {14.57736, 8.729369, 6.906228, 6.100988},
     {19.603412, 8.590654, 6.787049, 6.039511}},
    {"dedispersion_W6600_slim",
     11130,
     137.53,
     11127,
     2782,
     6.5007,
     6.9082,
     13.00,
     18084.89,
     {184.0439, 161.0378, 147.3682, 137.1867},
     {196.503062, 158.552006, 145.741901, 137.247297}},
    {"pnpoly_RTX3090",
     3774,
     8.95528,
     3756,
     198,
     .2627,
     .3039,
     .53,
     52.02,
     {13.518541, 10.746675, 9.179245, 8.945971},
     {16.538941, 10.356003, 9.081244, 8.919742}},
};

struct world {
    struct recorded *recorded;
    struct space space;
    struct replay replay;
};

/* Skips the test where the file is not there. */
static void load(struct world *w, const char *file)
{
    struct strbuf name = {0};
    strbuf_addf(&name, "recorded/%s.json.gz", file);
    char *path = shared_path(strbuf_text(&name));
    strbuf_release(&name);
    struct err e = ERR_INIT;
    FILE *f = fopen(path, "rb");
    if (!f) {
        print_message("%s is not there: skipped\n", path);
        free(path);
        skip();
    }
    fclose(f);
    if (recorded_load(path, NULL, &w->recorded, &e))
        fail_msg("%s", e.msg);
    free(path);
    space_init(&w->space);
    assert_int_equal(recorded_space(w->recorded, &w->space, &e), 0);
    replay_init(&w->replay, &w->space);
    for (int i = 0; i < w->recorded->nr_rows; i++) {
        const struct recorded_row *row = &w->recorded->row[i];
        struct candidate c;
        recorded_candidate(w->recorded, i, &c);
        replay_add(&w->replay, &c, row->status == RECORDED_OK ? row->value : NAN, row->cost_s);
    }
    assert_int_equal(replay_ready(&w->replay, &e), 0);
}

static void unload(struct world *w)
{
    replay_release(&w->replay);
    space_release(&w->space);
    recorded_free(w->recorded);
}

static void budgets_and_baselines_are_those_of_the_reference(void **state)
{
    (void)state;
    for (int i = 0; i < LEN(references); i++) {
        const struct reference *r = &references[i];
        struct world w;
        load(&w, r->file);
        const struct score_space *s = &w.replay.score;
        assert_int_equal(s->nr_valid, r->nr_valid);
        near(s->to.value, r->cut, 1e-5);
        assert_int_equal(s->to.worse, r->worse);
        assert_int_equal(s->to.evaluations, r->evaluations);
        assert_int_equal(s->from.evaluations, 2);
        near(s->median_cost_s, r->median_cost, 4e-4); /* half of the last digit given */
        near(s->tau_s, r->tau, 4e-4);
        near(s->from_s, r->from_s, 1e-2);
        near(s->to_s, r->to_s, 1e-4);
        int64_t k[] = {1, 10, 100, r->evaluations};
        for (int j = 0; j < 4; j++) {
            near(score_baseline(s, k[j]), r->baseline[j], 1e-6);
            near(score_expectation(s, k[j]), r->expectation[j], 1e-6);
        }
        unload(&w);
    }
}

static double score_of(const struct world *w, const char *strategy, int runs, uint64_t seed)
{
    double sum[SCORE_GRID] = {0}, p[SCORE_GRID];
    for (int i = 0; i < runs; i++) {
        struct replay_result r;
        struct err e = ERR_INIT;
        if (replay_run(&w->replay, strategy_find(strategy), rng_mix(seed, (uint64_t)i), &r, &e))
            fail_msg("%s", e.msg);
        assert_true(r.evaluations > 0 && r.failed < r.evaluations);
        score_add_ranks(&w->replay.score, &r.run, sum);
        score_run_release(&r.run);
    }
    return score_curve(&w->replay.score, sum, runs, p);
}

/*
 * It checks budget, baseline, clock and curve together. The baseline counts rounded evaluations, of
 * which the running one has not given its value yet: of 1500 runs the scores are -.02 to -.13.
 */
static void random_search_scores_nothing(void **state)
{
    (void)state;
    for (int i = 0; i < LEN(references); i++) {
        struct world w;
        load(&w, references[i].file);
        int runs = references[i].evaluations < 200 ? 1000 : 100;
        double score = score_of(&w, "random", runs, 1);
        if (!(score > -0.2 && score < 0.1))
            fail_msg("%s: random search scores %.3f", references[i].file, score);
        unload(&w);
    }
}

static void forest_is_well_above_random_search(void **state)
{
    (void)state;
    static const char *const files[] = {"convolution6_A6000", "convolution_MI250X",
                                        "pnpoly_RTX3090"};
    for (int i = 0; i < LEN(files); i++) {
        struct world w;
        load(&w, files[i]);
        double score = score_of(&w, "forest", 20, 1);
        if (!(score > 0.3))
            fail_msg("%s: forest scores %.3f", files[i], score);
        unload(&w);
    }
}

static void a_run_is_a_function_of_its_seed(void **state)
{
    (void)state;
    struct world w;
    load(&w, "convolution6_A6000");
    for (int i = 0; strategy_at(i); i++) {
        struct replay_result r[3];
        for (int j = 0; j < 3; j++)
            assert_int_equal(replay_run(&w.replay, strategy_at(i), j == 2, &r[j], NULL), 0);
        assert_int_equal(r[0].evaluations, r[1].evaluations);
        assert_int_equal(r[0].run.nr, r[1].run.nr);
        for (int k = 0; k < r[0].run.nr; k++) {
            assert_true(r[0].run.step[k].at_s == r[1].run.step[k].at_s);
            assert_true(r[0].run.step[k].value == r[1].run.step[k].value);
        }
        for (int j = 0; j < 3; j++)
            score_run_release(&r[j].run);
    }
    unload(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(budget_follows_the_difficulty),
        cmocka_unit_test(expectation_is_that_of_the_minimum_of_draws),
        cmocka_unit_test(equal_values_share_the_least_rank),
        cmocka_unit_test(the_optimum_at_once_scores_one_and_nothing_less_than_zero),
        cmocka_unit_test(what_has_no_value_or_no_cost_is_refused_and_what_is_flat_is_not),
        cmocka_unit_test(budgets_and_baselines_are_those_of_the_reference),
        cmocka_unit_test(random_search_scores_nothing),
        cmocka_unit_test(forest_is_well_above_random_search),
        cmocka_unit_test(a_run_is_a_function_of_its_seed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
