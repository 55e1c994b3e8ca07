/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/search/memory.h"

#include <math.h>
#include <string.h>

void memory_init(struct memory *m, const struct strategy_env *env)
{
    memset(m, 0, sizeof *m);
    m->env = *env;
    rng_seed(&m->rng, env->seed);
    supply_init(&m->supply, &m->env, &m->rng);
    history_init(&m->history, env);
}

void memory_release(struct memory *m)
{
    supply_release(&m->supply);
    history_release(&m->history);
}

double memory_note(struct memory *m, const struct observation *o)
{
    if (!candidate_valid(m->env.space, &o->c, NULL))
        return INFINITY;
    int i = history_add(&m->history, &o->c, o->trial, o->status, o->cost_ns);
    return m->history.fact[i].cost_ns;
}

bool memory_recall(const struct memory *m, const struct candidate *c, double *cost_ns)
{
    int i = candset_find(&m->history.set, c);
    if (i >= 0)
        *cost_ns = m->history.fact[i].cost_ns;
    return i >= 0;
}

bool memory_propose(struct memory *m, const struct candidate *c, enum origin origin, int64_t parent,
                    struct proposal *out)
{
    if (!supply_take(&m->supply, c))
        return false;
    proposal_init(out, c, origin);
    out->parent = parent;
    return true;
}

bool memory_draw(struct memory *m, struct proposal *out)
{
    struct candidate c;
    if (!supply_draw(&m->supply, &c))
        return false;
    proposal_init(out, &c, ORIGIN_SAMPLE);
    return true;
}
