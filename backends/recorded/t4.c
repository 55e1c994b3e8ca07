/* SPDX-License-Identifier: Apache-2.0 */
/*
 * T4 results (AutoTuningAssociation, schema 1.0.0): a list of configurations with their times,
 * measurements and what was wrong. Domains, device and kernel are not in the file.
 *
 * Times are in metadata.timeunit, which may stand behind the results: they are scaled at the end.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "backends/recorded/private.h"

struct t4 {
    struct reading *g;
    struct builder b;
    double ms;         /* of a unit of time of the file */
    char unit[32];     /* of the objective, as the first row that is ok writes it */
    bool has_objective;
    bool found;        /* results */
};

double time_unit_ms(const char *name)
{
    static const struct {
        const char *prefix;
        double ms;
    } units[] = {
        {"ns", 1e-6}, {"nano", 1e-6},  {"us", 1e-3},  {"micro", 1e-3}, {"ms", 1},
        {"mili", 1},  {"milli", 1},    {"s", 1e3},    {"sec", 1e3},
    };
    char low[32] = "";
    for (size_t i = 0; i + 1 < sizeof low && name[i]; i++)
        low[i] = (char)(name[i] >= 'A' && name[i] <= 'Z' ? name[i] + 32 : name[i]);
    for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
        size_t n = strlen(units[i].prefix);
        if (n <= 2 ? strcmp(low, units[i].prefix) == 0 : strncmp(low, units[i].prefix, n) == 0)
            return units[i].ms;
    }
    return 0;
}

static bool read_configuration(struct t4 *t)
{
    struct jread *j = &t->g->j;
    struct recorded_value v;
    if (!jread_open(j, '{'))
        return false;
    while (jread_key(j)) {
        int knob = builder_knob(&t->b, strbuf_text(&j->text));
        if (knob < 0)
            return jread_fail(j, "has too many knobs");
        if (!read_value(j, &t->b, &v))
            return false;
        t->b.now_index[knob] = builder_value(&t->b, knob, &v);
    }
    return !j->wrong;
}

static bool read_times(struct t4 *t)
{
    static const struct {
        const char *name;
        enum recorded_part part;
    } parts[] = {
        {"compilation", PART_COMPILE},       {"compilation_time", PART_COMPILE},
        {"benchmark", PART_BENCHMARK},       {"framework", PART_FRAMEWORK},
        {"search_algorithm", PART_STRATEGY}, {"validation", PART_VERIFY},
    };
    struct jread *j = &t->g->j;
    struct builder *b = &t->b;
    if (!jread_open(j, '{'))
        return false;
    while (jread_key(j)) {
        const char *key = strbuf_text(&j->text);
        bool runtimes = strcmp(key, "runtimes") == 0, pairs = false;
        int part = -1;
        for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
            part = strcmp(key, parts[i].name) == 0 ? (int)parts[i].part : part;
        if (!read_numbers(j, b, &pairs))
            return false;
        double sum = b->nr_numbers ? 0 : NAN;
        for (int i = 0; i < b->nr_numbers; i++)
            sum += b->number[i];
        if (part >= 0 && b->nr_numbers) {
            b->now.part_ms[part] = sum;
        } else if (runtimes) {
            b->r->zero_pairs = b->r->zero_pairs || pairs;
            b->now.nr_samples = b->nr_numbers;
            b->now.sample_ms = keep_numbers(b);
        }
    }
    return !j->wrong;
}

/* One of the measurements; the value of the objective is looked up when the row is whole. */
static bool read_measurement(struct t4 *t)
{
    struct jread *j = &t->g->j;
    struct builder *b = &t->b;
    struct recorded_metric m = {.num = NAN, .unit = -1};
    bool pairs, named = false;
    if (!jread_open(j, '{'))
        return false;
    while (jread_key(j)) {
        const char *key = strbuf_text(&j->text);
        bool name = strcmp(key, "name") == 0, unit = strcmp(key, "unit") == 0;
        if ((name || unit) && jread_peek(j) == '"') {
            if (!jread_string(j))
                return false;
            *(name ? &m.name : &m.unit) = builder_word(b, strbuf_text(&j->text));
            named = named || name;
        } else if (strcmp(key, "value") != 0) {
            if (!jread_skip(j))
                return false;
        } else if (jread_peek(j) == '"') {
            if (!jread_string(j))
                return false;
            m.text = arena_strdup(&b->r->arena, strbuf_text(&j->text));
        } else if (jread_peek(j) == '[') {
            if (!read_numbers(j, b, &pairs))
                return false;
            m.nr = b->nr_numbers;
            m.list = keep_numbers(b);
        } else {
            struct recorded_value v;
            if (!read_value(j, b, &v))
                return false;
            m.num = v.num;
        }
    }
    if (named) {
        GROW(b->metric, b->nr_metrics, b->cap_metrics);
        b->metric[b->nr_metrics++] = m;
    }
    return !j->wrong;
}

