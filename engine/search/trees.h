/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Trees: regression by gradient boosted trees. They are grown by XGBoost (trees_xgboost.c), or by
 * nobody in a build without it (trees_none.c); what was grown is held, asked, written and read
 * here.
 *
 * What is learned has its number, but is made of several rows: the prediction for a *pack* of rows
 * is the sum of the trees' outputs for each. The loss is MetaSchedule's: the squared error of the
 * sums, weighted.
 *
 *     grow     any thread; one thread does the work, so that equal data make equal trees
 *     others   any thread; trees do not change once they are grown or read
 *
 * Why not XGBoost's own models: what reads those trusts them, and sessions come from strangers; nor
 * are they promised to be read, and to predict the same, by the next version.
 */
#ifndef ENGINE_SEARCH_TREES_H
#define ENGINE_SEARCH_TREES_H

#include "engine/base/err.h"
#include "engine/base/strbuf.h"
#include "engine/search/space.h"

struct trees;

/* NULL, or why this build can grow none. */
const char *trees_missing(void);

/* Pack i has the rows first[i] .. first[i+1]-1 of `row`, number label[i], weight[i] > 0. The caller
 * frees what it gets; NULL with a sentence on failure. */
struct trees *trees_grow(const float (*row)[FEATURES], const int *first, int nr_packs,
                         const float *label, const float *weight, struct err *e);

/* The sums of `nr_packs` packs: of the trees' outputs for a row in the order of the trees, of these
 * in the order of the rows. */
void trees_predict(const struct trees *t, const float (*row)[FEATURES], const int *first,
                   int nr_packs, float *out);

/* Appends what trees_read() reads. */
void trees_write(const struct trees *t, struct strbuf *out);

/* From bytes that anybody may have written. The caller frees; NULL with a sentence where they are
 * damaged, or from a version with other features. */
struct trees *trees_read(const void *bytes, size_t len, struct err *e);

void trees_free(struct trees *t); /* NULL is fine */

#endif
