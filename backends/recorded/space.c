/* SPDX-License-Identifier: Apache-2.0 */
/* The rows as a space of the engine. Knobs of one value are not decisions: they have no knob there. */
#include <stdlib.h>
#include <string.h>

#include "backends/recorded/private.h"

static bool is_open(const struct recorded_knob *k)
{
    return k->nr_values > 1;
}

static bool all_ints(const struct recorded_knob *k)
{
    for (int i = 0; i < k->nr_values; i++) {
        if (k->value[i].type != RECORDED_INT)
            return false;
    }
    return true;
}

/* Integers are themselves; all else is its number in the domain, with a label. */
static void add_knob(const struct recorded_knob *k, struct space *s, struct sketch *sketch)
{
    int64_t *value = xmalloc((size_t)k->nr_values * sizeof *value);
    bool ints = all_ints(k);
    for (int i = 0; i < k->nr_values; i++)
        value[i] = ints ? k->value[i].i : i;
    int at = (k->ordinal ? sketch_ordinal : sketch_choice)(s, sketch, k->name, k->nr_values, value);
    free(value);
    if (ints)
        return;
    char **label = xmalloc((size_t)k->nr_values * sizeof *label);
    for (int i = 0; i < k->nr_values; i++) {
        struct strbuf text = {0};
        recorded_value_json(&k->value[i], &text);
        label[i] = strbuf_detach(&text);
    }
    sketch_labels(s, sketch, at, (const char *const *)label);
    for (int i = 0; i < k->nr_values; i++)
        free(label[i]);
    free(label);
}

int recorded_row_of(const struct recorded *r, const struct candidate *c)
{
    int32_t index[RECORDED_MAX_KNOBS] = {0};
    for (int k = 0, slot = 0; k < r->nr_knobs; k++) {
        if (is_open(&r->knob[k]))
            index[k] = c->v[slot++];
    }
    return recorded_find(r, index);
}

static void pack(const struct recorded *r, int row, int32_t *v)
{
    const int32_t *index = recorded_index(r, row);
    for (int k = 0; k < r->nr_knobs; k++) {
        if (is_open(&r->knob[k]))
            *v++ = index[k];
    }
}

void recorded_candidate(const struct recorded *r, int row, struct candidate *out)
{
    memset(out, 0, sizeof *out);
    for (int k = 0; k < r->nr_knobs; k++)
        out->nr += is_open(&r->knob[k]);
    pack(r, row, out->v);
}

static bool is_before(const struct recorded *r, int a, int b)
{
    const int32_t *x = recorded_index(r, a), *y = recorded_index(r, b);
    for (int k = 0; k < r->nr_knobs; k++) {
        if (x[k] != y[k])
            return x[k] < y[k];
    }
    return false;
}

int recorded_first_ok(const struct recorded *r, const struct space *s)
{
    int first = -1;
    for (int i = 0; i < r->nr_rows; i++) {
        struct candidate c;
        if (r->row[i].status != RECORDED_OK || (first >= 0 && !is_before(r, i, first)))
            continue;
        recorded_candidate(r, i, &c);
        if (candidate_valid(s, &c, NULL))
            first = i;
    }
    return first;
}

int recorded_sketch(const struct recorded *r, struct space *out, struct sketch **k, struct err *e)
{
    int nr = 0;
    for (int i = 0; i < r->nr_knobs; i++)
        nr += is_open(&r->knob[i]);
    if (nr > SKETCH_MAX_KNOBS)
        return err_set(e, ERR_LIMIT, "\"%s\" has %d knobs of more than one value; squall takes %d",
                       r->path, nr, SKETCH_MAX_KNOBS);
    *k = space_sketch(out, *r->kernel ? r->kernel : r->name);
    for (int i = 0; i < r->nr_knobs; i++) {
        if (is_open(&r->knob[i]))
            add_knob(&r->knob[i], out, *k);
    }
    return 0;
}

int recorded_space(const struct recorded *r, struct space *out, struct err *e)
{
    struct sketch *k;
    int rc = recorded_sketch(r, out, &k, e);
    if (rc)
        return rc;
    size_t nr = (size_t)k->nr_slots;
    int32_t *slots = xmalloc(((size_t)r->nr_rows * nr + 1) * sizeof *slots);
    for (int i = 0; i < r->nr_rows; i++)
        pack(r, i, slots + (size_t)i * nr);
    sketch_list(out, k, "is one of the recorded configurations", r->nr_rows, slots);
    free(slots);
    recorded_candidate(r, recorded_first_ok(r, out), &k->start);
    return 0;
}
