/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/search/space.h"

#include <assert.h>
#include <string.h>

#include "engine/base/hash.h"
#include "engine/search/space_domain.h"
#include "engine/search/space_list.h"
#include "engine/search/space_tally.h"

void space_init(struct space *s)
{
    memset(s, 0, sizeof *s);
}

void space_release(struct space *s)
{
    for (int i = 0; i < s->nr_sketches; i++)
        tally_free(s->sketch[i]->tally);
    arena_release(&s->arena);
    space_init(s);
}

/* Cuts at a character's edge, so that a UTF-8 name stays UTF-8. */
static void set_name(char *dst, size_t size, const char *name)
{
    size_t n = strlen(name);
    if (n >= size) {
        n = size - 1;
        while (n > 0 && ((unsigned char)name[n] & 0xc0) == 0x80)
            n--;
    }
    memcpy(dst, name, n);
    dst[n] = '\0';
}

struct sketch *space_sketch(struct space *s, const char *name)
{
    assert(s->nr_sketches < (int)(sizeof s->sketch / sizeof *s->sketch));
    struct sketch *k = ARENA_NEW(&s->arena, struct sketch);
    set_name(k->name, sizeof k->name, name);
    k->start.sketch = s->nr_sketches;
    s->sketch[s->nr_sketches++] = k;
    return k;
}

/* The start gets the knob's plainest value; the maker of the sketch sets a better one. */
static int add_knob(struct sketch *k, const char *name, const struct knob *proto)
{
    assert(k->nr_knobs < SKETCH_MAX_KNOBS);
    assert(k->nr_slots + proto->nr_slots <= CAND_MAX_SLOTS);
    struct knob *knob = &k->knob[k->nr_knobs];
    *knob = *proto;
    set_name(knob->name, sizeof knob->name, name);
    knob->slot = k->nr_slots;
    k->nr_slots += knob->nr_slots;
    k->start.nr = k->nr_slots;
    int32_t *v = k->start.v + knob->slot;
    if (knob->kind == KNOB_SPLIT) {
        for (int i = 0; i < knob->nr_slots; i++)
            v[i] = i ? 1 : (int32_t)knob->extent;
    } else {
        domain_first(knob, v);
    }
    return k->nr_knobs++;
}

int sketch_split(struct space *s, struct sketch *k, const char *name, int64_t extent, int levels,
                 int64_t max_inner)
{
    (void)s;
    assert(extent >= 1 && extent <= INT32_MAX);
    assert(levels >= 1 && levels <= SPLIT_MAX_LEVELS && max_inner >= 0);
    struct knob proto = {
        .kind = KNOB_SPLIT,
        .extent = extent,
        /* A single level is the extent: there is nothing to limit. */
        .max_inner = levels > 1 ? max_inner : 0,
        .nr_slots = levels,
    };
    return add_knob(k, name, &proto);
}

/* A value given twice counts once, or one candidate would have two codes. */
static int add_valued(struct space *s, struct sketch *k, const char *name, enum knob_kind kind,
                      int nr, const int64_t *values)
{
    assert(nr > 0);
    int64_t *copy = ARENA_ARRAY(&s->arena, int64_t, nr);
    int distinct = 0;
    for (int i = 0; i < nr; i++) {
        int j = 0;
        while (j < distinct && copy[j] != values[i])
            j++;
        if (j == distinct)
            copy[distinct++] = values[i];
    }
    struct knob proto = {.kind = kind, .nr_values = distinct, .values = copy, .nr_slots = 1};
    return add_knob(k, name, &proto);
}

int sketch_ordinal(struct space *s, struct sketch *k, const char *name, int nr,
                   const int64_t *values)
{
    return add_valued(s, k, name, KNOB_ORDINAL, nr, values);
}

int sketch_choice(struct space *s, struct sketch *k, const char *name, int nr,
                  const int64_t *values)
{
    return add_valued(s, k, name, KNOB_CHOICE, nr, values);
}

