/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/search/coding.h"

#include <math.h>
#include <string.h>

enum { LEAST_FOR_TWOS = 5, LEAST_ONE_HOT = 3, MOST_ONE_HOT = 16 };

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

/* Labelled values are numbers in their domain: twos in them mean nothing. */
static bool has_twos(const struct knob *k)
{
    return k->kind == KNOB_ORDINAL && k->nr_values >= LEAST_FOR_TWOS && !k->label;
}

static int dims_of(const struct knob *k)
{
    if (!is_open(k))
        return 0;
    switch (k->kind) {
    case KNOB_SPLIT:
    case KNOB_PERMUTATION:
        return k->nr_slots;
    case KNOB_ORDINAL:
        return 1 + has_twos(k);
    case KNOB_CHOICE:
        return k->nr_values < LEAST_ONE_HOT || k->nr_values > MOST_ONE_HOT ? 1 : k->nr_values;
    case KNOB_FLAG:
        return 1;
    }
    return 0;
}

void coding_init(struct coding *c, const struct space *space)
{
    *c = (struct coding){.space = space};
    for (int i = 0; i < space->nr_sketches; i++) {
        const struct sketch *sk = space->sketch[i];
        int dims = 0;
        for (int j = 0; j < sk->nr_knobs; j++)
            dims += dims_of(&sk->knob[j]);
        c->nr_dims = dims > c->nr_dims ? dims : c->nr_dims;
    }
    c->nr_dims += space->nr_sketches > 1;
}

static void write_knob(const struct knob *k, const int32_t *v, int dims, float *x)
{
    if (k->kind == KNOB_CHOICE && dims > 1) {
        x[v[0]] = 1;
        return;
    }
    for (int i = 0; i < dims && i < k->nr_slots; i++)
        x[i] = k->kind == KNOB_SPLIT ? log2f((float)v[i]) : (float)v[i];
    if (has_twos(k)) {
        int64_t value = k->values[v[0]];
        x[1] = value ? (float)__builtin_ctzll((unsigned long long)value) : 0;
    }
}

void coding_write(const struct coding *c, const struct candidate *cand, float *x)
{
    const struct sketch *sk = c->space->sketch[cand->sketch];
    memset(x, 0, (size_t)c->nr_dims * sizeof *x);
    if (c->space->nr_sketches > 1)
        *x++ = (float)cand->sketch;
    for (int i = 0; i < sk->nr_knobs; i++) {
        const struct knob *k = &sk->knob[i];
        int dims = dims_of(k);
        write_knob(k, cand->v + k->slot, dims, x);
        x += dims;
    }
}

static double raised(double d, bool squared)
{
    return squared ? d * d : fabs(d);
}

static double knob_distance(const struct knob *k, const int32_t *a, const int32_t *b, bool squared)
{
    double sum = 0;
    switch (k->kind) {
    case KNOB_SPLIT: /* moving all from one level to another is distance 1 */
        for (int i = 0; i < k->nr_slots; i++)
            sum += raised(log2((double)a[i] / b[i]) / log2((double)k->extent), squared) / 2;
        return sum;
    case KNOB_ORDINAL:
        return raised((double)(a[0] - b[0]) / (k->nr_values - 1), squared);
    case KNOB_PERMUTATION:
        for (int i = 0; i < k->nr_slots; i++)
            sum += (double)(a[i] != b[i]) / k->nr_slots;
        return sum;
    case KNOB_CHOICE:
    case KNOB_FLAG:
        return a[0] != b[0];
    }
    return 0;
}

double coding_distance(const struct coding *c, const struct candidate *a, const struct candidate *b,
                       bool squared)
{
    const struct sketch *sk = c->space->sketch[a->sketch];
    if (a->sketch != b->sketch)
        return sk->nr_knobs;
    double sum = 0;
    for (int i = 0; i < sk->nr_knobs; i++) {
        const struct knob *k = &sk->knob[i];
        if (is_open(k))
            sum += knob_distance(k, a->v + k->slot, b->v + k->slot, squared);
    }
    return sum;
}
