/* SPDX-License-Identifier: Apache-2.0 */
/* ONNX files: real networks, conformance cases. SQUALL_SLOW_TESTS=1 runs all networks with numbers. */
#include <dirent.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "onnx.pb-c.h"

#include "engine/base/hash.h"
#include "engine/model/conformance.h"
#include "engine/model/plan.h"
#include "tests/shared_files.h"

/* ---- networks ---- */

static const struct network {
    const char *name;
    int convs;         /* how often */
    int distinct;      /* before fusion tells them apart by what follows */
    double conv, gemm; /* GFLOP */
} networks[] = {
    {"bvlc_alexnet", 5, 5, 1.192, 0.117},   {"densenet121", 121, 67, 5.668, 0},
    {"inception_v1", 57, 49, 2.861, 0.002}, {"resnet50", 53, 23, 8.174, 0.004},
    {"squeezenet", 26, 18, 0.698, 0},       {"vgg19", 16, 9, 39.017, 0.247},
};

enum { NR_NETWORKS = sizeof networks / sizeof networks[0] };

/* Length of the part of a convolution's name in front of what is fused behind it. */
static size_t anchor_length(const char *name)
{
    const char *p = strstr(name, "s1");
    const char *q = strstr(name, "s2");
    const char *s = p && (!q || p < q) ? p : q;
    return s ? (size_t)(s - name) + 2 : strlen(name);
}

static int count_distinct(const struct task_list *l)
{
    int nr = 0;
    for (int i = 0; i < l->nr; i++) {
        const char *a = l->task[i]->name;
        bool seen = strncmp(a, "conv", 4) != 0;
        for (int k = 0; k < i && !seen; k++) {
            const char *b = l->task[k]->name;
            size_t len = anchor_length(a);
            /* Pads are not in the name: kernels that differ in them are told apart by a number. */
            seen = len == anchor_length(b) && strncmp(a, b, len) == 0;
        }
        nr += !seen;
    }
    return nr;
}

static void networks_give_their_tasks(void **state)
{
    (void)state;
    for (int i = 0; i < NR_NETWORKS; i++)
        for (int block = 1; block <= 16; block *= 2) {
            char file[100];
            snprintf(file, sizeof file, "models/light_%s.onnx", networks[i].name);
            size_t size;
            free(slurp(file, &size));
            char *path = shared_path(file);
            struct task_list l = {0};
            struct err e = ERR_INIT;
            struct model_options o = {.block = block};
            if (model_tasks_from_onnx(path, &o, &l, &e))
                print_error("%s\n", e.msg);
            free(path);
            assert_int_equal(e.code, 0);
            double convs = 0, conv = 0, gemm = 0;
            for (int k = 0; k < l.nr; k++) {
                const struct task *t = l.task[k];
                bool is_conv = strncmp(t->name, "conv", 4) == 0;
                convs += is_conv ? t->weight : 0;
                conv += is_conv ? t->weight * t->wl.flops : 0;
                gemm += strncmp(t->name, "dense", 5) == 0 ? t->weight * t->wl.flops : 0;
                for (int m = 0; m < k; m++)
                    assert_string_not_equal(t->name, l.task[m]->name);
            }
            assert_true(fabs(convs - networks[i].convs) < 0.1);
            assert_int_equal(count_distinct(&l), networks[i].distinct);
            assert_true(fabs(conv / 1e9 - networks[i].conv) < 0.0006);
            assert_true(fabs(gemm / 1e9 - networks[i].gemm) < 0.0006);
            assert_memory_equal(l.name, "light_", 6);
            task_list_release(&l);
        }
}

/* ---- networks with numbers: the rule of models/INDEX.md ---- */

static float seeded(uint32_t h, uint32_t i, double lo, double hi)
{
    uint32_t x = h + i * UINT32_C(0x9E3779B1);
    x ^= x >> 16;
    x *= UINT32_C(0x85ebca6b);
    x ^= x >> 13;
    x *= UINT32_C(0xc2b2ae35);
    x ^= x >> 16;
    return (float)(lo + (hi - lo) * ((double)(x >> 8) * 0x1p-24));
}

/* Is the vector a scale or a variance, or a factor of a Mul through an Unsqueeze? */
static bool is_scale(const Onnx__GraphProto *g, const char *name)
{
    for (size_t i = 0; i < g->n_node; i++) {
        const Onnx__NodeProto *n = g->node[i];
        if (strcmp(n->op_type, "BatchNormalization") == 0 &&
            (strcmp(n->input[1], name) == 0 || strcmp(n->input[4], name) == 0))
            return true;
        if (strcmp(n->op_type, "Unsqueeze") != 0 || strcmp(n->input[0], name) != 0)
            continue;
        for (size_t k = 0; k < g->n_node; k++)
            for (size_t j = 0; j < g->node[k]->n_input; j++)
                if (strcmp(g->node[k]->op_type, "Mul") == 0 &&
                    strcmp(g->node[k]->input[j], n->output[0]) == 0)
                    return true;
    }
    return false;
}

/* Gives every constant that is one number everywhere the numbers of its name. Views of a constant
 * have its name and come later: the first says what it is. */
