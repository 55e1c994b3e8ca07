/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Records of TVM's tuners: one JSON value a line, one line a measurement, many workloads in a file.
 *
 *     AutoTVM       {"input": [target, task, args, ..], "config": {"entity": [[knob, kind, value] ..]},
 *                    "result": [costs, error, all_cost, time]}; in 0.1 {"i": [..], "r": [..]}
 *     Ansor         {"i": [[workload, target, ..], [[], steps]], "r": [..]}
 *     MetaSchedule  [workload, [[instructions, decisions], seconds, target, args]]
 *
 * A decision of several numbers (a tile) is one knob whose values are texts: what was measured are
 * whole tiles, and any two of them are neighbours. Programs of different structure are told apart by
 * the knob "sketch", a hash; a knob that a structure does not have is null there. Measurements of the
 * same program are runs of it.
 */
#include "backends/recorded/tvm.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "engine/base/hash.h"

enum { MAX_SPACES = 4096 };

struct builder *tvm_space(struct tvm *t, const char *key, size_t len)
{
    for (int i = 0; i < t->nr; i++) {
        if (strlen(t->v[i]->key) == len && !memcmp(t->v[i]->key, key, len))
            return &t->v[i]->b;
    }
    if (t->nr == MAX_SPACES) {
        jread_fail(&t->j, "has too many workloads");
        return NULL;
    }
    GROW(t->v, t->nr, t->cap);
    struct tvm_space *s = t->v[t->nr++] = xcalloc(1, sizeof *s);
    builder_init(&s->b, t->g->path, t->format);
    s->b.merge = true;
    s->b.r->unit = "ms";
    s->key = arena_strndup(&s->b.r->arena, key, len);
    return &s->b;
}

void tvm_over(struct tvm *t, struct slice s)
{
    t->j.at = t->j.start = s.text;
    t->j.end = s.text + s.len;
    t->j.depth = 0;
    t->j.wrong = NULL;
    t->j.torn = false;
}

bool tvm_slice(struct tvm *t, struct slice *out)
{
    return jread_raw(&t->j, &out->text, &out->len);
}

bool tvm_text(struct tvm *t, struct builder *b, const char **out)
{
    if (jread_peek(&t->j) != '"') {
        struct slice s;
        if (!tvm_slice(t, &s))
            return false;
        *out = arena_strndup(&b->r->arena, s.text, s.len);
        return true;
    }
    if (!jread_string(&t->j))
        return false;
    *out = arena_strdup(&b->r->arena, strbuf_text(&t->j.text));
    return true;
}

bool tvm_knob(struct tvm *t, struct builder *b, const char *name, const struct recorded_value *v)
{
    int k = builder_knob(b, name);
    if (k < 0)
        return jread_fail(&t->j, "has too many knobs");
    b->now_index[k] = builder_value(b, k, v);
    return true;
}

bool tvm_read_knob(struct tvm *t, struct builder *b, const char *name)
{
    struct recorded_value v;
    if (!read_value(&t->j, b, &v))
        return false;
    char *to = (char *)(uintptr_t)v.text; /* a list: ours, in the arena; blanks go */
    for (const char *from = v.type == RECORDED_TEXT && *v.text == '[' ? v.text : ""; *from; from++) {
        if (*from != ' ')
            *to++ = *from;
        if (!from[1])
            *to = '\0';
    }
    return tvm_knob(t, b, name, &v);
}

bool tvm_sketch(struct tvm *t, struct builder *b, uint64_t signature)
{
    char text[20];
    snprintf(text, sizeof text, "s%08x", (unsigned)(signature ^ signature >> 32));
    return tvm_knob(t, b, "sketch", &(struct recorded_value){.type = RECORDED_TEXT, .text = text});
}

bool tvm_costs(struct tvm *t, struct builder *b)
{
    bool pairs = false;
    if (!read_numbers(&t->j, b, &pairs))
        return false;
    double sum = 0;
    for (int i = 0; i < b->nr_numbers; i++)
        sum += b->number[i] *= 1000;
    double mean = b->nr_numbers ? sum / b->nr_numbers : NAN;
    if (!(mean < 1e9 * 1000)) { /* how TVM writes "did not run" */
        b->now.status = b->nr_numbers ? RECORDED_RUNTIME : RECORDED_UNKNOWN;
        b->now.reason = b->nr_numbers ? "failed (a huge time in the file)" : "has no time";
        return true;
    }
    b->now.value = mean;
    b->now.nr_samples = b->nr_numbers;
    b->now.sample_ms = keep_numbers(b);
    return true;
}

