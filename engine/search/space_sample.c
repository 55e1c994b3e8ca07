/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Drawing a valid candidate.
 *
 * A sketch that was counted (space_weigh) is drawn from by its counts. Of any other
 * all knobs are drawn anew until the constraints hold: among the draws of domain_draw() each valid
 * candidate keeps its probability. Where constraints refuse nearly all draws, a depth-first search
 * from random values finds one; it favours candidates behind a gap, which is the price. The search
 * is begun anew several times before it is given all its steps, because one unlucky first value can
 * hide a large subtree without a solution.
 */
#include "engine/search/space.h"
#include "engine/search/space_domain.h"
#include "engine/search/space_list.h"
#include "engine/search/space_tally.h"
#include "engine/search/space_walk.h"

enum {
    DRAWS = 64, /* about as dear as one search */
    SEARCHES = 8,
    SEARCH_NODES = 1 << 10,
    LAST_SEARCH_NODES = 1 << 18, /* some 20 ms */
};

static bool draw(const struct space *s, int sketch, struct rng *r, struct candidate *c)
{
    const struct sketch *k = s->sketch[sketch];
    *c = (struct candidate){.sketch = sketch, .nr = k->nr_slots};
    for (int i = 0; i < k->nr_knobs; i++)
        domain_draw(&k->knob[i], r, c->v + k->knob[i].slot);
    for (int i = 0; i < k->nr_constraints; i++) {
        if (!k->constraint[i].ok(k->constraint[i].ctx, c))
            return false;
    }
    return true;
}

static bool search_once(const struct space *s, int sketch, struct rng *r, int64_t nodes,
                        struct candidate *c, bool *cut)
{
    struct space_walk w;
    space_walk_init(&w, s, sketch);
    w.rng = r;
    w.nodes_left = nodes;
    bool found = space_walk_next(&w, c);
    *cut = w.cut;
    space_walk_release(&w);
    return found;
}

static bool sample_sketch(const struct space *s, int sketch, struct rng *r, struct candidate *out)
{
    struct candidate c;
    bool found = false, cut = true;
    if (s->sketch[sketch]->listed)
        return list_sample(s->sketch[sketch], r, out);
    if (s->sketch[sketch]->tally) {
        tally_draw(s->sketch[sketch]->tally, r, out);
        return true;
    }
    for (int i = 0; i < DRAWS && !found; i++)
        found = draw(s, sketch, r, &c);
    for (int i = 0; i <= SEARCHES && !found && cut; i++)
        found =
            search_once(s, sketch, r, i < SEARCHES ? SEARCH_NODES : LAST_SEARCH_NODES, &c, &cut);
    if (found)
        *out = c;
    return found;
}

bool space_sample(const struct space *s, int sketch, struct rng *r, struct candidate *out)
{
    if (sketch >= 0)
        return sketch < s->nr_sketches && sample_sketch(s, sketch, r, out);
    if (s->nr_sketches == 0)
        return false;
    /* Where the sketch drawn has nothing valid, the others are asked in turn. */
    int first = (int)rng_below(r, (uint64_t)s->nr_sketches);
    for (int i = 0; i < s->nr_sketches; i++) {
        if (sample_sketch(s, (first + i) % s->nr_sketches, r, out))
            return true;
    }
    return false;
}
