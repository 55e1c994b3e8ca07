/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Iterated local search with a tabu list.
 *
 * From the best of WARM_UP random trials, the ring of where the search stands is tried in random
 * order; the first faster one is moved to. What was tried is tabu for ever; the knobs of the last
 * TENURE moves come last in a ring, so that the others get their turn. A ring without a faster
 * member ends the descent: the search starts anew KICK knobs away from the best known, or, every
 * other time, at the best of WARM_UP random trials.
 */
#include <math.h>
#include <stdlib.h>

#include "engine/search/memory.h"
#include "engine/search/mutate.h"
#include "engine/search/ring.h"
#include "engine/search/strategies.h"

enum { WARM_UP = 16, TENURE = 2, KICK = 3, KICK_TRIES = 50 };

struct strategy {
    struct memory m;
    struct candidate at, best;
    double at_ns, best_ns;
    int64_t at_trial, best_trial;
    int warm_up; /* random trials to come */
    int descents;
    int moved[SKETCH_MAX_KNOBS]; /* the move that changed the knob */
    int moves;
    struct ring ring; /* of where it stands, shuffled */
    int next;         /* member to be tried */
};

static struct strategy *create(const struct strategy_env *env, struct err *e)
{
    (void)e;
    struct strategy *s = xcalloc(1, sizeof *s);
    memory_init(&s->m, env);
    s->at_ns = s->best_ns = INFINITY;
    s->warm_up = WARM_UP;
    return s;
}

static void destroy(struct strategy *s)
{
    memory_release(&s->m);
    ring_release(&s->ring);
    free(s);
}

static bool is_tabu(const struct strategy *s, int knob)
{
    return s->moved[knob] > 0 && s->moves - s->moved[knob] < TENURE;
}

/* Shuffles the ring, then puts what a tabu knob changes behind the rest. */
static void open_ring(struct strategy *s)
{
    struct ring *r = &s->ring;
    r->nr = s->next = 0;
    ring_around(r, s->m.env.space, &s->at, 0);
    for (int i = r->nr - 1; i > 0; i--) {
        int j = (int)rng_below(&s->m.rng, (uint64_t)i + 1);
        struct ring_member t = r->v[i];
        r->v[i] = r->v[j];
        r->v[j] = t;
    }
    for (int i = 0, kept = 0; i < r->nr; i++) {
        if (is_tabu(s, r->v[i].knob))
            continue;
        struct ring_member t = r->v[i];
        r->v[i] = r->v[kept];
        r->v[kept++] = t;
    }
}

static void move_to(struct strategy *s, const struct observation *o, double ns)
{
    s->at = o->c;
    s->at_ns = ns;
    s->at_trial = o->trial;
    s->moves++;
    if (o->knob >= 0)
        s->moved[o->knob] = s->moves;
    open_ring(s);
}

static bool step(struct strategy *s, struct proposal *out)
{
    while (s->next < s->ring.nr) {
        const struct ring_member *r = &s->ring.v[s->next++];
        if (memory_propose(&s->m, &r->c, ORIGIN_NEIGHBOUR, s->at_trial, out)) {
            out->knob = r->knob;
            return true;
        }
    }
    return false;
}

/* Some knobs of the best changed, as the start of the next descent. */
static bool kick(struct strategy *s, struct proposal *out)
{
    for (int i = 0; i < KICK_TRIES; i++) {
        struct candidate c = s->best;
        for (int k = 0; k < KICK; k++)
            mutate(s->m.env.space, &s->m.rng, &c);
        if (candidate_valid(s->m.env.space, &c, NULL) &&
            memory_propose(&s->m, &c, ORIGIN_MUTATE, s->best_trial, out))
            return true;
    }
    return false;
}

static int propose(struct strategy *s, int want, struct proposal *out)
{
    int nr = 0;
    while (nr < want) {
        if (s->warm_up == 0 && step(s, &out[nr])) {
            nr++;
            continue;
        }
        bool kicked = false;
        if (s->warm_up == 0) { /* a minimum */
            s->at_ns = INFINITY;
            s->ring.nr = 0;
            s->warm_up = ++s->descents % 2 ? 1 : WARM_UP;
            kicked = s->warm_up == 1 && isfinite(s->best_ns) && kick(s, &out[nr]);
        }
        if (!kicked && !memory_draw(&s->m, &out[nr]))
            break;
        s->warm_up--;
        nr++;
    }
    return nr;
}

static void observe(struct strategy *s, const struct observation *o)
{
    double ns = memory_note(&s->m, o);
    if (!isfinite(ns))
        return;
    if (ns < s->at_ns)
        move_to(s, o, ns);
    if (ns < s->best_ns) {
        s->best_ns = ns;
        s->best = o->c;
        s->best_trial = o->trial;
    }
}

static const char *why(const struct strategy *s)
{
    (void)s;
    return "space exhausted";
}

const struct strategy_class strategy_tabu = {
    "tabu",  "iterated local search, first improvement, with a tabu list",
    create,  propose,
    observe, why,
    destroy, NULL,
};
