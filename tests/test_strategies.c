/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Strategies on synthetic costs. A `struct world` stands in for the engine: it owns the trials,
 * answers each batch, and draws the noise of its paired samples from a seed.
 */
#include "engine/search/strategy.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "engine/base/hash.h"
#include "engine/search/history.h"
#include "engine/search/judge.h"

#define LEN(a) ((int)(sizeof(a) / sizeof *(a)))

enum { MAX_BATCH = 64, MAX_TRIALS = 4096, MAX_DECISIONS = 8192 };

struct world {
    struct space space;
    double (*cost)(const struct world *w, const struct candidate *c); /* INFINITY: fails */
    double noise;   /* standard deviation of one sample */
    double drift;   /* of the moment, common to both samples of a pair */
    int pairs;      /* 0: no interleaved samples */
    struct rng rng;
    struct candset trials; /* trial i + 1 */
    double cost_ns[MAX_TRIALS];
    struct proposal asked[MAX_TRIALS];
    int asked_nr;
    struct decision decision[MAX_DECISIONS];
    int nr_decisions;
    int repeated; /* proposals that were trials already */
    double best_ns;
    struct observation known[64];
    int nr_known;
};

static double gauss(struct rng *r)
{
    return sqrt(-2 * log(1 - rng_unit(r))) * cos(2 * M_PI * rng_unit(r));
}

static bool seen(void *ctx, const struct candidate *c)
{
    struct world *w = ctx;
    return candset_find(&w->trials, c) >= 0;
}

static void decided(void *ctx, const struct decision *d)
{
    struct world *w = ctx;
    assert_true(w->nr_decisions < MAX_DECISIONS);
    w->decision[w->nr_decisions++] = *d;
}

/* log2 of the factor, or the index: what the synthetic costs are functions of. */
static double coordinate(const struct knob *k, const struct candidate *c, int i)
{
    int32_t v = c->v[k->slot + i];
    return k->kind == KNOB_SPLIT ? log2(v) : v;
}

/* Separable and convex in the steps, 1 ms at the optimum, which depends on the sketch. */
static double convex_cost(const struct world *w, const struct candidate *c)
{
    const struct sketch *sk = w->space.sketch[c->sketch];
    double sum = 0;
    for (int i = 0; i < sk->nr_knobs; i++) {
        const struct knob *k = &sk->knob[i];
        double levels = k->nr_slots, total = k->kind == KNOB_SPLIT ? log2((double)k->extent) : 0;
        for (int j = 0; j < k->nr_slots; j++) {
            double best = k->kind == KNOB_SPLIT ? total / levels : k->nr_values / 2;
            double d = coordinate(k, c, j) - best;
            sum += 0.03 * d * d;
        }
    }
    return 1e6 * (1 + sum) * (1 + 0.2 * c->sketch);
}

/* The same with up to a quarter more for each candidate, by its hash. */
static double rugged_cost(const struct world *w, const struct candidate *c)
{
    uint64_t h = candidate_hash(c);
    h = hash64(h, &h, sizeof h);
    return convex_cost(w, c) * (1 + 0.25 * (double)(h >> 40) / (1 << 24));
}

static double flat_cost(const struct world *w, const struct candidate *c)
{
    (void)w;
    (void)c;
    return 1e6;
}

/* One candidate in three fails. */
static double failing_cost(const struct world *w, const struct candidate *c)
{
    return candidate_hash(c) % 3 ? convex_cost(w, c) : INFINITY;
}

static double hopeless_cost(const struct world *w, const struct candidate *c)
{
    (void)w;
    (void)c;
    return INFINITY;
}

/* A valley along the diagonal of two ordinals: every single step out of it leads upwards. */
static double diagonal_cost(const struct world *w, const struct candidate *c)
{
    (void)w;
    double across = c->v[0] - c->v[1], along = (c->v[0] + c->v[1]) / 2.0 - 6;
    return 1e6 * (1 + 0.15 * fabs(across) + 0.02 * fabs(along));
}

/* Tile knobs as a convolution has them, and the ordinals; `sketches` of the same shape. */
static void make_space(struct world *w, int sketches)
{
    static const int64_t unroll[] = {0, 16, 64, 256, 512};
    space_init(&w->space);
    for (int i = 0; i < sketches; i++) {
        struct sketch *k = space_sketch(&w->space, "tiled");
        sketch_split(&w->space, k, "tile_oc", 64, 4, 0);
        sketch_split(&w->space, k, "tile_oh", 56, 3, 0);
        sketch_split(&w->space, k, "tile_ic", 32, 2, 0);
        sketch_ordinal(&w->space, k, "unroll", LEN(unroll), unroll);
        sketch_flag(&w->space, k, "pack");
    }
}

static struct world *world_new(int sketches,
                               double (*cost)(const struct world *, const struct candidate *),
                               uint64_t seed)
{
    struct world *w = calloc(1, sizeof *w);
    if (sketches)
        make_space(w, sketches);
    else
        space_init(&w->space);
    w->cost = cost;
    w->best_ns = INFINITY;
    rng_seed(&w->rng, seed);
    return w;
}

