/* SPDX-License-Identifier: Apache-2.0 */
/* The learned cost model, and the features it sees. */
#include "engine/search/cost_model.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "engine/model/model.h"
#include "engine/search/trees.h"
#include "engine/tensor/sketch.h"
#include "engine/tensor/sketch_features.h"

static const struct sketch_target avx512 = {
    .lanes = 16, .registers = 32, .threads = 1, .l1_bytes = 32 << 10, .l2_bytes = 1 << 20};

/* A task with its space. */
struct world {
    struct task_list list;
    struct space space;
};

static struct world *world_new(const char *workload)
{
    struct world *w = calloc(1, sizeof *w);
    struct model_options o = {.block = 16};
    struct err e = ERR_INIT;
    space_init(&w->space);
    assert_int_equal(model_task_from_name(workload, &o, &w->list, &e), 0);
    assert_int_equal(sketches_of(&w->list.task[0]->wl, &avx512, &w->space, &e), 0);
    return w;
}

static void world_free(struct world *w)
{
    space_release(&w->space);
    task_list_release(&w->list);
    free(w);
}

/* A cost that the tile of the first split decides. */
static double cost_of(const struct space *s, const struct candidate *c)
{
    double inner = (double)knob_factor(&s->sketch[c->sketch]->knob[0], c, 3);
    return 1000 * (1 + fabs(log2(inner) - 1));
}

static void learn_samples(struct cost_model *m, const struct world *w, int task, int nr,
                          uint64_t seed)
{
    struct rng r;
    rng_seed(&r, seed);
    for (int i = 0; i < nr; i++) {
        struct candidate c;
        float row[FEATURE_ROWS][FEATURES];
        assert_true(space_sample(&w->space, 0, &r, &c));
        int rows = sketch_features(w->space.sketch[0], &c, row);
        cost_model_add(m, task, (const float(*)[FEATURES])row, rows, cost_of(&w->space, &c));
    }
}

/* Share of pairs of fresh samples that are ranked rightly. */
static double right_pairs(struct cost_model *m, const struct world *w)
{
    enum { NR = 80 };
    struct candidate c[NR];
    double speed[NR], cost[NR];
    struct rng r;
    rng_seed(&r, 99);
    for (int i = 0; i < NR; i++) {
        assert_true(space_sample(&w->space, 0, &r, &c[i]));
        cost[i] = cost_of(&w->space, &c[i]);
    }
    cost_model_predict(m, 0, &w->space, c, NR, speed);
    double right = 0, pairs = 0;
    for (int i = 0; i < NR; i++)
        for (int j = 0; j < i; j++)
            if (cost[i] != cost[j]) {
                pairs++;
                right += (speed[i] > speed[j]) == (cost[i] < cost[j]);
            }
    for (int i = 0; i < NR; i++)
        assert_true(speed[i] >= 0 && speed[i] <= 1);
    return right / pairs;
}

static struct cost_model *model_new(void)
{
    struct err e = ERR_INIT;
    struct cost_model *m = cost_model_new(&e);
    assert_non_null(m);
    return m;
}

/* The most that a predicted speed differs from what the estimate says. */
static double distance_from_estimate(struct cost_model *m, const struct world *w)
{
    enum { NR = 64 };
    struct candidate c[NR];
    double speed[NR], estimate[NR], least = INFINITY, most = 0;
    float row[FEATURE_ROWS][FEATURES];
    struct rng r;
    rng_seed(&r, 7);
    for (int i = 0; i < NR; i++) {
        assert_true(space_sample(&w->space, 0, &r, &c[i]));
        int rows = sketch_features(w->space.sketch[0], &c[i], row);
        estimate[i] = cost_model_estimate((const float(*)[FEATURES])row, rows);
        least = fmin(least, estimate[i]);
    }
    cost_model_predict(m, 0, &w->space, c, NR, speed);
    for (int i = 0; i < NR; i++)
        most = fmax(most, fabs(speed[i] - least / estimate[i]));
    return most;
}

static void it_estimates_before_it_learned(void **state)
{
    (void)state;
    struct world *w = world_new("matmul:64x96x128,const");
    struct cost_model *m = model_new();
    struct err e = ERR_INIT;
    assert_true(distance_from_estimate(m, w) < 1e-9);
    learn_samples(m, w, 0, 4, 1);
    assert_false(cost_model_learn(m)); /* too little */
    assert_false(cost_model_settle(m, NULL, &e));
    learn_samples(m, w, 0, 200, 2);
    assert_true(cost_model_learn(m));
    /* not before it is settled, however fast it was */
    assert_true(distance_from_estimate(m, w) < 1e-9);
    assert_false(cost_model_learn(m));
    assert_true(cost_model_settle(m, NULL, &e));
    assert_true(distance_from_estimate(m, w) > 0.1);
    cost_model_free(m);
    world_free(w);
}

