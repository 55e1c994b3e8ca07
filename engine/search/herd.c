/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/search/herd.h"

#include <string.h>

#include "engine/search/mutate.h"

enum { BREED_TRIES = 20, MUTATE_TRIES = 40 };

int herd_worst(const struct herd *h)
{
    int worst = 0;
    for (int i = 1; i < h->nr; i++) {
        if (h->v[i].cost_ns > h->v[worst].cost_ns)
            worst = i;
    }
    return worst;
}

int herd_best(const struct herd *h)
{
    int best = 0;
    for (int i = 1; i < h->nr; i++) {
        if (h->v[i].cost_ns < h->v[best].cost_ns)
            best = i;
    }
    return best;
}

void herd_join(struct herd *h, const struct individual *x)
{
    if (h->nr < h->size) {
        h->v[h->nr++] = *x;
        return;
    }
    int worst = herd_worst(h);
    if (x->cost_ns < h->v[worst].cost_ns)
        h->v[worst] = *x;
}

const struct individual *herd_pick(const struct herd *h, struct rng *r, int sketch, int rounds)
{
    int member[HERD_MAX], nr = 0;
    for (int i = 0; i < h->nr; i++) {
        if (h->v[i].c.sketch == sketch)
            member[nr++] = i;
    }
    const struct individual *best = NULL;
    for (; rounds > 0 && nr > 0; rounds--) {
        const struct individual *x = &h->v[member[rng_below(r, (uint64_t)nr)]];
        if (!best || x->cost_ns < best->cost_ns)
            best = x;
    }
    return best;
}

void knob_copy(const struct knob *k, const struct candidate *from, struct candidate *to)
{
    memcpy(to->v + k->slot, from->v + k->slot, (size_t)k->nr_slots * sizeof *to->v);
}

bool knob_equal(const struct knob *k, const struct candidate *a, const struct candidate *b)
{
    return !memcmp(a->v + k->slot, b->v + k->slot, (size_t)k->nr_slots * sizeof *a->v);
}

bool herd_settle(struct memory *m, void (*breed)(void *ctx, struct candidate *out), void *ctx,
                 int64_t parent, struct proposal *out)
{
    const struct space *space = m->env.space;
    struct candidate child, valid;
    bool any = false;
    for (int i = 0; i < BREED_TRIES; i++) {
        breed(ctx, &child);
        if (!candidate_valid(space, &child, NULL))
            continue;
        if (memory_propose(m, &child, ORIGIN_MUTATE, parent, out))
            return true;
        valid = child;
        any = true;
    }
    /* The herd has become one: its children are known. A walk from one of them leads out. */
    for (int i = 0; any && i < MUTATE_TRIES; i++) {
        child = valid;
        if (mutate(space, &m->rng, &child) < 0 || !candidate_valid(space, &child, NULL))
            continue;
        if (memory_propose(m, &child, ORIGIN_MUTATE, parent, out))
            return true;
        valid = child;
    }
    return false;
}
