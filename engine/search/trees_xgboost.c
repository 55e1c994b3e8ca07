/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Trees by XGBoost's C API.
 *
 * Its own objectives know nothing of packs, so gradients are made here, as MetaSchedule does
 * (xgb_model.py, PackSum): with the error d = sum - label of a pack, every row has the gradient d
 * times the weight. The second derivative is the weight times the number of rows in the pack: all
 * of them take the same step at once, and without that factor packs of many rows would overshoot.
 *
 * MAX_BIN: 256 cuts a feature, the default, would take five times as long for the same accuracy.
 * ROUNDS at ETA: what is left of the error of the first round is .75^48, below a millionth.
 */
#include "engine/search/trees.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <xgboost/c_api.h>

#include "engine/base/arena.h"

enum { ROUNDS = 48 };

struct trees {
    BoosterHandle booster;
};

static const struct {
    const char *name, *value;
} parameter[] = {
    {"tree_method", "hist"},
    {"max_bin", "32"},
    {"max_depth", "7"},
    {"eta", "0.25"},
    {"gamma", "0.0001"},
    {"min_child_weight", "0.5"},
    {"lambda", "0.5"},
    {"base_score", "0"},
    {"nthread", "1"},
    {"seed", "43"},
    {"verbosity", "0"},
    {"objective", "reg:squarederror"},
    {"colsample_bynode", "0.5"},
};

const char *trees_missing(void)
{
    return NULL;
}

static int failed(struct err *e, const char *what)
{
    const char *why = XGBGetLastError(); /* the first line says it, the others are its stack */
    return err_set(e, ERR_NOMEM, "XGBoost cannot %s: %.*s", what, (int)strcspn(why, "\n"), why);
}

static int set_up(BoosterHandle b, struct err *e)
{
    for (size_t i = 0; i < sizeof parameter / sizeof *parameter; i++)
        if (XGBoosterSetParam(b, parameter[i].name, parameter[i].value) != 0)
            return failed(e, "be set up");
    return 0;
}

static int boost(BoosterHandle b, DMatrixHandle data, const int *first, int nr_packs,
                 const float *label, const float *weight, float *grad, float *hess, struct err *e)
{
    const float *out;
    bst_ulong len, rows = (bst_ulong)first[nr_packs];
    if (XGBoosterPredict(b, data, 1, 0, 1, &len, &out) != 0 || len != rows)
        return failed(e, "predict");
    for (int i = 0; i < nr_packs; i++) {
        float sum = 0, size = (float)(first[i + 1] - first[i]);
        for (int r = first[i]; r < first[i + 1]; r++)
            sum += out[r];
        for (int r = first[i]; r < first[i + 1]; r++) {
            grad[r] = (sum - label[i]) * weight[i];
            hess[r] = size * weight[i];
        }
    }
    if (XGBoosterBoostOneIter(b, data, grad, hess, rows) != 0)
        return failed(e, "grow trees");
    return 0;
}

struct trees *trees_grow(const float (*row)[FEATURES], const int *first, int nr_packs,
                         const float *label, const float *weight, struct err *e)
{
    struct trees *t = xcalloc(1, sizeof *t);
    size_t rows = (size_t)first[nr_packs];
    float *grad = xmalloc(rows * sizeof *grad), *hess = xmalloc(rows * sizeof *hess);
    DMatrixHandle data = NULL;
    int rc = 0;
    /* With one thread: reading in parallel would start a team of threads of its own. */
    if (XGDMatrixCreateFromMat_omp(&row[0][0], rows, FEATURES, -1e30f, &data, 1) != 0 ||
        XGBoosterCreate(&data, 1, &t->booster) != 0)
        rc = failed(e, "take the data");
    if (rc == 0)
        rc = set_up(t->booster, e);
    for (int i = 0; i < ROUNDS && rc == 0; i++)
        rc = boost(t->booster, data, first, nr_packs, label, weight, grad, hess, e);
    if (data)
        XGDMatrixFree(data);
    free(grad);
    free(hess);
    if (rc == 0)
        return t;
    trees_free(t);
    return NULL;
}

int trees_predict(struct trees *t, const float (*row)[FEATURES], const int *first, int nr_packs,
                  float *out, struct err *e)
{
    char array[160];
    snprintf(array, sizeof array,
             "{\"data\":[%zu,true],\"shape\":[%d,%d],\"typestr\":\"<f4\",\"version\":3}",
             (size_t)&row[0][0], first[nr_packs], (int)FEATURES);
    static const char config[] =
        "{\"type\":1,\"training\":false,\"iteration_begin\":0,\"iteration_end\":0,"
        "\"strict_shape\":false,\"missing\":-1e30,\"cache_id\":0}";
    bst_ulong const *shape;
    bst_ulong dims;
    const float *sum;
    if (first[nr_packs] == 0)
        return 0;
    if (XGBoosterPredictFromDense(t->booster, array, config, NULL, &shape, &dims, &sum) != 0)
        return failed(e, "predict");
    for (int i = 0; i < nr_packs; i++) {
        out[i] = 0;
        for (int r = first[i]; r < first[i + 1]; r++)
            out[i] += sum[r];
    }
    return 0;
}

void trees_free(struct trees *t)
{
    if (!t)
        return;
    if (t->booster)
        XGBoosterFree(t->booster);
    free(t);
}