/* Of a task that costs what is estimated, times a factor, there is nothing to learn; not even from
 * trials of slow candidates alone is it concluded that fast ones are slow. */
static void few_trials_correct_the_estimate(void **state)
{
    (void)state;
    struct world *w = world_new("matmul:64x96x128,const");
    struct cost_model *m = model_new();
    struct rng r;
    struct err e = ERR_INIT;
    struct candidate c[400];
    double estimate[400], speed[400], least = INFINITY;
    float row[FEATURE_ROWS][FEATURES];
    rng_seed(&r, 1);
    for (int i = 0; i < 400; i++) {
        assert_true(space_sample(&w->space, 0, &r, &c[i]));
        int rows = sketch_features(w->space.sketch[0], &c[i], row);
        estimate[i] = cost_model_estimate((const float(*)[FEATURES])row, rows);
        least = fmin(least, estimate[i]);
        if (i < 40)
            cost_model_add(m, 0, (const float(*)[FEATURES])row, rows, 1000 * estimate[i]);
    }
    assert_true(cost_model_learn(m) && cost_model_settle(m, NULL, &e));
    cost_model_predict(m, 0, &w->space, c, 400, speed);
    int right = 0, pairs = 0;
    for (int i = 40; i < 400; i++)
        for (int j = 40; j < i; j++)
            if (fabs(log(estimate[i] / estimate[j])) > 0.1 && fmin(speed[i], speed[j]) < 1) {
                pairs++;
                right += (speed[i] > speed[j]) == (estimate[i] < estimate[j]);
            }
    assert_true(right > 0.99 * pairs && pairs > 10000);
    cost_model_free(m);
    world_free(w);
}

static void it_ranks_what_it_has_not_seen(void **state)
{
    (void)state;
    struct world *w = world_new("matmul:64x96x128,const");
    struct cost_model *m = model_new();
    struct cost_model_news news;
    struct err e = ERR_INIT;
    learn_samples(m, w, 0, 300, 1);
    assert_true(cost_model_learn(m));
    assert_true(cost_model_settle(m, &news, &e));
    assert_int_equal(news.nr, 300);
    assert_int_equal(news.nr_pairs, 0);
    assert_true(right_pairs(m, w) > 0.9);
    learn_samples(m, w, 0, 100, 3);
    assert_true(cost_model_learn(m)); /* a fifth more */
    assert_true(cost_model_settle(m, &news, &e));
    assert_true(news.nr_pairs > 100 && news.right > 0.9);
    cost_model_free(m);
    world_free(w);
}

/* Tasks of other sizes have other features, and the same law. */
static void it_learns_from_other_tasks(void **state)
{
    (void)state;
    struct world *a = world_new("matmul:64x96x128,const"), *b = world_new("matmul:32x192x64,const");
    struct world *c = world_new("matmul:128x64x256,const");
    struct cost_model *m = model_new();
    struct err e = ERR_INIT;
    learn_samples(m, a, 0, 300, 1);
    learn_samples(m, b, 5, 300, 2);
    assert_true(cost_model_learn(m) && cost_model_settle(m, NULL, &e));
    assert_true(right_pairs(m, c) > 0.7);
    cost_model_free(m);
    world_free(a);
    world_free(b);
    world_free(c);
}

static void equal_data_make_equal_models(void **state)
{
    (void)state;
    struct world *w = world_new("conv2d:C=32,H=14,K=64");
    struct cost_model *m[2] = {model_new(), model_new()};
    struct candidate c[100];
    double speed[2][100];
    struct err e = ERR_INIT;
    struct rng r;
    rng_seed(&r, 7);
    for (int i = 0; i < 100; i++)
        assert_true(space_sample(&w->space, -1, &r, &c[i]));
    for (int k = 0; k < 2; k++) {
        learn_samples(m[k], w, 0, 250, 1);
        assert_true(cost_model_learn(m[k]) && cost_model_settle(m[k], NULL, &e));
        cost_model_predict(m[k], 0, &w->space, c, 100, speed[k]);
    }
    assert_memory_equal(speed[0], speed[1], sizeof speed[0]);
    cost_model_free(m[0]);
    cost_model_free(m[1]);
    world_free(w);
}