static void world_free(struct world *w)
{
    candset_release(&w->trials);
    space_release(&w->space);
    free(w);
}

static struct observation measure(struct world *w, const struct proposal *p)
{
    struct observation o = {.c = p->c, .origin = p->origin, .parent = p->parent, .knob = p->knob,
                            .dir = p->dir, .status = TRIAL_OK, .nr_samples = 5};
    if (!candidate_valid(&w->space, &p->c, NULL))
        fail_msg("an invalid candidate was proposed");
    if (seen(w, &p->c))
        w->repeated++;
    o.trial = candset_add(&w->trials, &p->c) + 1;
    double cost = w->cost(w, &p->c);
    w->cost_ns[o.trial - 1] = cost;
    w->best_ns = fmin(w->best_ns, cost);
    if (!isfinite(cost)) {
        o.status = TRIAL_BUILD_ERROR;
        o.cost_ns = INFINITY;
        o.nr_samples = 0;
        return o;
    }
    if (p->compare && w->pairs && p->parent)
        o.nr_ref = o.nr_samples = w->pairs;
    double sum = 0;
    for (int i = 0; i < o.nr_samples; i++) {
        double moment = 1 + w->drift * rng_unit(&w->rng);
        o.sample_ns[i] = cost * moment * (1 + w->noise * fabs(gauss(&w->rng)));
        if (o.nr_ref)
            o.ref_ns[i] = w->cost_ns[p->parent - 1] * moment * (1 + w->noise * fabs(gauss(&w->rng)));
        sum += o.sample_ns[i] / o.nr_samples;
    }
    o.cost_ns = w->noise > 0 ? sum : cost;
    return o;
}

static struct strategy_env environment(struct world *w, uint64_t seed, int batch, int budget)
{
    return (struct strategy_env){
        .space = &w->space, .seed = seed, .known = w->known, .nr_known = w->nr_known, .seen = seen,
        .decided = decided, .ctx = w, .batch = batch, .budget = budget,
    };
}

/* Asks and answers until the budget is spent or nothing more comes; "" where the budget ended it. */
static const char *run(struct world *w, const char *name, uint64_t seed, int batch, int budget)
{
    const struct strategy_class *class = strategy_find(name);
    assert_non_null(class);
    struct strategy_env env = environment(w, seed, batch, budget);
    struct strategy *s = class->create(&env, NULL);
    assert_non_null(s);
    const char *why = "";
    for (int left = budget; left > 0;) {
        struct proposal p[MAX_BATCH];
        int want = batch < left ? batch : left, nr = class->propose(s, want, p);
        assert_true(nr <= want);
        if (nr == 0) {
            why = class->why(s);
            break;
        }
        struct observation o[MAX_BATCH];
        for (int i = 0; i < nr; i++) {
            assert_true(w->asked_nr < MAX_TRIALS);
            w->asked[w->asked_nr++] = p[i];
            o[i] = measure(w, &p[i]);
        }
        for (int i = 0; i < nr; i++)
            class->observe(s, &o[i]);
        left -= nr;
    }
    class->destroy(s);
    return why;
}

/* Puts a candidate among the trials known before the phase; they are given best first. */
static void know(struct world *w, const struct candidate *c)
{
    struct proposal p;
    proposal_init(&p, c, ORIGIN_SAMPLE);
    struct observation o = measure(w, &p);
    int i = w->nr_known++;
    for (; i > 0 && w->known[i - 1].cost_ns > o.cost_ns; i--)
        w->known[i] = w->known[i - 1];
    w->known[i] = o;
}

static void know_samples(struct world *w, int nr, uint64_t seed)
{
    struct rng r;
    rng_seed(&r, seed);
    while (nr > 0) {
        struct candidate c;
        assert_true(space_sample(&w->space, -1, &r, &c));
        if (!seen(w, &c)) {
            know(w, &c);
            nr--;
        }
    }
}

static int moves(const struct world *w)
{
    int nr = 0;
    for (int i = 0; i < w->nr_decisions; i++)
        nr += w->decision[i].verdict == VERDICT_MOVED && w->decision[i].incumbent != 0;
    return nr;
}

/* The trial that the descent stood at in the end. */
static int64_t incumbent(const struct world *w)
{
    for (int i = w->nr_decisions - 1; i >= 0; i--) {
        if (w->decision[i].verdict == VERDICT_MOVED)
            return w->decision[i].trial;
    }
    return 0;
}

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
            again += w->asked[i].origin == ORIGIN_NEIGHBOUR && w->asked[i].knob == w->asked[j].knob &&
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
    struct observation o = {.status = TRIAL_OK, .cost_ns = 998, .nr_samples = 16, .nr_ref = 16,
                            .parent = 7};
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
    o = (struct observation){.status = TRIAL_OK, .cost_ns = 1500, .parent = 3, .nr_samples = 12,
                             .nr_ref = 12};
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

