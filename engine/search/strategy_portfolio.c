/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Portfolio: several strategies, of which the next trial goes to the one that has paid lately.
 *
 * A bandit with forgetting: each trial a member had and each new best it found count less by FORGET
 * with every further trial. The member with the highest upper confidence bound (Auer, Cesa-Bianchi,
 * Fischer, Machine Learning 47, 2002) of new bests a trial is asked next; the first WARM_UP trials
 * are the first member's. All members are told all trials, so that none repeats another's and each
 * goes on from the best that any has found.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/search/history.h"
#include "engine/search/strategies.h"

static const double FORGET = 0.97, CURIOSITY = 0.3;
enum { WARM_UP = 12 };

static const struct strategy_class *const classes[] = {
    &strategy_forest,
    &strategy_tabu,
    &strategy_genetic,
};
enum { MEMBERS = sizeof classes / sizeof *classes };

struct member {
    struct strategy *strategy;
    bool ended;
    double had, paid; /* trials and new bests, forgotten by and by */
};

struct strategy {
    struct strategy_env env;
    struct member member[MEMBERS];
    struct candset proposed;
    int *owner, cap_owner; /* of proposed.v[i] */
    int nr;                /* trials proposed */
    double best_ns;
};

/* The members ask here; what another one has proposed is taken. */
static bool seen(void *ctx, const struct candidate *c)
{
    const struct strategy *s = ctx;
    return candset_find(&s->proposed, c) >= 0 || (s->env.seen && s->env.seen(s->env.ctx, c));
}

static void decided(void *ctx, const struct decision *d)
{
    const struct strategy *s = ctx;
    if (s->env.decided)
        s->env.decided(s->env.ctx, d);
}

static bool score(void *ctx, const struct candidate *c, int nr, double *out)
{
    const struct strategy *s = ctx;
    return s->env.score(s->env.ctx, c, nr, out);
}

static void destroy(struct strategy *s)
{
    for (int i = 0; i < MEMBERS; i++) {
        if (s->member[i].strategy)
            classes[i]->destroy(s->member[i].strategy);
    }
    candset_release(&s->proposed);
    free(s->owner);
    free(s);
}

static struct strategy *create(const struct strategy_env *env, struct err *e)
{
    struct strategy *s = xcalloc(1, sizeof *s);
    s->env = *env;
    s->best_ns = env->nr_known ? env->known[0].cost_ns : INFINITY;
    struct strategy_env inner = *env;
    inner.ctx = s;
    inner.seen = seen;
    inner.decided = decided;
    inner.score = env->score ? score : NULL;
    for (int i = 0; i < MEMBERS; i++) {
        inner.seed = rng_mix(env->seed, (uint64_t)i);
        s->member[i].strategy = classes[i]->create(&inner, e);
        if (!s->member[i].strategy) {
            destroy(s);
            return NULL;
        }
    }
    return s;
}

/* The member to be asked next, -1 where all have ended. */
static int choose(const struct strategy *s)
{
    double total = 1, most = -1;
    int chosen = -1;
    for (int i = 0; i < MEMBERS; i++)
        total += s->member[i].had;
    for (int i = 0; i < MEMBERS; i++) {
        const struct member *m = &s->member[i];
        if (m->ended)
            continue;
        if (s->nr < WARM_UP)
            return i;
        double bound = (m->paid + CURIOSITY * sqrt(m->had * log(total))) / (m->had + 1e-9);
        if (m->had < 0.5)
            bound = INFINITY;
        if (bound > most) {
            most = bound;
            chosen = i;
        }
    }
    return chosen;
}

static int propose(struct strategy *s, int want, struct proposal *out)
{
    int nr = 0;
    for (int i; nr < want && (i = choose(s)) >= 0;) {
        struct member *m = &s->member[i];
        if (classes[i]->propose(m->strategy, 1, &out[nr]) == 0) {
            m->ended = true;
            continue;
        }
        for (int j = 0; j < MEMBERS; j++) {
            s->member[j].had *= FORGET;
            s->member[j].paid *= FORGET;
        }
        m->had++;
        int at = candset_add(&s->proposed, &out[nr++].c);
        GROW(s->owner, at, s->cap_owner);
        s->owner[at] = i;
        s->nr++;
    }
    return nr;
}

static void observe(struct strategy *s, const struct observation *o)
{
    int at = candset_find(&s->proposed, &o->c);
    if (o->status == TRIAL_OK && o->cost_ns < s->best_ns) {
        s->best_ns = o->cost_ns;
        if (at >= 0)
            s->member[s->owner[at]].paid++;
    }
    for (int i = 0; i < MEMBERS; i++)
        classes[i]->observe(s->member[i].strategy, o);
}

static const char *why(const struct strategy *s)
{
    (void)s;
    return "space exhausted";
}

const struct strategy_class strategy_portfolio = {
    "portfolio", "forest, tabu and genetic: the next trial to the one that paid lately",
    create,      propose,
    observe,     why,
    destroy, NULL,
};