static bool read_measurements(struct t4 *t)
{
    struct jread *j = &t->g->j;
    if (jread_peek(j) != '[')
        return jread_skip(j);
    if (!jread_open(j, '['))
        return false;
    while (jread_element(j)) {
        if (!read_measurement(t))
            return false;
    }
    return !j->wrong;
}

static bool read_objectives(struct t4 *t)
{
    struct jread *j = &t->g->j;
    if (jread_peek(j) != '[')
        return jread_skip(j);
    if (!jread_open(j, '['))
        return false;
    while (jread_element(j)) {
        if (jread_peek(j) != '"' || t->has_objective) {
            if (!jread_skip(j))
                return false;
        } else if (jread_string(j)) {
            t->b.r->objective = arena_strdup(&t->b.r->arena, strbuf_text(&j->text));
            t->has_objective = true;
        }
    }
    return !j->wrong;
}

/* "correct", "compile" ...: what T4 calls them, and names that other tools wrote there. */
static enum recorded_status invalidity(const char *text)
{
    for (int s = 0; s < RECORDED_NR_STATUS; s++) {
        if (strcmp(text, recorded_status_name((enum recorded_status)s)) == 0)
            return (enum recorded_status)s;
    }
    enum recorded_status s;
    return kernel_tuner_error(text, &s) ? s : *text ? RECORDED_RUNTIME : RECORDED_OK;
}

static bool read_string_field(struct t4 *t, bool is_timestamp)
{
    struct jread *j = &t->g->j;
    if (jread_peek(j) != '"')
        return jread_skip(j);
    if (!jread_string(j))
        return false;
    const char *text = strbuf_text(&j->text);
    if (is_timestamp)
        t->b.now.timestamp = arena_strdup(&t->b.r->arena, text);
    else if ((t->b.now.status = invalidity(text)) != RECORDED_OK)
        t->b.now.reason = arena_strdup(&t->b.r->arena, text);
    return true;
}

static bool read_result(struct t4 *t)
{
    struct jread *j = &t->g->j;
    builder_begin_row(&t->b);
    if (!jread_open(j, '{'))
        return false;
    while (jread_key(j)) {
        const char *key = strbuf_text(&j->text);
        bool ok;
        if (!strcmp(key, "configuration"))
            ok = read_configuration(t);
        else if (!strcmp(key, "times"))
            ok = jread_peek(j) == '{' ? read_times(t) : jread_skip(j);
        else if (!strcmp(key, "measurements"))
            ok = read_measurements(t);
        else if (!strcmp(key, "objectives"))
            ok = read_objectives(t);
        else if (!strcmp(key, "invalidity") || !strcmp(key, "timestamp"))
            ok = read_string_field(t, *key == 't');
        else
            ok = jread_skip(j);
        if (!ok)
            return false;
    }
    if (!j->wrong)
        builder_end_row(&t->b);
    return !j->wrong;
}

static bool read_metadata(struct t4 *t)
{
    struct jread *j = &t->g->j;
    if (jread_peek(j) != '{')
        return jread_skip(j);
    if (!jread_open(j, '{'))
        return false;
    while (jread_key(j)) {
        if (strcmp(strbuf_text(&j->text), "timeunit") != 0 || jread_peek(j) != '"') {
            if (!jread_skip(j))
                return false;
        } else if (jread_string(j)) {
            double ms = time_unit_ms(strbuf_text(&j->text));
            if (ms > 0)
                t->ms = ms;
        }
    }
    return !j->wrong;
}

