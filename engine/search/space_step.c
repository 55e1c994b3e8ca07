/* SPDX-License-Identifier: Apache-2.0 */
/* One step away in one knob. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "engine/search/space.h"
#include "engine/search/space_domain.h"

struct ring {
    const struct space *space;
    const struct candidate *c;
    struct neighbour *v;
    int nr, cap;
};

/* `text` is cut to what fits: it is for people, the step itself is in the candidate. */
static void add(struct ring *r, struct neighbour *n, const struct strbuf *text)
{
    if (!candidate_valid(r->space, &n->c, NULL))
        return;
    size_t len = text->len < sizeof n->text ? text->len : sizeof n->text - 1;
    memcpy(n->text, strbuf_text(text), len);
    n->text[len] = '\0';
    GROW(r->v, r->nr, r->cap);
    r->v[r->nr++] = *n;
}

static struct neighbour begin(const struct ring *r, int knob)
{
    return (struct neighbour){.c = *r->c, .knob = knob};
}

/* Every prime factor of every level to every other level. Different moves give different tiles:
 * the two levels that changed and their ratio say which it was. */
static void split_ring(struct ring *r, const struct knob *k, int knob, struct strbuf *text)
{
    struct prime_power f[MAX_PRIMES];
    int nr = factorise(k->extent, f);
    for (int from = 0; from < k->nr_slots; from++) {
        for (int to = 0; to < k->nr_slots; to++) {
            for (int i = 0; i < nr && to != from; i++) {
                struct neighbour n = begin(r, knob);
                int32_t *v = n.c.v + k->slot;
                if (v[from] % f[i].p)
                    continue;
                v[from] /= f[i].p;
                v[to] *= f[i].p;
                n.dir = to < from ? -1 : 1;
                strbuf_reset(text);
                strbuf_addf(text, "%s: %" PRId32 " from level %d to %d", k->name, f[i].p, from, to);
                add(r, &n, text);
            }
        }
    }
}

static void add_value(struct ring *r, const struct knob *k, int knob, int32_t value, int dir,
                      struct strbuf *text)
{
    struct neighbour n = begin(r, knob);
    n.c.v[k->slot] = value;
    n.dir = dir;
    strbuf_reset(text);
    strbuf_addf(text, "%s: ", k->name);
    knob_format(k, r->c, text);
    strbuf_adds(text, " to ");
    knob_format(k, &n.c, text);
    add(r, &n, text);
}

static void permutation_ring(struct ring *r, const struct knob *k, int knob, struct strbuf *text)
{
    for (int i = 0; i + 1 < k->nr_slots; i++) {
        struct neighbour n = begin(r, knob);
        int32_t *v = n.c.v + k->slot, t = v[i];
        v[i] = v[i + 1];
        v[i + 1] = t;
        strbuf_reset(text);
        strbuf_addf(text, "%s: %" PRId32 " before %" PRId32, k->name, v[i], v[i + 1]);
        add(r, &n, text);
    }
}

static void knob_ring(struct ring *r, const struct knob *k, int knob, struct strbuf *text)
{
    int32_t v = r->c->v[k->slot];
    switch (k->kind) {
    case KNOB_SPLIT:
        split_ring(r, k, knob, text);
        break;
    case KNOB_ORDINAL:
        if (v > 0)
            add_value(r, k, knob, v - 1, -1, text);
        if (v + 1 < k->nr_values)
            add_value(r, k, knob, v + 1, 1, text);
        break;
    case KNOB_CHOICE:
        for (int32_t other = 0; other < k->nr_values; other++) {
            if (other != v)
                add_value(r, k, knob, other, 0, text);
        }
        break;
    case KNOB_FLAG:
        add_value(r, k, knob, !v, v ? -1 : 1, text);
        break;
    case KNOB_PERMUTATION:
        permutation_ring(r, k, knob, text);
        break;
    }
}

int space_neighbours(const struct space *s, const struct candidate *c, struct neighbour **out)
{
    struct ring r = {.space = s, .c = c};
    struct strbuf text = {0};
    const struct sketch *k = s->sketch[c->sketch];
    for (int i = 0; i < k->nr_knobs; i++)
        knob_ring(&r, &k->knob[i], i, &text);
    strbuf_release(&text);
    *out = r.v;
    return r.nr;
}

/* before -> after moved one factor between two levels; moves it once more. */
static bool split_again(const struct knob *k, const int32_t *before, const int32_t *after,
                        int32_t *v)
{
    int from = -1, to = -1;
    for (int i = 0; i < k->nr_slots; i++) {
        if (after[i] == before[i])
            continue;
        int *end = after[i] < before[i] ? &from : &to;
        if (*end >= 0)
            return false;
        *end = i;
    }
    if (from < 0 || to < 0 || before[from] % after[from])
        return false;
    int32_t factor = before[from] / after[from];
    if (after[from] % factor)
        return false;
    v[from] = after[from] / factor;
    v[to] = after[to] * factor;
    return true;
}

bool space_step_again(const struct space *s, const struct candidate *before,
                      const struct candidate *after, struct candidate *out)
{
    if (before->sketch != after->sketch || before->nr != after->nr)
        return false;
    const struct sketch *k = s->sketch[after->sketch];
    const struct knob *changed = NULL;
    for (int i = 0; i < k->nr_knobs; i++) {
        const struct knob *knob = &k->knob[i];
        if (!memcmp(before->v + knob->slot, after->v + knob->slot,
                    (size_t)knob->nr_slots * sizeof *after->v))
            continue;
        if (changed)
            return false;
        changed = knob;
    }
    if (!changed)
        return false;
    struct candidate c = *after;
    int slot = changed->slot;
    if (changed->kind == KNOB_SPLIT) {
        if (!split_again(changed, before->v + slot, after->v + slot, c.v + slot))
            return false;
    } else if (changed->kind == KNOB_ORDINAL) {
        c.v[slot] += after->v[slot] - before->v[slot];
    } else {
        return false; /* the others have no direction to go on in */
    }
    if (!candidate_valid(s, &c, NULL))
        return false;
    *out = c;
    return true;
}
