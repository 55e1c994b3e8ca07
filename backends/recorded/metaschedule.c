/* SPDX-License-Identifier: Apache-2.0 */
/*
 * MetaSchedule's database_tuning_record.json. The decisions of a trace are its knobs: "tile_0" for the
 * first SamplePerfectTile, "categorical_2", "location_0"; a categorical decision has the value that
 * its index stands for. What comes behind EnterPostproc is derived.
 */
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/recorded/tvm.h"
#include "engine/base/hash.h"

enum { MAX_INSTRUCTIONS = 4096 };

enum choice_kind { CHOICE_NONE, CHOICE_TILE, CHOICE_CATEGORICAL, CHOICE_LOCATION, CHOICE_OTHER };

struct instruction {
    enum choice_kind kind;
    int number;         /* of its kind */
    struct slice attrs; /* categorical: [values, probabilities] */
};

struct trace {
    int nr;
    bool derived; /* behind EnterPostproc */
    int count[CHOICE_OTHER + 1];
    uint64_t signature;
    struct instruction v[MAX_INSTRUCTIONS];
};

static enum choice_kind kind_of(const char *name)
{
    if (!strcmp(name, "SamplePerfectTile") || !strcmp(name, "SamplePartitionedTile"))
        return CHOICE_TILE;
    if (!strcmp(name, "SampleCategorical"))
        return CHOICE_CATEGORICAL;
    if (!strcmp(name, "SampleComputeLocation"))
        return CHOICE_LOCATION;
    return !strncmp(name, "Sample", 6) ? CHOICE_OTHER : CHOICE_NONE;
}

/* [kind, inputs, attributes, outputs] */
static bool read_instruction(struct tvm *t, struct trace *x)
{
    if (x->nr == MAX_INSTRUCTIONS)
        return jread_fail(&t->j, "has too long a trace");
    struct instruction *n = &x->v[x->nr];
    *n = (struct instruction){CHOICE_NONE, 0, {0}};
    if (!jread_open(&t->j, '['))
        return false;
    for (int i = 0; jread_element(&t->j); i++) {
        struct slice s;
        if (i == 0) {
            if (!jread_string(&t->j))
                return false;
            const char *name = strbuf_text(&t->j.text);
            n->kind = kind_of(name);
            x->derived = x->derived || !strcmp(name, "EnterPostproc");
            if (!x->derived)
                x->signature = hash64(x->signature, name, strlen(name) + 1);
            continue;
        }
        if (!tvm_slice(t, &s))
            return false;
        if (i == 2)
            n->attrs = s;
    }
    n->number = x->count[n->kind]++;
    x->nr++;
    return !t->j.wrong;
}

static bool read_instructions(struct tvm *t, struct trace *x)
{
    if (!jread_open(&t->j, '['))
        return false;
    while (jread_element(&t->j)) {
        if (!read_instruction(t, x))
            return false;
    }
    return !t->j.wrong;
}

/* Value number `at` of a categorical instruction; as the index where it has none. */
static bool categorical(struct tvm *t, struct builder *b, const struct instruction *n,
                        const char *name, const struct recorded_value *index)
{
    struct recorded_value v = *index, item;
    struct jread j;
    jread_init(&j, n->attrs.text ? n->attrs.text : "", n->attrs.len);
    if (jread_open(&j, '[') && jread_element(&j) && jread_open(&j, '[')) {
        for (int64_t i = 0; jread_element(&j) && read_value(&j, b, &item); i++) {
            if (i == index->i) {
                v = item;
                break;
            }
        }
    }
    bool ok = tvm_knob(t, b, name, &v);
    jread_release(&j);
    return ok;
}

/* [instruction, value] */
static bool read_decision(struct tvm *t, struct builder *b, const struct trace *x)
{
    static const char *const names[] = {"decision", "tile", "categorical", "location", "sample"};
    struct recorded_value at, v;
    char name[64];
    if (!jread_open(&t->j, '[') || !jread_element(&t->j) || !read_value(&t->j, b, &at) ||
        !jread_element(&t->j))
        return false;
    if (at.type != RECORDED_INT || at.i < 0 || at.i >= x->nr)
        return jread_fail(&t->j, "decides for an instruction that it does not have");
    const struct instruction *n = &x->v[at.i];
    snprintf(name, sizeof name, "%s_%d", names[n->kind], n->number);
    bool ok;
    if (n->kind == CHOICE_CATEGORICAL && jread_peek(&t->j) != '[')
        ok = read_value(&t->j, b, &v) && categorical(t, b, n, name, &v);
    else
        ok = tvm_read_knob(t, b, name);
    while (ok && jread_element(&t->j))
        ok = jread_skip(&t->j);
    return ok && !t->j.wrong;
}

static bool read_trace(struct tvm *t, struct builder *b, struct trace *x)
{
    memset(x, 0, offsetof(struct trace, v));
    x->signature = HASH64_INIT;
    if (!jread_open(&t->j, '[') || !jread_element(&t->j) || !read_instructions(t, x))
        return false;
    if (jread_element(&t->j)) {
        if (!jread_open(&t->j, '['))
            return false;
        while (jread_element(&t->j)) {
            if (!read_decision(t, b, x))
                return false;
        }
        while (jread_element(&t->j)) {
            if (!jread_skip(&t->j))
                return false;
        }
    }
    return !t->j.wrong && tvm_sketch(t, b, x->signature);
}

/* [trace, seconds, target, args] */
static bool read_record(struct tvm *t, struct builder *b)
{
    struct trace *x = xcalloc(1, sizeof *x);
    bool ok = jread_open(&t->j, '[') && jread_element(&t->j) && read_trace(t, b, x);
    free(x);
    if (!ok || !jread_element(&t->j))
        return false;
    if (!tvm_costs(t, b))
        return false;
    for (int i = 2; jread_element(&t->j); i++) {
        const char *text = NULL;
        if (i > 3 || (i == 2 && *b->r->device) || (i == 3 && b->r->problem)) {
            if (!jread_skip(&t->j))
                return false;
        } else if (!tvm_text(t, b, &text)) {
            return false;
        } else {
            *(i == 2 ? &b->r->device : &b->r->problem) = text;
        }
    }
    return !t->j.wrong;
}

static bool read_line(struct tvm *t, struct slice line)
{
    struct slice workload;
    tvm_over(t, line);
    if (!jread_open(&t->j, '[') || !jread_element(&t->j))
        return false;
    if (jread_peek(&t->j) == '"')
        return jread_fail(&t->j, "is of a workload; the tuning_record file beside it has the "
                                 "measurements");
    if (!tvm_slice(t, &workload) || !jread_element(&t->j))
        return false;
    struct builder *b = tvm_space(t, workload.text, workload.len);
    if (!b)
        return false;
    if (!b->r->nr_rows) {
        b->r->name = arena_printf(&b->r->arena, "workload_%.*s", (int)workload.len, workload.text);
        t->named = true;
    }
    builder_begin_row(b);
    if (!read_record(t, b))
        return false;
    builder_end_row(b);
    return true;
}

int read_metaschedule(struct reading *g)
{
    return tvm_read_lines(g, "MetaSchedule records", read_line);
}