void sketch_labels(struct space *s, struct sketch *k, int knob, const char *const *label)
{
    struct knob *kn = &k->knob[knob];
    const char **copy = ARENA_ARRAY(&s->arena, const char *, kn->nr_values);
    for (int i = 0; i < kn->nr_values; i++)
        copy[i] = arena_strdup(&s->arena, label[i]);
    kn->label = copy;
}

int sketch_flag(struct space *s, struct sketch *k, const char *name)
{
    (void)s;
    return add_knob(k, name, &(struct knob){.kind = KNOB_FLAG, .nr_slots = 1});
}

int sketch_permutation(struct space *s, struct sketch *k, const char *name, int nr)
{
    (void)s;
    assert(nr >= 1);
    return add_knob(k, name,
                    &(struct knob){.kind = KNOB_PERMUTATION, .nr_values = nr, .nr_slots = nr});
}

void sketch_constraint(struct space *s, struct sketch *k, const char *name, uint64_t knobs,
                       bool (*ok)(const void *ctx, const struct candidate *c), const void *ctx)
{
    if (k->nr_constraints == k->cap_constraints) {
        int cap = k->cap_constraints ? k->cap_constraints * 2 : 4;
        struct constraint *grown = ARENA_ARRAY(&s->arena, struct constraint, cap);
        if (k->nr_constraints)
            memcpy(grown, k->constraint, (size_t)k->nr_constraints * sizeof *grown);
        k->constraint = grown;
        k->cap_constraints = cap;
    }
    k->constraint[k->nr_constraints++] =
        (struct constraint){.name = arena_strdup(&s->arena, name), .knobs = knobs, .ok = ok, .ctx = ctx};
}

void sketch_possible(struct sketch *k,
                     bool (*possible)(const void *ctx, const struct candidate *c, uint64_t set))
{
    assert(k->nr_constraints > 0);
    k->constraint[k->nr_constraints - 1].possible = possible;
}

int64_t knob_value(const struct knob *k, const struct candidate *c)
{
    int32_t v = c->v[k->slot];
    return k->kind == KNOB_ORDINAL || k->kind == KNOB_CHOICE ? k->values[v] : v;
}

int64_t knob_factor(const struct knob *k, const struct candidate *c, int level)
{
    assert(k->kind == KNOB_SPLIT && level >= 0 && level < k->nr_slots);
    return c->v[k->slot + level];
}

uint64_t candidate_hash(const struct candidate *c)
{
    uint64_t h = hash64(HASH64_INIT, &c->sketch, sizeof c->sketch);
    return hash64(h, c->v, (size_t)c->nr * sizeof *c->v);
}

bool candidate_equal(const struct candidate *a, const struct candidate *b)
{
    return a->sketch == b->sketch && a->nr == b->nr &&
           memcmp(a->v, b->v, (size_t)a->nr * sizeof *a->v) == 0;
}

bool candidate_valid(const struct space *s, const struct candidate *c, const char **why)
{
    const char *reason = NULL;
    if (c->sketch < 0 || c->sketch >= s->nr_sketches || c->nr != s->sketch[c->sketch]->nr_slots) {
        reason = "names a sketch of the space";
        goto out;
    }
    const struct sketch *k = s->sketch[c->sketch];
    for (int i = 0; i < k->nr_knobs; i++) {
        if (!domain_contains(&k->knob[i], c->v + k->knob[i].slot)) {
            reason = "every value is one of its knob's";
            goto out;
        }
    }
    for (int i = 0; i < k->nr_constraints; i++) {
        if (!k->constraint[i].ok(k->constraint[i].ctx, c)) {
            reason = k->constraint[i].name;
            goto out;
        }
    }
    if (k->listed && list_find(k, c->v) < 0)
        reason = k->list_name;
out:
    if (why)
        *why = reason;
    return !reason;
}
