/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/search/judge.h"

#include "tests/search_world.h"

static void expect_ring_tried(struct world *w, int64_t trial)
{
    struct neighbour *ring;
    const struct candidate c = w->trials.v[trial - 1];
    int nr = space_neighbours(&w->space, &c, &ring);
    assert_true(nr > 0);
    for (int i = 0; i < nr; i++) {
        if (!seen(w, &ring[i].c))
            fail_msg("of the ring, '%s' was never tried", ring[i].text);
    }
    free(ring);
}

static void droplet_reaches_the_optimum_of_a_convex_space(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 20; seed++) {
        /* Powers of two: a 7 that can only move as a whole would make local optima. */
        struct world *w = world_new(0, convex_cost, seed);
        static const int64_t unroll[] = {0, 16, 64, 256, 512};
        struct sketch *k = space_sketch(&w->space, "convex");
        sketch_split(&w->space, k, "tile_oc", 256, 4, 0);
        sketch_split(&w->space, k, "tile_ic", 64, 3, 0);
        sketch_ordinal(&w->space, k, "unroll", LEN(unroll), unroll);
        double optimum = INFINITY;
        struct space_walk walk;
        struct candidate c;
        space_walk_init(&walk, &w->space, 0);
        while (space_walk_next(&walk, &c))
            optimum = fmin(optimum, convex_cost(w, &c));
        space_walk_release(&walk);
        know(w, &w->space.sketch[0]->start);
        assert_true(w->best_ns > 1.5 * optimum);
        assert_string_equal(run(w, "droplet", seed, 4, 2000), "converged");
        assert_true(w->best_ns <= optimum * (1 + 1e-9));
        world_free(w);
    }
}

static void droplet_reaches_the_optimum_through_noise(void **state)
{
    (void)state;
    int near = 0, runs = 20;
    for (int i = 0; i < runs; i++) {
        struct world *w = world_new(1, convex_cost, (uint64_t)i + 1), *quiet;
        w->noise = 0.01;
        w->drift = 0.3; /* far more than a step's gain, but the same for both of a pair */
        w->pairs = 12;
        know(w, &w->space.sketch[0]->start);
        run(w, "droplet", (uint64_t)i, 4, 600);
        quiet = world_new(1, convex_cost, 1);
        know(quiet, &quiet->space.sketch[0]->start);
        run(quiet, "droplet", 1, 4, 2000);
        near += w->best_ns <= 1.01 * quiet->best_ns;
        world_free(w);
        world_free(quiet);
    }
    assert_true(near >= 19);
}

static void every_neighbour_of_a_converged_incumbent_was_tried(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 20; seed++) {
        struct world *w = world_new(1, rugged_cost, seed);
        know(w, &w->space.sketch[0]->start);
        assert_string_equal(run(w, "droplet", seed, (int)(seed % 7) + 1, 3000), "converged");
        assert_true(moves(w) >= 3);
        /* Of the last incumbent, and of every descent's. */
        expect_ring_tried(w, incumbent(w));
        for (int i = 1; i < w->nr_decisions; i++) {
            const struct decision *d = &w->decision[i];
            if (d->verdict == VERDICT_MOVED && d->incumbent == 0)
                expect_ring_tried(w, w->decision[i - 1].incumbent);
        }
        world_free(w);
    }
}

static void ring_of_a_new_incumbent_has_the_steps_of_all_directions(void **state)
{
    (void)state;
    /* The known ports ask "visited" of the step: after a move no step done before comes again. */
    struct world *w = world_new(1, convex_cost, 1);
    know(w, &w->space.sketch[0]->start);
    run(w, "droplet", 1, 1, 400);
    int again = 0;
    for (int i = 0; i < w->asked_nr; i++) {
        for (int j = 0; j < i; j++)
            again += w->asked[i].origin == ORIGIN_NEIGHBOUR &&
                     w->asked[i].knob == w->asked[j].knob &&
                     w->asked[i].parent != w->asked[j].parent;
    }
    assert_true(again > 20);
    world_free(w);
}

