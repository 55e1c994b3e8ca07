/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/search/space_tally.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/hash.h"
#include "engine/search/space_domain.h"
#include "engine/search/space_list.h"
#include "engine/search/space_walk.h"

/* What is kept at once: some 100 MB at most. */
enum { MAX_KEPT = 1 << 21 };

/* Counts of the search from one depth on, by the values of the live knobs. */
struct level {
    int nr_slots;             /* of the live knobs */
    int16_t slot[CAND_MAX_SLOTS];
    bool keep;
    int32_t *key;             /* nr x nr_slots */
    int64_t *count;
    int nr, cap;
    uint32_t *bucket;         /* index + 1 */
    uint32_t nr_buckets;
};

struct tally {
    struct walk_plan plan;
    int nr;                   /* knobs */
    struct level level[SKETCH_MAX_KNOBS];
    struct candidate c;       /* where the counting stands */
    int64_t cap, nodes_left, total;
    int kept;
    bool cut, full;           /* ran out of nodes; could not keep all */
};

static const struct knob *knob_at(const struct tally *t, int depth)
{
    return &t->plan.sketch->knob[t->plan.order[depth]];
}

static bool ends_group(const struct tally *t, int depth)
{
    return depth + 1 == t->nr || t->plan.group[depth + 1] != t->plan.group[depth];
}

/* FNV spreads small integers badly over low bits; fold the high ones in. */
static uint32_t state_hash(const struct level *l, const struct candidate *c)
{
    uint64_t h = HASH64_INIT;
    for (int i = 0; i < l->nr_slots; i++) {
        h = (h ^ (uint32_t)c->v[l->slot[i]]) * UINT64_C(0x9e3779b97f4a7c15);
        h ^= h >> 29;
    }
    return (uint32_t)(h ^ h >> 32);
}

static bool state_equal(const struct level *l, int i, const struct candidate *c)
{
    const int32_t *key = l->key + (size_t)i * (size_t)l->nr_slots;
    for (int s = 0; s < l->nr_slots; s++) {
        if (key[s] != c->v[l->slot[s]])
            return false;
    }
    return true;
}

/* -1 where the state is not there; *at is its place then. */
static int find(const struct level *l, const struct candidate *c, uint32_t *at)
{
    if (!l->nr_buckets)
        return -1;
    for (*at = state_hash(l, c) & (l->nr_buckets - 1); l->bucket[*at];
         *at = (*at + 1) & (l->nr_buckets - 1)) {
        int i = (int)l->bucket[*at] - 1;
        if (state_equal(l, i, c))
            return i;
    }
    return -1;
}

static void rehash(struct level *l)
{
    l->nr_buckets = l->nr_buckets ? l->nr_buckets * 2 : 64;
    free(l->bucket);
    l->bucket = xcalloc(l->nr_buckets, sizeof *l->bucket);
    struct candidate c;
    for (int i = 0; i < l->nr; i++) {
        for (int s = 0; s < l->nr_slots; s++)
            c.v[l->slot[s]] = l->key[(size_t)i * (size_t)l->nr_slots + (size_t)s];
        uint32_t at = state_hash(l, &c) & (l->nr_buckets - 1);
        while (l->bucket[at])
            at = (at + 1) & (l->nr_buckets - 1);
        l->bucket[at] = (uint32_t)i + 1;
    }
}

static void keep(struct tally *t, struct level *l, int64_t count)
{
    if (t->kept >= MAX_KEPT) {
        t->full = true;
        return;
    }
    if ((uint32_t)l->nr * 2 >= l->nr_buckets)
        rehash(l);
    uint32_t at = 0;
    find(l, &t->c, &at);
    if (l->nr == l->cap) {
        l->cap = l->cap ? l->cap * 2 : 32;
        l->key = xrealloc(l->key, (size_t)l->cap * (size_t)l->nr_slots * sizeof *l->key);
        l->count = xrealloc(l->count, (size_t)l->cap * sizeof *l->count);
    }
    for (int s = 0; s < l->nr_slots; s++)
        l->key[(size_t)l->nr * (size_t)l->nr_slots + (size_t)s] = t->c.v[l->slot[s]];
    l->count[l->nr] = count;
    l->bucket[at] = (uint32_t)++l->nr;
    t->kept++;
}

/* Solutions of the group from `depth` on, given the knobs before; at most t->cap. */
static int64_t count_from(struct tally *t, int depth)
{
    struct level *l = &t->level[depth];
    uint32_t at;
    int known = l->keep ? find(l, &t->c, &at) : -1;
    if (known >= 0)
        return l->count[known];
    const struct knob *k = knob_at(t, depth);
    int32_t *v = t->c.v + k->slot;
    bool last = ends_group(t, depth);
    int64_t n = 0;
    if (last && t->plan.check[depth] == t->plan.check[depth + 1]) {
        n = domain_size(k, t->cap);
    } else {
        domain_first(k, v);
        do {
            if (t->nodes_left-- <= 0) {
                t->cut = true;
                return n;
            }
            if (!walk_plan_allows(&t->plan, depth, &t->c))
                continue;
            int64_t more = last ? 1 : count_from(t, depth + 1);
            n = more < t->cap - n ? n + more : t->cap;
        } while (domain_next(k, v) && n < t->cap && !t->cut);
        domain_first(k, v); /* constraints may look at knobs that are not set: see open_sketch() */
    }
    if (l->keep && !t->cut)
        keep(t, l, n);
    return n;
}

