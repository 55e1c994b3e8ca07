/* SPDX-License-Identifier: Apache-2.0 */
/* Random search without repetition: the baseline of every comparison. */
#include <stdlib.h>

#include "engine/search/history.h"
#include "engine/search/strategies.h"

struct strategy {
    struct strategy_env env;
    struct rng rng;
    struct supply supply;
};

static struct strategy *create(const struct strategy_env *env, struct err *e)
{
    (void)e;
    struct strategy *s = xcalloc(1, sizeof *s);
    s->env = *env;
    rng_seed(&s->rng, env->seed);
    supply_init(&s->supply, &s->env, &s->rng);
    return s;
}

static int propose(struct strategy *s, int want, struct proposal *out)
{
    int nr = 0;
    struct candidate c;
    while (nr < want && supply_draw(&s->supply, &c))
        proposal_init(&out[nr++], &c, ORIGIN_SAMPLE);
    return nr;
}

static void observe(struct strategy *s, const struct observation *o)
{
    (void)s;
    (void)o;
}

static const char *why(const struct strategy *s)
{
    (void)s;
    return "space exhausted";
}

static void destroy(struct strategy *s)
{
    supply_release(&s->supply);
    free(s);
}

const struct strategy_class strategy_random = {
    "random", "valid candidates at random, none twice", create, propose, observe, why, destroy,
    NULL,
};
