/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/recorded/private.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/hash.h"

void builder_init(struct builder *b, const char *path, const char *format)
{
    memset(b, 0, sizeof *b);
    struct recorded *r = b->r = xcalloc(1, sizeof *r);
    r->path = arena_strdup(&r->arena, path);
    r->format = arena_strdup(&r->arena, format);
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    const char *end = strstr(name, ".json");
    r->name = arena_strndup(&r->arena, name, end && end > name ? (size_t)(end - name) : strlen(name));
    r->device = r->kernel = r->unit = "";
    r->objective = "time";
    r->best = -1;
}

void builder_release(struct builder *b)
{
    for (int i = 0; i < b->nr_knobs; i++) {
        free(b->knob[i].k.value);
        free(b->knob[i].bucket);
    }
    free(b->knob);
    free(b->index);
    free(b->now_index);
    free(b->metric);
    free(b->number);
    free(b->word_bucket);
    recorded_free(b->r);
    memset(b, 0, sizeof *b);
}

int builder_find_knob(const struct builder *b, const char *name)
{
    for (int i = 0; i < b->nr_knobs; i++) {
        if (strcmp(b->knob[i].k.name, name) == 0)
            return i;
    }
    return -1;
}

/* Rows read so far do not have the knobs that come with a wider stride. */
static void widen(struct builder *b)
{
    int stride = b->stride ? b->stride * 2 : 16;
    int32_t *index = xmalloc((size_t)b->cap_rows * (size_t)stride * sizeof *index);
    for (int r = 0; r < b->r->nr_rows; r++) {
        int32_t *row = index + (size_t)r * (size_t)stride;
        for (int k = 0; k < stride; k++)
            row[k] = k < b->stride ? b->index[(size_t)r * (size_t)b->stride + (size_t)k] : -1;
    }
    free(b->index);
    b->index = index;
    b->now_index = xrealloc(b->now_index, (size_t)stride * sizeof *b->now_index);
    for (int k = b->stride; k < stride; k++)
        b->now_index[k] = -1;
    b->stride = stride;
}

int builder_knob(struct builder *b, const char *name)
{
    int i = builder_find_knob(b, name);
    if (i >= 0)
        return i;
    if (b->nr_knobs == RECORDED_MAX_KNOBS)
        return -1;
    GROW(b->knob, b->nr_knobs, b->cap_knobs);
    if (b->nr_knobs == b->stride)
        widen(b);
    b->knob[b->nr_knobs] = (struct builder_knob){
        .k.name = arena_strdup(&b->r->arena, name),
    };
    return b->nr_knobs++;
}

/* Numbers that are equal hash alike, whatever their type: 1, 1.0 and true. */
static uint64_t value_hash(const struct recorded_value *v)
{
    if (v->type == RECORDED_TEXT)
        return hash64(HASH64_INIT, v->text, strlen(v->text));
    if (v->type == RECORDED_NULL)
        return 1;
    double x = v->num == 0 ? 0 : v->num; /* -0.0 */
    return hash64(HASH64_INIT, &x, sizeof x);
}

/* 2: the same; 1: equal numbers of different types, as Python compares them; 0: different. */
static int value_match(const struct recorded_value *a, const struct recorded_value *b)
{
    if (a->type == RECORDED_TEXT || b->type == RECORDED_TEXT)
        return a->type == b->type && strcmp(a->text, b->text) == 0 ? 2 : 0;
    if (a->type == RECORDED_NULL || b->type == RECORDED_NULL)
        return a->type == b->type ? 2 : 0;
    bool ints = a->type != RECORDED_REAL && b->type != RECORDED_REAL;
    bool equal = ints ? a->i == b->i : a->num == b->num || (isnan(a->num) && isnan(b->num));
    return !equal ? 0 : a->type == b->type ? 2 : 1;
}

static void rehash(struct builder_knob *k)
{
    uint32_t size = k->nr_buckets ? k->nr_buckets * 2 : 16;
    free(k->bucket);
    k->bucket = xcalloc(size, sizeof *k->bucket);
    k->nr_buckets = size;
    for (int i = 0; i < k->k.nr_values; i++) {
        uint32_t at = (uint32_t)value_hash(&k->k.value[i]) & (size - 1);
        while (k->bucket[at])
            at = (at + 1) & (size - 1);
        k->bucket[at] = i + 1;
    }
}

