/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Genetic algorithm, steady state: no generations; each child that is faster than the slowest of
 * the herd takes its place at once.
 *
 * Parents win a tournament of two. A child takes its knobs from one parent up to a random place and
 * from the other one after it (knobs that stand together often belong together), and one child in
 * five has a knob mutated.
 */
#include <math.h>
#include <stdlib.h>

#include "engine/search/herd.h"
#include "engine/search/mutate.h"
#include "engine/search/strategies.h"

enum { HERD = 20, TOURNAMENT = 2, MUTATE_ONE_IN = 5 };

struct strategy {
    struct memory m;
    struct herd herd;
    int64_t parent;
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
    free(s);
}

static void breed(void *ctx, struct candidate *out)
{
    struct strategy *s = ctx;
    struct rng *r = &s->m.rng;
    int any = (int)rng_below(r, (uint64_t)s->herd.nr), sketch = s->herd.v[any].c.sketch;
    const struct individual *a = herd_pick(&s->herd, r, sketch, TOURNAMENT);
    const struct individual *b = herd_pick(&s->herd, r, sketch, TOURNAMENT);
    const struct sketch *sk = s->m.env.space->sketch[sketch];
    *out = a->c;
    s->parent = a->trial;
    int cut = (int)rng_below(r, (uint64_t)sk->nr_knobs + 1);
    for (int k = cut; k < sk->nr_knobs; k++)
        knob_copy(&sk->knob[k], &b->c, out);
    if (rng_below(r, MUTATE_ONE_IN) == 0)
        mutate(s->m.env.space, r, out);
}

static int propose(struct strategy *s, int want, struct proposal *out)
{
    int nr = 0;
    while (nr < want) {
        bool bred = s->herd.nr == s->herd.size && herd_settle(&s->m, breed, s, 0, &out[nr]);
        if (bred)
            out[nr].parent = s->parent;
        else if (!memory_draw(&s->m, &out[nr]))
            break;
        nr++;
    }
    return nr;
}

static void observe(struct strategy *s, const struct observation *o)
{
    double ns = memory_note(&s->m, o);
    if (isfinite(ns))
        herd_join(&s->herd, &(struct individual){o->c, ns, o->trial});
}

static const char *why(const struct strategy *s)
{
    (void)s;
    return "space exhausted";
}

const struct strategy_class strategy_genetic = {
    "genetic", "genetic algorithm, a child at a time", create, propose, observe, why, destroy, NULL,
};
