/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/search/history.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static int bucket_of(const struct candset *s, const struct candidate *c)
{
    int mask = s->nr_buckets - 1, b = (int)(candidate_hash(c) & (uint64_t)mask);
    while (s->bucket[b] && !candidate_equal(&s->v[s->bucket[b] - 1], c))
        b = (b + 1) & mask;
    return b;
}

int candset_find(const struct candset *s, const struct candidate *c)
{
    return s->nr ? s->bucket[bucket_of(s, c)] - 1 : -1;
}

/* At most half full. */
static void rehash(struct candset *s)
{
    if (2 * (s->nr + 1) <= s->nr_buckets)
        return;
    s->nr_buckets = s->nr_buckets ? s->nr_buckets * 2 : 64;
    free(s->bucket);
    s->bucket = xcalloc((size_t)s->nr_buckets, sizeof *s->bucket);
    for (int i = 0; i < s->nr; i++)
        s->bucket[bucket_of(s, &s->v[i])] = i + 1;
}

int candset_add(struct candset *s, const struct candidate *c)
{
    rehash(s);
    int b = bucket_of(s, c);
    if (!s->bucket[b]) {
        GROW(s->v, s->nr, s->cap);
        s->v[s->nr++] = *c;
        s->bucket[b] = s->nr;
    }
    return s->bucket[b] - 1;
}

void candset_release(struct candset *s)
{
    free(s->v);
    free(s->bucket);
    memset(s, 0, sizeof *s);
}

void history_init(struct history *h, const struct strategy_env *env)
{
    memset(h, 0, sizeof *h);
    for (int i = 0; i < env->nr_known; i++) {
        const struct observation *o = &env->known[i];
        if (candidate_valid(env->space, &o->c, NULL))
            history_add(h, &o->c, o->trial, o->status, o->cost_ns);
    }
}

void history_release(struct history *h)
{
    candset_release(&h->set);
    free(h->fact);
    memset(h, 0, sizeof *h);
}

int history_add(struct history *h, const struct candidate *c, int64_t trial,
                enum trial_status status, double cost_ns)
{
    int before = h->set.nr, i = candset_add(&h->set, c);
    bool ok = status == TRIAL_OK && isfinite(cost_ns);
    if (h->set.nr > before)
        GROW(h->fact, before, h->cap);
    else if (!ok)
        return i;
    h->fact[i] = (struct fact){trial, status, ok ? cost_ns : INFINITY};
    return i;
}

struct ranked {
    double cost_ns;
    int i;
};

static int by_cost(const void *pa, const void *pb)
{
    const struct ranked *a = pa, *b = pb;
    if (a->cost_ns != b->cost_ns)
        return a->cost_ns < b->cost_ns ? -1 : 1;
    return a->i - b->i;
}

int history_best(const struct history *h, int max, int **out)
{
    struct ranked *r = xmalloc((size_t)h->set.nr * sizeof *r);
    int nr = 0;
    for (int i = 0; i < h->set.nr; i++) {
        if (isfinite(h->fact[i].cost_ns))
            r[nr++] = (struct ranked){h->fact[i].cost_ns, i};
    }
    qsort(r, (size_t)nr, sizeof *r, by_cost);
    if (nr > max)
        nr = max;
    *out = xmalloc((size_t)nr * sizeof **out);
    for (int i = 0; i < nr; i++)
        (*out)[i] = r[i].i;
    free(r);
    return nr;
}

void supply_init(struct supply *s, const struct strategy_env *env, struct rng *rng)
{
    memset(s, 0, sizeof *s);
    s->env = env;
    s->rng = rng;
    space_walk_init(&s->walk, env->space, -1);
    for (int i = 0; i < env->nr_known; i++)
        candset_add(&s->proposed, &env->known[i].c);
}

void supply_release(struct supply *s)
{
    candset_release(&s->proposed);
    space_walk_release(&s->walk);
}

bool supply_is_new(const struct supply *s, const struct candidate *c)
{
    const struct strategy_env *e = s->env;
    return candset_find(&s->proposed, c) < 0 && !(e->seen && e->seen(e->ctx, c));
}

bool supply_take(struct supply *s, const struct candidate *c)
{
    if (!supply_is_new(s, c))
        return false;
    candset_add(&s->proposed, c);
    return true;
}

bool supply_draw(struct supply *s, struct candidate *out)
{
    /* With one candidate in twenty left, 64 draws miss all of them once in 27 times. */
    for (int i = 0; i < 64 && !s->empty; i++) {
        if (!space_sample(s->env->space, -1, s->rng, out))
            break;
        if (supply_take(s, out))
            return true;
    }
    s->walk.nodes_left = 1 << 22; /* some tenths of a second */
    while (!s->empty && space_walk_next(&s->walk, out)) {
        if (supply_take(s, out))
            return true;
    }
    s->empty = true;
    return false;
}

void proposal_init(struct proposal *p, const struct candidate *c, enum origin origin)
{
    *p = (struct proposal){.c = *c, .origin = origin, .knob = -1};
}
