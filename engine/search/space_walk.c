/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/search/space_walk.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "engine/search/space_domain.h"
#include "engine/search/space_list.h"

/* The knobs a constraint reads. One that names none is taken to read all: that is safe. */
static uint64_t reads(const struct sketch *k, const struct constraint *c)
{
    uint64_t all = (UINT64_C(1) << k->nr_knobs) - 1;
    return c->knobs & all ? c->knobs & all : all;
}

static int bits(uint64_t x)
{
    return __builtin_popcountll(x);
}

/* All knobs that constraints link to those of `set`, directly or through others. */
static uint64_t closure(const struct sketch *k, uint64_t set)
{
    for (uint64_t before = 0; before != set;) {
        before = set;
        for (int i = 0; i < k->nr_constraints; i++) {
            uint64_t r = reads(k, &k->constraint[i]);
            if (r & set)
                set |= r;
        }
    }
    return set;
}

/* Places the knobs of one group: those of small constraints first, since these prune earliest. */
static int place_group(struct walk_plan *p, uint64_t members, int at, int group)
{
    const struct sketch *k = p->sketch;
    for (int size = 1; size <= k->nr_knobs; size++) {
        for (int i = 0; i < k->nr_constraints; i++) {
            uint64_t r = reads(k, &k->constraint[i]);
            if (bits(r) != size || !(r & members))
                continue;
            for (int j = 0; j < k->nr_knobs; j++) {
                if (!(r & members & UINT64_C(1) << j))
                    continue;
                members &= ~(UINT64_C(1) << j);
                p->order[at] = j;
                p->group[at++] = group;
            }
        }
    }
    for (int j = 0; j < k->nr_knobs; j++) { /* a knob that no constraint reads */
        if (members & UINT64_C(1) << j) {
            p->order[at] = j;
            p->group[at++] = group;
        }
    }
    return at;
}

static void plan_init(struct walk_plan *p, const struct sketch *k)
{
    memset(p, 0, sizeof *p);
    p->sketch = k;
    p->ask = xcalloc((size_t)k->nr_constraints, sizeof *p->ask);
    uint64_t placed = 0;
    for (int i = 0, at = 0, group = 0; i < k->nr_knobs; i++) {
        if (placed & UINT64_C(1) << i)
            continue;
        uint64_t members = closure(k, UINT64_C(1) << i);
        at = place_group(p, members, at, group++);
        placed |= members;
    }
    uint64_t set = 0, asked = 0;
    int nr = 0;
    for (int d = 0; d < k->nr_knobs; d++) {
        p->check[d] = nr;
        set |= UINT64_C(1) << p->order[d];
        for (int i = 0; i < k->nr_constraints; i++) {
            uint64_t r = reads(k, &k->constraint[i]);
            bool before = d > 0 && !(r & ~asked);
            if (!(r & ~set) && !before)
                p->ask[nr++] = i;
        }
        asked = set;
    }
    p->check[k->nr_knobs] = nr;
}

static const struct knob *knob_at(const struct space_walk *w, int depth)
{
    return &w->plan.sketch->knob[w->plan.order[depth]];
}

static bool allowed(const struct space_walk *w, int depth)
{
    const struct walk_plan *p = &w->plan;
    for (int i = p->check[depth]; i < p->check[depth + 1]; i++) {
        const struct constraint *c = &p->sketch->constraint[p->ask[i]];
        if (!c->ok(c->ctx, &w->c))
            return false;
    }
    return true;
}

static void enter(struct space_walk *w, int depth)
{
    const struct knob *k = knob_at(w, depth);
    int32_t *v = w->c.v + k->slot;
    if (w->rng)
        domain_draw(k, w->rng, v);
    else
        domain_first(k, v);
    memcpy(w->start + k->slot, v, (size_t)k->nr_slots * sizeof *v);
    w->depth = depth;
}

/* Sets the knob at w->depth to its next value, or goes back. False where the search is over. */
static bool advance(struct space_walk *w)
{
    for (;;) {
        const struct knob *k = knob_at(w, w->depth);
        int32_t *v = w->c.v + k->slot;
        domain_next(k, v);
        if (memcmp(v, w->start + k->slot, (size_t)k->nr_slots * sizeof *v))
            return true;
        if (w->depth == w->lo)
            return false;
        int group = w->plan.group[w->depth];
        if (group != w->plan.group[w->depth - 1] && !w->done[group])
            return false; /* no values of the other groups will help this one */
        w->depth--;
    }
}

