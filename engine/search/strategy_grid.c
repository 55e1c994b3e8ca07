/* SPDX-License-Identifier: Apache-2.0 */
/* Grid: the whole space in order, sketch by sketch, found lazily. */
#include <stdlib.h>

#include "engine/search/history.h"
#include "engine/search/strategies.h"

/* A space may hide its next valid candidate behind any number of invalid ones; the conductor must
 * have its thread back all the same. */
enum { NODES = 1 << 26 };

struct strategy {
    struct strategy_env env;
    struct space_walk walk;
};

static struct strategy *create(const struct strategy_env *env, struct err *e)
{
    (void)e;
    struct strategy *s = xcalloc(1, sizeof *s);
    s->env = *env;
    space_walk_init(&s->walk, env->space, -1);
    return s;
}

static int propose(struct strategy *s, int want, struct proposal *out)
{
    int nr = 0;
    struct candidate c;
    s->walk.nodes_left = NODES;
    while (nr < want && space_walk_next(&s->walk, &c)) {
        if (!s->env.seen || !s->env.seen(s->env.ctx, &c))
            proposal_init(&out[nr++], &c, ORIGIN_ENUMERATE);
    }
    return nr;
}

static void observe(struct strategy *s, const struct observation *o)
{
    (void)s;
    (void)o;
}

static const char *why(const struct strategy *s)
{
    return s->walk.cut ? "no next candidate found in a bounded search" : "space exhausted";
}

static void destroy(struct strategy *s)
{
    space_walk_release(&s->walk);
    free(s);
}

const struct strategy_class strategy_grid = {
    "grid", "every valid candidate, in order", create, propose, observe, why, destroy, NULL,
};