static void noise_alone_rarely_moves_the_incumbent(void **state)
{
    (void)state;
    static const int pairs[] = {5, 8, 12};
    for (int i = 0; i < LEN(pairs); i++) {
        int moved = 0, runs = 400, ring = 0;
        for (int j = 0; j < runs; j++) {
            struct world *w = world_new(1, flat_cost, (uint64_t)(1000 * i + j));
            w->noise = 0.03;
            w->drift = 0.1;
            w->pairs = pairs[i];
            know_samples(w, 1, (uint64_t)j);
            struct neighbour *n;
            ring = space_neighbours(&w->space, &w->known[0].c, &n);
            free(n);
            run(w, "droplet", (uint64_t)j, 4, ring);
            moved += moves(w) > 0;
            world_free(w);
        }
        assert_true(ring >= 10);
        assert_true(moved <= runs / 20);
    }
}

static void a_small_but_certain_gain_is_not_worth_a_move(void **state)
{
    (void)state;
    struct observation o = {
        .status = TRIAL_OK, .cost_ns = 998, .nr_samples = 16, .nr_ref = 16, .parent = 7};
    for (int i = 0; i < 16; i++) {
        o.ref_ns[i] = 1000 + i;
        o.sample_ns[i] = 0.998 * o.ref_ns[i];
    }
    struct judgement j = judge(&o, 7, 1000, 30);
    assert_true(j.p < 0.001);
    assert_int_equal(j.verdict, VERDICT_NOISE);
    for (int i = 0; i < 16; i++)
        o.sample_ns[i] = 0.99 * o.ref_ns[i];
    assert_int_equal(judge(&o, 7, 1000, 30).verdict, VERDICT_BETTER);
}

static void judgements_follow_from_what_was_measured(void **state)
{
    (void)state;
    struct observation o = {.status = TRIAL_OK, .cost_ns = 900, .parent = 7};
    struct judgement j = judge(&o, 7, 1000, 30);
    assert_int_equal(j.verdict, VERDICT_BETTER); /* no pairs: by cost alone */
    assert_true(isnan(j.p));
    assert_true(fabs(j.gain - 0.1) < 1e-12);
    o.cost_ns = 999;
    assert_int_equal(judge(&o, 7, 1000, 30).verdict, VERDICT_NOISE);
    o.cost_ns = 1100;
    assert_int_equal(judge(&o, 7, 1000, 30).verdict, VERDICT_WORSE);
    o.status = TRIAL_CRASHED;
    assert_int_equal(judge(&o, 7, 1000, 30).verdict, VERDICT_FAILED);
    o.status = TRIAL_CUT;
    assert_int_equal(judge(&o, 7, 1000, 30).verdict, VERDICT_WORSE);

    /* Pairs with a trial other than the incumbent are not pairs with the incumbent. */
    o = (struct observation){
        .status = TRIAL_OK, .cost_ns = 1500, .parent = 3, .nr_samples = 12, .nr_ref = 12};
    for (int i = 0; i < 12; i++) {
        o.ref_ns[i] = 2000 + i;
        o.sample_ns[i] = 1500 + i;
    }
    assert_int_equal(judge(&o, 7, 1000, 30).verdict, VERDICT_WORSE);
    assert_int_equal(judge(&o, 3, 2000, 30).verdict, VERDICT_BETTER);

    /* One pair that disagrees outweighs a large family. */
    o.sample_ns[4] = 9000;
    assert_int_equal(judge(&o, 3, 2000, 1000).verdict, VERDICT_NOISE);
}

static void few_pairs_that_are_all_slower_are_worse_and_not_noise(void **state)
{
    (void)state;
    struct observation o = {
        .status = TRIAL_OK, .cost_ns = 1220, .nr_samples = 3, .nr_ref = 3, .parent = 7};
    for (int i = 0; i < 3; i++) {
        o.ref_ns[i] = 1000 + i;
        o.sample_ns[i] = 1220 + 10 * i;
    }
    assert_int_equal(judge(&o, 7, 1000, 30).verdict, VERDICT_WORSE);
    for (int i = 0; i < 3; i++)
        o.sample_ns[i] = 1.004 * o.ref_ns[i]; /* a loss below MIN_GAIN */
    assert_int_equal(judge(&o, 7, 1000, 30).verdict, VERDICT_NOISE);
    for (int i = 0; i < 3; i++)
        o.sample_ns[i] = 1220;
    o.sample_ns[1] = 999; /* one that is not slower */
    assert_int_equal(judge(&o, 7, 1000, 30).verdict, VERDICT_NOISE);
}

