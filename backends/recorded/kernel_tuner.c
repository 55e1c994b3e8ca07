/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Kernel Tuner's cachefile: a header, then `"cache": {` and one line a configuration, appended as
 * they were measured. A run that was interrupted leaves the file without its end, one that was
 * killed leaves half a line. How a failure is written changed over the years:
 *
 *     0.3 - 0.4.1    "time": 1e20
 *     0.4.2 - 1.3    the error's name in the objective's field, whichever that is
 *     1.4            "__error__": name
 *
 * Stale numbers may stand beside an error; the error counts.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "backends/recorded/private.h"

struct cachefile {
    struct reading *g;
    struct builder b;
    bool entries; /* the cache was found */
};

/* JSON without line breaks and blanks. */
static const char *compact(struct builder *b, const char *text, size_t len)
{
    char *out = arena_alloc(&b->r->arena, len + 1), *to = out;
    bool quoted = false;
    for (size_t i = 0; i < len; i++) {
        char c = text[i];
        if (c == '"' && (i == 0 || text[i - 1] != '\\'))
            quoted = !quoted;
        if (quoted || (c != ' ' && c != '\n' && c != '\t' && c != '\r'))
            *to++ = c;
    }
    return out;
}

static bool header_text(struct cachefile *c, const char **out)
{
    struct jread *j = &c->g->j;
    if (jread_peek(j) != '"')
        return jread_skip(j);
    if (!jread_string(j))
        return false;
    *out = arena_strdup(&c->b.r->arena, strbuf_text(&j->text));
    return true;
}

/* A name, or several: the first is what is searched by. */
static bool header_objective(struct cachefile *c)
{
    struct jread *j = &c->g->j;
    if (jread_peek(j) != '[')
        return header_text(c, &c->b.r->objective);
    if (!jread_open(j, '['))
        return false;
    for (bool first = true; jread_element(j); first = false) {
        if (first ? !header_text(c, &c->b.r->objective) : !jread_skip(j))
            return false;
    }
    return !j->wrong;
}

static bool header_keys(struct cachefile *c)
{
    struct jread *j = &c->g->j;
    if (!jread_open(j, '['))
        return false;
    while (jread_element(j)) {
        if (!jread_string(j))
            return false;
        if (builder_knob(&c->b, strbuf_text(&j->text)) < 0)
            return jread_fail(j, "has too many knobs");
    }
    return !j->wrong;
}

static bool header_domains(struct cachefile *c)
{
    struct jread *j = &c->g->j;
    /* Keys and domains come in either order; without keys the order of the domains is theirs. */
    bool keyed = c->b.nr_knobs > 0;
    if (!jread_open(j, '{'))
        return false;
    while (jread_key(j)) {
        const char *name = strbuf_text(&j->text);
        int knob = keyed ? builder_find_knob(&c->b, name) : builder_knob(&c->b, name);
        if (knob < 0 || jread_peek(j) != '[') {
            if (!jread_skip(j))
                return false;
            continue;
        }
        if (!jread_open(j, '['))
            return false;
        struct recorded_value v;
        while (jread_element(j)) {
            if (!read_value(j, &c->b, &v))
                return false;
            if (builder_value(&c->b, knob, &v) < 0)
                return jread_fail(j, "has too many values of a knob");
        }
        c->b.knob[knob].stated = true;
    }
    return !j->wrong;
}

/* Number of the field's cost part, -1 for none. */
static int part_of(const char *field)
{
    static const char *const names[RECORDED_NR_PARTS] = {
        [PART_COMPILE] = "compile_time",     [PART_BENCHMARK] = "benchmark_time",
        [PART_FRAMEWORK] = "framework_time", [PART_STRATEGY] = "strategy_time",
        [PART_VERIFY] = "verification_time",
    };
    for (int i = 0; i < RECORDED_NR_PARTS; i++) {
        if (strcmp(field, names[i]) == 0)
            return i;
    }
    return -1;
}

static double sum(const struct builder *b)
{
    double s = b->nr_numbers ? 0 : NAN;
    for (int i = 0; i < b->nr_numbers; i++)
        s += b->number[i];
    return s;
}

static void set_error(struct builder *b, const char *text)
{
    enum recorded_status s = RECORDED_RUNTIME;
    kernel_tuner_error(text, &s);
    b->now.status = s;
    b->now.reason = arena_strdup(&b->r->arena, text);
}

static bool entry_text(struct cachefile *c, const char *name)
{
    struct jread *j = &c->g->j;
    struct builder *b = &c->b;
    enum recorded_status s;
    if (!jread_string(j))
        return false;
    const char *text = strbuf_text(&j->text);
    if (strcmp(name, "timestamp") == 0) {
        b->now.timestamp = arena_strdup(&b->r->arena, text);
        return true;
    }
    if (strcmp(name, "__error__") == 0 || strcmp(name, "time") == 0 ||
        strcmp(name, b->r->objective) == 0 || kernel_tuner_error(text, &s))
        set_error(b, text);
    if (strcmp(name, "__error__") != 0)
        builder_metric(b, name, NULL)->text = arena_strdup(&b->r->arena, text);
    return true;
}

static bool entry_list(struct cachefile *c, const char *name)
{
    struct builder *b = &c->b;
    bool pairs = false, times = strcmp(name, "times") == 0;
    if (!read_numbers(&c->g->j, b, &pairs))
        return false;
    int part = part_of(name);
    if (part >= 0) {
        b->now.part_ms[part] = sum(b);
    } else if (times) {
        b->r->zero_pairs = b->r->zero_pairs || pairs;
        b->now.nr_samples = b->nr_numbers;
        b->now.sample_ms = keep_numbers(b);
    } else {
        struct recorded_metric *m = builder_metric(b, name, NULL);
        m->nr = b->nr_numbers;
        m->list = keep_numbers(b);
    }
    return true;
}