static void set_error(struct builder *b, int64_t error)
{
    static const struct {
        enum recorded_status status;
        const char *name;
    } errors[] = {
        {RECORDED_OK, NULL},
        {RECORDED_CONSTRAINTS, "instantiation error"},
        {RECORDED_COMPILE, "compile error of the host code"},
        {RECORDED_COMPILE, "compile error of the device code"},
        {RECORDED_RUNTIME, "runtime error"},
        {RECORDED_CORRECTNESS, "wrong answer"},
        {RECORDED_TIMEOUT, "build timeout"},
        {RECORDED_TIMEOUT, "run timeout"},
        {RECORDED_UNKNOWN, "unknown error"},
    };
    if (error == 0)
        return;
    int i = error > 0 && error < 8 ? (int)error : 8;
    b->now.status = errors[i].status;
    b->now.reason = errors[i].name;
    b->now.nr_samples = 0;
}

/* Seconds since 1970, as the other formats write time. */
static const char *stamp(struct builder *b, double s)
{
    if (!(s > 0 && s < 1e11))
        return NULL;
    time_t whole = (time_t)s;
    struct tm tm;
    char text[32];
    gmtime_r(&whole, &tm);
    strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S", &tm);
    return arena_printf(&b->r->arena, "%s.%06d+00:00", text, (int)((s - (double)whole) * 1e6));
}

bool tvm_result(struct tvm *t, struct slice s, struct builder *b)
{
    struct recorded_value v;
    tvm_over(t, s);
    if (!jread_open(&t->j, '[') || !jread_element(&t->j) || !tvm_costs(t, b))
        return false;
    for (int i = 1; jread_element(&t->j); i++) {
        if (!read_value(&t->j, b, &v))
            return false;
        if (i == 1)
            set_error(b, v.i);
        else if (i == 2 && isfinite(v.num)) /* building and all runs together */
            b->now.part_ms[PART_BENCHMARK] = v.num * 1000;
        else if (i == 3)
            b->now.timestamp = stamp(b, v.num);
    }
    return !t->j.wrong;
}

/* ---- the file */

static int finish_all(struct tvm *t)
{
    struct reading *g = t->g;
    struct err last = ERR_INIT;
    int before = g->out->nr;
    for (int i = 0; i < t->nr; i++) {
        struct recorded *r = NULL;
        struct builder *b = &t->v[i]->b;
        b->r->closed = !t->torn;
        b->r->nr_damaged = i ? 0 : t->nr_damaged;
        err_clear(&last);
        if (builder_finish(b, g->o, &r, &last))
            continue; /* a workload that never ran is no space */
        if (t->nr > 1 && !t->named)
            r->name = arena_printf(&r->arena, "workload_%d", i);
        GROW(g->out->v, g->out->nr, g->out->cap);
        g->out->v[g->out->nr++] = r;
    }
    if (g->out->nr > before)
        return 0;
    if (last.code)
        return err_set(g->e, last.code, "%s", last.msg);
    return err_set(g->e, ERR_INPUT, "\"%s\" holds no records that can be read: line %d %s", g->path,
                   t->first_bad, t->first_wrong ? t->first_wrong : "is none");
}

/* A line that cannot be read is left out; the last one, without its end, is torn. */
int tvm_read_lines(struct reading *g, const char *format,
                   bool (*read)(struct tvm *t, struct slice line))
{
    struct tvm t = {.g = g, .format = format};
    const char *end = g->j.end;
    int line = 0;
    jread_init(&t.j, g->j.at, 0);
    for (const char *p = g->j.at; p < end;) {
        const char *stop = memchr(p, '\n', (size_t)(end - p));
        struct slice s = {p, (size_t)((stop ? stop : end) - p)};
        p += s.len + 1;
        line++;
        tvm_over(&t, s);
        if (!jread_peek(&t.j) || *t.j.at == '#')
            continue;
        if (read(&t, s))
            continue;
        t.nr_damaged++;
        t.torn = t.torn || !stop;
        if (!t.first_bad) {
            t.first_bad = line;
            t.first_wrong = t.j.wrong;
        }
    }
    int rc = finish_all(&t);
    for (int i = 0; i < t.nr; i++) {
        builder_release(&t.v[i]->b);
        free(t.v[i]);
    }
    free(t.v);
    jread_release(&t.j);
    return rc;
}