static void open_levels(struct tally *t, bool keep_all)
{
    const struct sketch *k = t->plan.sketch;
    int before = 0;
    for (int d = 0; d < t->nr; d++) {
        struct level *l = &t->level[d];
        int live = 0;
        before = d > 0 && t->plan.group[d] == t->plan.group[d - 1] ? before : 0;
        for (int i = 0; i < k->nr_knobs; i++) {
            if (!(t->plan.live[d] & UINT64_C(1) << i))
                continue;
            live++;
            for (int s = 0; s < k->knob[i].nr_slots; s++)
                l->slot[l->nr_slots++] = (int16_t)(k->knob[i].slot + s);
        }
        /* Where all knobs before are live no state comes twice. */
        l->keep = keep_all || live < before;
        before++;
    }
}

static struct tally *tally_open(const struct sketch *k, const bool *use, bool keep_all, int64_t cap,
                                int64_t nodes)
{
    struct tally *t = xcalloc(1, sizeof *t);
    walk_plan_init(&t->plan, k, use);
    t->nr = k->nr_knobs;
    t->cap = cap;
    t->nodes_left = nodes;
    t->c.sketch = k->start.sketch;
    t->c.nr = k->nr_slots;
    for (int i = 0; i < k->nr_knobs; i++)
        domain_first(&k->knob[i], t->c.v + k->knob[i].slot);
    open_levels(t, keep_all);
    t->total = 1;
    for (int d = 0; d < t->nr && t->total > 0 && !t->cut; d++) {
        if (d == 0 || t->plan.group[d] != t->plan.group[d - 1])
            t->total = mul_cap(t->total, count_from(t, d), cap);
    }
    for (int i = 0; t->nr == 0 && i < k->nr_constraints; i++) {
        if ((!use || use[i]) && !k->constraint[i].ok(k->constraint[i].ctx, &t->c))
            t->total = 0;
    }
    return t;
}

void tally_free(struct tally *t)
{
    if (!t)
        return;
    for (int d = 0; d < t->nr; d++) {
        free(t->level[d].key);
        free(t->level[d].count);
        free(t->level[d].bucket);
    }
    walk_plan_release(&t->plan);
    free(t);
}

int64_t tally_count(const struct sketch *k, const bool *use, int64_t cap, int64_t nodes)
{
    struct tally *t = tally_open(k, use, false, cap, nodes);
    int64_t n = t->cut ? -1 : t->total;
    tally_free(t);
    return n;
}

struct tally *tally_new(const struct sketch *k, int64_t nodes)
{
    struct tally *t = tally_open(k, NULL, true, INT64_MAX, nodes);
    if (!t->cut && !t->full && t->total > 0 && t->total < INT64_MAX)
        return t;
    tally_free(t);
    return NULL;
}

int64_t tally_total(const struct tally *t)
{
    return t->total;
}

/* Solutions behind the value that the knob at `depth` has in `c`. */
static int64_t behind(const struct tally *t, int depth, const struct candidate *c)
{
    uint32_t at;
    if (!walk_plan_allows(&t->plan, depth, c))
        return 0;
    if (ends_group(t, depth))
        return 1;
    int i = find(&t->level[depth + 1], c, &at);
    return i < 0 ? 0 : t->level[depth + 1].count[i];
}

void tally_draw(const struct tally *t, struct rng *r, struct candidate *out)
{
    *out = t->c;
    int64_t left = 0;
    for (int d = 0; d < t->nr; d++) {
        const struct knob *k = knob_at(t, d);
        uint32_t at;
        /* In a group the rank goes on to the next depth: one random number a group. */
        if (d == 0 || t->plan.group[d] != t->plan.group[d - 1]) {
            int i = find(&t->level[d], out, &at);
            left = (int64_t)rng_below(r, (uint64_t)t->level[d].count[i]);
        }
        int32_t *v = out->v + k->slot;
        domain_first(k, v);
        for (int64_t n; left >= (n = behind(t, d, out)); domain_next(k, v))
            left -= n;
    }
}

bool space_weigh(struct space *s, int sketch, int64_t nodes)
{
    struct sketch *k = s->sketch[sketch];
    assert(!k->tally);
    k->tally = k->listed ? NULL : tally_new(k, nodes);
    return k->tally || k->listed;
}

int64_t space_count(const struct space *s, int64_t cap)
{
    int64_t n = 0;
    for (int i = 0; i < s->nr_sketches && n < cap; i++) {
        const struct sketch *k = s->sketch[i];
        int64_t more = k->tally    ? tally_total(k->tally)
                       : k->listed ? list_count(k, cap - n)
                                   : tally_count(k, NULL, cap - n, INT64_MAX);
        n = more < cap - n ? n + more : cap;
    }
    return n;
}

int64_t space_product(const struct space *s, int sketch)
{
    const struct sketch *k = s->sketch[sketch];
    int64_t n = 1;
    for (int i = 0; i < k->nr_knobs; i++)
        n = mul_cap(n, domain_size(&k->knob[i], INT64_MAX), INT64_MAX);
    return n;
}

void space_removed(const struct space *s, int sketch, struct space_removal *out)
{
    enum { NODES = 1 << 26 }; /* some seconds for each count, at worst */
    const struct sketch *k = s->sketch[sketch];
    bool *use = xcalloc((size_t)k->nr_constraints, sizeof *use);
    int64_t product = space_product(s, sketch), all = tally_count(k, NULL, INT64_MAX, NODES);
    for (int i = 0; i < k->nr_constraints; i++) {
        for (int j = 0; j < k->nr_constraints; j++)
            use[j] = j == i;
        int64_t alone = tally_count(k, use, INT64_MAX, NODES);
        for (int j = 0; j < k->nr_constraints; j++)
            use[j] = j != i;
        int64_t without = tally_count(k, use, INT64_MAX, NODES);
        out[i] = (struct space_removal){
            .name = k->constraint[i].name,
            .alone = alone < 0 ? -1 : product - alone,
            .last = without < 0 || all < 0 ? -1 : without - all,
        };
    }
    free(use);
}
