/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/search/surrogate.h"

#include <math.h>
#include <stdlib.h>

enum {
    NEAREST = 8,
    LANES = 4,     /* coordinates come in fours, which compilers make vectors of */
    POINTS = 1024, /* a sketch's newest; more would not make a guess better, only dearer */
};

/* Squared distances: one prime of 2^10 moved is at 0.02, two random tiles near 0.3 a split. */
static const double OWN_WIDTH = 0.005, PRIOR_WEIGHT = 1.0;
/* The mean of all weighs as much as this many points of the sketch. */
static const double SKETCH_PRIOR = 4;

struct surrogate_sketch {
    int nr_dims; /* the last few may be there to fill up, and are 0 */
    int dims_of[SKETCH_MAX_KNOBS];
    float *x; /* POINTS rows of nr_dims; a ring when full */
    double cost_ns[POINTS];
    double speed[POINTS];
    int nr, next;
    double mean;
};

/* Coordinates a knob takes; a choice of n has n, of which one is set. */
static int dims_of(const struct knob *k)
{
    switch (k->kind) {
    case KNOB_SPLIT:
        return k->extent > 1 && k->nr_slots > 1 ? k->nr_slots : 0;
    case KNOB_ORDINAL:
        return k->nr_values > 1;
    case KNOB_CHOICE:
        return k->nr_values > 1 ? k->nr_values : 0;
    case KNOB_FLAG:
        return 1;
    case KNOB_PERMUTATION:
        return k->nr_values > 1 ? k->nr_values : 0;
    }
    return 0;
}

static void locate(const struct sketch *sk, const struct surrogate_sketch *m,
                   const struct candidate *c, float *x)
{
    for (int i = 0; i < sk->nr_knobs; i++) {
        const struct knob *k = &sk->knob[i];
        const int32_t *v = c->v + k->slot;
        int n = m->dims_of[i];
        for (int j = 0; j < n; j++) {
            switch (k->kind) {
            case KNOB_SPLIT:
                x[j] = v[j] == 1 ? 0 : log2f((float)v[j]) / log2f((float)k->extent);
                break;
            case KNOB_ORDINAL:
                x[j] = (float)v[0] / (float)(k->nr_values - 1);
                break;
            case KNOB_CHOICE: /* two coordinates differ by this, the squares sum to 1 */
                x[j] = v[0] == j ? 0.70710678f : 0;
                break;
            case KNOB_FLAG:
                x[j] = (float)v[0];
                break;
            case KNOB_PERMUTATION:
                x[j] = (float)v[j] / (float)(k->nr_values - 1);
                break;
            }
        }
        x += n;
    }
}

void surrogate_init(struct surrogate *s, const struct space *space)
{
    *s = (struct surrogate){.space = space, .best_ns = INFINITY};
    s->sketch = xcalloc((size_t)space->nr_sketches, sizeof *s->sketch);
    for (int i = 0; i < space->nr_sketches; i++) {
        struct surrogate_sketch *m = &s->sketch[i];
        for (int j = 0; j < space->sketch[i]->nr_knobs; j++) {
            m->dims_of[j] = dims_of(&space->sketch[i]->knob[j]);
            m->nr_dims += m->dims_of[j];
        }
        m->nr_dims = (m->nr_dims + LANES - 1) / LANES * LANES;
    }
}

void surrogate_release(struct surrogate *s)
{
    for (int i = 0; i < s->space->nr_sketches; i++)
        free(s->sketch[i].x);
    free(s->sketch);
    s->sketch = NULL;
}

void surrogate_add(struct surrogate *s, const struct candidate *c, double cost_ns)
{
    struct surrogate_sketch *m = &s->sketch[c->sketch];
    if (!m->x)
        m->x = xcalloc((size_t)POINTS * (size_t)m->nr_dims, sizeof *m->x);
    locate(s->space->sketch[c->sketch], m, c, m->x + (size_t)m->next * (size_t)m->nr_dims);
    m->cost_ns[m->next] = cost_ns;
    m->next = (m->next + 1) % POINTS;
    if (m->nr < POINTS)
        m->nr++;
    s->best_ns = fmin(s->best_ns, cost_ns);
}

void surrogate_fit(struct surrogate *s)
{
    double all = 0;
    int nr_all = 0;
    for (int i = 0; i < s->space->nr_sketches; i++) {
        struct surrogate_sketch *m = &s->sketch[i];
        m->mean = 0;
        for (int j = 0; j < m->nr; j++) {
            m->speed[j] = isfinite(m->cost_ns[j]) ? s->best_ns / m->cost_ns[j] : 0;
            m->mean += m->speed[j];
        }
        all += m->mean;
        nr_all += m->nr;
    }
    s->mean = nr_all ? all / nr_all : 0;
    for (int i = 0; i < s->space->nr_sketches; i++) {
        struct surrogate_sketch *m = &s->sketch[i];
        m->mean = (m->mean + SKETCH_PRIOR * s->mean) / (m->nr + SKETCH_PRIOR);
    }
}

struct near {
    float d2;
    int i;
};

static float squared_distance(const float *a, const float *b, int nr_dims)
{
    float sum[LANES] = {0};
    for (int i = 0; i < nr_dims; i += LANES) {
        for (int j = 0; j < LANES; j++)
            sum[j] += (a[i + j] - b[i + j]) * (a[i + j] - b[i + j]);
    }
    return (sum[0] + sum[1]) + (sum[2] + sum[3]);
}

/* The nearest points, closest first; of equally near ones the oldest. */
static int nearest(const struct surrogate_sketch *m, const float *x, struct near out[NEAREST])
{
    int nr = 0;
    for (int i = 0; i < m->nr; i++) {
        float d2 = squared_distance(m->x + (size_t)i * (size_t)m->nr_dims, x, m->nr_dims);
        if (nr == NEAREST && d2 >= out[nr - 1].d2)
            continue;
        int at = nr < NEAREST ? nr++ : nr - 1;
        for (; at > 0 && out[at - 1].d2 > d2; at--)
            out[at] = out[at - 1];
        out[at] = (struct near){d2, i};
    }
    return nr;
}

double surrogate_score(const struct surrogate *s, const struct candidate *c)
{
    const struct surrogate_sketch *m = &s->sketch[c->sketch];
    /* A choice may have any number of values, so the slots do not bound the coordinates. */
    float small[2 * CAND_MAX_SLOTS] = {0}, *x = small;
    if (m->nr_dims > (int)(sizeof small / sizeof *small))
        x = xcalloc((size_t)m->nr_dims, sizeof *x);
    locate(s->space->sketch[c->sketch], m, c, x);
    struct near near[NEAREST];
    int nr = nearest(m, x, near);
    double weight = PRIOR_WEIGHT, sum = PRIOR_WEIGHT * m->mean;
    for (int i = 0; i < nr; i++) {
        double w = 1 / (near[i].d2 + OWN_WIDTH);
        weight += w;
        sum += w * m->speed[near[i].i];
    }
    if (x != small)
        free(x);
    return sum / weight;
}
