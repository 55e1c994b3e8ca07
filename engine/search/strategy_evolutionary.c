/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Evolutionary search after TVM MetaSchedule (src/meta_schedule/search_strategy/
 * evolutionary_search.cc).
 *
 * The first trials are the start candidate of each sketch and, where nothing predicts anything yet,
 * random samples. After these, a batch is proposed so:
 *
 *   1. The population is a fifth of the best trials known and else fresh samples.
 *   2. One generation: parents are drawn in proportion to their score, and mutated with
 *      probability 0.85, or else copied. What breaks a constraint is tried anew. Where the engine
 *      predicts, there are five times as many children as parents.
 *   3. A quarter of the places goes to climbers: from the best of the population, and from others
 *      drawn by score, mutant by better mutant to where the prediction rises no more.
 *   4. All individuals of all generations that are not trials yet compete for the other places of
 *      the batch by score. One place in twenty, and at least one of a batch of eight, goes to a
 * fresh sample instead; one in four at the beginning.
 *
 * The score is the engine's prediction, where it has one (strategy_env.score); else a surrogate of
 * measured neighbours.
 *
 * MetaSchedule breeds four generations. Each of them climbs the prediction once more, and away from
 * what was measured: on 14 layers with 32 trials and 32 of refinement one generation gave
 * kernels 4.2 % from the best known, none 6.3, two 6.4 and four 8.7. But where a prediction is best
 * is worth a look: on 16 layers with 40 trials and 40 of refinement, three seeds, the climbers made
 * kernels 3.3 % faster.
 *
 * MetaSchedule's population is 512 for a batch of 64 in a budget of thousands. Here it is eight
 * times the batch, between 64 and 512: a small batch picks its few from proportionally few, and the
 * time to propose stays a small part of the time to measure.
 *
 * Children are cheap where a prediction takes microseconds, and among more there are better ones: on
 * 21 layers with 40 trials, two seeds, on a machine with AVX2, five times as many made kernels 5 %
 * faster.
 *
 * Failed trials score 0 with the surrogate, which keeps the search away from where they are.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/search/history.h"
#include "engine/search/mutate.h"
#include "engine/search/strategies.h"
#include "engine/search/surrogate.h"

enum {
    GENERATIONS = 1,
    POPULATION_MIN = 64,
    POPULATION_MAX = 512,
    PREDICTED_TIMES = 5, /* as many children, where the engine predicts */
    MUTATE_TRIES = 10,
    CLIMB_STEPS = 16,
    CLIMB_MUTANTS = 16,
    CLIMB_IDLE = 2, /* steps without a better one that end a climb */
    WARM_UP_MIN = 8,
    WARM_UP_MAX = 64,
};

static const double MEASURED_SHARE = 0.2, MUTATE_PROBABILITY = 0.85, RANDOM_SHARE = 0.05,
                    WARM_UP_SHARE = 0.25, CLIMB_SHARE = 0.25;

struct population {
    struct candidate *c;
    int64_t *root; /* the trial it descends from, 0 for a fresh sample */
    int *knob;     /* last mutated, -1 for none */
    double *score;
    int nr;
};

/* The best individuals so far that can be proposed: a heap with the worst on top. */
struct pick {
    struct candidate c;
    int64_t root;
    int knob;
    double score;
    int age; /* of equal scores the older one is better */
};

struct picks {
    struct pick *v;
    int nr, max, age;
    struct idmap had;
};

struct strategy {
    struct strategy_env env;
    struct rng rng;
    struct supply supply;
    struct history history;
    struct surrogate surrogate;
    int starts; /* sketches whose start was asked for */
};

static struct strategy *create(const struct strategy_env *env, struct err *e)
{
    (void)e;
    struct strategy *s = xcalloc(1, sizeof *s);
    s->env = *env;
    rng_seed(&s->rng, env->seed);
    supply_init(&s->supply, &s->env, &s->rng);
    history_init(&s->history, env);
    surrogate_init(&s->surrogate, env->space);
    for (int i = 0; i < s->history.set.nr; i++)
        surrogate_add(&s->surrogate, &s->history.set.v[i], s->history.fact[i].cost_ns);
    return s;
}

