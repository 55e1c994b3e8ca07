/* SPDX-License-Identifier: Apache-2.0 */
/*
 * KTT's own JSON: one result a run, so that a configuration may come several times. Times are in
 * Metadata.TimeUnit; domains are not in the file.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "backends/recorded/private.h"

struct ktt {
    struct reading *g;
    struct builder b;
    double ms;
    bool found;
    double total, overhead, movement, extra, searcher, validation, compilation;
};

static bool number_field(struct ktt *k, double *out)
{
    struct recorded_value v;
    if (!read_value(&k->g->j, &k->b, &v))
        return false;
    *out = v.num;
    return true;
}

/* {"Name": ..., "Value": ...}, of a knob or a counter; keys in any order, alphabetical as a rule. */
static bool read_named(struct ktt *k, bool knob)
{
    struct jread *j = &k->g->j;
    char name[256] = "";
    struct recorded_value v = {.num = NAN};
    if (!jread_open(j, '{'))
        return false;
    while (jread_key(j)) {
        const char *key = strbuf_text(&j->text);
        if (!strcmp(key, "Name") && jread_peek(j) == '"') {
            if (!jread_string(j))
                return false;
            strncpy(name, strbuf_text(&j->text), sizeof name - 1);
        } else if (!strcmp(key, "Value")) {
            if (!read_value(j, &k->b, &v))
                return false;
            if (v.type == RECORDED_TEXT)
                v.text = arena_strdup(&k->b.r->arena, v.text);
        } else if (!jread_skip(j)) {
            return false;
        }
    }
    if (j->wrong || !*name)
        return !j->wrong;
    if (!knob) {
        builder_metric(&k->b, name, NULL)->num = v.num;
        return true;
    }
    int i = builder_knob(&k->b, name);
    if (i < 0)
        return jread_fail(j, "has too many knobs");
    k->b.now_index[i] = builder_value(&k->b, i, &v);
    return true;
}

static bool read_list(struct ktt *k, bool knob)
{
    struct jread *j = &k->g->j;
    if (jread_peek(j) != '[')
        return jread_skip(j);
    if (!jread_open(j, '['))
        return false;
    while (jread_element(j)) {
        if (!read_named(k, knob))
            return false;
    }
    return !j->wrong;
}

/* Counters and registers of one kernel function of the run. */
static bool read_computation(struct ktt *k)
{
    struct jread *j = &k->g->j;
    if (!jread_open(j, '{'))
        return false;
    while (jread_key(j)) {
        const char *key = strbuf_text(&j->text);
        bool profiling = !strcmp(key, "ProfilingData"), compilation = !strcmp(key, "CompilationData");
        if ((!profiling && !compilation) || jread_peek(j) != '{') {
            if (!jread_skip(j))
                return false;
            continue;
        }
        if (!jread_open(j, '{'))
            return false;
        while (jread_key(j)) {
            char name[64];
            strncpy(name, strbuf_text(&j->text), sizeof name - 1);
            name[sizeof name - 1] = '\0';
            double x;
            if (profiling && !strcmp(name, "Counters") ? !read_list(k, false)
                                                       : !compilation && !jread_skip(j))
                return false;
            if (compilation) {
                if (!number_field(k, &x))
                    return false;
                builder_metric(&k->b, name, NULL)->num = x;
            }
        }
    }
    return !j->wrong;
}

static bool read_computations(struct ktt *k)
{
    struct jread *j = &k->g->j;
    if (jread_peek(j) != '[')
        return jread_skip(j);
    if (!jread_open(j, '['))
        return false;
    while (jread_element(j)) {
        if (!read_computation(k))
            return false;
    }
    return !j->wrong;
}

static bool read_status(struct ktt *k)
{
    static const struct {
        const char *name;
        enum recorded_status status;
    } names[] = {
        {"Ok", RECORDED_OK},
        {"ComputationFailed", RECORDED_RUNTIME},
        {"ValidationFailed", RECORDED_CORRECTNESS},
        {"CompilationFailed", RECORDED_COMPILE},
        {"DeviceLimitsExceeded", RECORDED_RUNTIME},
    };
    struct jread *j = &k->g->j;
    if (jread_peek(j) != '"')
        return jread_skip(j);
    if (!jread_string(j))
        return false;
    const char *text = strbuf_text(&j->text);
    k->b.now.status = RECORDED_UNKNOWN;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (strcmp(text, names[i].name) == 0)
            k->b.now.status = names[i].status;
    }
    if (k->b.now.status != RECORDED_OK)
        k->b.now.reason = arena_strdup(&k->b.r->arena, text);
    return true;
}