/* What one model wrote, for another to find. */
struct notebook {
    uint64_t data;
    struct strbuf bytes;
    int asked;
};

static bool look_up(void *ctx, uint64_t data, struct strbuf *out)
{
    struct notebook *n = ctx;
    n->asked++;
    if (data != n->data)
        return false;
    strbuf_add(out, n->bytes.buf, n->bytes.len);
    return true;
}

/* The news of a model that can look up what was learned, and of `nr` samples; its prediction. */
static struct cost_model_news recalled(struct notebook *n, const struct world *w, int nr,
                                       double *speed)
{
    struct cost_model *m = model_new();
    struct cost_model_news news;
    struct err e = ERR_INIT;
    cost_model_recalls(m, look_up, n);
    learn_samples(m, w, 0, nr, 1);
    assert_true(cost_model_learn(m));
    assert_true(cost_model_settle(m, &news, &e));
    cost_model_predict(m, 0, &w->space, &w->space.sketch[0]->start, 1, speed);
    cost_model_free(m);
    return news;
}

static void it_recalls_what_was_learned_from_the_same(void **state)
{
    (void)state;
    struct world *w = world_new("matmul:64x96x128,const");
    struct cost_model *m = model_new();
    struct cost_model_news news;
    struct notebook n = {0};
    struct err e = ERR_INIT;
    double want, got;
    cost_model_write(m, &n.bytes);
    assert_int_equal(n.bytes.len, 0);
    learn_samples(m, w, 0, 300, 1);
    assert_true(cost_model_learn(m) && cost_model_settle(m, &news, &e));
    assert_false(news.recalled);
    cost_model_predict(m, 0, &w->space, &w->space.sketch[0]->start, 1, &want);
    n.data = news.data;
    cost_model_write(m, &n.bytes);

    news = recalled(&n, w, 300, &got);
    assert_true(news.recalled && news.data == n.data && news.nr == 300 && got == want);
    assert_int_equal(n.asked, 1);
    news = recalled(&n, w, 299, &got); /* less is something else */
    assert_false(news.recalled);
    assert_true(news.refused.code == 0 && news.data != n.data);
    n.bytes.buf[n.bytes.len / 2] ^= 1;
    news = recalled(&n, w, 300, &got); /* learned again, and the same */
    assert_false(news.recalled);
    assert_true(news.refused.code < 0 && got == want);
    strbuf_release(&n.bytes);
    cost_model_free(m);
    world_free(w);
}

static void it_keeps_away_from_what_failed(void **state)
{
    (void)state;
    struct world *w = world_new("matmul:64x96x128,const");
    struct cost_model *m = model_new();
    struct err e = ERR_INIT;
    struct rng r;
    rng_seed(&r, 5);
    float row[FEATURE_ROWS][FEATURES];
    for (int i = 0; i < 200; i++) {
        struct candidate c;
        assert_true(space_sample(&w->space, 0, &r, &c));
        bool fails = knob_factor(&w->space.sketch[0]->knob[0], &c, 3) > 2;
        int rows = sketch_features(w->space.sketch[0], &c, row);
        cost_model_add(m, 0, (const float(*)[FEATURES])row, rows, fails ? INFINITY : 1000);
    }
    assert_true(cost_model_learn(m) && cost_model_settle(m, NULL, &e));
    int right = 0, nr = 0;
    for (; nr < 100; nr++) {
        struct candidate c;
        double speed;
        assert_true(space_sample(&w->space, 0, &r, &c));
        cost_model_predict(m, 0, &w->space, &c, 1, &speed);
        right += (speed < 0.5) == (knob_factor(&w->space.sketch[0]->knob[0], &c, 3) > 2);
    }
    assert_true(right >= 90);
    cost_model_free(m);
    world_free(w);
}

static void a_model_may_be_left_while_it_learns(void **state)
{
    (void)state;
    struct world *w = world_new("matmul:64x96x128,const");
    struct cost_model *m = model_new();
    learn_samples(m, w, 0, 300, 1);
    assert_true(cost_model_learn(m));
    cost_model_free(m);
    world_free(w);
}

static const char *const kinds[] = {
    "matmul:64x96x128", "matmul:7x13x5,const",           "dense:1x1000x256",
    "conv2d:C=64,H=14", "conv2d:C=3,H=32,K=24,stride=2", "depthwise:C=24,H=14",
    "softmax:64x100",   "conv2d:C=24,H=7,R=1,add,relu",
};