static void destroy(struct strategy *s)
{
    supply_release(&s->supply);
    history_release(&s->history);
    surrogate_release(&s->surrogate);
    free(s);
}

static void population_init(struct population *p, int cap)
{
    p->c = xmalloc((size_t)cap * sizeof *p->c);
    p->root = xcalloc((size_t)cap, sizeof *p->root);
    p->knob = xcalloc((size_t)cap, sizeof *p->knob);
    p->score = xcalloc((size_t)cap, sizeof *p->score);
    p->nr = 0;
}

static void population_release(struct population *p)
{
    free(p->c);
    free(p->root);
    free(p->knob);
    free(p->score);
}

static void population_add(struct population *p, const struct candidate *c, int64_t root, int knob)
{
    p->c[p->nr] = *c;
    p->root[p->nr] = root;
    p->knob[p->nr++] = knob;
}

static void first_population(struct strategy *s, struct population *p, int size)
{
    int *best, nr = history_best(&s->history, (int)(size * MEASURED_SHARE), &best);
    for (int i = 0; i < nr; i++)
        population_add(p, &s->history.set.v[best[i]], s->history.fact[best[i]].trial, -1);
    free(best);
    struct candidate c;
    while (p->nr < size && space_sample(s->env.space, -1, &s->rng, &c))
        population_add(p, &c, 0, -1);
}

/* Is there a prediction? Before any measurement, too, where the space has features. */
static bool is_predicted(const struct strategy *s)
{
    double speed;
    return s->env.score && s->env.score(s->env.ctx, &s->env.space->sketch[0]->start, 1, &speed);
}

static void score(struct strategy *s, struct population *p)
{
    if (!s->env.score || !s->env.score(s->env.ctx, p->c, p->nr, p->score))
        for (int i = 0; i < p->nr; i++)
            p->score[i] = surrogate_score(&s->surrogate, &p->c[i]);
    for (int i = 0; i < p->nr; i++)
        p->score[i] = p->score[i] > 0 ? p->score[i] : 0; /* and no NAN */
}

static bool worse(const struct pick *a, const struct pick *b)
{
    return a->score != b->score ? a->score < b->score : a->age > b->age;
}

static void sift_down(struct picks *h, int i)
{
    for (;;) {
        int least = i;
        for (int child = 2 * i + 1; child <= 2 * i + 2 && child < h->nr; child++) {
            if (worse(&h->v[child], &h->v[least]))
                least = child;
        }
        if (least == i)
            return;
        struct pick t = h->v[i];
        h->v[i] = h->v[least];
        h->v[least] = t;
        i = least;
    }
}

static void push(struct picks *h, const struct pick *p)
{
    if (h->nr == h->max) {
        if (worse(p, &h->v[0]))
            return;
        h->v[0] = *p;
        sift_down(h, 0);
        return;
    }
    int i = h->nr++;
    h->v[i] = *p;
    for (int up; i > 0 && worse(&h->v[i], &h->v[up = (i - 1) / 2]); i = up) {
        struct pick t = h->v[i];
        h->v[i] = h->v[up];
        h->v[up] = t;
    }
}

/* Every individual enters once at most: those that were in before, or a twin, keep their place. */
static void compete(struct strategy *s, const struct population *p, struct picks *h)
{
    for (int i = 0; i < p->nr && h->max > 0; i++) {
        int before = h->had.nr;
        idmap_add(&h->had, twins_of(s->env.space, &p->c[i]), i);
        if (h->had.nr == before || !supply_is_new(&s->supply, &p->c[i]))
            continue;
        push(h, &(struct pick){p->c[i], p->root[i], p->knob[i], p->score[i], h->age++});
    }
}

/* An index drawn in proportion to the score, from its running sums. */
static int draw_parent(struct rng *r, const double *sum, int nr)
{
    if (!(sum[nr - 1] > 0))
        return (int)rng_below(r, (uint64_t)nr);
    double x = rng_unit(r) * sum[nr - 1];
    int lo = 0, hi = nr - 1;
    while (lo < hi) {
        int mid = (lo + hi) / 2;
        if (sum[mid] > x)
            hi = mid;
        else
            lo = mid + 1;
    }
    return lo;
}

