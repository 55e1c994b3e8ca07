/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/model/task.h"

#include <ctype.h>
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/arena.h"
#include "engine/base/hash.h"
#include "engine/model/plan.h"
#include "engine/tensor/compare.h"

void task_free(struct task *t)
{
    if (!t)
        return;
    if (t->ctx_free)
        t->ctx_free(t->ctx);
    for (int i = 0; i < WL_MAX_TENSORS; i++)
        free(t->data[i]);
    workload_release(&t->wl);
    free(t);
}

void task_list_release(struct task_list *l)
{
    for (int i = 0; i < l->nr; i++)
        task_free(l->task[i]);
    free(l->task);
    *l = (struct task_list){0};
}

static bool same_data(const struct task *a, const struct task *b)
{
    for (int i = 0; i < a->wl.nr_tensors; i++) {
        if (!a->data[i] != !b->data[i])
            return false;
        int64_t n = layout_logical_size(&a->wl.tensor[i].layout);
        if (a->data[i] && memcmp(a->data[i], b->data[i], (size_t)n * sizeof(float)) != 0)
            return false;
    }
    return true;
}

/* The number that `name` has behind `base`: 1 for base itself, n for base_n, 0 for another name. */
static long suffix_of(const char *name, const char *base, size_t len)
{
    if (strncmp(name, base, len) != 0)
        return 0;
    if (!name[len])
        return 1;
    char *end;
    long n = name[len] == '_' && isdigit((unsigned char)name[len + 1])
                 ? strtol(name + len + 1, &end, 10)
                 : 0;
    return n > 1 && !*end ? n : 0;
}

/* One look at each name: lists of thousands of like-named tasks exist in hostile files. */
static void make_name_unique(const struct task_list *l, struct task *t)
{
    enum { SUFFIX = 12 };
    char base[sizeof t->name];
    snprintf(base, sizeof base, "%.*s", (int)(sizeof base - SUFFIX), t->name);
    bool taken = false;
    long last = 1;
    for (int i = 0; i < l->nr; i++) {
        long n = suffix_of(l->task[i]->name, base, strlen(base));
        last = n > last ? n : last;
        taken |= strcmp(l->task[i]->name, t->name) == 0;
    }
    if (taken)
        snprintf(t->name, sizeof t->name, "%.*s_%ld", (int)(sizeof base - SUFFIX), base, last + 1);
}

int task_list_place(struct task_list *l, struct task *t)
{
    for (int i = 0; i < l->nr; i++) {
        struct task *have = l->task[i];
        if (strcmp(have->wl.id, t->wl.id) == 0 && strcmp(have->wl.text, t->wl.text) == 0 &&
            same_data(have, t)) {
            have->weight += t->weight;
            task_free(t);
            return i;
        }
    }
    make_name_unique(l, t);
    GROW(l->task, l->nr, l->cap);
    l->task[l->nr] = t;
    return l->nr++;
}

void task_list_add(struct task_list *l, struct task *t)
{
    task_list_place(l, t);
}

/* Number of values that meet in one output element: all dimensions but the first, which is the
 * output channel of a weight. */
static int64_t fan_in(const struct layout *l)
{
    return l->l[0] ? layout_logical_size(l) / l->l[0] : 1;
}

/* The generator of the values is counter-based: element k depends on the seed and k alone, and the
 * loop has no carried state. The mixer is the finaliser of MurmurHash3 (Appleby, public domain). */
static float value_at(uint32_t seed, uint32_t k)
{
    uint32_t x = seed + k * UINT32_C(0x9e3779b1);
    x ^= x >> 16;
    x *= UINT32_C(0x85ebca6b);
    x ^= x >> 13;
    x *= UINT32_C(0xc2b2ae35);
    x ^= x >> 16;
    return (float)((int32_t)(x >> 8) - (1 << 23)) * 0x1p-23f; /* [-1, 1) */
}