static void few_pairs_decide_only_if_they_agree_closely(void **state)
{
    (void)state;
    struct observation o = {
        .status = TRIAL_OK, .cost_ns = 950, .nr_samples = 5, .nr_ref = 5, .parent = 7};
    static const double tight[] = {0.950, 0.952, 0.949, 0.951, 0.950};
    static const double loose[] = {0.99, 0.80, 0.97, 0.95, 0.90};
    for (int i = 0; i < 5; i++) {
        o.ref_ns[i] = 1000;
        o.sample_ns[i] = 1000 * tight[i];
    }
    assert_int_equal(judge(&o, 7, 1000, 30).verdict, VERDICT_BETTER);
    for (int i = 0; i < 5; i++)
        o.sample_ns[i] = 1000 * loose[i];
    assert_int_equal(judge(&o, 7, 1000, 30).verdict, VERDICT_NOISE);
    assert_int_equal(judge(&o, 7, 1000, 1).verdict, VERDICT_BETTER); /* 1/32 will do for one */
}

static void decisions_say_the_step_the_gain_and_p(void **state)
{
    (void)state;
    struct world *w = world_new(1, convex_cost, 1);
    w->noise = 0.005;
    w->pairs = 12;
    know(w, &w->space.sketch[0]->start);
    run(w, "droplet", 1, 4, 100);
    int tested = 0, texts = 0;
    for (int i = 0; i < w->nr_decisions; i++) {
        const struct decision *d = &w->decision[i];
        if (d->incumbent == 0)
            continue;
        tested += d->verdict != VERDICT_MOVED;
        texts += strstr(d->text, "tile_oc: 2 from level ") && strstr(d->text, " % faster, p = ");
        assert_true(d->p_value >= 0 && d->p_value <= 1);
        assert_true(d->gain < 1);
        if (d->verdict == VERDICT_BETTER)
            assert_true(d->p_value < 0.05 && d->gain >= MIN_GAIN);
    }
    assert_int_equal(tested, w->asked_nr);
    assert_true(texts > 0);
    world_free(w);
}

static void probes_are_compared_with_the_incumbent_of_the_moment(void **state)
{
    (void)state;
    struct world *w = world_new(1, convex_cost, 1);
    know(w, &w->space.sketch[0]->start);
    run(w, "droplet", 1, 4, 100);
    int64_t best = 1;
    double cost = w->cost_ns[0];
    for (int i = 0; i < w->asked_nr; i++) {
        assert_true(w->asked[i].compare);
        if (w->asked[i].parent != best) {
            /* A move: always to something faster. */
            assert_true(w->cost_ns[w->asked[i].parent - 1] < cost);
            best = w->asked[i].parent;
            cost = w->cost_ns[best - 1];
        }
    }
    assert_true(best != 1);
    world_free(w);
}

static void results_in_another_order_are_credited_alike(void **state)
{
    (void)state;
    /* Observations come back to front: the candidate says whose they are. */
    struct world *w = world_new(1, convex_cost, 1);
    know(w, &w->space.sketch[0]->start);
    const struct strategy_class *class = strategy_find("droplet");
    struct strategy_env env = environment(w, 1, 8, 400);
    struct strategy *s = class->create(&env, NULL);
    struct proposal p[8];
    int nr;
    while ((nr = class->propose(s, 8, p)) > 0) {
        struct observation o[8];
        for (int i = 0; i < nr; i++)
            o[i] = measure(w, &p[i]);
        for (int i = nr - 1; i >= 0; i--)
            class->observe(s, &o[i]);
    }
    class->destroy(s);
    int judged = 0;
    for (int i = 0; i < w->nr_decisions; i++) {
        const struct decision *d = &w->decision[i];
        if (d->incumbent == 0)
            continue;
        const char *note = w->note[d->trial - 1];
        assert_memory_equal(d->text, note, strlen(note));
        double gain = 1 - w->cost_ns[d->trial - 1] / w->cost_ns[d->incumbent - 1];
        assert_true(fabs(d->gain - gain) < 1e-9);
        judged++;
    }
    assert_true(judged > 50);
    world_free(w);
}