static void features_are_finite_and_tell_candidates_apart(void **state)
{
    (void)state;
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        struct world *w = world_new(kinds[k]);
        struct rng r;
        rng_seed(&r, 3);
        float before[FEATURE_ROWS][FEATURES] = {{0}}, row[FEATURE_ROWS][FEATURES];
        int others = 0, nr = 0;
        for (; nr < 40; nr++) {
            struct candidate c;
            assert_true(space_sample(&w->space, -1, &r, &c));
            const struct sketch *s = w->space.sketch[c.sketch];
            int rows = s->features(s, &c, row);
            assert_true(rows >= 1 && rows <= FEATURE_ROWS);
            for (int i = 0; i < FEATURE_ROWS; i++)
                for (int j = 0; j < FEATURES; j++)
                    assert_true(isfinite(row[i][j]) && (i < rows || row[i][j] == 0));
            double estimate = cost_model_estimate((const float(*)[FEATURES])row, rows);
            assert_true(isfinite(estimate) && estimate > 0);
            others += memcmp(before, row, sizeof row) != 0;
            memcpy(before, row, sizeof row);
        }
        assert_true(others > nr / 2);
        world_free(w);
    }
}

/* A copy has no operations, and no features that are not numbers. */
static void a_copy_has_finite_features(void **state)
{
    (void)state;
    struct workload w;
    struct err e = ERR_INIT;
    struct space space;
    workload_init(&w, "copy");
    struct layout l = layout_plain(2, (int64_t[]){24, 40});
    int x = workload_tensor(&w, "x", WL_INPUT, &l), y = workload_tensor(&w, "y", WL_OUTPUT, &l);
    int s = workload_stage(&w, "y", y, WL_NONE);
    struct affine idx[LAYOUT_MAX_DIMS] = {affine_axis(workload_axis(&w, s, "i", 24, false), 1),
                                          affine_axis(workload_axis(&w, s, "j", 40, false), 1)};
    w.stage[s].body = wl_load(&w, x, idx);
    assert_int_equal(workload_finish(&w, &e), 0);
    space_init(&space);
    assert_int_equal(sketches_of(&w, &avx512, &space, &e), 0);
    float row[FEATURE_ROWS][FEATURES];
    const struct sketch *k = space.sketch[0];
    assert_int_equal(k->features(k, &k->start, row), 1);
    for (int i = 0; i < FEATURES; i++)
        assert_true(isfinite(row[0][i]));
    assert_true(cost_model_estimate((const float(*)[FEATURES])row, 1) > 0);
    space_release(&space);
    workload_release(&w);
}

static double estimate_of(const struct sketch *s, const struct candidate *c)
{
    float row[FEATURE_ROWS][FEATURES];
    int rows = s->features(s, c, row);
    return cost_model_estimate((const float(*)[FEATURES])row, rows);
}

/* Every operand would be loaded for every product. */
static void an_estimate_prefers_a_register_tile_to_none(void **state)
{
    (void)state;
    struct world *w = world_new("matmul:64x64x64,const");
    const struct sketch *s = w->space.sketch[0];
    struct candidate tiled = s->start, bare = s->start;
    for (int i = 0; i < s->nr_knobs; i++)
        if (!strcmp(s->knob[i].name, "tile_m")) {
            int32_t *v = bare.v + s->knob[i].slot;
            v[0] = 64;
            v[1] = v[2] = v[3] = 1;
            assert_true(knob_factor(&s->knob[i], &tiled, 3) > 1);
        }
    assert_true(candidate_valid(&w->space, &bare, NULL));
    assert_true(estimate_of(s, &tiled) < estimate_of(s, &bare));
    world_free(w);
}

int main(void)
{
    if (trees_missing()) {
        print_message("%s: skipped\n", trees_missing());
        return 77;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_estimates_before_it_learned),
        cmocka_unit_test(few_trials_correct_the_estimate),
        cmocka_unit_test(it_ranks_what_it_has_not_seen),
        cmocka_unit_test(it_learns_from_other_tasks),
        cmocka_unit_test(equal_data_make_equal_models),
        cmocka_unit_test(it_recalls_what_was_learned_from_the_same),
        cmocka_unit_test(it_keeps_away_from_what_failed),
        cmocka_unit_test(a_model_may_be_left_while_it_learns),
        cmocka_unit_test(features_are_finite_and_tell_candidates_apart),
        cmocka_unit_test(a_copy_has_finite_features),
        cmocka_unit_test(an_estimate_prefers_a_register_tile_to_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
