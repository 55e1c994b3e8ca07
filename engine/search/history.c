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

static int place_of(const struct idmap *m, uint64_t id)
{
    int mask = m->nr_places - 1, i = (int)(id & (uint64_t)mask);
    while (m->index[i] && m->id[i] != id)
        i = (i + 1) & mask;
    return i;
}

int idmap_find(const struct idmap *m, uint64_t id)
{
    return m->nr ? m->index[place_of(m, id)] - 1 : -1;
}

/* At most half full. */
static void idmap_grow(struct idmap *m)
{
    if (2 * (m->nr + 1) <= m->nr_places)
        return;
    struct idmap old = *m;
    m->nr_places = old.nr_places ? old.nr_places * 2 : 64;
    m->id = xcalloc((size_t)m->nr_places, sizeof *m->id);
    m->index = xcalloc((size_t)m->nr_places, sizeof *m->index);
    for (int i = 0; i < old.nr_places; i++) {
        if (!old.index[i])
            continue;
        int at = place_of(m, old.id[i]);
        m->id[at] = old.id[i];
        m->index[at] = old.index[i];
    }
    free(old.id);
    free(old.index);
}

int idmap_add(struct idmap *m, uint64_t id, int index)
{
    idmap_grow(m);
    int i = place_of(m, id);
    if (!m->index[i]) {
        m->id[i] = id;
        m->index[i] = index + 1;
        m->nr++;
    }
    return m->index[i] - 1;
}

void idmap_release(struct idmap *m)
{
    free(m->id);
    free(m->index);
    memset(m, 0, sizeof *m);
}

uint64_t twins_of(const struct space *s, const struct candidate *c)
{
    const struct sketch *k = s->sketch[c->sketch];
    return k->twins ? k->twins(k, c) : candidate_hash(c);
}

void history_init(struct history *h, const struct strategy_env *env)
{
    memset(h, 0, sizeof *h);
    h->space = env->space;
    for (int i = 0; i < env->nr_known; i++) {
        const struct observation *o = &env->known[i];
        if (candidate_valid(env->space, &o->c, NULL))
            history_add(h, &o->c, o->trial, o->status, o->cost_ns);
    }
}

void history_release(struct history *h)
{
    candset_release(&h->set);
    idmap_release(&h->twins);
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
    if (ok)
        idmap_add(&h->twins, twins_of(h->space, c), i);
    return i;
}

int history_find(const struct history *h, const struct candidate *c)
{
    int i = candset_find(&h->set, c);
    return i >= 0 ? i : idmap_find(&h->twins, twins_of(h->space, c));
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

static void add_proposed(struct supply *s, const struct candidate *c)
{
    int i = candset_add(&s->proposed, c);
    idmap_add(&s->twins, twins_of(s->env->space, c), i);
}

void supply_init(struct supply *s, const struct strategy_env *env, struct rng *rng)
{
    memset(s, 0, sizeof *s);
    s->env = env;
    s->rng = rng;
    space_walk_init(&s->walk, env->space, -1);
    for (int i = 0; i < env->nr_known; i++)
        if (candidate_valid(env->space, &env->known[i].c, NULL))
            add_proposed(s, &env->known[i].c);
}

void supply_release(struct supply *s)
{
    candset_release(&s->proposed);
    idmap_release(&s->twins);
    space_walk_release(&s->walk);
}

bool supply_is_new(const struct supply *s, const struct candidate *c)
{
    const struct strategy_env *e = s->env;
    return idmap_find(&s->twins, twins_of(e->space, c)) < 0 && !(e->seen && e->seen(e->ctx, c));
}

bool supply_take(struct supply *s, const struct candidate *c)
{
    if (!supply_is_new(s, c))
        return false;
    add_proposed(s, c);
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