static void a_winning_step_is_done_again_at_once(void **state)
{
    (void)state;
    struct world *w = world_new(1, convex_cost, 1);
    know(w, &w->space.sketch[0]->start);
    run(w, "droplet", 3, 4, 60);
    int led = 0, speculated = 0;
    for (int i = 1; i < w->asked_nr; i++) {
        bool moved = w->asked[i].parent != w->asked[i - 1].parent;
        led += moved && w->asked[i].origin == ORIGIN_SPECULATE;
        speculated += w->asked[i].origin == ORIGIN_SPECULATE;
    }
    assert_true(led >= 2 && speculated >= 4);
    world_free(w);
}

static struct world *diagonal_world(void)
{
    static const int64_t v[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9};
    struct world *w = world_new(0, diagonal_cost, 1);
    struct sketch *k = space_sketch(&w->space, "diagonal");
    sketch_ordinal(&w->space, k, "x", LEN(v), v);
    sketch_ordinal(&w->space, k, "y", LEN(v), v);
    know(w, &k->start);
    return w;
}

static int count_pairs(const struct world *w)
{
    int pairs = 0;
    for (int i = 0; i < w->asked_nr; i++)
        pairs += w->asked[i].origin == ORIGIN_PAIR;
    return pairs;
}

static void pairs_of_steps_leave_a_slanted_valley(void **state)
{
    (void)state;
    struct world *w = diagonal_world();
    run(w, "droplet", 1, 4, 60);
    assert_true(w->best_ns == 1e6);
    assert_true(count_pairs(w) >= 6);
    world_free(w);
}

/* What lies on the diagonal at half the speed of the others, but for where it begins. */
static bool dislikes_the_diagonal(void *ctx, const struct candidate *c, int nr, double *out)
{
    (void)ctx;
    for (int i = 0; i < nr; i++)
        out[i] = c[i].v[0] == c[i].v[1] && c[i].v[0] ? 0.5 : 1;
    return true;
}

static void pairs_predicted_to_be_much_slower_are_not_tried(void **state)
{
    (void)state;
    struct world *w = diagonal_world();
    w->score = dislikes_the_diagonal;
    run(w, "droplet", 1, 4, 60);
    assert_true(w->asked_nr >= 2);
    assert_int_equal(count_pairs(w), 0);
    assert_true(w->best_ns > 1e6);
    world_free(w);
}

static void a_new_descent_starts_in_another_sketch(void **state)
{
    (void)state;
    struct world *w = world_new(2, convex_cost, 1);
    know(w, &w->space.sketch[0]->start);
    know(w, &w->space.sketch[1]->start);
    assert_string_equal(run(w, "droplet", 1, 4, 2000), "converged");
    int starts[2] = {0};
    for (int i = 0; i < w->nr_decisions; i++) {
        if (w->decision[i].verdict == VERDICT_MOVED && w->decision[i].incumbent == 0)
            starts[w->trials.v[w->decision[i].trial - 1].sketch]++;
    }
    assert_true(starts[0] >= 1 && starts[1] >= 1);
    world_free(w);
}

static void droplet_without_known_trials_finds_its_own_start(void **state)
{
    (void)state;
    static const int batch[] = {1, 4, 16};
    for (int i = 0; i < LEN(batch); i++) {
        struct world *w = world_new(3, convex_cost, 1);
        run(w, "droplet", 1, batch[i], 300);
        for (int j = 0; j < 3; j++) {
            assert_int_equal(w->asked[j].origin, ORIGIN_START);
            assert_true(candidate_equal(&w->asked[j].c, &w->space.sketch[j]->start));
        }
        assert_true(w->best_ns < 1.2e6);
        world_free(w);
    }
}

