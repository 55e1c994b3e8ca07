/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/tensor/layout.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/arena.h"
#include "engine/tensor/winograd.h"

struct layout layout_plain(int nr, const int64_t *dims)
{
    assert(nr >= 0 && nr <= LAYOUT_MAX_DIMS);
    struct layout l = {.nr_l = nr, .nr_p = nr};
    for (int i = 0; i < nr; i++) {
        l.l[i] = dims[i];
        l.p[i] = (struct layout_dim){.extent = dims[i], .coef = 1, .dim = i};
    }
    return l;
}

struct layout layout_blocked(int nr, const int64_t *dims, int dim, int64_t block)
{
    assert(dim >= 0 && dim < nr && nr < LAYOUT_MAX_STORED && block > 0);
    struct layout l = layout_plain(nr, dims);
    l.p[dim].extent = (dims[dim] + block - 1) / block;
    l.p[dim].coef = block;
    l.p[l.nr_p++] = (struct layout_dim){.extent = block, .coef = 1, .dim = dim};
    return l;
}

bool layout_is_plain(const struct layout *l)
{
    if (l->nr_p != l->nr_l)
        return false;
    for (int i = 0; i < l->nr_p; i++)
        if (l->p[i].dim != i || l->p[i].coef != 1 || l->p[i].extent != l->l[i])
            return false;
    return true;
}

int64_t layout_logical_size(const struct layout *l)
{
    int64_t n = 1;
    for (int i = 0; i < l->nr_l; i++)
        n *= l->l[i];
    return n;
}

int64_t layout_stored_size(const struct layout *l)
{
    int64_t n = 1;
    for (int i = 0; i < l->nr_p; i++)
        n *= l->p[i].extent;
    return n;
}

/*
 * A walk visits the stored array in order, one run a step: the elements along one stored dimension,
 * `n` of them, `step` logical elements apart. Neighbouring stored dimensions that move through the
 * logical array as one (H and W of a plain array) are walked as one, so runs are long where they
 * can be. A merged dimension never leaves the logical array by itself and so needs no bound.
 */
struct walk_dim {
    int64_t extent;
    int64_t step; /* logical elements a step */
    int64_t coef; /* of the logical index; 0 where it cannot leave its range */
    int dim;
};

struct walk {
    int nr;
    struct walk_dim d[LAYOUT_MAX_STORED];
    int nr_l;
    int64_t l[LAYOUT_MAX_DIMS];
    int64_t pos[LAYOUT_MAX_DIMS];
    const float *from; /* layout_pack */
    float *stored;
    float *to; /* layout_unpack */
};

/* Is the logical index of `dim` inside its extent whatever the stored index? */
static bool dim_is_inside(const struct layout *l, int dim)
{
    int64_t low = 0, high = 0;
    for (int i = 0; i < l->nr_p; i++) {
        if (l->p[i].dim != dim)
            continue;
        int64_t reach = l->p[i].coef * (l->p[i].extent - 1);
        if (reach < 0)
            low += reach;
        else
            high += reach;
    }
    return low >= 0 && high < l->l[dim];
}

static void walk_init(struct walk *w, const struct layout *l)
{
    int64_t stride[LAYOUT_MAX_DIMS + 1] = {0};
    bool inside[LAYOUT_MAX_DIMS] = {false};
    *w = (struct walk){.nr_l = l->nr_l};
    int64_t step = 1;
    for (int i = l->nr_l; i-- > 0;) {
        stride[i] = step;
        step *= l->l[i];
        w->l[i] = l->l[i];
        inside[i] = dim_is_inside(l, i);
    }
    for (int i = 0; i < l->nr_p; i++) {
        const struct layout_dim *p = &l->p[i];
        if (p->extent == 1)
            continue;
        struct walk_dim d = {.extent = p->extent,
                             .step = p->coef * stride[p->dim],
                             .coef = inside[p->dim] ? 0 : p->coef,
                             .dim = p->dim};
        struct walk_dim *last = w->nr ? &w->d[w->nr - 1] : NULL;
        if (last && !last->coef && !d.coef && last->step == d.step * d.extent) {
            last->step = d.step;
            last->extent *= d.extent;
        } else {
            w->d[w->nr++] = d;
        }
    }
    if (!w->nr)
        w->d[w->nr++] = (struct walk_dim){.extent = 1};
}

static bool walk_outer_inside(const struct walk *w, int skip)
{
    for (int i = 0; i < w->nr_l; i++)
        if (i != skip && (w->pos[i] < 0 || w->pos[i] >= w->l[i]))
            return false;
    return true;
}

