/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Trees grown by XGBoost's C API.
 *
 * Its own objectives know nothing of packs, so gradients are made here, as MetaSchedule does
 * (xgb_model.py, PackSum): with the error d = sum - label of a pack, every row has the gradient d
 * times the weight. The second derivative is the weight times the number of rows in the pack: all
 * of them take the same step at once, and without that factor packs of many rows would overshoot.
 *
 * MAX_BIN: 256 cuts a feature, the default, would take five times as long for the same accuracy.
 * ROUNDS at ETA: what is left of the error of the first round is .7^24, a five-thousandth. Twice as
 * many rounds of a depth of 7 take twice as long and rank no better (tests/bench/ranking.c).
 *
 * What it made is read from its model as JSON (doc/model.schema of XGBoost). A row goes left where
 * its feature is smaller; the number of a node without children is its value.
 */
#include "engine/search/trees_nodes.h"

#include <stdlib.h>
#include <string.h>

#include <jansson.h>
#include <xgboost/c_api.h>

#include "engine/base/arena.h"

enum { ROUNDS = 24 };

static const struct {
    const char *name, *value;
} parameter[] = {
    {"tree_method", "hist"},
    {"max_bin", "32"},
    {"max_depth", "6"}, /* TREE_DEPTH */
    {"eta", "0.3"},
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

/* ---- from XGBoost's nodes to ours */

struct nodes {
    json_t *left, *right, *feature, *number;
};

static json_int_t integer_at(json_t *array, json_int_t i)
{
    json_t *v = i < 0 ? NULL : json_array_get(array, (size_t)i);
    return json_is_integer(v) ? json_integer_value(v) : -1;
}

static bool plant(struct tree *t, int at, const struct nodes *n, json_int_t i)
{
    json_t *number = i < 0 ? NULL : json_array_get(n->number, (size_t)i);
    if (!json_is_number(number))
        return false;
    float value = (float)json_number_value(number);
    json_int_t left = integer_at(n->left, i), feature = integer_at(n->feature, i);
    if (left < 0) {
        tree_end(t, at, value);
        return true;
    }
    if (at >= TREE_NODES || feature < 0 || feature >= FEATURES)
        return false;
    t->node[at] = (struct tree_node){value, (int32_t)feature};
    return plant(t, 2 * at + 1, n, left) && plant(t, 2 * at + 2, n, integer_at(n->right, i));
}

static struct trees *plant_all(json_t *model)
{
    json_t *list = NULL;
    json_unpack(model, "{s:{s:{s:{s:o}}}}", "learner", "gradient_booster", "model", "trees", &list);
    if (json_array_size(list) != ROUNDS)
        return NULL;
    struct trees *t = trees_new(ROUNDS);
    for (int i = 0; i < t->nr; i++) {
        struct nodes n = {0};
        json_unpack(json_array_get(list, (size_t)i), "{s:o, s:o, s:o, s:o}", "left_children",
                    &n.left, "right_children", &n.right, "split_indices", &n.feature,
                    "split_conditions", &n.number);
        if (plant(&t->tree[i], 0, &n, 0))
            continue;
        trees_free(t);
        return NULL;
    }
    return t;
}

static struct trees *harvest(BoosterHandle b, struct err *e)
{
    const char *text;
    bst_ulong len;
    if (XGBoosterSaveModelToBuffer(b, "{\"format\":\"json\"}", &len, &text) != 0) {
        failed(e, "tell its trees");
        return NULL;
    }
    json_t *model = json_loadb(text, (size_t)len, 0, NULL);
    struct trees *t = plant_all(model);
    json_decref(model);
    if (!t)
        err_set(e, ERR_UNSUPPORTED, "XGBoost tells its trees in a way that is not known here");
    return t;
}

struct trees *trees_grow(const float (*row)[FEATURES], const int *first, int nr_packs,
                         const float *label, const float *weight, struct err *e)
{
    size_t rows = (size_t)first[nr_packs];
    float *grad = xmalloc(rows * sizeof *grad), *hess = xmalloc(rows * sizeof *hess);
    DMatrixHandle data = NULL;
    BoosterHandle booster = NULL;
    int rc = 0;
    /* With one thread: reading in parallel would start a team of threads of its own. */
    if (XGDMatrixCreateFromMat_omp(&row[0][0], rows, FEATURES, -1e30f, &data, 1) != 0 ||
        XGBoosterCreate(&data, 1, &booster) != 0)
        rc = failed(e, "take the data");
    if (rc == 0)
        rc = set_up(booster, e);
    for (int i = 0; i < ROUNDS && rc == 0; i++)
        rc = boost(booster, data, first, nr_packs, label, weight, grad, hess, e);
    struct trees *t = rc == 0 ? harvest(booster, e) : NULL;
    if (booster)
        XGBoosterFree(booster);
    if (data)
        XGDMatrixFree(data);
    free(grad);
    free(hess);
    return t;
}
