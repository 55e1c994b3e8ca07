/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/search_world.h"

static const char *const adaptive[] = {
    "droplet", "evolutionary", "random", "grid",         "forest", "portfolio",
    "tabu",    "annealing",    "genetic", "differential", "swarm", "auto",
};

static void equal_seeds_and_results_give_equal_proposals(void **state)
{
    (void)state;
    for (int i = 0; i < LEN(adaptive); i++) {
        struct world *w[2];
        for (int j = 0; j < 2; j++) {
            w[j] = world_new(2, rugged_cost, 5);
            w[j]->noise = 0.02;
            w[j]->pairs = 8;
            know_samples(w[j], 10, 4);
            run(w[j], adaptive[i], 42, 8, 200);
        }
        assert_int_equal(w[0]->asked_nr, w[1]->asked_nr);
        for (int j = 0; j < w[0]->asked_nr; j++) {
            const struct proposal *a = &w[0]->asked[j], *b = &w[1]->asked[j];
            assert_true(candidate_equal(&a->c, &b->c));
            assert_true(a->origin == b->origin && a->parent == b->parent && a->knob == b->knob &&
                        a->dir == b->dir && a->compare == b->compare);
            assert_string_equal(a->note, b->note);
        }
        world_free(w[0]);
        world_free(w[1]);
    }
}

static void no_strategy_proposes_a_trial_again(void **state)
{
    (void)state;
    for (int i = 0; i < LEN(adaptive); i++) {
        struct world *w = world_new(2, failing_cost, 5);
        w->noise = 0.02;
        w->pairs = 8;
        know_samples(w, 30, 4);
        w->nr_known = 10; /* the others the engine alone knows */
        run(w, adaptive[i], 42, 8, 500);
        assert_true(w->asked_nr > 50);
        assert_int_equal(w->repeated, 0);
        world_free(w);
    }
}

static void every_strategy_but_droplet_exhausts_a_small_space(void **state)
{
    (void)state;
    for (int i = 1; i < LEN(adaptive); i++) {
        struct world *w = world_new(0, failing_cost, 5);
        struct sketch *k = space_sketch(&w->space, "small");
        sketch_split(&w->space, k, "tile", 96, 3, 0);
        sketch_flag(&w->space, k, "flag");
        int64_t all = space_count(&w->space, 1000);
        assert_string_equal(run(w, adaptive[i], 1, 8, 1000), "space exhausted");
        assert_int_equal(w->asked_nr, all);
        assert_int_equal(w->trials.nr, all);
        world_free(w);
    }
}

static bool small_tile(const void *ctx, const struct candidate *c)
{
    (void)ctx;
    return c->v[3] * c->v[6] <= 8;
}

static void grid_enumerates_what_is_valid_and_not_known(void **state)
{
    (void)state;
    struct world *w = world_new(1, convex_cost, 5);
    sketch_constraint(&w->space, w->space.sketch[0], "small tile", 3, small_tile, NULL);
    know_samples(w, 20, 7);
    int64_t all = space_count(&w->space, MAX_TRIALS * 16);
    int budget = MAX_TRIALS - 100;
    const char *why = run(w, "grid", 1, 64, budget);
    assert_int_equal(w->repeated, 0);
    if (all - 20 <= budget) {
        assert_string_equal(why, "space exhausted");
        assert_int_equal(w->asked_nr, all - 20);
    } else {
        assert_int_equal(w->asked_nr, budget);
    }
    world_free(w);
}

/* Mean over runs of the best cost that `budget` trials reach. */
static double mean_best(const char *name, cost_fn *cost, int budget, int batch, int runs)
{
    double sum = 0;
    for (int i = 0; i < runs; i++) {
        struct world *w = world_new(2, cost, (uint64_t)i);
        run(w, name, (uint64_t)i + 100, batch, budget);
        sum += w->best_ns / runs;
        world_free(w);
    }
    return sum;
}

static void evolution_beats_random_search_at_equal_budget(void **state)
{
    (void)state;
    assert_true(mean_best("evolutionary", convex_cost, 100, 16, 20) <
                0.95 * mean_best("random", convex_cost, 100, 16, 20));
    assert_true(mean_best("evolutionary", rugged_cost, 100, 16, 20) <
                0.97 * mean_best("random", rugged_cost, 100, 16, 20));
    assert_true(mean_best("evolutionary", failing_cost, 200, 8, 20) <
                0.98 * mean_best("random", failing_cost, 200, 8, 20));
}

static void descent_after_exploration_beats_exploration_alone(void **state)
{
    (void)state;
    double alone = mean_best("evolutionary", rugged_cost, 200, 8, 20), both = 0;
    for (int i = 0; i < 20; i++) {
        struct world *w = world_new(2, rugged_cost, (uint64_t)i);
        run(w, "evolutionary", (uint64_t)i + 100, 8, 60);
        for (int j = 0; j < w->trials.nr; j++) {
            struct observation o = {
                .trial = j + 1, .c = w->trials.v[j], .status = TRIAL_OK, .cost_ns = w->cost_ns[j]};
            int at = w->nr_known++;
            for (; at > 0 && w->known[at - 1].cost_ns > o.cost_ns; at--)
                w->known[at] = w->known[at - 1];
            w->known[at] = o;
        }
        run(w, "droplet", (uint64_t)i, 8, 100);
        both += w->best_ns / 20;
        world_free(w);
    }
    assert_true(both < alone);
}