static void breed(struct strategy *s, const struct population *from, int size,
                  struct population *to)
{
    double *sum = xmalloc((size_t)from->nr * sizeof *sum);
    for (int i = 0; i < from->nr; i++)
        sum[i] = (i ? sum[i - 1] : 0) + from->score[i];
    to->nr = 0;
    while (to->nr < size) {
        int parent = draw_parent(&s->rng, sum, from->nr), knob = from->knob[parent];
        struct candidate c = from->c[parent];
        if (rng_unit(&s->rng) < MUTATE_PROBABILITY) {
            for (int i = 0; i < MUTATE_TRIES; i++) {
                struct candidate child = from->c[parent];
                int k = mutate(s->env.space, &s->rng, &child);
                if (k >= 0 && candidate_valid(s->env.space, &child, NULL)) {
                    c = child;
                    knob = k;
                    break;
                }
            }
        }
        population_add(to, &c, from->root[parent], knob);
    }
    free(sum);
}

static int best_first(const void *pa, const void *pb)
{
    return worse(pa, pb) ? 1 : -1; /* ages differ, so two are never equal */
}

static void to_proposal(const struct strategy *s, const struct pick *p, struct proposal *out)
{
    proposal_init(out, &p->c, p->knob < 0 ? ORIGIN_SAMPLE : ORIGIN_MUTATE);
    out->parent = p->root;
    if (p->knob >= 0) {
        const struct knob *k = &s->env.space->sketch[p->c.sketch]->knob[p->knob];
        snprintf(out->note, sizeof out->note, "%s mutated", k->name);
    }
}

struct climber {
    struct pick at;
    int idle; /* steps without a better one */
};

/* Mutants of one that climbs; their roots, for now, say whose they are. */
static void add_mutants(struct strategy *s, const struct climber *c, int64_t owner,
                        struct population *to)
{
    for (int i = 0, nr = 0; i < MUTATE_TRIES * CLIMB_MUTANTS && nr < CLIMB_MUTANTS; i++) {
        struct candidate child = c->at.c;
        int k = mutate(s->env.space, &s->rng, &child);
        if (k < 0 || !candidate_valid(s->env.space, &child, NULL))
            continue;
        population_add(to, &child, owner, k);
        nr++;
    }
}

/* All move from mutant to better mutant while the prediction rises: together, since a prediction of
 * many takes little longer than one of few. */
static void climb(struct strategy *s, struct climber *c, int nr)
{
    struct population m;
    population_init(&m, nr * CLIMB_MUTANTS);
    for (int step = 0; step < CLIMB_STEPS; step++) {
        m.nr = 0;
        for (int i = 0; i < nr; i++)
            if (c[i].idle++ < CLIMB_IDLE)
                add_mutants(s, &c[i], i, &m);
        if (m.nr == 0)
            break;
        score(s, &m);
        for (int i = 0; i < m.nr; i++) {
            struct climber *who = &c[m.root[i]];
            if (m.score[i] <= who->at.score)
                continue;
            who->at.c = m.c[i];
            who->at.knob = m.knob[i];
            who->at.score = m.score[i];
            who->idle = 0;
        }
    }
    population_release(&m);
}

/* The places of a batch that go to who has climbed: from the best of the population, and from others
 * drawn by score. */
static int propose_climbers(struct strategy *s, const struct population *p, int want,
                            struct proposal *out)
{
    int nr = 0, best = 0;
    if (want == 0)
        return 0;
    struct climber *c = xcalloc((size_t)want, sizeof *c);
    double *sum = xmalloc((size_t)p->nr * sizeof *sum);
    for (int i = 0; i < p->nr; i++) {
        sum[i] = (i ? sum[i - 1] : 0) + p->score[i];
        best = p->score[i] > p->score[best] ? i : best;
    }
    for (int i = 0; i < want; i++) {
        int from = i ? draw_parent(&s->rng, sum, p->nr) : best;
        c[i].at = (struct pick){p->c[from], p->root[from], p->knob[from], p->score[from], 0};
    }
    climb(s, c, want);
    for (int i = 0; i < want; i++)
        if (supply_take(&s->supply, &c[i].at.c))
            to_proposal(s, &c[i].at, &out[nr++]);
    free(sum);
    free(c);
    return nr;
}

