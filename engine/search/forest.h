/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Forest: regression by extremely randomised trees (Geurts, Ernst, Wehenkel, Machine Learning 63,
 * 2006): each node looks at a few random coordinates, cuts each at a random place within the range
 * of its points, and takes the cut that separates their targets best. All trees see all points; how
 * much they disagree tells how little is known. Private to engine/search.
 */
#ifndef ENGINE_SEARCH_FOREST_H
#define ENGINE_SEARCH_FOREST_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/base/rng.h"

enum { FOREST_TREES = 24 };

struct forest_node {
    float cut;
    int32_t dim;        /* -1: a leaf */
    int32_t below;      /* the child for x <= cut; the other one stands after it */
    float mean, square; /* of a leaf: of the targets, and of their squares */
};

struct forest {
    int nr_dims;
    struct forest_tree {
        struct forest_node *node;
        int nr, cap;
    } tree[FOREST_TREES];
    bool grown; /* at all: there is something to guess by */
    int next;   /* the tree that is grown next */
    int *order, cap_order;
    int *dim; /* scratch of a node: the coordinates not looked at yet */
};

void forest_init(struct forest *f, int nr_dims);
void forest_release(struct forest *f);

/*
 * Grows `trees` of the trees anew, in turn, from nr > 0 points, the first time all of them. Row i
 * of x (nr_dims numbers) has the target y[i]; `point` says which rows, NULL the first nr.
 */
void forest_grow(struct forest *f, int trees, const float *x, const double *y, const int *point,
                 int nr, struct rng *rng);

/* Mean and standard deviation of the guess. The forest must be grown. */
void forest_guess(const struct forest *f, const float *x, double *mean, double *sd);

#endif
