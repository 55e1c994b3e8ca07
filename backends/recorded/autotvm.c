/* SPDX-License-Identifier: Apache-2.0 */
/* AutoTVM's and Ansor's logs. */
#include <stdio.h>
#include <string.h>

#include "backends/recorded/tvm.h"
#include "engine/base/hash.h"

/* The parts of a line by their keys, whose order is free. */
struct parts {
    struct slice input, config, result;
};

static bool read_parts(struct tvm *t, struct parts *p)
{
    if (!jread_open(&t->j, '{'))
        return false;
    while (jread_key(&t->j)) {
        const char *key = strbuf_text(&t->j.text);
        struct slice unused, *to = &unused;
        if (!strcmp(key, "i") || !strcmp(key, "input"))
            to = &p->input;
        else if (!strcmp(key, "r") || !strcmp(key, "result"))
            to = &p->result;
        else if (!strcmp(key, "config"))
            to = &p->config;
        if (!tvm_slice(t, to))
            return false;
    }
    if (!t->j.wrong && (!p->input.text || !p->result.text))
        return jread_fail(&t->j, "has no input or no result");
    return !t->j.wrong;
}

/* ---- AutoTVM */

/* [[knob, kind, value], ...] */
static bool read_entity(struct tvm *t, struct builder *b)
{
    if (!jread_open(&t->j, '['))
        return false;
    while (jread_element(&t->j)) {
        char name[128] = "";
        if (!jread_open(&t->j, '['))
            return false;
        for (int i = 0; jread_element(&t->j); i++) {
            if (i == 0) {
                if (!jread_string(&t->j))
                    return false;
                strncpy(name, strbuf_text(&t->j.text), sizeof name - 1);
            } else if (i == 2 ? !tvm_read_knob(t, b, name) : !jread_skip(&t->j)) {
                return false;
            }
        }
        if (t->j.wrong)
            return false;
    }
    return !t->j.wrong;
}

static bool read_config(struct tvm *t, struct builder *b, struct slice s)
{
    tvm_over(t, s);
    if (!jread_open(&t->j, '{'))
        return false;
    while (jread_key(&t->j)) {
        const char *key = strbuf_text(&t->j.text);
        bool entity = !strcmp(key, "entity") || !strcmp(key, "e");
        if (entity && jread_peek(&t->j) == '[' ? !read_entity(t, b) : !jread_skip(&t->j))
            return false;
    }
    return !t->j.wrong;
}

/* [target, task, args, kwargs] and, in 0.1, [.., workload, config]. The workload is all before the
 * config. */
static bool read_autotvm_line(struct tvm *t, struct slice line)
{
    struct parts p = {0};
    struct slice target = {0}, task = {0}, args = {0}, item;
    tvm_over(t, line);
    if (!read_parts(t, &p))
        return false;
    tvm_over(t, p.input);
    if (!jread_open(&t->j, '['))
        return false;
    for (int i = 0; jread_element(&t->j); i++) {
        if (!tvm_slice(t, &item))
            return false;
        if (i == 0)
            target = item;
        else if (i == 1)
            task = item;
        else if (i == 2)
            args = item;
        else if (i == 5 && !p.config.text)
            p.config = item;
    }
    if (t->j.wrong)
        return false;
    if (!args.text || !p.config.text)
        return jread_fail(&t->j, "has no configuration");
    struct builder *b = tvm_space(t, target.text, (size_t)(args.text + args.len - target.text));
    if (!b)
        return false;
    builder_begin_row(b);
    if (!read_config(t, b, p.config) || !tvm_result(t, p.result, b))
        return false;
    if (!*b->r->kernel) {
        tvm_over(t, target);
        tvm_text(t, b, &b->r->device);
        tvm_over(t, task);
        tvm_text(t, b, &b->r->kernel);
        b->r->problem = arena_strndup(&b->r->arena, args.text, args.len);
    }
    builder_end_row(b);
    return true;
}

int read_autotvm(struct reading *g)
{
    return tvm_read_lines(g, "AutoTVM log", read_autotvm_line);
}

/* ---- Ansor */

/* The name of a step's knob: "SP2.5", and "SP2.5b" where the program has it twice. */
static void knob_name(struct builder *b, const char *kind, int64_t stage, int64_t iter, char *out,
                      size_t size)
{
    for (char twice = 'a'; twice <= 'z'; twice++) {
        snprintf(out, size, "%.8s%lld.%lld%.*s", kind, (long long)stage, (long long)iter,
                 twice > 'a', &twice);
        int k = builder_find_knob(b, out);
        if (k < 0 || b->now_index[k] < 0)
            return;
    }
}

