/* SPDX-License-Identifier: Apache-2.0 */
/* From the rows that a reader collected to a space: domains in order, one row a configuration. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "backends/recorded/private.h"
#include "engine/base/hash.h"

static bool all_numbers(const struct recorded_knob *k)
{
    for (int i = 0; i < k->nr_values; i++) {
        if (k->value[i].type != RECORDED_INT && k->value[i].type != RECORDED_REAL)
            return false;
        if (!isfinite(k->value[i].num))
            return false;
    }
    return true;
}

static bool monotone(const struct recorded_knob *k)
{
    bool up = true, down = true;
    for (int i = 1; i < k->nr_values; i++) {
        up = up && k->value[i].num > k->value[i - 1].num;
        down = down && k->value[i].num < k->value[i - 1].num;
    }
    return up || down;
}

struct place {
    double num;
    int32_t was;
};

static int by_number(const void *a, const void *b)
{
    const struct place *x = a, *y = b;
    if (x->num != y->num)
        return x->num < y->num ? -1 : 1;
    return x->was < y->was ? -1 : x->was > y->was;
}

/* A row without the knob gets the value null. A domain of numbers is put in order, unless the file
 * states one that is in order already, up or down. */
static void settle_knob(struct builder *b, int i)
{
    struct builder_knob *bk = &b->knob[i];
    struct recorded *r = b->r;
    int absent = -1;
    for (int row = 0; row < r->nr_rows; row++) {
        int32_t *v = &b->index[(size_t)row * (size_t)b->stride + (size_t)i];
        if (*v < 0) {
            if (absent < 0)
                absent = builder_value(b, i, &(struct recorded_value){.num = NAN});
            *v = absent < 0 ? 0 : absent;
        }
    }
    struct recorded_knob *k = &bk->k;
    k->inferred = !bk->stated;
    k->ordinal = all_numbers(k);
    if (!k->ordinal || (bk->stated && monotone(k)))
        return;
    struct place *order = xmalloc((size_t)k->nr_values * sizeof *order);
    struct recorded_value *sorted = xmalloc((size_t)k->nr_values * sizeof *sorted);
    int32_t *now = xmalloc((size_t)k->nr_values * sizeof *now);
    for (int v = 0; v < k->nr_values; v++)
        order[v] = (struct place){k->value[v].num, v};
    qsort(order, (size_t)k->nr_values, sizeof *order, by_number);
    for (int v = 0; v < k->nr_values; v++) {
        sorted[v] = k->value[order[v].was];
        now[order[v].was] = v;
    }
    for (int row = 0; row < r->nr_rows; row++) {
        int32_t *v = &b->index[(size_t)row * (size_t)b->stride + (size_t)i];
        *v = now[*v];
    }
    memcpy(k->value, sorted, (size_t)k->nr_values * sizeof *sorted);
    free(order);
    free(sorted);
    free(now);
}

static uint32_t index_hash(const int32_t *index, int nr)
{
    return (uint32_t)(hash64(HASH64_INIT, index, (size_t)nr * sizeof *index) >> 16);
}

int recorded_find(const struct recorded *r, const int32_t *index)
{
    if (!r->nr_buckets)
        return -1;
    uint32_t at = index_hash(index, r->nr_knobs) & (r->nr_buckets - 1);
    for (; r->bucket[at]; at = (at + 1) & (r->nr_buckets - 1)) {
        int row = r->bucket[at] - 1;
        if (!memcmp(recorded_index(r, row), index, (size_t)r->nr_knobs * sizeof *index))
            return row;
    }
    return -1;
}

/* Further runs of a configuration: samples and costs add up, the value is their mean. */
static void merge_rows(struct recorded *r, struct recorded_row *to, const struct recorded_row *more)
{
    for (int i = 0; i < RECORDED_NR_PARTS; i++) {
        if (isfinite(more->part_ms[i]))
            to->part_ms[i] = (isfinite(to->part_ms[i]) ? to->part_ms[i] : 0) + more->part_ms[i];
    }
    if (isfinite(more->cost_s))
        to->cost_s = (isfinite(to->cost_s) ? to->cost_s : 0) + more->cost_s;
    if (more->status != RECORDED_OK)
        return;
    if (to->status != RECORDED_OK) {
        double cost_s = to->cost_s, part_ms[RECORDED_NR_PARTS];
        memcpy(part_ms, to->part_ms, sizeof part_ms);
        *to = *more;
        to->cost_s = cost_s;
        memcpy(to->part_ms, part_ms, sizeof part_ms);
        return;
    }
    int nr = to->nr_samples + more->nr_samples;
    double *all = ARENA_ARRAY(&r->arena, double, nr);
    for (int i = 0; i < nr; i++)
        all[i] = i < to->nr_samples ? to->sample_ms[i] : more->sample_ms[i - to->nr_samples];
    int a = to->nr_samples > 0 ? to->nr_samples : 1, b = more->nr_samples > 0 ? more->nr_samples : 1;
    to->value = (to->value * a + more->value * b) / (a + b);
    to->sample_ms = all;
    to->nr_samples = nr;
}