static bool read_document(struct t4 *t)
{
    struct jread *j = &t->g->j;
    if (!jread_open(j, '{'))
        return false;
    while (jread_key(j)) {
        const char *key = strbuf_text(&j->text);
        if (!strcmp(key, "results")) {
            t->found = true;
            if (!jread_open(j, '['))
                return false;
            while (jread_element(j)) {
                if (!read_result(t)) {
                    t->b.r->nr_damaged++;
                    return false;
                }
            }
        } else if (!strcmp(key, "metadata")) {
            if (!read_metadata(t))
                return false;
        } else if (!strcmp(key, "schema_version") && jread_peek(j) == '"') {
            if (!jread_string(j))
                return false;
            t->b.r->format = arena_printf(&t->b.r->arena, "T4 %.20s", strbuf_text(&j->text));
        } else if (!jread_skip(j)) {
            return false;
        }
    }
    return !j->wrong;
}

static const struct recorded_metric *metric_of(const struct recorded *r,
                                               const struct recorded_row *row, const char *name)
{
    for (int i = 0; i < row->nr_metrics; i++) {
        if (strcmp(r->word[row->metric[i].name], name) == 0)
            return &row->metric[i];
    }
    return NULL;
}

/* The objective's measurement, else the mean of the runs. */
static void set_value(struct t4 *t, struct recorded_row *row)
{
    struct recorded *r = t->b.r;
    const struct recorded_metric *m = metric_of(r, row, r->objective);
    if (m && m->text) {
        enum recorded_status s = RECORDED_RUNTIME;
        kernel_tuner_error(m->text, &s);
        if (row->status == RECORDED_OK) {
            row->status = s;
            row->reason = m->text;
        }
    } else if (m) {
        const char *unit = m->unit >= 0 ? r->word[m->unit] : "";
        double ms = *unit ? time_unit_ms(unit) : strcmp(r->objective, "time") == 0 ? t->ms : 0;
        row->value = ms > 0 ? m->num * ms : m->num;
        if (!*t->unit)
            strcpy(t->unit, ms > 0 ? "ms" : strlen(unit) < sizeof t->unit ? unit : "");
    } else if (!m && strcmp(r->objective, "time") == 0 && row->nr_samples) {
        double sum = 0;
        for (int i = 0; i < row->nr_samples; i++)
            sum += row->sample_ms[i];
        row->value = sum / row->nr_samples;
        strcpy(t->unit, "ms");
    }
}

/* Now that unit and objective are known. */
static void settle_times(struct t4 *t)
{
    struct recorded *r = t->b.r;
    for (int i = 0; i < r->nr_rows; i++) {
        struct recorded_row *row = &r->row[i];
        double sum = 0;
        double *sample = (double *)(uintptr_t)row->sample_ms; /* in the arena, not shared yet */
        for (int s = 0; s < row->nr_samples; s++)
            sum += sample[s] *= t->ms;
        for (int p = 0; p < RECORDED_NR_PARTS; p++)
            row->part_ms[p] *= t->ms;
        double total = isfinite(row->part_ms[PART_BENCHMARK]) || !row->nr_samples ? NAN : sum;
        for (int p = 0; p < RECORDED_NR_PARTS; p++) {
            if (isfinite(row->part_ms[p]))
                total = (isnan(total) ? 0 : total) + row->part_ms[p];
        }
        row->cost_s = total / 1000;
        set_value(t, row);
    }
    r->unit = arena_strdup(&r->arena, t->unit);
}

int read_t4(struct reading *g)
{
    struct t4 t = {.g = g, .ms = 1};
    struct recorded *r = NULL;
    builder_init(&t.b, g->path, "T4");
    bool whole = read_document(&t);
    int rc = 0;
    if (!whole && !(t.found && g->j.torn))
        rc = reading_failed(g, "T4 results");
    t.b.r->closed = whole;
    if (g->o && g->o->objective)
        t.b.r->objective = arena_strdup(&t.b.r->arena, g->o->objective);
    if (!rc) {
        settle_times(&t);
        rc = builder_finish(&t.b, g->o, &r, g->e);
    }
    builder_release(&t.b);
    if (!rc) {
        GROW(g->out->v, g->out->nr, g->out->cap);
        g->out->v[g->out->nr++] = r;
    }
    return rc;
}
