/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Synthetic costs to search in. A `struct world` stands in for the engine: it owns the trials,
 * answers each batch, and draws the noise of its paired samples from a seed.
 */
#ifndef TESTS_SEARCH_WORLD_H
#define TESTS_SEARCH_WORLD_H

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
#include "engine/search/strategy.h"

#define LEN(a) ((int)(sizeof(a) / sizeof *(a)))

enum { MAX_BATCH = 64, MAX_TRIALS = 4096, MAX_DECISIONS = 8192 };

struct world;

/* The true cost; INFINITY for a candidate that fails. */
typedef double cost_fn(const struct world *w, const struct candidate *c);

struct world {
    struct space space;
    cost_fn *cost;
    bool (*score)(void *ctx, const struct candidate *c, int nr, double *out); /* may be NULL */
    double noise; /* standard deviation of one sample */
    double drift; /* of the moment, common to both samples of a pair */
    int pairs;    /* 0: no interleaved samples */
    struct rng rng;
    struct candset trials; /* trial i + 1 */
    double cost_ns[MAX_TRIALS];
    char note[MAX_TRIALS][64];
    struct proposal asked[MAX_TRIALS];
    int asked_nr;
    struct decision decision[MAX_DECISIONS];
    int nr_decisions;
    int repeated; /* proposals that were trials already */
    double best_ns;
    struct observation known[64];
    int nr_known;
};

static inline double gauss(struct rng *r)
{
    return sqrt(-2 * log(1 - rng_unit(r))) * cos(2 * M_PI * rng_unit(r));
}

static inline bool seen(void *ctx, const struct candidate *c)
{
    struct world *w = ctx;
    return candset_find(&w->trials, c) >= 0;
}

static inline void decided(void *ctx, const struct decision *d)
{
    struct world *w = ctx;
    assert_true(w->nr_decisions < MAX_DECISIONS);
    w->decision[w->nr_decisions++] = *d;
}

/* log2 of the factor, or the index: what the synthetic costs are functions of. */
static inline double coordinate(const struct knob *k, const struct candidate *c, int i)
{
    int32_t v = c->v[k->slot + i];
    return k->kind == KNOB_SPLIT ? log2(v) : v;
}

/* Separable and convex in the steps, 1 ms at the optimum, which depends on the sketch. */
static inline double convex_cost(const struct world *w, const struct candidate *c)
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
static inline double rugged_cost(const struct world *w, const struct candidate *c)
{
    uint64_t h = candidate_hash(c);
    h = hash64(h, &h, sizeof h);
    return convex_cost(w, c) * (1 + 0.25 * (double)(h >> 40) / (1 << 24));
}

static inline double flat_cost(const struct world *w, const struct candidate *c)
{
    (void)w;
    (void)c;
    return 1e6;
}

/* One candidate in three fails. */
static inline double failing_cost(const struct world *w, const struct candidate *c)
{
    return candidate_hash(c) % 3 ? convex_cost(w, c) : INFINITY;
}

static inline double hopeless_cost(const struct world *w, const struct candidate *c)
{
    (void)w;
    (void)c;
    return INFINITY;
}

/* A valley along the diagonal of two ordinals: every single step out of it leads upwards. */
static inline double diagonal_cost(const struct world *w, const struct candidate *c)
{
    (void)w;
    double across = c->v[0] - c->v[1], along = (c->v[0] + c->v[1]) / 2.0 - 6;
    return 1e6 * (1 + 0.15 * fabs(across) + 0.02 * fabs(along));
}

/* Tile knobs as a convolution has them, and the ordinals; `sketches` of the same shape. */
static inline void make_space(struct world *w, int sketches)
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

static inline struct world *world_new(int sketches, cost_fn *cost, uint64_t seed)
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

static inline void world_free(struct world *w)
{
    candset_release(&w->trials);
    space_release(&w->space);
    free(w);
}

static inline struct observation measure(struct world *w, const struct proposal *p)
{
    struct observation o = {.c = p->c,
                            .origin = p->origin,
                            .parent = p->parent,
                            .knob = p->knob,
                            .dir = p->dir,
                            .status = TRIAL_OK,
                            .nr_samples = 5};
    if (!candidate_valid(&w->space, &p->c, NULL))
        fail_msg("an invalid candidate was proposed");
    if (seen(w, &p->c))
        w->repeated++;
    o.trial = candset_add(&w->trials, &p->c) + 1;
    memcpy(w->note[o.trial - 1], p->note, sizeof p->note);
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
            o.ref_ns[i] =
                w->cost_ns[p->parent - 1] * moment * (1 + w->noise * fabs(gauss(&w->rng)));
        sum += o.sample_ns[i] / o.nr_samples;
    }
    o.cost_ns = w->noise > 0 ? sum : cost;
    return o;
}

static inline struct strategy_env environment(struct world *w, uint64_t seed, int batch, int budget)
{
    return (struct strategy_env){
        .space = &w->space,
        .seed = seed,
        .known = w->known,
        .nr_known = w->nr_known,
        .seen = seen,
        .decided = decided,
        .score = w->score,
        .may_rest = true,
        .ctx = w,
        .batch = batch,
        .budget = budget,
    };
}

/* Asks and answers until the budget is spent or nothing more comes; "" where the budget ended it.
 */
static inline const char *run(struct world *w, const char *name, uint64_t seed, int batch,
                              int budget)
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
static inline void know(struct world *w, const struct candidate *c)
{
    struct proposal p;
    proposal_init(&p, c, ORIGIN_SAMPLE);
    struct observation o = measure(w, &p);
    int i = w->nr_known++;
    for (; i > 0 && w->known[i - 1].cost_ns > o.cost_ns; i--)
        w->known[i] = w->known[i - 1];
    w->known[i] = o;
}

static inline void know_samples(struct world *w, int nr, uint64_t seed)
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

static inline int moves(const struct world *w)
{
    int nr = 0;
    for (int i = 0; i < w->nr_decisions; i++)
        nr += w->decision[i].verdict == VERDICT_MOVED && w->decision[i].incumbent != 0;
    return nr;
}

/* The trial that the descent stood at in the end. */
static inline int64_t incumbent(const struct world *w)
{
    for (int i = w->nr_decisions - 1; i >= 0; i--) {
        if (w->decision[i].verdict == VERDICT_MOVED)
            return w->decision[i].trial;
    }
    return 0;
}

#endif