/* Packs the indices to the number of knobs and keeps one row a configuration. */
static void settle_rows(struct builder *b)
{
    struct recorded *r = b->r;
    r->index = xmalloc((size_t)r->nr_rows * (size_t)r->nr_knobs * sizeof *r->index);
    r->nr_buckets = 16;
    while (r->nr_buckets < (uint32_t)r->nr_rows * 2)
        r->nr_buckets *= 2;
    r->bucket = xcalloc(r->nr_buckets, sizeof *r->bucket);
    int kept = 0;
    for (int i = 0; i < r->nr_rows; i++) {
        const int32_t *index = b->index + (size_t)i * (size_t)b->stride;
        int row = recorded_find(r, index);
        if (row >= 0) {
            r->nr_duplicates++;
            if (b->merge)
                merge_rows(r, &r->row[row], &r->row[i]);
            else
                r->row[row] = r->row[i];
            continue;
        }
        memcpy(r->index + (size_t)kept * (size_t)r->nr_knobs, index,
               (size_t)r->nr_knobs * sizeof *index);
        r->row[kept++] = r->row[i];
        uint32_t at = index_hash(index, r->nr_knobs) & (r->nr_buckets - 1);
        while (r->bucket[at])
            at = (at + 1) & (r->nr_buckets - 1);
        r->bucket[at] = kept;
    }
    r->nr_rows = kept;
}

static void set_direction(struct recorded *r, const struct recorded_options *o)
{
    int known = o && o->direction ? (o->direction > 0 ? 1 : -1) : objective_direction(r->objective);
    if (!known) {
        /* The hub's meta-tuning files maximise "score"; rates go by a slash. */
        r->direction_guessed = true;
        known = strcmp(r->objective, "score") == 0 || strstr(r->objective, "/s") ? 1 : -1;
    }
    r->maximise = known > 0;
}

static void settle_values(struct recorded *r)
{
    for (int i = 0; i < r->nr_rows; i++) {
        struct recorded_row *row = &r->row[i];
        r->has_cost = r->has_cost || isfinite(row->cost_s);
        if (row->status == RECORDED_OK && is_failure_value(row->value)) {
            row->status = RECORDED_RUNTIME;
            row->reason = "has no value of the objective";
        }
        if (row->status != RECORDED_OK) {
            row->value = INFINITY;
            continue;
        }
        if (r->maximise)
            row->value = -row->value;
        r->nr_ok++;
        if (r->best < 0 || row->value < r->row[r->best].value)
            r->best = i;
    }
}

int builder_finish(struct builder *b, const struct recorded_options *o, struct recorded **out,
                   struct err *e)
{
    struct recorded *r = b->r;
    if (!r->nr_rows || !b->nr_knobs)
        return err_set(e, ERR_INPUT, "\"%s\" holds no configurations", r->path);
    for (int i = 0; i < b->nr_knobs; i++)
        settle_knob(b, i);
    r->nr_knobs = b->nr_knobs;
    r->knob = ARENA_ARRAY(&r->arena, struct recorded_knob, b->nr_knobs);
    for (int i = 0; i < b->nr_knobs; i++) {
        struct recorded_knob *k = &r->knob[i];
        *k = b->knob[i].k;
        k->value = arena_dup(&r->arena, k->value, (size_t)k->nr_values * sizeof *k->value);
    }
    settle_rows(b);
    set_direction(r, o);
    settle_values(r);
    if (!r->nr_ok)
        return err_set(e, ERR_INPUT, "no configuration of \"%s\" has a value of \"%s\"", r->path,
                       r->objective);
    *out = r;
    b->r = NULL;
    return 0;
}
