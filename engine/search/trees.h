/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Trees: regression by gradient boosted trees, on XGBoost (trees_xgboost.c), or absent from a build
 * without it (trees_none.c).
 *
 * What is learned has its number, but is made of several rows: the prediction for a *pack* of rows
 * is the sum of the trees' outputs for each. The loss is MetaSchedule's: the squared error of the
 * sums, weighted.
 *
 *     grow     any thread; one thread does the work, so that equal data make equal trees
 *     predict  one thread at a time for one forest
 */
#ifndef ENGINE_SEARCH_TREES_H
#define ENGINE_SEARCH_TREES_H

#include "engine/base/err.h"
#include "engine/search/space.h"

struct trees;

/* NULL, or why this build has none. */
const char *trees_missing(void);

/* Pack i has the rows first[i] .. first[i+1]-1 of `row`, number label[i], weight[i] > 0. The caller
 * frees what it gets; NULL with a sentence on failure. */
struct trees *trees_grow(const float (*row)[FEATURES], const int *first, int nr_packs,
                         const float *label, const float *weight, struct err *e);

/* The sums of `nr_packs` packs. */
int trees_predict(struct trees *t, const float (*row)[FEATURES], const int *first, int nr_packs,
                  float *out, struct err *e);

void trees_free(struct trees *t); /* NULL is fine */

#endif
