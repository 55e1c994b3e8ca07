/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/search/forest.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/arena.h"

/* Coordinates a node looks at, of those in which its points differ; all of them give the same score
 * for more time. */
static const int LOOKS = 4;

void forest_init(struct forest *f, int nr_dims)
{
    memset(f, 0, sizeof *f);
    f->nr_dims = nr_dims;
    f->dim = xmalloc(((size_t)nr_dims + 1) * sizeof *f->dim);
}

void forest_release(struct forest *f)
{
    for (int i = 0; i < FOREST_TREES; i++)
        free(f->tree[i].node);
    free(f->order);
    free(f->dim);
    memset(f, 0, sizeof *f);
}

struct grower {
    const float *x;
    const double *y;
    int nr_dims;
    int *dim;
    struct rng *rng;
    struct forest_tree *tree;
};

struct cut {
    int dim;
    float at;
    double gain;
};

static float coordinate(const struct grower *g, int point, int dim)
{
    return g->x[(size_t)point * (size_t)g->nr_dims + (size_t)dim];
}

/* A random cut of one coordinate, with what it takes off the squared error. False where the points
 * do not differ in it. */
static bool try_cut(const struct grower *g, const int *point, int nr, int dim, struct cut *c)
{
    float lo = coordinate(g, point[0], dim), hi = lo;
    for (int i = 1; i < nr; i++) {
        float x = coordinate(g, point[i], dim);
        lo = x < lo ? x : lo;
        hi = x > hi ? x : hi;
    }
    if (!(lo < hi))
        return false;
    float at = lo + (hi - lo) * (float)rng_unit(g->rng);
    if (!(at < hi))
        at = lo;
    double below = 0, above = 0;
    int nr_below = 0;
    for (int i = 0; i < nr; i++) {
        if (coordinate(g, point[i], dim) <= at) {
            below += g->y[point[i]];
            nr_below++;
        } else {
            above += g->y[point[i]];
        }
    }
    int nr_above = nr - nr_below;
    double d = below / nr_below - above / nr_above;
    *c = (struct cut){dim, at, d * d * nr_below * nr_above};
    return true;
}

static struct cut best_cut(const struct grower *g, const int *point, int nr)
{
    for (int i = 0; i < g->nr_dims; i++)
        g->dim[i] = i;
    struct cut best = {.dim = -1, .gain = -1};
    for (int left = g->nr_dims, looks = 0; left > 0 && looks < LOOKS; left--) {
        int i = (int)rng_below(g->rng, (uint64_t)left);
        struct cut c;
        if (try_cut(g, point, nr, g->dim[i], &c)) {
            looks++;
            if (c.gain > best.gain)
                best = c;
        }
        g->dim[i] = g->dim[left - 1];
    }
    return best;
}

static void grow(struct grower *g, int node, int *point, int nr)
{
    double sum = 0, squares = 0, lo = g->y[point[0]], hi = lo;
    for (int i = 0; i < nr; i++) {
        double y = g->y[point[i]];
        sum += y;
        squares += y * y;
        lo = y < lo ? y : lo;
        hi = y > hi ? y : hi;
    }
    struct forest_node n = {.dim = -1, .mean = (float)(sum / nr), .square = (float)(squares / nr)};
    struct cut c = {.dim = -1};
    if (nr > 1 && lo < hi)
        c = best_cut(g, point, nr);
    if (c.dim < 0) {
        g->tree->node[node] = n;
        return;
    }
    int below = 0;
    for (int i = 0; i < nr; i++) {
        if (coordinate(g, point[i], c.dim) <= c.at) {
            int t = point[i];
            point[i] = point[below];
            point[below++] = t;
        }
    }
    n.dim = c.dim;
    n.cut = c.at;
    n.below = g->tree->nr;
    g->tree->nr += 2;
    g->tree->node[node] = n;
    grow(g, n.below, point, below);
    grow(g, n.below + 1, point + below, nr - below);
}

void forest_grow(struct forest *f, int trees, const float *x, const double *y, const int *point,
                 int nr, struct rng *rng)
{
    if (nr > f->cap_order) {
        f->cap_order = 2 * nr;
        f->order = xrealloc(f->order, (size_t)f->cap_order * sizeof *f->order);
    }
    if (!f->grown)
        trees = FOREST_TREES;
    f->grown = true;
    for (; trees > 0; trees--) {
        struct forest_tree *t = &f->tree[f->next];
        f->next = (f->next + 1) % FOREST_TREES;
        if (t->cap < 2 * nr) {
            t->cap = 4 * nr;
            t->node = xrealloc(t->node, (size_t)t->cap * sizeof *t->node);
        }
        t->nr = 1;
        for (int i = 0; i < nr; i++)
            f->order[i] = point ? point[i] : i;
        grow(&(struct grower){x, y, f->nr_dims, f->dim, rng, t}, 0, f->order, nr);
    }
}

void forest_guess(const struct forest *f, const float *x, double *mean, double *sd)
{
    double sum = 0, squares = 0;
    for (int i = 0; i < FOREST_TREES; i++) {
        const struct forest_node *n = f->tree[i].node, *at = n;
        while (at->dim >= 0)
            at = n + at->below + (x[at->dim] > at->cut);
        sum += (double)at->mean;
        squares += (double)at->square;
    }
    *mean = sum / FOREST_TREES;
    double variance = squares / FOREST_TREES - *mean * *mean;
    *sd = variance > 0 ? sqrt(variance) : 0;
}