/* Puts up to `want` of the best descendants into `out`. */
static int evolve(struct strategy *s, int want, struct proposal *out)
{
    int size = 8 * want;
    size = size < POPULATION_MIN ? POPULATION_MIN : size > POPULATION_MAX ? POPULATION_MAX : size;
    int bred = is_predicted(s) ? size * PREDICTED_TIMES : size;
    struct population a, b;
    population_init(&a, bred);
    population_init(&b, bred);
    surrogate_fit(&s->surrogate);
    first_population(s, &a, size);
    score(s, &a);
    int nr = a.nr > 0 ? propose_climbers(s, &a, (int)(want * CLIMB_SHARE), out) : 0;
    want -= nr;
    struct picks picks = {.v = xmalloc((size_t)want * sizeof *picks.v), .max = want};
    for (int i = 0; i <= GENERATIONS && a.nr > 0; i++) {
        if (i > 0)
            score(s, &a);
        compete(s, &a, &picks);
        if (i == GENERATIONS)
            break;
        breed(s, &a, bred, &b);
        struct population t = a;
        a = b;
        b = t;
    }
    qsort(picks.v, (size_t)picks.nr, sizeof *picks.v, best_first);
    for (int i = 0; i < picks.nr; i++) {
        if (supply_take(&s->supply, &picks.v[i].c))
            to_proposal(s, &picks.v[i], &out[nr++]);
    }
    free(picks.v);
    idmap_release(&picks.had);
    population_release(&a);
    population_release(&b);
    return nr;
}

static bool is_warming_up(const struct strategy *s)
{
    int nr = s->env.budget / 8;
    return s->history.set.nr < (nr < WARM_UP_MIN ? WARM_UP_MIN : nr > WARM_UP_MAX ? WARM_UP_MAX : nr);
}

/* Places of a batch that go to fresh samples: all of the first ones, unless predictions are there
 * before measurements. */
static int random_places(struct strategy *s, int want)
{
    double share = is_warming_up(s) ? WARM_UP_SHARE : RANDOM_SHARE;
    if (is_warming_up(s) && !is_predicted(s))
        return want;
    int nr = 0;
    for (int i = 0; i < want; i++)
        nr += rng_unit(&s->rng) < share;
    return nr == 0 && want >= 8 ? 1 : nr;
}

static int propose_starts(struct strategy *s, int want, struct proposal *out)
{
    int nr = 0;
    for (; nr < want && s->starts < s->env.space->nr_sketches; s->starts++) {
        const struct sketch *k = s->env.space->sketch[s->starts];
        if (!candidate_valid(s->env.space, &k->start, NULL) || !supply_take(&s->supply, &k->start))
            continue;
        proposal_init(&out[nr], &k->start, ORIGIN_DEFAULT);
        snprintf(out[nr++].note, sizeof out->note, "start of sketch %s", k->name);
    }
    return nr;
}

static int propose(struct strategy *s, int want, struct proposal *out)
{
    int nr = propose_starts(s, want, out);
    int chosen = want - nr - random_places(s, want - nr);
    if (chosen > 0)
        nr += evolve(s, chosen, out + nr);
    struct candidate c;
    while (nr < want && supply_draw(&s->supply, &c))
        proposal_init(&out[nr++], &c, ORIGIN_SAMPLE);
    return nr;
}

static void observe(struct strategy *s, const struct observation *o)
{
    if (!candidate_valid(s->env.space, &o->c, NULL))
        return;
    int before = s->history.set.nr;
    int i = history_add(&s->history, &o->c, o->trial, o->status, o->cost_ns);
    if (i >= before)
        surrogate_add(&s->surrogate, &o->c, s->history.fact[i].cost_ns);
}

static const char *why(const struct strategy *s)
{
    (void)s;
    return "space exhausted";
}

const struct strategy_class strategy_evolutionary = {
    "evolutionary", "MetaSchedule's evolutionary search: mutates the best, guided by a model",
    create,         propose,
    observe,        why,
    destroy, NULL,
};
