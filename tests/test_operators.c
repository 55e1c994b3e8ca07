/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Operators one by one: what operators.txt says comes out, whoever computes it: the operators in
 * plain loops, the stages of the tasks by their definition, kernels with the default schedule and
 * with random ones; with plain layouts and in channel blocks.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "backends/llvm/llvm.h"
#include "engine/model/plan.h"
#include "ui/check_kernels.h"

enum { MAX_VALUES = 8, MAX_ATTRS = 8, MAX_LIST = 16, MAX_ELEMENTS = 512 };

struct tensor {
    bool constant, none;
    enum graph_type type;
    struct shape shape;
    double element[MAX_ELEMENTS];
};

struct test_case {
    char name[64], op[48];
    int opset, nr_attr, nr_in, nr_out;
    struct graph_attr attr[MAX_ATTRS];
    char attr_name[MAX_ATTRS][48], text[MAX_ATTRS][48];
    int64_t ints[MAX_ATTRS][MAX_LIST];
    float floats[MAX_ATTRS][MAX_LIST];
    struct tensor in[MAX_VALUES], out[MAX_VALUES];
};

/* ---- the file ---- */

/* name="text", name=1, name=1.5, name=[1,2], name=f[1,2] */
static void read_attr(struct test_case *c, char *word)
{
    int i = c->nr_attr++;
    char *equals = strchr(word, '='), *value = equals + 1;
    assert_true(i < MAX_ATTRS && equals);
    *equals = '\0';
    snprintf(c->attr_name[i], sizeof c->attr_name[i], "%s", word);
    const char *name = c->attr_name[i];
    bool floats = value[0] == 'f';
    if (value[0] == '"') {
        snprintf(c->text[i], sizeof c->text[i], "%.*s", (int)strcspn(value + 1, "\""), value + 1);
        c->attr[i] = graph_string(name, c->text[i]);
    } else if (value[0] == '[' || floats) {
        size_t nr = 0;
        for (char *p = value + 1 + floats; *p && *p != ']'; p += *p == ',') {
            assert_true(nr < MAX_LIST);
            c->floats[i][nr] = strtof(p, &p);
            c->ints[i][nr] = (int64_t)c->floats[i][nr];
            nr++;
        }
        c->attr[i] = graph_ints(name, c->ints[i], nr);
        if (floats)
            c->attr[i] = (struct graph_attr){
                .name = name, .kind = ATTR_FLOATS, .floats = c->floats[i], .nr = nr};
    } else {
        c->attr[i] = strpbrk(value, ".e") ? graph_float(name, strtod(value, NULL))
                                          : graph_int(name, strtoll(value, NULL, 10));
    }
}

static void read_op(struct test_case *c, char *line)
{
    char *save = NULL, *word = strtok_r(line, " \n", &save);
    snprintf(c->op, sizeof c->op, "%s", word);
    c->opset = (int)strtol(strtok_r(NULL, " \n", &save), NULL, 10);
    while ((word = strtok_r(NULL, " \n", &save)))
        read_attr(c, word);
}

/* [const] f32|i64|i32|bool 2x3|scalar : numbers */
static void read_tensor(struct tensor *t, char *line)
{
    char *save = NULL, *word = strtok_r(line, " \n", &save);
    *t = (struct tensor){.none = strcmp(word, "none") == 0, .constant = strcmp(word, "const") == 0};
    if (t->none)
        return;
    if (t->constant)
        word = strtok_r(NULL, " \n", &save);
    t->type = word[0] == 'f' ? GRAPH_F32 : word[0] == 'b' ? GRAPH_BOOL : GRAPH_I64;
    word = strtok_r(NULL, " \n", &save);
    for (char *p = word; *p >= '0' && *p <= '9'; p += *p == 'x')
        t->shape.dim[t->shape.rank++] = strtoll(p, &p, 10);
    strtok_r(NULL, " \n", &save);
    int64_t nr = 0;
    while ((word = strtok_r(NULL, " \n", &save))) {
        assert_true(nr < MAX_ELEMENTS);
        t->element[nr++] = strtod(word, NULL);
    }
    assert_int_equal(nr, shape_size(&t->shape));
}

/* False at the end of the file. */
static bool read_case(FILE *f, struct test_case *c)
{
    char *line = NULL;
    size_t cap = 0;
    *c = (struct test_case){0};
    while (getline(&line, &cap, f) > 0 && (line[0] != '\n' || !c->name[0])) {
        if (strncmp(line, "case ", 5) == 0)
            snprintf(c->name, sizeof c->name, "%.*s", (int)strcspn(line + 5, "\n"), line + 5);
        else if (strncmp(line, "op ", 3) == 0)
            read_op(c, line + 3);
        else if (strncmp(line, "in ", 3) == 0)
            read_tensor(&c->in[c->nr_in++], line + 3);
        else if (strncmp(line, "out ", 4) == 0)
            read_tensor(&c->out[c->nr_out++], line + 4);
        assert_true(c->nr_in < MAX_VALUES && c->nr_out < MAX_VALUES);
    }
    free(line);
    return c->name[0] != '\0';
}

/* ---- a case ---- */

static int make_value(struct graph *g, const struct tensor *t, struct err *e)
{
    int64_t n = shape_size(&t->shape), ints[MAX_ELEMENTS];
    float floats[MAX_ELEMENTS];
    if (t->none)
        return -1;
    if (!n)
        return graph_const_fill(g, "", t->type, t->shape.rank, t->shape.dim, 0, e);
    if (!t->constant)
        return graph_input_of(g, "x", t->type, t->shape.rank, t->shape.dim, e);
    for (int64_t i = 0; i < n; i++) {
        floats[i] = (float)t->element[i];
        ints[i] = t->type == GRAPH_F32 ? 0 : (int64_t)t->element[i];
    }
    if (t->type == GRAPH_F32)
        return graph_const_f32(g, "", t->shape.rank, t->shape.dim, floats, e);
    int v = graph_const_i64(g, "", t->shape.rank, t->shape.dim, ints, e);
    g->value[v]->type = t->type;
    return v;
}

