/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Simulated annealing (Kirkpatrick, Gelatt, Vecchi, Science 220, 1983).
 *
 * The walk begins at the best of a few random trials. A random member of the ring of where it
 * stands is tried; a slower one by the share d of the cost is accepted with probability exp(-d /
 * T). T falls from HOT to COLD by a constant factor a trial, over FALL trials; then the walk is
 * heated anew at the best known. A standing place whose ring is used up is left for a random one.
 */
#include <math.h>
#include <stdlib.h>

#include "engine/search/memory.h"
#include "engine/search/ring.h"
#include "engine/search/strategies.h"

static const double HOT = 0.5, COLD = 0.005;
enum { WARM_UP = 8, FALL = 200 };

struct strategy {
    struct memory m;
    struct candidate at, best;
    double at_ns, best_ns;
    int64_t at_trial, best_trial;
    int nr; /* trials seen */
    double heat;
    struct ring ring;
};

static struct strategy *create(const struct strategy_env *env, struct err *e)
{
    (void)e;
    struct strategy *s = xcalloc(1, sizeof *s);
    memory_init(&s->m, env);
    s->at_ns = s->best_ns = INFINITY;
    s->heat = HOT;
    return s;
}

static void destroy(struct strategy *s)
{
    memory_release(&s->m);
    ring_release(&s->ring);
    free(s);
}

/* A random member of the ring that is new. */
static bool step(struct strategy *s, struct proposal *out)
{
    s->ring.nr = 0;
    ring_around(&s->ring, s->m.env.space, &s->at, 0);
    for (int left = s->ring.nr; left > 0; left--) {
        int i = (int)rng_below(&s->m.rng, (uint64_t)left);
        const struct ring_member *r = &s->ring.v[i];
        if (memory_propose(&s->m, &r->c, ORIGIN_NEIGHBOUR, s->at_trial, out)) {
            out->knob = r->knob;
            return true;
        }
        s->ring.v[i] = s->ring.v[left - 1];
    }
    return false;
}

static int propose(struct strategy *s, int want, struct proposal *out)
{
    int nr = 0;
    while (nr < want) {
        bool walking = s->nr >= WARM_UP && isfinite(s->at_ns);
        if (walking && step(s, &out[nr])) {
            nr++;
            continue;
        }
        if (walking)
            s->at_ns = INFINITY; /* used up: the next result is where it goes on */
        if (!memory_draw(&s->m, &out[nr]))
            break;
        nr++;
    }
    return nr;
}

static void stand_at(struct strategy *s, const struct candidate *c, double ns, int64_t trial)
{
    s->at = *c;
    s->at_ns = ns;
    s->at_trial = trial;
}

static void observe(struct strategy *s, const struct observation *o)
{
    double ns = memory_note(&s->m, o), chance = rng_unit(&s->m.rng);
    s->nr++;
    if (isfinite(ns)) {
        bool warm = s->nr > WARM_UP;
        if (ns < s->at_ns || (warm && chance < exp(-(ns / s->at_ns - 1) / s->heat)))
            stand_at(s, &o->c, ns, o->trial);
        if (ns < s->best_ns) {
            s->best_ns = ns;
            s->best = o->c;
            s->best_trial = o->trial;
        }
    }
    if (s->nr <= WARM_UP)
        return;
    s->heat *= pow(COLD / HOT, 1.0 / FALL);
    if (s->heat < COLD) {
        s->heat = HOT;
        stand_at(s, &s->best, s->best_ns, s->best_trial);
    }
}

static const char *why(const struct strategy *s)
{
    (void)s;
    return "space exhausted";
}

const struct strategy_class strategy_annealing = {
    "annealing", "simulated annealing over single knobs, heated anew",
    create,      propose,
    observe,     why,
    destroy, NULL,
};
