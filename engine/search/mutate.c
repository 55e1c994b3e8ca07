/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The mutators are those of MetaSchedule: MutateTileSize moves a divisor between two levels of a
 * split, the others draw another value. Its weights differ a little by target (0.9 and 0.05, 0.03,
 * 0.02 on CPUs; 0.9 and 0.08, 0.02 on GPUs); here all kinds but splits share their 0.1.
 */
#include "engine/search/mutate.h"

#include <string.h>

static const double TILE_PROBABILITY = 0.9;

static bool is_open(const struct knob *k)
{
    switch (k->kind) {
    case KNOB_SPLIT:
        return k->extent > 1 && k->nr_slots > 1;
    case KNOB_FLAG:
        return true;
    case KNOB_ORDINAL:
    case KNOB_CHOICE:
    case KNOB_PERMUTATION:
        return k->nr_values > 1;
    }
    return false;
}

/* The nth divisor of x above 1 that times `times` is within `limit`; nth < 0 counts them. */
static int32_t divisor(int32_t x, int64_t times, int64_t limit, int nth)
{
    int nr = 0;
    for (int64_t d = 1; d * d <= x; d++) {
        if (x % d)
            continue;
        int64_t both[] = {d, x / d};
        for (int i = 0; i < (d * d == x ? 1 : 2); i++) {
            if (both[i] > 1 && times * both[i] <= limit && nr++ == nth)
                return (int32_t)both[i];
        }
    }
    return nr;
}

/* Moves a divisor of one level to another, which may fail where the innermost level is full. */
static bool move_divisor(const struct knob *k, struct rng *r, int32_t *v)
{
    int sources[SPLIT_MAX_LEVELS], nr = 0;
    for (int i = 0; i < k->nr_slots; i++) {
        if (v[i] > 1)
            sources[nr++] = i;
    }
    int from = sources[rng_below(r, (uint64_t)nr)];
    int to = (int)rng_below(r, (uint64_t)k->nr_slots - 1);
    to += to >= from;
    bool inner = to == k->nr_slots - 1 && k->max_inner > 0;
    int64_t limit = inner ? k->max_inner : k->extent;
    int choices = divisor(v[from], v[to], limit, -1);
    if (choices == 0)
        return false;
    int32_t d = divisor(v[from], v[to], limit, (int)rng_below(r, (uint64_t)choices));
    v[from] /= d;
    v[to] *= d;
    return true;
}

static bool change(const struct knob *k, struct rng *r, int32_t *v)
{
    switch (k->kind) {
    case KNOB_SPLIT:
        for (int tries = 0; tries < 8; tries++) {
            if (move_divisor(k, r, v))
                return true;
        }
        return false;
    case KNOB_FLAG:
        v[0] = !v[0];
        return true;
    case KNOB_ORDINAL:
    case KNOB_CHOICE: {
        int32_t other = (int32_t)rng_below(r, (uint64_t)k->nr_values - 1);
        v[0] = other + (other >= v[0]);
        return true;
    }
    case KNOB_PERMUTATION: {
        int a = (int)rng_below(r, (uint64_t)k->nr_slots);
        int b = (int)rng_below(r, (uint64_t)k->nr_slots - 1);
        b += b >= a;
        int32_t t = v[a];
        v[a] = v[b];
        v[b] = t;
        return true;
    }
    }
    return false;
}

int mutate(const struct space *s, struct rng *r, struct candidate *c)
{
    const struct sketch *sk = s->sketch[c->sketch];
    int split[SKETCH_MAX_KNOBS], other[SKETCH_MAX_KNOBS], nr_split = 0, nr_other = 0;
    for (int i = 0; i < sk->nr_knobs; i++) {
        if (is_open(&sk->knob[i])) {
            if (sk->knob[i].kind == KNOB_SPLIT)
                split[nr_split++] = i;
            else
                other[nr_other++] = i;
        }
    }
    if (nr_split + nr_other == 0)
        return -1;
    bool tile = nr_other == 0 || (nr_split > 0 && rng_unit(r) < TILE_PROBABILITY);
    int knob =
        tile ? split[rng_below(r, (uint64_t)nr_split)] : other[rng_below(r, (uint64_t)nr_other)];
    return change(&sk->knob[knob], r, c->v + sk->knob[knob].slot) ? knob : -1;
}