static void few_pairs_decide_only_if_they_agree_closely(void **state)
{
    (void)state;
    struct observation o = {.status = TRIAL_OK, .cost_ns = 950, .nr_samples = 5, .nr_ref = 5,
                            .parent = 7};
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
    double reached = w->best_ns;
    world_free(w);
    w = world_new(1, convex_cost, 1);
    know(w, &w->space.sketch[0]->start);
    run(w, "droplet", 1, 8, 400);
    assert_true(reached == w->best_ns);
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

static void pairs_of_steps_leave_a_slanted_valley(void **state)
{
    (void)state;
    static const int64_t v[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9};
    struct world *w = world_new(0, diagonal_cost, 1);
    struct sketch *k = space_sketch(&w->space, "diagonal");
    sketch_ordinal(&w->space, k, "x", LEN(v), v);
    sketch_ordinal(&w->space, k, "y", LEN(v), v);
    know(w, &k->start);
    run(w, "droplet", 1, 4, 60);
    assert_true(w->best_ns == 1e6);
    int pairs = 0;
    for (int i = 0; i < w->asked_nr; i++)
        pairs += w->asked[i].origin == ORIGIN_PAIR;
    assert_true(pairs >= 6);
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

static const char *const adaptive[] = {"droplet", "evolutionary", "random", "grid"};

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

static void no_strategy_proposes_a_trial_again(void **state)
{
    (void)state;
    for (int i = 0; i < LEN(adaptive); i++) {
        struct world *w = world_new(2, failing_cost, 5);
        w->noise = 0.02;
        w->pairs = 8;
        know_samples(w, 30, 4);
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
static double mean_best(const char *name, double (*cost)(const struct world *,
                                                          const struct candidate *),
                        int budget, int batch, int runs)
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
    assert_true(mean_best("evolutionary", failing_cost, 100, 8, 20) <
                mean_best("random", failing_cost, 100, 8, 20));
}

static void descent_after_exploration_beats_exploration_alone(void **state)
{
    (void)state;
    double alone = mean_best("evolutionary", rugged_cost, 200, 8, 20), both = 0;
    for (int i = 0; i < 20; i++) {
        struct world *w = world_new(2, rugged_cost, (uint64_t)i);
        run(w, "evolutionary", (uint64_t)i + 100, 8, 60);
        for (int j = 0; j < w->trials.nr; j++) {
            struct observation o = {.trial = j + 1, .c = w->trials.v[j], .status = TRIAL_OK,
                                    .cost_ns = w->cost_ns[j]};
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

/* A model that likes the second sketch, and nothing else. */
static void likes_second(void *ctx, const struct candidate *c, int nr, double *out)
{
    (void)ctx;
    for (int i = 0; i < nr; i++)
        out[i] = c[i].sketch == 1 ? 0.9 : 0.1;
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
    assert_int_equal(nr, 4);
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
        cmocka_unit_test(droplet_reaches_the_optimum_of_a_convex_space),
        cmocka_unit_test(droplet_reaches_the_optimum_through_noise),
        cmocka_unit_test(every_neighbour_of_a_converged_incumbent_was_tried),
        cmocka_unit_test(ring_of_a_new_incumbent_has_the_steps_of_all_directions),
        cmocka_unit_test(noise_alone_rarely_moves_the_incumbent),
        cmocka_unit_test(a_small_but_certain_gain_is_not_worth_a_move),
        cmocka_unit_test(judgements_follow_from_what_was_measured),
        cmocka_unit_test(few_pairs_decide_only_if_they_agree_closely),
        cmocka_unit_test(decisions_say_the_step_the_gain_and_p),
        cmocka_unit_test(probes_are_compared_with_the_incumbent_of_the_moment),
        cmocka_unit_test(results_in_another_order_are_credited_alike),
        cmocka_unit_test(a_winning_step_is_done_again_at_once),
        cmocka_unit_test(pairs_of_steps_leave_a_slanted_valley),
        cmocka_unit_test(a_new_descent_starts_in_another_sketch),
        cmocka_unit_test(droplet_without_known_trials_finds_its_own_start),
        cmocka_unit_test(droplet_where_everything_fails_ends),
        cmocka_unit_test(unanswered_proposals_do_not_stop_the_descent),
        cmocka_unit_test(equal_seeds_and_results_give_equal_proposals),
        cmocka_unit_test(other_seeds_try_a_ring_in_another_order),
        cmocka_unit_test(no_strategy_proposes_a_trial_again),
        cmocka_unit_test(every_strategy_but_droplet_exhausts_a_small_space),
        cmocka_unit_test(grid_enumerates_what_is_valid_and_not_known),
        cmocka_unit_test(evolution_beats_random_search_at_equal_budget),
        cmocka_unit_test(descent_after_exploration_beats_exploration_alone),
        cmocka_unit_test(evolution_follows_the_cost_model_and_keeps_a_random_place),
        cmocka_unit_test(names_are_found_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