void task_fill(const struct task *t, int i, float *logical)
{
    const struct wl_tensor *x = &t->wl.tensor[i];
    int64_t n = layout_logical_size(&x->layout);
    if (t->data[i]) {
        memcpy(logical, t->data[i], (size_t)n * sizeof *logical);
        return;
    }
    float scale = 1;
    if (x->role == WL_CONST && x->layout.nr_l >= 2)
        scale = (float)(1 / sqrt((double)fan_in(&x->layout)));
    uint32_t seed = hash32(hash32(HASH32_INIT, t->wl.id, strlen(t->wl.id)), &i, sizeof i);
    for (int64_t k = 0; k < n; k++)
        logical[k] = scale * value_at(seed, (uint32_t)k);
}

static float *alloc_floats(int64_t n)
{
    return n <= INT64_MAX / 8 ? malloc((size_t)n * sizeof(float)) : NULL;
}

static void fill_all(const struct task *t, float *const *logical, float *const *stored)
{
    for (int i = 0; i < t->wl.nr_tensors; i++) {
        const struct wl_tensor *x = &t->wl.tensor[i];
        if (x->role != WL_INPUT && x->role != WL_CONST)
            continue;
        task_fill(t, i, logical[i]);
        if (stored)
            layout_pack(&x->layout, logical[i], stored[i]);
    }
}

static void free_arrays(float **a)
{
    for (int i = 0; i < WL_MAX_TENSORS; i++)
        free(a[i]);
}

/* The result of the interpreter, when a task has no reference of its own. */
static float *expected_by_interpreter(const struct task *t, float *const *logical)
{
    float *stored[WL_MAX_TENSORS] = {0}, *result = NULL;
    for (int i = 0; i < t->wl.nr_tensors; i++)
        if (!(stored[i] = alloc_floats(layout_stored_size(&t->wl.tensor[i].layout))))
            goto out;
    fill_all(t, logical, stored);
    workload_interpret(&t->wl, stored);
    int out = workload_output(&t->wl);
    result = stored[out];
    stored[out] = NULL;
out:
    free_arrays(stored);
    return result;
}

static float *expected_by_reference(const struct task *t, float *const *logical)
{
    int out = workload_output(&t->wl);
    const struct layout *l = &t->wl.tensor[out].layout;
    float *result = alloc_floats(layout_stored_size(l));
    if (!result)
        return NULL;
    fill_all(t, logical, NULL);
    t->reference(t->ctx, logical);
    layout_pack(l, logical[out], result);
    return result;
}

float *task_expected(const struct task *t, struct err *e)
{
    float *logical[WL_MAX_TENSORS] = {0}, *result = NULL;
    bool fits = true;
    for (int i = 0; i < t->wl.nr_tensors && fits; i++) {
        const struct wl_tensor *x = &t->wl.tensor[i];
        if (x->role == WL_TEMP)
            continue;
        logical[i] = alloc_floats(layout_logical_size(&x->layout));
        fits = logical[i] != NULL;
    }
    if (fits)
        result =
            t->reference ? expected_by_reference(t, logical) : expected_by_interpreter(t, logical);
    free_arrays(logical);
    if (!result)
        err_set(e, ERR_NOMEM, "not enough memory for the reference of task \"%s\"", t->name);
    return result;
}

/*
 * Marks the stored elements that stand for none of the logical array: a kernel may leave anything
 * finite there. Returns NULL where there are none.
 */
static unsigned char *padding_of(const struct layout *l, int64_t n)
{
    int64_t logical = layout_logical_size(l);
    if (n != layout_stored_size(l) || n == logical)
        return NULL;
    float *ones = alloc_floats(logical), *stored = alloc_floats(n);
    unsigned char *mark = malloc((size_t)n);
    if (ones && stored && mark) {
        for (int64_t i = 0; i < logical; i++)
            ones[i] = 1;
        layout_pack(l, ones, stored);
        for (int64_t i = 0; i < n; i++)
            mark[i] = stored[i] == 0;
    } else {
        free(mark);
        mark = NULL;
    }
    free(ones);
    free(stored);
    return mark;
}

double task_error(const struct task *t, const float *got, const float *want, int64_t n, int64_t *at)
{
    unsigned char *padding = padding_of(&t->wl.tensor[workload_output(&t->wl)].layout, n);
    struct tolerance tolerance = tolerance_of(want, padding, n, t->reduce_length);
    struct comparison c = compare_output(got, want, padding, n, tolerance);
    free(padding);
    if (at)
        *at = c.at;
    return c.error;
}