/* The next solution of the depths lo .. hi-1, hi > lo; depth < lo: none was sought yet. */
static bool search(struct space_walk *w)
{
    if (w->depth < w->lo)
        enter(w, w->lo);
    else if (!w->cut && !advance(w))
        return false;
    w->cut = false;
    for (;;) {
        if (w->nodes_left-- <= 0) {
            w->cut = true;
            return false;
        }
        if (!allowed(w, w->depth)) {
            if (!advance(w))
                return false;
            continue;
        }
        int d = w->depth, group = w->plan.group[d];
        if (d + 1 == w->hi || group != w->plan.group[d + 1])
            w->done[group] = true;
        if (d + 1 == w->hi)
            return true;
        enter(w, d + 1);
    }
}

static void open_sketch(struct space_walk *w)
{
    const struct sketch *k = w->space->sketch[w->sketch];
    plan_init(&w->plan, k);
    w->planned = true;
    w->lo = 0;
    w->hi = k->nr_knobs;
    w->depth = -1;
    memset(w->done, 0, sizeof w->done);
    /* Slots not yet set hold legal values, so that a constraint that reads one all the same does
     * not divide by zero. */
    memset(&w->c, 0, sizeof w->c);
    w->c.sketch = w->sketch;
    w->c.nr = k->nr_slots;
    for (int i = 0; i < k->nr_knobs; i++)
        domain_first(&k->knob[i], w->c.v + k->knob[i].slot);
}

static void close_sketch(struct space_walk *w)
{
    free(w->plan.ask);
    w->plan.ask = NULL;
    w->planned = false;
}

void space_walk_init(struct space_walk *w, const struct space *s, int sketch)
{
    memset(w, 0, sizeof *w);
    w->space = s;
    w->sketch = sketch < 0 ? 0 : sketch;
    w->end = sketch < 0 ? s->nr_sketches : sketch + 1;
    w->nodes_left = INT64_MAX;
}

void space_walk_release(struct space_walk *w)
{
    if (w->planned)
        close_sketch(w);
}

/* The next entry of a list, from a random place round about where the order is to be random. */
static bool search_list(struct space_walk *w)
{
    const struct sketch *k = w->plan.sketch;
    if (w->depth < 0)
        w->lo = w->rng ? (int)rng_below(w->rng, (uint64_t)k->nr_listed) : 0;
    w->cut = false;
    while (w->depth + 1 < k->nr_listed) {
        if (w->nodes_left-- <= 0) {
            w->cut = true;
            return false;
        }
        w->depth++;
        if (list_allows(k, (int)(((int64_t)w->lo + w->depth) % k->nr_listed), &w->c))
            return true;
    }
    return false;
}

bool space_walk_next(struct space_walk *w, struct candidate *out)
{
    for (; w->sketch < w->end; w->sketch++) {
        if (!w->planned)
            open_sketch(w);
        bool found;
        if (w->plan.sketch->listed) {
            found = search_list(w);
        } else if (w->hi > 0) {
            found = search(w);
        } else { /* a sketch without knobs is one candidate */
            found = w->depth < 0 && candidate_valid(w->space, &w->c, NULL);
            w->depth = 0;
        }
        if (found) {
            *out = w->c;
            return true;
        }
        if (w->cut)
            return false;
        close_sketch(w);
    }
    return false;
}

/* Solutions of one group, at most `cap`. */
static int64_t count_group(struct space_walk *w, int lo, int hi, int64_t cap)
{
    if (w->plan.check[lo] == w->plan.check[hi]) {
        assert(hi == lo + 1);
        return domain_size(knob_at(w, lo), cap);
    }
    int64_t n = 0;
    w->lo = lo;
    w->hi = hi;
    w->depth = lo - 1;
    while (n < cap && search(w))
        n++;
    return n;
}

static int64_t count_sketch(const struct space *s, int sketch, int64_t cap)
{
    if (s->sketch[sketch]->listed)
        return list_count(s->sketch[sketch], cap);
    struct space_walk w;
    space_walk_init(&w, s, sketch);
    open_sketch(&w);
    int nr = w.hi;
    int64_t n = nr ? 1 : candidate_valid(s, &w.c, NULL);
    for (int lo = 0, hi; lo < nr && n > 0; lo = hi) {
        for (hi = lo + 1; hi < nr && w.plan.group[hi] == w.plan.group[lo]; hi++)
            ;
        n = mul_cap(n, count_group(&w, lo, hi, cap), cap);
    }
    space_walk_release(&w);
    return n;
}

int64_t space_count(const struct space *s, int64_t cap)
{
    int64_t n = 0;
    for (int i = 0; i < s->nr_sketches && n < cap; i++)
        n += count_sketch(s, i, cap - n);
    return n;
}
