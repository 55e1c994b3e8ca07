/* SPDX-License-Identifier: Apache-2.0 */
/* A build without XGBoost: nothing can be grown. */
#include "engine/search/trees.h"

const char *trees_missing(void)
{
    return "squall was built without XGBoost";
}

struct trees *trees_grow(const float (*row)[FEATURES], const int *first, int nr_packs,
                         const float *label, const float *weight, struct err *e)
{
    (void)row, (void)first, (void)nr_packs, (void)label, (void)weight;
    err_set(e, ERR_UNSUPPORTED, "%s", trees_missing());
    return NULL;
}