static bool odd_unroll(const void *ctx, const struct candidate *c)
{
    (void)ctx;
    return c->v[9] % 2 == 1; /* measure() fails the test where a proposal breaks it */
}

static void all_keep_the_constraints(void **state)
{
    (void)state;
    for (int i = 0; i < LEN(adaptive); i++) {
        struct world *w = world_new(2, rugged_cost, 5);
        for (int j = 0; j < 2; j++)
            sketch_constraint(&w->space, w->space.sketch[j], "odd unroll", 8, odd_unroll, NULL);
        know_samples(w, 5, 4);
        run(w, adaptive[i], 3, 4, 150);
        assert_true(w->asked_nr > 20);
        world_free(w);
    }
}

static void those_that_learn_find_the_optimum_of_an_easy_space(void **state)
{
    (void)state;
    static const int64_t values[] = {1, 2, 4, 8, 16, 32, 64};
    static const char *const learning[] = {"forest", "portfolio", "tabu", "annealing", "genetic",
                                           "differential", "swarm"};
    for (int i = 0; i < LEN(learning); i++) {
        int found = 0;
        for (int seed = 0; seed < 10; seed++) {
            struct world *w = world_new(0, convex_cost, 5);
            struct sketch *k = space_sketch(&w->space, "easy");
            for (int j = 0; j < 4; j++)
                sketch_ordinal(&w->space, k, "knob", LEN(values), values);
            run(w, learning[i], (uint64_t)seed, 1, 400); /* of 2401 */
            found += w->best_ns < 1e6 * (1 + 1e-9);
            world_free(w);
        }
        if (found < 8)
            fail_msg("%s found the optimum %d times of 10", learning[i], found);
    }
}

static void hopeless_spaces_end(void **state)
{
    (void)state;
    for (int i = 0; i < LEN(adaptive); i++) {
        struct world *w = world_new(1, hopeless_cost, 5);
        run(w, adaptive[i], 1, 8, 200);
        assert_int_equal(w->repeated, 0);
        world_free(w);
    }
}

/* A model that likes the second sketch, and nothing else. */
static bool likes_second(void *ctx, const struct candidate *c, int nr, double *out)
{
    (void)ctx;
    for (int i = 0; i < nr; i++)
        out[i] = c[i].sketch == 1 ? 0.9 : 0.1;
    return true;
}

static void evolution_follows_the_cost_model_and_keeps_a_random_place(void **state)
{
    (void)state;
    struct world *w = world_new(2, convex_cost, 1);
    know_samples(w, 40, 1);
    const struct strategy_class *class = strategy_find("evolutionary");
    struct strategy_env env = environment(w, 1, 32, 100);
    env.score = likes_second;
    struct strategy *s = class->create(&env, NULL);
    struct proposal p[32];
    assert_int_equal(class->propose(s, 32, p), 32);
    int second = 0, sampled = 0;
    for (int i = 0; i < 32; i++) {
        second += p[i].c.sketch == 1;
        sampled += p[i].origin == ORIGIN_SAMPLE;
        assert_false(seen(w, &p[i].c));
    }
    assert_true(second >= 26);
    assert_true(sampled >= 1);
    class->destroy(s);
    world_free(w);
}

static void names_are_found_again(void **state)
{
    (void)state;
    int nr = 0;
    for (const struct strategy_class *c; (c = strategy_at(nr)); nr++)
        assert_ptr_equal(strategy_find(c->name), c);
    assert_int_equal(nr, LEN(adaptive));
    assert_null(strategy_at(-1));
    assert_null(strategy_find("nobody"));
    for (int i = 0; i < TRIAL_NR_STATUS; i++)
        assert_int_equal(trial_status_parse(trial_status_name((enum trial_status)i)), i);
    assert_int_equal(trial_status_parse("fine"), -1);
    assert_string_equal(origin_name(ORIGIN_SPECULATE), "speculate");
    assert_string_equal(verdict_name(VERDICT_MOVED), "moved");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equal_seeds_and_results_give_equal_proposals),
        cmocka_unit_test(no_strategy_proposes_a_trial_again),
        cmocka_unit_test(every_strategy_but_droplet_exhausts_a_small_space),
        cmocka_unit_test(all_keep_the_constraints),
        cmocka_unit_test(those_that_learn_find_the_optimum_of_an_easy_space),
        cmocka_unit_test(hopeless_spaces_end),
        cmocka_unit_test(grid_enumerates_what_is_valid_and_not_known),
        cmocka_unit_test(evolution_beats_random_search_at_equal_budget),
        cmocka_unit_test(descent_after_exploration_beats_exploration_alone),
        cmocka_unit_test(evolution_follows_the_cost_model_and_keeps_a_random_place),
        cmocka_unit_test(names_are_found_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