static void seed_constants(struct graph *g, const Onnx__GraphProto *file)
{
    for (int i = 0; i < g->nr_values; i++) {
        struct value *v = g->value[i];
        if (!v->is_const || !v->is_fill || v->type != GRAPH_F32 || !*v->name)
            continue;
        const struct shape *s = &v->shape;
        for (int k = 0; k < i; k++)
            if (strcmp(g->value[k]->name, v->name) == 0) {
                s = &g->value[k]->shape;
                break;
            }
        int64_t n = shape_size(s);
        double hi = 0.1, lo = -0.1;
        if (s->rank >= 2) {
            hi = sqrt(6.0 / (double)(n / s->dim[0]));
            lo = -hi;
        } else if (is_scale(file, v->name)) {
            lo = 0.5;
            hi = 1.5;
        }
        uint32_t h = hash32(HASH32_INIT, v->name, strlen(v->name));
        v->f32 = malloc((size_t)n * sizeof *v->f32);
        v->owns = true;
        for (int64_t k = 0; k < n; k++)
            v->f32[k] = seeded(h, (uint32_t)k, lo, hi);
        v->is_fill = false;
    }
}

/* The value in front of a final Softmax, or the output itself. */
static int logits_of(const struct graph *g)
{
    for (int i = g->nr_nodes; i-- > 0;)
        if (g->node[i]->op.kind == OP_SOFTMAX)
            return g->node[i]->in[0];
    return g->output[0];
}

static void run_seeded(const char *name, int block)
{
    char file[100];
    size_t size, want_size;
    snprintf(file, sizeof file, "models/light_%s.onnx", name);
    uint8_t *data = slurp(file, &size);
    snprintf(file, sizeof file, "models/seeded/%s.%s.f32", name,
             strcmp(name, "densenet121") == 0 ? "out" : "logits");
    float *want = (float *)(void *)slurp(file, &want_size);
    struct err e = ERR_INIT;
    struct graph *g = onnx_parse(data, size, file, &e);
    Onnx__ModelProto *m = onnx__model_proto__unpack(NULL, size, data);
    assert_non_null(g);
    assert_non_null(m);
    seed_constants(g, m->graph);
    onnx__model_proto__free_unpacked(m, NULL);
    free(data);
    int logits = logits_of(g);
    g->value[g->output[0]]->is_output = false;
    g->value[logits]->is_output = true;
    g->output[0] = logits;

    struct plan p = {0};
    struct task_list l = {0};
    assert_int_equal(plan_build(&p, g, &(struct model_options){.block = block}, &l, &e), 0);
    enum { N = 3 * 224 * 224 };
    float *x = malloc(N * sizeof *x), y[1000];
    for (uint32_t i = 0; i < N; i++)
        x[i] = seeded(hash32(HASH32_INIT, "input", 5), i, -1, 1);
    struct plan_runner runner = {.call = plan_call_reference};
    assert_int_equal(plan_run(&p, &l, (const float *[]){x}, (float *[]){y}, &runner, &e), 0);
    double max = 0, error = 0;
    for (int i = 0; i < 1000; i++) {
        max = fmax(max, fabs((double)want[i]));
        error = fmax(error, fabs((double)y[i] - (double)want[i]));
    }
    print_message("%s, block %d: largest error %.2g of the largest value\n", name, block,
                  error / max);
    assert_true(error < 1e-4 * max);
    free(x);
    free(want);
    plan_release(&p);
    task_list_release(&l);
    graph_free(g);
}

static void networks_compute_what_another_runtime_does(void **state)
{
    (void)state;
    bool slow = getenv("SQUALL_SLOW_TESTS") != NULL;
    run_seeded("squeezenet", 16);
    for (int i = 0; i < NR_NETWORKS && slow; i++)
        for (int block = 1; block <= 8; block *= 8)
            run_seeded(networks[i].name, block);
}

/* ---- conformance cases ---- */

struct counts {
    int passed, unsupported, failed;
};

static void run_folder(const char *group, struct counts *c)
{
    char *path = shared_path(group);
    DIR *d = opendir(path);
    if (!d) {
        print_message("%s is not there: skipped\n", path);
        free(path);
        skip();
    }
    for (struct dirent *entry; (entry = readdir(d));) {
        if (entry->d_name[0] == '.')
            continue;
        struct strbuf dir = {0};
        strbuf_addf(&dir, "%s/%s", path, entry->d_name);
        enum conformance_status status = CASE_PASSED;
        /* The stages of the tasks by definition, and the operators in plain loops. */
        for (int block = 1; block <= 4 && status == CASE_PASSED; block *= 4)
            for (int by = 0; by < 2 && status == CASE_PASSED; by++) {
                struct err e = ERR_INIT;
                struct conformance how = {
                    .folder = strbuf_text(&dir), .block = block, .runs = 1,
                    .runner = {.call = by ? plan_call_reference : plan_call_interpreter}};
                status = conformance_run(&how, &e);
                if (status == CASE_FAILED)
                    print_error("%s, block %d: %s\n", entry->d_name, block, e.msg);
                assert_true(status == CASE_PASSED || strlen(e.msg) > 20);
            }
        c->passed += status == CASE_PASSED;
        c->failed += status == CASE_FAILED;
        c->unsupported += status == CASE_UNSUPPORTED;
        strbuf_release(&dir);
    }
    free(path);
    closedir(d);
}

static void conformance_cases_pass_or_are_refused(void **state)
{
    (void)state;
    struct counts c = {0};
    run_folder("onnx-tests/node", &c);
    run_folder("onnx-tests/pytorch-converted", &c);
    run_folder("onnx-tests/pytorch-operator", &c);
    print_message("%d passed, %d not supported, %d failed\n", c.passed, c.unsupported, c.failed);
    assert_int_equal(c.failed, 0);
    assert_true(c.passed >= 200);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(networks_give_their_tasks),
        cmocka_unit_test(networks_compute_what_another_runtime_does),
        cmocka_unit_test(conformance_cases_pass_or_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
