/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/model/memory.h"

#include <stdbool.h>
#include <stdlib.h>

#include "engine/base/arena.h"

static int64_t round_up(int64_t v, int64_t align)
{
    return (v + align - 1) & -align;
}

static bool meet(const struct memory_item *a, const struct memory_item *b)
{
    return a->first <= b->last && b->first <= a->last;
}

static int larger_first(const void *a, const void *b)
{
    const struct memory_item *x = *(struct memory_item *const *)a;
    const struct memory_item *y = *(struct memory_item *const *)b;
    if (x->bytes != y->bytes)
        return x->bytes < y->bytes ? 1 : -1;
    return x < y ? -1 : x > y; /* in the order given: the same result everywhere */
}

/* Best fit among `placed`, which are in the order of their offsets. */
static int64_t find_gap(const struct memory_item *m, struct memory_item *const *placed, int nr,
                        int64_t align)
{
    int64_t end = 0, best = -1, best_size = INT64_MAX;
    for (int i = 0; i < nr; i++) {
        const struct memory_item *p = placed[i];
        if (!meet(m, p))
            continue;
        int64_t size = p->offset - end;
        if (size >= m->bytes && size < best_size) {
            best = end;
            best_size = size;
        }
        int64_t behind = round_up(p->offset + p->bytes, align);
        end = behind > end ? behind : end;
    }
    return best >= 0 ? best : end;
}

int64_t memory_place(struct memory_item *item, int nr, int64_t align)
{
    struct memory_item **order = xcalloc((size_t)nr, sizeof *order);
    struct memory_item **placed = xcalloc((size_t)nr, sizeof *placed);
    int64_t total = 0;
    for (int i = 0; i < nr; i++)
        order[i] = &item[i];
    qsort(order, (size_t)nr, sizeof *order, larger_first);
    for (int i = 0; i < nr; i++) {
        struct memory_item *m = order[i];
        m->offset = find_gap(m, placed, i, align);
        int at = i;
        for (; at > 0 && placed[at - 1]->offset > m->offset; at--)
            placed[at] = placed[at - 1];
        placed[at] = m;
        int64_t end = round_up(m->offset + m->bytes, align);
        total = end > total ? end : total;
    }
    free(placed);
    free(order);
    return total;
}

int64_t memory_bound(const struct memory_item *item, int nr, int64_t align)
{
    int64_t most = 0;
    for (int i = 0; i < nr; i++) { /* the sum is largest where some life begins */
        int64_t sum = 0;
        for (int k = 0; k < nr; k++)
            if (item[k].first <= item[i].first && item[i].first <= item[k].last)
                sum += round_up(item[k].bytes, align);
        most = sum > most ? sum : most;
    }
    return most;
}
