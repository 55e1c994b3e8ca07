/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/search/ring.h"

#include <stdlib.h>
#include <string.h>

/* An ordinal of more values takes only some of them. */
enum { ALL_VALUES = 32 };

void ring_add(struct ring *r, const struct candidate *c, int knob, int from)
{
    GROW(r->v, r->nr, r->cap);
    r->v[r->nr++] = (struct ring_member){*c, knob, from};
}

static bool is_near(const struct knob *k, int from, int to)
{
    int d = from < to ? to - from : from - to;
    return (d & (d - 1)) == 0 || to == 0 || to == k->nr_values - 1;
}

static void add_values(struct ring *r, const struct space *s, const struct candidate *c, int knob,
                       int from)
{
    const struct knob *k = &s->sketch[c->sketch]->knob[knob];
    int nr = k->kind == KNOB_FLAG ? 2 : k->nr_values, now = c->v[k->slot];
    struct candidate n = *c;
    for (int v = 0; v < nr; v++) {
        if (v == now || (k->kind == KNOB_ORDINAL && nr > ALL_VALUES && !is_near(k, now, v)))
            continue;
        n.v[k->slot] = v;
        if (candidate_valid(s, &n, NULL))
            ring_add(r, &n, knob, from);
    }
}

static bool has_steps(const struct knob *k)
{
    return k->kind == KNOB_SPLIT || k->kind == KNOB_PERMUTATION;
}

/* The steps of splits and permutations, of all knobs or one. */
static void add_steps(struct ring *r, const struct space *s, const struct candidate *c, int knob,
                      int from)
{
    const struct sketch *sk = s->sketch[c->sketch];
    struct neighbour *n;
    int nr = space_neighbours(s, c, &n);
    for (int i = 0; i < nr; i++) {
        if (has_steps(&sk->knob[n[i].knob]) && (knob < 0 || n[i].knob == knob))
            ring_add(r, &n[i].c, n[i].knob, from);
    }
    free(n);
}

void ring_along(struct ring *r, const struct space *s, const struct candidate *c, int knob,
                int from)
{
    if (has_steps(&s->sketch[c->sketch]->knob[knob]))
        add_steps(r, s, c, knob, from);
    else
        add_values(r, s, c, knob, from);
}

void ring_around(struct ring *r, const struct space *s, const struct candidate *c, int from)
{
    const struct sketch *sk = s->sketch[c->sketch];
    bool steps = false;
    for (int i = 0; i < sk->nr_knobs; i++) {
        if (has_steps(&sk->knob[i]))
            steps = true;
        else
            add_values(r, s, c, i, from);
    }
    if (steps)
        add_steps(r, s, c, -1, from);
}

void ring_release(struct ring *r)
{
    free(r->v);
    memset(r, 0, sizeof *r);
}
