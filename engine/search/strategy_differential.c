/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Differential evolution (Storn, Price, Journal of Global Optimization 11, 1997), DE/rand/1/bin, on
 * knobs.
 *
 * The members of the herd are challenged in turn. A challenger takes each knob, with probability
 * CROSS, from a mutant a + F (b - c) of three random members, else from the one it challenges. The
 * difference of two ordinals is that of their indices; of other knobs it is that they differ, and
 * the mutant then has b's value with probability F. The faster one keeps the place.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/search/herd.h"
#include "engine/search/strategies.h"

static const double CROSS = 0.7, F = 0.6;
enum { HERD = 16 };

struct challenge {
    struct candidate c;
    int target;
};

struct strategy {
    struct memory m;
    struct herd herd;
    int target;              /* challenged next */
    struct challenge *asked; /* without an answer, in order */
    int nr_asked, cap_asked;
};

static struct strategy *create(const struct strategy_env *env, struct err *e)
{
    (void)e;
    struct strategy *s = xcalloc(1, sizeof *s);
    memory_init(&s->m, env);
    s->herd.size = HERD;
    return s;
}

static void destroy(struct strategy *s)
{
    memory_release(&s->m);
    free(s->asked);
    free(s);
}

static void mutate_knob(struct strategy *s, const struct knob *k, const struct candidate *a,
                        const struct candidate *b, const struct candidate *c, struct candidate *out)
{
    struct rng *r = &s->m.rng;
    if (k->kind == KNOB_ORDINAL) {
        /* The random rounding lets a difference of 1 pass with probability F. */
        double x = a->v[k->slot] + F * (b->v[k->slot] - c->v[k->slot]);
        int v = (int)floor(x + rng_unit(r));
        out->v[k->slot] = v < 0 ? 0 : v >= k->nr_values ? k->nr_values - 1 : v;
    } else {
        bool take = !knob_equal(k, b, c) && rng_unit(r) < F;
        knob_copy(k, take ? b : a, out);
    }
}

static void breed(void *ctx, struct candidate *out)
{
    struct strategy *s = ctx;
    struct rng *r = &s->m.rng;
    *out = s->herd.v[s->target].c;
    const struct sketch *sk = s->m.env.space->sketch[out->sketch];
    const struct candidate *parent[3];
    for (int i = 0; i < 3; i++)
        parent[i] = &herd_pick(&s->herd, r, out->sketch, 1)->c;
    int always = sk->nr_knobs ? (int)rng_below(r, (uint64_t)sk->nr_knobs) : 0;
    for (int k = 0; k < sk->nr_knobs; k++) {
        if (k == always || rng_unit(r) < CROSS)
            mutate_knob(s, &sk->knob[k], parent[0], parent[1], parent[2], out);
    }
}

static int propose(struct strategy *s, int want, struct proposal *out)
{
    int nr = 0;
    while (nr < want) {
        int target = -1;
        if (s->herd.nr == s->herd.size) {
            int64_t parent = s->herd.v[s->target].trial;
            if (herd_settle(&s->m, breed, s, parent, &out[nr]))
                target = s->target;
            s->target = (s->target + 1) % s->herd.size;
        }
        if (target < 0 && !memory_draw(&s->m, &out[nr]))
            break;
        GROW(s->asked, s->nr_asked, s->cap_asked);
        s->asked[s->nr_asked++] = (struct challenge){out[nr++].c, target};
    }
    return nr;
}

/* Whom this trial challenges; -1 for nobody in particular. */
static int answer(struct strategy *s, const struct candidate *c)
{
    if (s->nr_asked == 0 || !candidate_equal(&s->asked[0].c, c))
        return -1;
    int target = s->asked[0].target;
    memmove(s->asked, s->asked + 1, (size_t)--s->nr_asked * sizeof *s->asked);
    return target;
}

static void observe(struct strategy *s, const struct observation *o)
{
    double ns = memory_note(&s->m, o);
    int target = answer(s, &o->c);
    if (!isfinite(ns))
        return;
    struct individual x = {o->c, ns, o->trial};
    if (target < 0)
        herd_join(&s->herd, &x);
    else if (ns < s->herd.v[target].cost_ns)
        s->herd.v[target] = x;
}

static const char *why(const struct strategy *s)
{
    (void)s;
    return "space exhausted";
}

const struct strategy_class strategy_differential = {
    "differential", "differential evolution, DE/rand/1/bin on knobs", create, propose, observe, why,
    destroy, NULL,
};
