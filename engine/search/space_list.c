/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/search/space_list.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* qsort() passes nothing on, so every row to be sorted says how long it is. */
struct listed_row {
    const int32_t *v;
    int nr;
};

static int compare_slots(const int32_t *a, const int32_t *b, int nr)
{
    for (int i = 0; i < nr; i++) {
        if (a[i] != b[i])
            return a[i] < b[i] ? -1 : 1;
    }
    return 0;
}

static int compare_rows(const void *a, const void *b)
{
    const struct listed_row *x = a, *y = b;
    return compare_slots(x->v, y->v, x->nr);
}

void sketch_list(struct space *s, struct sketch *k, const char *name, int nr, const int32_t *slots)
{
    assert(nr > 0 && !k->listed);
    struct listed_row *row = xmalloc((size_t)nr * sizeof *row);
    for (int i = 0; i < nr; i++)
        row[i] = (struct listed_row){slots + (size_t)i * (size_t)k->nr_slots, k->nr_slots};
    qsort(row, (size_t)nr, sizeof *row, compare_rows);
    int32_t *copy = ARENA_ARRAY(&s->arena, int32_t, (size_t)nr * (size_t)k->nr_slots + 1);
    int distinct = 0;
    for (int i = 0; i < nr; i++) {
        if (i && compare_rows(&row[i - 1], &row[i]) == 0)
            continue;
        if (k->nr_slots)
            memcpy(copy + (size_t)distinct * (size_t)k->nr_slots, row[i].v,
                   (size_t)k->nr_slots * sizeof *copy);
        distinct++;
    }
    free(row);
    k->listed = copy;
    k->nr_listed = distinct;
    k->list_name = arena_strdup(&s->arena, name);
}

int list_find(const struct sketch *k, const int32_t *v)
{
    int lo = 0, hi = k->nr_listed;
    while (lo < hi) {
        int mid = lo + (hi - lo) / 2, order = compare_slots(list_at(k, mid), v, k->nr_slots);
        if (order == 0)
            return mid;
        if (order < 0)
            lo = mid + 1;
        else
            hi = mid;
    }
    return -1;
}

void list_get(const struct sketch *k, int i, struct candidate *out)
{
    memset(out, 0, sizeof *out);
    out->sketch = k->start.sketch;
    out->nr = k->nr_slots;
    memcpy(out->v, list_at(k, i), (size_t)k->nr_slots * sizeof *out->v);
}

bool list_allows(const struct sketch *k, int i, struct candidate *out)
{
    list_get(k, i, out);
    for (int c = 0; c < k->nr_constraints; c++) {
        if (!k->constraint[c].ok(k->constraint[c].ctx, out))
            return false;
    }
    return true;
}

int64_t list_count(const struct sketch *k, int64_t cap)
{
    struct candidate c;
    int64_t n = 0;
    if (k->nr_constraints == 0)
        return k->nr_listed < cap ? k->nr_listed : cap;
    for (int i = 0; i < k->nr_listed && n < cap; i++)
        n += list_allows(k, i, &c);
    return n;
}

bool list_sample(const struct sketch *k, struct rng *r, struct candidate *out)
{
    enum { DRAWS = 256 };
    int nr = k->nr_listed;
    for (int i = 0; i < DRAWS; i++) {
        if (list_allows(k, (int)rng_below(r, (uint64_t)nr), out))
            return true;
    }
    /* Hardly any: the one after a random place is found for certain. */
    int from = (int)rng_below(r, (uint64_t)nr);
    for (int i = 0; i < nr; i++) {
        if (list_allows(k, (from + i) % nr, out))
            return true;
    }
    return false;
}
