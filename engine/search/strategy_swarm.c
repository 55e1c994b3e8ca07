/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Particle swarm (Kennedy, Eberhart, 1995), on knobs.
 *
 * Particles move in turn, each drawn to its own best place and to the best of all. An ordinal has a
 * velocity in steps of its index; any other knob takes the value of one of the two places now and
 * then. Where a particle arrives at what is known or not allowed, it is pulled again.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/search/herd.h"
#include "engine/search/mutate.h"
#include "engine/search/strategies.h"

static const double INERTIA = 0.5, OWN = 1.2, ALL = 1.2;
enum { PARTICLES = 16 };

struct particle {
    struct candidate at, best;
    double best_ns;
    float velocity[CAND_MAX_SLOTS];
};

struct strategy {
    struct memory m;
    struct particle particle[PARTICLES];
    int nr; /* particles there are */
    int turn;
    float pull[CAND_MAX_SLOTS];        /* velocity of the place that breed() gave last */
    struct candidate asked[PARTICLES]; /* moved, not answered: where to */
    bool moving[PARTICLES];
};

static struct strategy *create(const struct strategy_env *env, struct err *e)
{
    (void)e;
    struct strategy *s = xcalloc(1, sizeof *s);
    memory_init(&s->m, env);
    return s;
}

static void destroy(struct strategy *s)
{
    memory_release(&s->m);
    free(s);
}

/* The best place of the particles in this sketch. */
static const struct candidate *leader(const struct strategy *s, int sketch)
{
    const struct particle *best = NULL;
    for (int i = 0; i < s->nr; i++) {
        const struct particle *p = &s->particle[i];
        if (p->best.sketch == sketch && (!best || p->best_ns < best->best_ns))
            best = p;
    }
    return &best->best;
}

static void pull_knob(struct strategy *s, const struct particle *p, const struct knob *k,
                      const struct candidate *all, struct candidate *out)
{
    struct rng *r = &s->m.rng;
    double own = OWN * rng_unit(r), other = ALL * rng_unit(r);
    if (k->kind == KNOB_ORDINAL) {
        int now = p->at.v[k->slot];
        double v = INERTIA * (double)p->velocity[k->slot] + own * (p->best.v[k->slot] - now) +
                   other * (all->v[k->slot] - now);
        int to = (int)floor(now + v + rng_unit(r));
        s->pull[k->slot] = (float)v;
        out->v[k->slot] = to < 0 ? 0 : to >= k->nr_values ? k->nr_values - 1 : to;
    } else if (rng_unit(r) < INERTIA) {
        knob_copy(k, own > other ? &p->best : all, out);
    }
}

static void breed(void *ctx, struct candidate *out)
{
    struct strategy *s = ctx;
    const struct particle *p = &s->particle[s->turn];
    *out = p->at;
    const struct sketch *sk = s->m.env.space->sketch[out->sketch];
    const struct candidate *all = leader(s, out->sketch);
    for (int k = 0; k < sk->nr_knobs; k++)
        pull_knob(s, p, &sk->knob[k], all, out);
}

static int propose(struct strategy *s, int want, struct proposal *out)
{
    int nr = 0;
    while (nr < want) {
        struct particle *p = &s->particle[s->turn];
        bool free_to_move = s->nr == PARTICLES && !s->moving[s->turn];
        if (free_to_move && herd_settle(&s->m, breed, s, 0, &out[nr])) {
            memcpy(p->velocity, s->pull, sizeof p->velocity);
            p->at = s->asked[s->turn] = out[nr].c;
            s->moving[s->turn] = true;
        } else if (!memory_draw(&s->m, &out[nr])) {
            break;
        }
        if (s->nr == PARTICLES)
            s->turn = (s->turn + 1) % PARTICLES;
        nr++;
    }
    return nr;
}

static void observe(struct strategy *s, const struct observation *o)
{
    double ns = memory_note(&s->m, o);
    int i = 0;
    while (i < s->nr && !(s->moving[i] && candidate_equal(&s->asked[i], &o->c)))
        i++;
    if (i < s->nr)
        s->moving[i] = false;
    else if (isfinite(ns) && s->nr < PARTICLES)
        s->particle[s->nr++] = (struct particle){.at = o->c, .best = o->c, .best_ns = ns};
    if (i < s->nr && ns < s->particle[i].best_ns) {
        s->particle[i].best = o->c;
        s->particle[i].best_ns = ns;
    }
}

static const char *why(const struct strategy *s)
{
    (void)s;
    return "space exhausted";
}

const struct strategy_class strategy_swarm = {
    "swarm", "particle swarm on knobs", create, propose, observe, why, destroy, NULL,
};