static void droplet_where_everything_fails_ends(void **state)
{
    (void)state;
    struct world *w = world_new(0, hopeless_cost, 1);
    struct sketch *k = space_sketch(&w->space, "small");
    sketch_split(&w->space, k, "tile", 64, 3, 0);
    assert_string_equal(run(w, "droplet", 1, 4, 1000), "space exhausted");
    assert_int_equal(w->asked_nr, space_count(&w->space, 1000));
    world_free(w);
}

static void unanswered_proposals_do_not_stop_the_descent(void **state)
{
    (void)state;
    struct world *w = world_new(1, convex_cost, 1);
    know(w, &w->space.sketch[0]->start);
    const struct strategy_class *class = strategy_find("droplet");
    struct strategy_env env = environment(w, 1, 4, 400);
    struct strategy *s = class->create(&env, NULL);
    struct proposal p[4];
    for (int nr, i = 0; i < 300 && (nr = class->propose(s, 4, p)) > 0; i++) {
        for (int j = 1; j < nr; j++) { /* the first is dropped */
            struct observation o = measure(w, &p[j]);
            class->observe(s, &o);
        }
    }
    class->destroy(s);
    assert_true(moves(w) >= 3);
    world_free(w);
}

/* Of the tile nothing but its innermost level makes a difference. */
static uint64_t same_but_for_the_last(const struct sketch *k, const struct candidate *c)
{
    (void)k;
    return (uint64_t)c->v[3] << 32 | (uint32_t)c->v[4];
}

static double cost_of_the_last(const struct world *w, const struct candidate *c)
{
    (void)w;
    return 1000 + 100 * fabs(log2((double)c->v[3]) - 6) + 10 * abs(c->v[4] - 3);
}

static void twins_are_tried_once_and_their_steps_are_seen(void **state)
{
    (void)state;
    static const int64_t unroll[] = {0, 16, 64, 256, 512};
    for (int twins = 0; twins < 2; twins++) {
        struct world *w = world_new(0, cost_of_the_last, 1);
        struct sketch *k = space_sketch(&w->space, "tile");
        sketch_split(&w->space, k, "tile", 256, 4, 0);
        sketch_ordinal(&w->space, k, "unroll", LEN(unroll), unroll);
        k->start = (struct candidate){.nr = 5, .v = {256, 1, 1, 1, 0}};
        k->twins = twins ? same_but_for_the_last : NULL;
        know(w, &k->start);
        assert_string_equal(run(w, "droplet", 1, 4, 2000), "converged");
        assert_true(w->best_ns == 1000);
        for (int i = 0; i < w->asked_nr && twins; i++)
            for (int j = 0; j < i; j++)
                assert_true(same_but_for_the_last(k, &w->asked[i].c) !=
                            same_but_for_the_last(k, &w->asked[j].c));
        /* 9 tiles of 5 ways to unroll are all there is; 165 candidates a tile are as many */
        assert_true(twins ? w->asked_nr < 45 : w->asked_nr > 60);
        world_free(w);
    }
}

static void other_seeds_try_a_ring_in_another_order(void **state)
{
    (void)state;
    struct candidate first[8];
    int different = 0;
    for (uint64_t seed = 0; seed < 8; seed++) {
        struct world *w = world_new(1, flat_cost, 1);
        know(w, &w->space.sketch[0]->start);
        run(w, "droplet", seed, 1, 1);
        first[seed] = w->asked[0].c;
        different += seed > 0 && !candidate_equal(&first[seed], &first[0]);
        world_free(w);
    }
    assert_true(different >= 4);
}

/* Packed candidates at half the speed of the others. */
static bool dislikes_packing(void *ctx, const struct candidate *c, int nr, double *out)
{
    const struct world *w = ctx;
    const struct sketch *k = w->space.sketch[0];
    for (int i = 0; i < nr; i++)
        out[i] = c[i].v[k->knob[k->nr_knobs - 1].slot] ? 0.5 : 1;
    return true;
}

static int count_packed(const struct world *w)
{
    const struct sketch *k = w->space.sketch[0];
    int nr = 0;
    for (int i = 0; i < w->asked_nr; i++)
        nr += w->asked[i].c.v[k->knob[k->nr_knobs - 1].slot] != 0;
    return nr;
}

