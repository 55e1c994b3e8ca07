/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/search/space_walk.h"

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

/* What is used of a sketch's constraints. */
struct use {
    const struct sketch *k;
    const bool *use;
};

static bool used(const struct use *u, int i)
{
    return !u->use || u->use[i];
}

/* All knobs that constraints link to those of `set`, directly or through others. */
static uint64_t closure(const struct use *u, uint64_t set)
{
    for (uint64_t before = 0; before != set;) {
        before = set;
        for (int i = 0; i < u->k->nr_constraints; i++) {
            uint64_t r = reads(u->k, &u->k->constraint[i]);
            if (used(u, i) && (r & set))
                set |= r;
        }
    }
    return set;
}

/* Places the knobs of one group: those of small constraints first, since these prune earliest. */
static int place_group(struct walk_plan *p, const struct use *u, uint64_t members, int at, int group)
{
    const struct sketch *k = p->sketch;
    for (int size = 1; size <= k->nr_knobs; size++) {
        for (int i = 0; i < k->nr_constraints; i++) {
            uint64_t r = reads(k, &k->constraint[i]);
            if (!used(u, i) || bits(r) != size || !(r & members))
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

/* Sorts the constraints to the depths at which they are asked. */
static void place_constraints(struct walk_plan *p, const struct use *u)
{
    const struct sketch *k = p->sketch;
    uint64_t before = 0;
    int nr = 0, guesses = 0;
    for (int d = 0; d < k->nr_knobs; d++) {
        uint64_t knob = UINT64_C(1) << p->order[d], set = before | knob;
        p->check[d] = nr;
        p->part[d] = guesses;
        p->set[d] = set;
        for (int i = 0; i < k->nr_constraints; i++) {
            uint64_t r = reads(k, &k->constraint[i]);
            bool asked = d > 0 && !(r & ~before);
            if (!used(u, i) || asked)
                continue;
            p->live[d] |= r & before;
            if (!(r & ~set))
                p->ask[nr++] = i;
            else if (k->constraint[i].possible && (r & knob))
                p->guess[guesses++] = i;
        }
        before = set;
    }
    p->check[k->nr_knobs] = nr;
    p->part[k->nr_knobs] = guesses;
}

void walk_plan_init(struct walk_plan *p, const struct sketch *k, const bool *use)
{
    struct use u = {k, use};
    size_t nr = (size_t)k->nr_constraints;
    memset(p, 0, sizeof *p);
    p->sketch = k;
    p->ask = xcalloc(nr, sizeof *p->ask);
    p->guess = xcalloc(nr * (size_t)k->nr_knobs, sizeof *p->guess);
    uint64_t placed = 0;
    for (int i = 0, at = 0, group = 0; i < k->nr_knobs; i++) {
        if (placed & UINT64_C(1) << i)
            continue;
        uint64_t members = closure(&u, UINT64_C(1) << i);
        at = place_group(p, &u, members, at, group++);
        placed |= members;
    }
    place_constraints(p, &u);
}

void walk_plan_release(struct walk_plan *p)
{
    free(p->ask);
    free(p->guess);
    p->ask = p->guess = NULL;
}

bool walk_plan_allows(const struct walk_plan *p, int depth, const struct candidate *c)
{
    for (int i = p->check[depth]; i < p->check[depth + 1]; i++) {
        const struct constraint *x = &p->sketch->constraint[p->ask[i]];
        if (!x->ok(x->ctx, c))
            return false;
    }
    for (int i = p->part[depth]; i < p->part[depth + 1]; i++) {
        const struct constraint *x = &p->sketch->constraint[p->guess[i]];
        if (!x->possible(x->ctx, c, p->set[depth]))
            return false;
    }
    return true;
}

static const struct knob *knob_at(const struct space_walk *w, int depth)
{
    return &w->plan.sketch->knob[w->plan.order[depth]];
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
        if (!walk_plan_allows(&w->plan, w->depth, &w->c)) {
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
    walk_plan_init(&w->plan, k, NULL);
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
    walk_plan_release(&w->plan);
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