/* The part [*first, *end) of a run along `d` that is inside the logical array. */
static void run_range(const struct walk *w, const struct walk_dim *d, int64_t *first, int64_t *end)
{
    *first = 0;
    *end = d->extent;
    if (!walk_outer_inside(w, d->coef ? d->dim : -1)) {
        *end = 0;
    } else if (d->coef > 0) {
        int64_t pos = w->pos[d->dim], room = w->l[d->dim] - pos;
        if (pos < 0)
            *first = (-pos + d->coef - 1) / d->coef;
        int64_t fit = room > 0 ? (room + d->coef - 1) / d->coef : 0;
        if (fit < *end)
            *end = fit;
    } else if (d->coef < 0) {
        int64_t pos = w->pos[d->dim], top = w->l[d->dim] - 1;
        if (pos > top)
            *first = (pos - top - d->coef - 1) / -d->coef;
        int64_t fit = pos >= 0 ? pos / -d->coef + 1 : 0;
        if (fit < *end)
            *end = fit;
    }
    if (*first > *end)
        *first = *end;
}

static void pack_run(struct walk *w, const struct walk_dim *d, int64_t at)
{
    int64_t first, end;
    run_range(w, d, &first, &end);
    float *restrict out = w->stored;
    w->stored += d->extent;
    if (first >= end) {
        memset(out, 0, (size_t)d->extent * sizeof *out);
        return;
    }
    const float *restrict in = w->from + at;
    int64_t step = d->step;
    for (int64_t i = 0; i < first; i++)
        out[i] = 0;
    if (step == 1)
        memcpy(out + first, in + first, (size_t)(end - first) * sizeof *out);
    else
        for (int64_t i = first; i < end; i++)
            out[i] = in[i * step];
    for (int64_t i = end; i < d->extent; i++)
        out[i] = 0;
}

static void unpack_run(struct walk *w, const struct walk_dim *d, int64_t at)
{
    int64_t first, end;
    run_range(w, d, &first, &end);
    const float *restrict in = w->stored;
    w->stored += d->extent;
    if (first >= end)
        return;
    float *restrict out = w->to + at;
    int64_t step = d->step;
    if (step == 1)
        memcpy(out + first, in + first, (size_t)(end - first) * sizeof *out);
    else
        for (int64_t i = first; i < end; i++)
            out[i * step] = in[i];
}

/* Recursion is as deep as there are stored dimensions. */
static void walk_from(struct walk *w, int k, int64_t at)
{
    const struct walk_dim *d = &w->d[k];
    if (k == w->nr - 1) {
        if (w->from)
            pack_run(w, d, at);
        else
            unpack_run(w, d, at);
        return;
    }
    int64_t pos = w->pos[d->dim];
    for (int64_t i = 0; i < d->extent; i++) {
        walk_from(w, k + 1, at + i * d->step);
        w->pos[d->dim] += d->coef;
    }
    w->pos[d->dim] = pos;
}

bool layout_equal(const struct layout *a, const struct layout *b)
{
    if (a->nr_l != b->nr_l || a->nr_p != b->nr_p || a->transform != b->transform)
        return false;
    for (int i = 0; i < a->nr_l; i++)
        if (a->l[i] != b->l[i])
            return false;
    for (int i = 0; i < a->nr_p; i++)
        if (a->p[i].extent != b->p[i].extent || a->p[i].coef != b->p[i].coef ||
            a->p[i].dim != b->p[i].dim)
            return false;
    return true;
}

bool layout_split_transform(const struct layout *l, struct layout *first, struct layout *rest)
{
    if (l->transform == LAYOUT_AS_IS)
        return false;
    int64_t a = (int64_t)l->transform + 2;
    struct layout plain = layout_plain(3, (int64_t[]){a * a, l->l[0], l->l[1]});
    *first = plain;
    first->transform = l->transform;
    first->nr_l = l->nr_l;
    memcpy(first->l, l->l, sizeof first->l);
    *rest = *l;
    rest->transform = LAYOUT_AS_IS;
    rest->nr_l = plain.nr_l;
    memcpy(rest->l, plain.l, sizeof rest->l);
    return !layout_equal(l, first);
}

/* Transforms the weights first, and packs what comes out. */
static void pack_transformed(const struct layout *l, const float *logical, float *stored)
{
    struct layout first, rest;
    if (!layout_split_transform(l, &first, &rest)) {
        winograd_weights((int)l->transform, l->l[0], l->l[1], logical, stored);
        return;
    }
    float *u = xmalloc((size_t)layout_stored_size(&first) * sizeof *u);
    layout_pack(&first, logical, u);
    layout_pack(&rest, u, stored);
    free(u);
}

void layout_pack(const struct layout *l, const float *logical, float *stored)
{
    if (l->transform != LAYOUT_AS_IS) {
        pack_transformed(l, logical, stored);
        return;
    }
    struct walk w;
    walk_init(&w, l);
    w.from = logical;
    w.stored = stored;
    walk_from(&w, 0, 0);
}

void layout_unpack(const struct layout *l, const float *stored, float *logical)
{
    struct walk w;
    walk_init(&w, l);
    w.to = logical;
    w.stored = (float *)stored; /* only read: w.from is NULL */
    walk_from(&w, 0, 0);
}