static bool entry_number(struct cachefile *c, const char *name)
{
    struct builder *b = &c->b;
    struct recorded_value v;
    if (!read_value(&c->g->j, b, &v))
        return false;
    int part = part_of(name);
    if (part >= 0) {
        b->now.part_ms[part] = v.num;
        return true;
    }
    builder_metric(b, name, NULL)->num = v.num;
    if (strcmp(name, b->r->objective) == 0)
        b->now.value = v.num;
    if (strcmp(name, "time") == 0 && is_failure_value(v.num) && b->now.status == RECORDED_OK) {
        b->now.status = RECORDED_RUNTIME;
        b->now.reason = "failed (1e20 in the file)";
    }
    return true;
}

static bool entry_field(struct cachefile *c, const char *name, int *expected)
{
    struct jread *j = &c->g->j;
    struct builder *b = &c->b;
    int knob = *expected < b->nr_knobs && !strcmp(b->knob[*expected].k.name, name)
                   ? *expected
                   : builder_find_knob(b, name);
    if (knob >= 0) {
        struct recorded_value v;
        if (!read_value(j, b, &v))
            return false;
        b->now_index[knob] = builder_value(b, knob, &v);
        *expected = knob + 1;
        return true;
    }
    switch (jread_peek(j)) {
    case '"':
        return entry_text(c, name);
    case '[':
        return entry_list(c, name);
    case '{':
        return jread_skip(j);
    default:
        return entry_number(c, name);
    }
}

static bool read_entry(struct cachefile *c)
{
    struct jread *j = &c->g->j;
    char name[256];
    int expected = 0;
    builder_begin_row(&c->b);
    if (!jread_open(j, '{'))
        return false;
    while (jread_key(j)) {
        strncpy(name, strbuf_text(&j->text), sizeof name - 1);
        name[sizeof name - 1] = '\0';
        if (!entry_field(c, name, &expected))
            return false;
    }
    if (j->wrong)
        return false;
    builder_end_row(&c->b);
    return true;
}

/* Goes on at the next line that begins with a key, as a run does that appends behind half a line.
 * False where there is none. */
static bool next_line(struct jread *j, const char *from, int depth)
{
    for (const char *p = from; (p = memchr(p, '\n', (size_t)(j->end - p)));) {
        p++;
        if (p < j->end && *p == '"') {
            jread_resume(j, p, depth);
            j->first[depth - 1] = true;
            return true;
        }
    }
    return false;
}

static const char *past_blanks(const char *from, const char *end)
{
    while (from < end && *from && strchr(", \t\r\n", *from))
        from++;
    return from;
}

static bool read_cache(struct cachefile *c)
{
    struct jread *j = &c->g->j;
    c->entries = true;
    if (!c->b.nr_knobs)
        return jread_fail(j, "has no tune_params_keys before its cache");
    if (!jread_open(j, '{'))
        return false;
    int depth = j->depth;
    for (;;) {
        jread_peek(j);
        const char *from = past_blanks(j->at, j->end);
        bool key = jread_key(j);
        if (!key && !j->wrong)
            return true;
        if (key && read_entry(c))
            continue;
        if (j->torn && !key && from == j->end)
            return false; /* behind a row: an interrupted run, nothing is lost */
        c->b.r->nr_damaged++;
        if (!next_line(j, from, depth)) {
            j->torn = true;
            return false;
        }
    }
}

static bool read_header(struct cachefile *c)
{
    struct jread *j = &c->g->j;
    struct recorded *r = c->b.r;
    const char *raw;
    size_t len;
    if (!jread_open(j, '{'))
        return false;
    while (jread_key(j)) {
        const char *key = strbuf_text(&j->text);
        bool ok = true;
        if (!strcmp(key, "device_name")) {
            ok = header_text(c, &r->device);
        } else if (!strcmp(key, "kernel_name")) {
            ok = header_text(c, &r->kernel);
        } else if (!strcmp(key, "problem_size")) {
            ok = jread_raw(j, &raw, &len);
            if (ok)
                r->problem = compact(&c->b, raw, len);
        } else if (!strcmp(key, "tune_params_keys")) {
            ok = header_keys(c);
        } else if (!strcmp(key, "tune_params")) {
            ok = header_domains(c);
        } else if (!strcmp(key, "objective")) {
            ok = header_objective(c);
        } else if (!strcmp(key, "cache")) {
            if (c->g->o && c->g->o->objective)
                r->objective = arena_strdup(&r->arena, c->g->o->objective);
            ok = read_cache(c);
        } else {
            ok = jread_skip(j);
        }
        if (!ok)
            return false;
    }
    return !j->wrong;
}

int read_kernel_tuner(struct reading *g)
{
    struct cachefile c = {.g = g};
    struct recorded *r = NULL;
    builder_init(&c.b, g->path, "Kernel Tuner cachefile");
    bool whole = read_header(&c);
    int rc = 0;
    if (!whole && !(c.entries && g->j.torn))
        rc = reading_failed(g, "Kernel Tuner cachefile");
    c.b.r->closed = whole;
    c.b.r->unit = strcmp(c.b.r->objective, "time") == 0 ? "ms" : "";
    if (!rc)
        rc = builder_finish(&c.b, g->o, &r, g->e);
    builder_release(&c.b);
    if (!rc) {
        GROW(g->out->v, g->out->nr, g->out->cap);
        g->out->v[g->out->nr++] = r;
    }
    return rc;
}