static bool result_field(struct ktt *k, const char *key)
{
    const struct {
        const char *name;
        double *to;
    } numbers[] = {
        {"TotalDuration", &k->total},          {"TotalOverhead", &k->overhead},
        {"DataMovementOverhead", &k->movement}, {"ExtraDuration", &k->extra},
        {"SearcherOverhead", &k->searcher},     {"ValidationOverhead", &k->validation},
        {"CompilationOverhead", &k->compilation},
    };
    struct jread *j = &k->g->j;
    struct recorded *r = k->b.r;
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        if (strcmp(key, numbers[i].name) == 0)
            return number_field(k, numbers[i].to);
    }
    if (!strcmp(key, "Configuration"))
        return read_list(k, true);
    if (!strcmp(key, "ComputationResults"))
        return read_computations(k);
    if (!strcmp(key, "Status"))
        return read_status(k);
    if (!strcmp(key, "KernelName") && !*r->kernel && jread_peek(j) == '"') {
        if (!jread_string(j))
            return false;
        r->kernel = arena_strdup(&r->arena, strbuf_text(&j->text));
        return true;
    }
    return jread_skip(j);
}

static double or_zero(double x)
{
    return isfinite(x) ? x : 0;
}

static bool read_result(struct ktt *k)
{
    struct jread *j = &k->g->j;
    struct builder *b = &k->b;
    builder_begin_row(b);
    k->total = k->overhead = k->movement = k->extra = NAN;
    k->searcher = k->validation = k->compilation = NAN;
    if (!jread_open(j, '{'))
        return false;
    while (jread_key(j)) {
        char key[64];
        strncpy(key, strbuf_text(&j->text), sizeof key - 1);
        key[sizeof key - 1] = '\0';
        if (!result_field(k, key))
            return false;
    }
    if (j->wrong)
        return false;
    struct recorded_row *row = &b->now;
    /* Where it is not stated, compiling took what is left of the overhead. */
    row->part_ms[PART_COMPILE] = isfinite(k->compilation)
                                     ? k->compilation
                                     : k->overhead - or_zero(k->searcher) -
                                           or_zero(k->validation) - or_zero(k->movement);
    row->part_ms[PART_BENCHMARK] = k->total + or_zero(k->extra);
    row->part_ms[PART_FRAMEWORK] = k->movement;
    row->part_ms[PART_STRATEGY] = k->searcher;
    row->part_ms[PART_VERIFY] = k->validation;
    row->value = k->total;
    if (row->status == RECORDED_OK && isfinite(k->total)) {
        b->nr_numbers = 0;
        GROW(b->number, b->nr_numbers, b->cap_numbers);
        b->number[b->nr_numbers++] = k->total;
        row->sample_ms = keep_numbers(b);
        row->nr_samples = 1;
    }
    builder_end_row(b);
    return true;
}

static bool read_metadata(struct ktt *k)
{
    struct jread *j = &k->g->j;
    struct recorded *r = k->b.r;
    if (jread_peek(j) != '{')
        return jread_skip(j);
    if (!jread_open(j, '{'))
        return false;
    while (jread_key(j)) {
        const char *key = strbuf_text(&j->text);
        bool device = !strcmp(key, "Device"), unit = !strcmp(key, "TimeUnit");
        if ((!device && !unit) || jread_peek(j) != '"') {
            if (!jread_skip(j))
                return false;
            continue;
        }
        if (!jread_string(j))
            return false;
        const char *text = strbuf_text(&j->text);
        if (device)
            r->device = arena_strdup(&r->arena, text);
        else if (time_unit_ms(text) > 0)
            k->ms = time_unit_ms(text);
    }
    return !j->wrong;
}

static bool read_document(struct ktt *k)
{
    struct jread *j = &k->g->j;
    if (!jread_open(j, '{'))
        return false;
    while (jread_key(j)) {
        const char *key = strbuf_text(&j->text);
        if (!strcmp(key, "Metadata")) {
            if (!read_metadata(k))
                return false;
        } else if (strcmp(key, "Results") != 0) {
            if (!jread_skip(j))
                return false;
        } else {
            k->found = true;
            if (!jread_open(j, '['))
                return false;
            while (jread_element(j)) {
                if (!read_result(k)) {
                    k->b.r->nr_damaged++;
                    return false;
                }
            }
        }
    }
    return !j->wrong;
}

/* The unit may stand behind the results. */
static void scale(struct ktt *k)
{
    struct recorded *r = k->b.r;
    for (int i = 0; i < r->nr_rows; i++) {
        struct recorded_row *row = &r->row[i];
        double *sample = (double *)(uintptr_t)row->sample_ms; /* in the arena, not shared yet */
        for (int s = 0; s < row->nr_samples; s++)
            sample[s] *= k->ms;
        for (int p = 0; p < RECORDED_NR_PARTS; p++)
            row->part_ms[p] *= k->ms;
        row->cost_s *= k->ms;
        row->value *= k->ms;
    }
}

int read_ktt(struct reading *g)
{
    struct ktt k = {.g = g, .ms = 1e-3};
    struct recorded *r = NULL;
    builder_init(&k.b, g->path, "KTT results");
    k.b.merge = true;
    k.b.r->unit = "ms";
    bool whole = read_document(&k);
    int rc = 0;
    if (!whole && !(k.found && g->j.torn))
        rc = reading_failed(g, "KTT results");
    k.b.r->closed = whole;
    if (!rc) {
        scale(&k);
        rc = builder_finish(&k.b, g->o, &r, g->e);
    }
    builder_release(&k.b);
    if (!rc) {
        GROW(g->out->v, g->out->nr, g->out->cap);
        g->out->v[g->out->nr++] = r;
    }
    return rc;
}