/* A pragma's text, "auto_unroll_max_step$64": its number is the decision. */
static bool read_pragma(struct tvm *t, struct builder *b, int64_t stage, int64_t iter,
                        uint64_t *signature)
{
    char name[64];
    if (!jread_string(&t->j))
        return false;
    const char *text = strbuf_text(&t->j.text), *value = strchr(text, '$');
    *signature = hash64(*signature, text, value ? (size_t)(value - text) : strlen(text));
    if (!value)
        return true;
    long long n = 0;
    char rest;
    struct recorded_value v = {.type = RECORDED_TEXT, .text = value + 1};
    if (sscanf(value + 1, "%18lld%c", &n, &rest) == 1)
        v = (struct recorded_value){.type = RECORDED_INT, .i = n, .num = (double)n};
    knob_name(b, "PR", stage, iter, name, sizeof name);
    return tvm_knob(t, b, name, &v);
}

/* ["SP", stage, iter, extent, [lengths], inner_to_outer]: the lengths are decided, and the extent
 * follows from other steps. All else is the structure. */
static bool read_step(struct tvm *t, struct builder *b, uint64_t *signature)
{
    char kind[16] = "", name[64];
    int64_t stage = 0, iter = 0;
    if (!jread_open(&t->j, '['))
        return false;
    for (int i = 0; jread_element(&t->j); i++) {
        if (i == 0) {
            if (!jread_string(&t->j))
                return false;
            strncpy(kind, strbuf_text(&t->j.text), sizeof kind - 1);
            *signature = hash64(*signature, kind, strlen(kind) + 1);
            continue;
        }
        bool split = !strcmp(kind, "SP"), pragma = !strcmp(kind, "PR");
        if (split && i == 4 && jread_peek(&t->j) == '[') {
            knob_name(b, kind, stage, iter, name, sizeof name);
            if (!tvm_read_knob(t, b, name))
                return false;
        } else if (pragma && i == 3 && jread_peek(&t->j) == '"') {
            if (!read_pragma(t, b, stage, iter, signature))
                return false;
        } else if (i <= 2) {
            struct recorded_value v;
            if (!read_value(&t->j, b, &v))
                return false;
            *(i == 1 ? &stage : &iter) = v.i;
            *signature = hash64(*signature, &v.i, sizeof v.i);
        } else {
            struct slice s;
            if (!tvm_slice(t, &s))
                return false;
            if (!(split && i == 3))
                *signature = hash64(*signature, s.text, s.len);
        }
    }
    return !t->j.wrong;
}

static bool read_steps(struct tvm *t, struct builder *b, struct slice state)
{
    uint64_t signature = HASH64_INIT;
    tvm_over(t, state);
    if (!jread_open(&t->j, '['))
        return false;
    for (int i = 0; jread_element(&t->j); i++) {
        if (i != 1) {
            if (!jread_skip(&t->j))
                return false;
            continue;
        }
        if (!jread_open(&t->j, '['))
            return false;
        while (jread_element(&t->j)) {
            if (!read_step(t, b, &signature))
                return false;
        }
    }
    return !t->j.wrong && tvm_sketch(t, b, signature);
}

/* The name in a workload's key, which is JSON in a string: ["matmul_layer", 1, 1024]. */
static const char *workload_name(struct builder *b, const char *key)
{
    const char *from = strchr(key, '"'), *to = from ? strchr(from + 1, '"') : NULL;
    return to ? arena_strndup(&b->r->arena, from + 1, (size_t)(to - from - 1)) : key;
}

static bool read_ansor_line(struct tvm *t, struct slice line)
{
    struct parts p = {0};
    struct slice task = {0}, state = {0}, item;
    tvm_over(t, line);
    if (!read_parts(t, &p))
        return false;
    tvm_over(t, p.input);
    if (!jread_open(&t->j, '['))
        return false;
    for (int i = 0; jread_element(&t->j); i++) {
        if (!tvm_slice(t, &item))
            return false;
        if (i == 0)
            task = item;
        else if (i == 1)
            state = item;
    }
    if (!t->j.wrong && !state.text)
        return jread_fail(&t->j, "has no program");
    struct builder *b = t->j.wrong ? NULL : tvm_space(t, task.text, task.len);
    if (!b)
        return false;
    builder_begin_row(b);
    if (!read_steps(t, b, state) || !tvm_result(t, p.result, b))
        return false;
    if (!*b->r->kernel) {
        const char *key = "", *device = "";
        tvm_over(t, task);
        if (jread_open(&t->j, '[') && jread_element(&t->j) && tvm_text(t, b, &key) &&
            jread_element(&t->j))
            tvm_text(t, b, &device);
        b->r->kernel = workload_name(b, key);
        b->r->problem = key;
        b->r->device = device;
    }
    builder_end_row(b);
    return true;
}

int read_ansor(struct reading *g)
{
    return tvm_read_lines(g, "Ansor log", read_ansor_line);
}