int builder_value(struct builder *b, int knob, const struct recorded_value *v)
{
    struct builder_knob *k = &b->knob[knob];
    if ((uint32_t)k->k.nr_values * 2 >= k->nr_buckets)
        rehash(k);
    uint32_t at = (uint32_t)value_hash(v) & (k->nr_buckets - 1);
    int equal = -1;
    for (; k->bucket[at]; at = (at + 1) & (k->nr_buckets - 1)) {
        int i = k->bucket[at] - 1, match = value_match(&k->k.value[i], v);
        if (match == 2)
            return i;
        if (match == 1 && equal < 0)
            equal = i;
    }
    if (equal >= 0)
        return equal;
    if (k->k.nr_values == RECORDED_MAX_VALUES)
        return -1;
    GROW(k->k.value, k->k.nr_values, k->cap);
    k->k.value[k->k.nr_values] = *v;
    if (v->type == RECORDED_TEXT)
        k->k.value[k->k.nr_values].text = arena_strdup(&b->r->arena, v->text);
    k->bucket[at] = ++k->k.nr_values;
    return k->k.nr_values - 1;
}

void builder_begin_row(struct builder *b)
{
    b->now = (struct recorded_row){.value = NAN};
    for (int i = 0; i < RECORDED_NR_PARTS; i++)
        b->now.part_ms[i] = NAN;
    for (int k = 0; k < b->stride; k++)
        b->now_index[k] = -1;
    b->nr_metrics = 0;
}

static double row_cost(const struct recorded_row *row)
{
    double sum = NAN;
    for (int i = 0; i < RECORDED_NR_PARTS; i++) {
        if (isfinite(row->part_ms[i]))
            sum = (isnan(sum) ? 0 : sum) + row->part_ms[i];
    }
    return sum / 1000;
}

void builder_end_row(struct builder *b)
{
    struct recorded *r = b->r;
    if (r->nr_rows == b->cap_rows) {
        b->cap_rows = b->cap_rows ? b->cap_rows * 2 : 256;
        r->row = xrealloc(r->row, (size_t)b->cap_rows * sizeof *r->row);
        b->index = xrealloc(b->index, (size_t)b->cap_rows * (size_t)b->stride * sizeof *b->index);
    }
    b->now.cost_s = row_cost(&b->now);
    b->now.nr_metrics = b->nr_metrics;
    b->now.metric = arena_dup(&r->arena, b->metric, (size_t)b->nr_metrics * sizeof *b->metric);
    r->row[r->nr_rows] = b->now;
    if (b->stride)
        memcpy(b->index + (size_t)r->nr_rows * (size_t)b->stride, b->now_index,
               (size_t)b->stride * sizeof *b->index);
    r->nr_rows++;
}

int32_t builder_word(struct builder *b, const char *word)
{
    struct recorded *r = b->r;
    if ((uint32_t)r->nr_words * 2 >= b->nr_word_buckets) {
        b->nr_word_buckets = b->nr_word_buckets ? b->nr_word_buckets * 2 : 64;
        free(b->word_bucket);
        b->word_bucket = xcalloc(b->nr_word_buckets, sizeof *b->word_bucket);
        for (int i = 0; i < r->nr_words; i++) {
            uint32_t at = (uint32_t)hash64(HASH64_INIT, r->word[i], strlen(r->word[i]));
            for (at &= b->nr_word_buckets - 1; b->word_bucket[at];)
                at = (at + 1) & (b->nr_word_buckets - 1);
            b->word_bucket[at] = i + 1;
        }
    }
    uint32_t at = (uint32_t)hash64(HASH64_INIT, word, strlen(word)) & (b->nr_word_buckets - 1);
    for (; b->word_bucket[at]; at = (at + 1) & (b->nr_word_buckets - 1)) {
        if (strcmp(r->word[b->word_bucket[at] - 1], word) == 0)
            return b->word_bucket[at] - 1;
    }
    GROW(r->word, r->nr_words, b->cap_words);
    r->word[r->nr_words] = arena_strdup(&r->arena, word);
    b->word_bucket[at] = ++r->nr_words;
    return r->nr_words - 1;
}

struct recorded_metric *builder_metric(struct builder *b, const char *name, const char *unit)
{
    GROW(b->metric, b->nr_metrics, b->cap_metrics);
    struct recorded_metric *m = &b->metric[b->nr_metrics++];
    *m = (struct recorded_metric){.name = builder_word(b, name),
                                  .unit = unit ? builder_word(b, unit) : -1,
                                  .num = NAN};
    return m;
}