static void steps_predicted_to_be_much_slower_are_not_tried(void **state)
{
    (void)state;
    for (int predicts = 0; predicts < 2; predicts++) {
        struct world *w = world_new(1, convex_cost, 1);
        know(w, &w->space.sketch[0]->start);
        assert_int_equal(w->space.sketch[0]->start.v[w->space.sketch[0]->knob[4].slot], 0);
        w->score = predicts ? dislikes_packing : NULL;
        run(w, "droplet", 1, 4, 300);
        assert_true(moves(w) > 0);
        assert_true(predicts ? count_packed(w) == 0 : count_packed(w) > 0);
        world_free(w);
    }
}

static void without_a_gain_half_of_the_budget_is_enough_where_speeds_are_predicted(void **state)
{
    (void)state;
    for (int budget = 20; budget <= 60; budget += 40) {
        for (int predicts = 0; predicts < 2; predicts++) {
            struct world *w = world_new(2, flat_cost, 1);
            know_samples(w, 32, 3);
            w->score = predicts ? dislikes_packing : NULL;
            const char *why = run(w, "droplet", 1, 2, budget);
            int patience = budget / 2 > 16 ? budget / 2 : 16;
            assert_string_equal(why, predicts ? "stagnated" : "");
            assert_int_equal(w->asked_nr, predicts ? patience : budget);
            world_free(w);
        }
    }
}

static void a_stagnant_descent_goes_on_when_it_is_asked_again(void **state)
{
    (void)state;
    struct world *w = world_new(2, flat_cost, 1);
    know_samples(w, 32, 3);
    w->score = dislikes_packing;
    const struct strategy_class *class = strategy_find("droplet");
    struct strategy_env env = environment(w, 1, 1, 40);
    struct strategy *s = class->create(&env, NULL);
    struct proposal p;
    for (int asked = 1; asked <= 2; asked++) {
        int nr = 0;
        for (; class->propose(s, 1, &p) == 1; nr++) {
            struct observation o = measure(w, &p);
            class->observe(s, &o);
        }
        assert_int_equal(nr, 20);
        assert_string_equal(class->why(s), "stagnated");
    }
    assert_int_equal(w->repeated, 0);
    class->destroy(s);
    world_free(w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(droplet_reaches_the_optimum_of_a_convex_space),
        cmocka_unit_test(droplet_reaches_the_optimum_through_noise),
        cmocka_unit_test(every_neighbour_of_a_converged_incumbent_was_tried),
        cmocka_unit_test(ring_of_a_new_incumbent_has_the_steps_of_all_directions),
        cmocka_unit_test(noise_alone_rarely_moves_the_incumbent),
        cmocka_unit_test(a_small_but_certain_gain_is_not_worth_a_move),
        cmocka_unit_test(judgements_follow_from_what_was_measured),
        cmocka_unit_test(few_pairs_that_are_all_slower_are_worse_and_not_noise),
        cmocka_unit_test(few_pairs_decide_only_if_they_agree_closely),
        cmocka_unit_test(decisions_say_the_step_the_gain_and_p),
        cmocka_unit_test(probes_are_compared_with_the_incumbent_of_the_moment),
        cmocka_unit_test(results_in_another_order_are_credited_alike),
        cmocka_unit_test(a_winning_step_is_done_again_at_once),
        cmocka_unit_test(pairs_of_steps_leave_a_slanted_valley),
        cmocka_unit_test(pairs_predicted_to_be_much_slower_are_not_tried),
        cmocka_unit_test(a_new_descent_starts_in_another_sketch),
        cmocka_unit_test(droplet_without_known_trials_finds_its_own_start),
        cmocka_unit_test(droplet_where_everything_fails_ends),
        cmocka_unit_test(unanswered_proposals_do_not_stop_the_descent),
        cmocka_unit_test(twins_are_tried_once_and_their_steps_are_seen),
        cmocka_unit_test(other_seeds_try_a_ring_in_another_order),
        cmocka_unit_test(steps_predicted_to_be_much_slower_are_not_tried),
        cmocka_unit_test(a_stagnant_descent_goes_on_when_it_is_asked_again),
        cmocka_unit_test(without_a_gain_half_of_the_budget_is_enough_where_speeds_are_predicted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