static struct graph *make_graph(const struct test_case *c, struct err *e)
{
    struct graph *g = graph_new(c->name, c->opset);
    int in[MAX_VALUES], out[MAX_VALUES], nr_in = c->nr_in;
    for (int i = 0; i < c->nr_in; i++)
        in[i] = make_value(g, &c->in[i], e);
    while (nr_in > 0 && in[nr_in - 1] < 0)
        nr_in--;
    struct graph_call call = {.op = c->op,
                              .name = c->name,
                              .in = in,
                              .nr_in = nr_in,
                              .attr = c->attr,
                              .nr_attr = c->nr_attr,
                              .out = out,
                              .nr_out = c->nr_out};
    int rc = graph_node(g, &call, e);
    for (int i = 0; i < c->nr_out && !rc; i++)
        rc = graph_output(g, out[i], e);
    rc = rc ? rc : graph_finish(g, e);
    if (rc)
        fail_msg("%s: %s", c->name, e->msg);
    return g;
}

static void compare(const struct test_case *c, int i, const struct graph *g, const float *got,
                    const char *by)
{
    const struct tensor *want = &c->out[i];
    const struct value *v = g->value[g->output[i]];
    if (!shape_equal(&v->shape, &want->shape) || v->type != want->type)
        fail_msg("%s: output %d has another shape or type", c->name, i);
    for (int64_t k = 0; k < shape_size(&want->shape); k++) {
        double a = (double)got[k], b = want->element[k];
        bool same = isnan(b)   ? isnan(a)
                    : isinf(b) ? isinf(a) && (a > 0) == (b > 0)
                               : fabs(a - b) <= 2e-5 + 2e-4 * fabs(b);
        if (!same)
            fail_msg("%s, %s: element %lld of output %d is %.9g, not %.9g", c->name, by,
                     (long long)k, i, a, b);
    }
}

static void run(const struct test_case *c, int block, const struct plan_runner *runner,
                const char *by)
{
    struct err e = ERR_INIT;
    struct graph *g = make_graph(c, &e);
    struct plan p = {0};
    struct task_list l = {0};
    struct model_options o = {.block = block};
    float in[MAX_VALUES][MAX_ELEMENTS], out[MAX_VALUES][MAX_ELEMENTS];
    const float *ins[MAX_VALUES];
    float *outs[MAX_VALUES];
    int nr = 0;
    for (int i = 0; i < c->nr_in; i++) {
        const struct tensor *t = &c->in[i];
        for (int64_t k = 0; k < shape_size(&t->shape); k++)
            in[nr][k] = (float)t->element[k];
        ins[nr] = in[nr];
        nr += !t->none && !t->constant && shape_size(&t->shape) > 0;
    }
    for (int i = 0; i < c->nr_out; i++)
        outs[i] = out[i];
    assert_int_equal(nr, g->nr_inputs);
    if (plan_build(&p, g, &o, &l, &e) || plan_run(&p, &l, ins, outs, runner, &e))
        fail_msg("%s, %s: %s", c->name, by, e.msg);
    for (int i = 0; i < c->nr_out; i++)
        compare(c, i, g, out[i], by);
    plan_release(&p);
    task_list_release(&l);
    graph_free(g);
}

/* Calls `each` for all cases of the file. */
static int for_all(void (*each)(const struct test_case *c, void *ctx), void *ctx)
{
    FILE *f = fopen(SOURCE_ROOT "/tests/operators.txt", "r");
    struct test_case *c = calloc(1, sizeof *c);
    int nr = 0;
    assert_non_null(f);
    for (; read_case(f, c); nr++)
        each(c, ctx);
    free(c);
    fclose(f);
    return nr;
}

static void by_definition(const struct test_case *c, void *ctx)
{
    (void)ctx;
    struct plan_runner reference = {.call = plan_call_reference},
                       interpreter = {.call = plan_call_interpreter};
    for (int block = 1; block <= 4; block *= 4) {
        run(c, block, &reference, "reference");
        run(c, block, &interpreter, "stages");
    }
}

static void operators_compute_what_the_standard_says(void **state)
{
    (void)state;
    int nr = for_all(by_definition, NULL);
    print_message("%d cases\n", nr);
    assert_true(nr >= 360);
}

static void by_kernels(const struct test_case *c, void *ctx)
{
    struct kernels *k = ctx;
    struct plan_runner runner = {.call = kernels_call, .ctx = k};
    for (int i = 0; i < 2; i++)
        for (int block = 1; block <= 4; block *= 4) {
            kernels_run(k, i);
            run(c, block, &runner, i ? "random schedule" : "default schedule");
        }
}

static void kernels_compute_the_same(void **state)
{
    (void)state;
    struct err e = ERR_INIT;
    struct target *t = NULL;
    struct kernels k;
    /* Four lanes: vectors are met by small arrays, too, and overhang. */
    if (llvm_backend.target_open("cpu=x86-64-v2", 1, &t, &e) ||
        kernels_open(&k, &llvm_backend, t, 11, &e))
        fail_msg("%s", e.msg);
    for_all(by_kernels, &k);
    kernels_close(&k);
    llvm_backend.target_close(t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(operators_compute_what_the_standard_says),
        cmocka_unit_test(kernels_compute_the_same),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