bool read_value(struct jread *j, struct builder *b, struct recorded_value *out)
{
    struct jread_number n;
    const char *raw;
    size_t len;
    char c = jread_peek(j);
    *out = (struct recorded_value){.num = NAN};
    switch (c) {
    case '"':
        out->type = RECORDED_TEXT;
        if (!jread_string(j))
            return false;
        out->text = strbuf_text(&j->text);
        return true;
    case 't':
    case 'f':
        out->type = RECORDED_BOOL;
        out->i = c == 't';
        out->num = (double)out->i;
        return jread_word(j, &c);
    case 'n':
        return jread_word(j, &c);
    case '{':
    case '[':
        out->type = RECORDED_TEXT;
        if (!jread_raw(j, &raw, &len))
            return false;
        out->text = arena_strndup(&b->r->arena, raw, len);
        return true;
    default:
        if (!jread_number(j, &n))
            return false;
        out->type = n.is_int ? RECORDED_INT : RECORDED_REAL;
        out->i = n.i;
        out->num = n.num;
        return true;
    }
}

static void add_number(struct builder *b, double x)
{
    GROW(b->number, b->nr_numbers, b->cap_numbers);
    b->number[b->nr_numbers++] = x;
}

/* The last number of a list within the list. */
static bool read_inner(struct jread *j, struct builder *b)
{
    struct jread_number n, last = {.num = NAN};
    if (!jread_open(j, '['))
        return false;
    while (jread_element(j)) {
        char c = jread_peek(j);
        if (c == '{' || c == '[' || c == '"' || c == 't' || c == 'f' || c == 'n') {
            if (!jread_skip(j))
                return false;
        } else if (jread_number(j, &n)) {
            last = n;
        } else {
            return false;
        }
    }
    if (isfinite(last.num))
        add_number(b, last.num);
    return !j->wrong;
}

bool read_numbers(struct jread *j, struct builder *b, bool *pairs)
{
    struct jread_number n;
    b->nr_numbers = 0;
    char c = jread_peek(j);
    if (c != '[') {
        if (c == '{' || c == '"' || c == 't' || c == 'f' || c == 'n')
            return jread_skip(j);
        if (!jread_number(j, &n))
            return false;
        add_number(b, n.num);
        return true;
    }
    if (!jread_open(j, '['))
        return false;
    while (jread_element(j)) {
        c = jread_peek(j);
        if (c == '[') {
            *pairs = true;
            if (!read_inner(j, b))
                return false;
        } else if (c == '{' || c == '"' || c == 't' || c == 'f' || c == 'n') {
            if (!jread_skip(j))
                return false;
        } else if (jread_number(j, &n)) {
            if (isfinite(n.num))
                add_number(b, n.num);
        } else {
            return false;
        }
    }
    return !j->wrong;
}

const double *keep_numbers(struct builder *b)
{
    return arena_dup(&b->r->arena, b->number, (size_t)b->nr_numbers * sizeof *b->number);
}

bool is_failure_value(double x)
{
    return !isfinite(x) || fabs(x) >= 1e20;
}

bool kernel_tuner_error(const char *text, enum recorded_status *out)
{
    static const struct {
        const char *name;
        enum recorded_status status;
    } names[] = {
        {"InvalidConfig", RECORDED_CONSTRAINTS},
        {"CompilationFailedConfig", RECORDED_COMPILE},
        {"RuntimeFailedConfig", RECORDED_RUNTIME},
        {"ErrorConfig", RECORDED_RUNTIME},
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (strcmp(text, names[i].name) == 0) {
            *out = names[i].status;
            return true;
        }
    }
    return false;
}

int objective_direction(const char *name)
{
    static const char *const less[] = {"time", "energy", "cost", "loss"};
    static const char *const more[] = {"fitness",  "GFLOP/s",  "TFLOP/s", "GB/s",    "TB/s",
                                       "GFLOPS/W", "TFLOPS/W", "GFLOP/J", "TFLOP/J"};
    for (size_t i = 0; i < sizeof less / sizeof *less; i++) {
        if (strcmp(name, less[i]) == 0)
            return -1;
    }
    for (size_t i = 0; i < sizeof more / sizeof *more; i++) {
        if (strcmp(name, more[i]) == 0)
            return 1;
    }
    return 0;
}
