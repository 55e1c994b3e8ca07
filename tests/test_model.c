/* SPDX-License-Identifier: Apache-2.0 */
/* Named workloads and graphs: makers against the reference, fusion, layouts, messages. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/graph_fixture.h"

/* The stages of the workload, by their definition, on the filled operands. */
static float *interpreted(const struct task *t)
{
    float *stored[WL_MAX_TENSORS] = {0};
    for (int i = 0; i < t->wl.nr_tensors; i++) {
        const struct wl_tensor *x = &t->wl.tensor[i];
        stored[i] = calloc((size_t)layout_stored_size(&x->layout), sizeof(float));
        if (x->role != WL_INPUT && x->role != WL_CONST)
            continue;
        float *logical = calloc((size_t)layout_logical_size(&x->layout), sizeof(float));
        task_fill(t, i, logical);
        layout_pack(&x->layout, logical, stored[i]);
        free(logical);
    }
    workload_interpret(&t->wl, stored);
    float *y = stored[workload_output(&t->wl)];
    for (int i = 0; i < t->wl.nr_tensors; i++)
        if (stored[i] != y)
            free(stored[i]);
    return y;
}

static void check_task(const struct task *t)
{
    struct err e = ERR_INIT;
    float *want = task_expected(t, &e), *got = interpreted(t);
    assert_non_null(want);
    int64_t at, n = layout_stored_size(&t->wl.tensor[workload_output(&t->wl)].layout);
    double error = task_error(t, got, want, n, &at);
    if (!(error <= 1))
        print_error("%s: element %lld is %g, not %g\n%s", t->name, (long long)at, (double)got[at],
                    (double)want[at], t->wl.text);
    assert_true(error <= 1);
    /* A wrong element must show. */
    int64_t first = 0;
    got[first] += 0.01f + fabsf(got[first]);
    assert_true(task_error(t, got, want, n, &at) > 1);
    free(want);
    free(got);
}

static void check_named(const char *text, int block)
{
    struct task_list l = {0};
    struct err e = ERR_INIT;
    struct model_options o = {.block = block};
    if (model_task_from_name(text, &o, &l, &e)) {
        print_error("%s\n", e.msg);
        fail();
    }
    assert_int_equal(l.nr, 1);
    assert_null(strchr(l.task[0]->name, ' '));
    check_task(l.task[0]);
    task_list_release(&l);
}

static void makers_agree_with_the_reference(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "matmul:1x1x1",
        "matmul:5x7x3",
        "matmul:8x16x32,const,bias,relu",
        "matmul:3x4x5,add,gelu",
        "dense:1x10x33",
        "dense:4x6x8,relu",
        "dense:2x3x4,tanh",
        "conv2d:C=3,H=9,K=5,R=3",
        "conv2d:C=3,H=11,W=7,K=17,R=3,stride=2,bias,relu",
        "conv2d:C=8,H=7,K=8,R=1,pad=0",
        "conv2d:C=20,H=6,K=24,bias,add,relu",
        "conv2d:N=2,C=17,H=5,W=8,K=9,R=1,S=3,pad=1,stride=2",
        "conv2d:C=6,H=9,K=6,dilation=2,bias",
        "conv2d:C=16,H=5,K=32,groups=2,relu",
        "conv2d:C=12,H=5,K=8,groups=4,bias,add",
        "conv2d:C=32,H=4,K=32,groups=2,bias,sigmoid",
        "conv2d:C=5,H=8,K=3,R=5,stride=3,pad=4,relu6",
        "conv2d:C=4,H=5,K=4,R=2,S=3,pad=0",
        "conv2d:C=16,H=4,K=16,R=4,pad=2,dilation=2",
        "depthwise:C=5,H=7",
        "depthwise:C=20,H=6,stride=2,bias,relu6",
        "depthwise:N=2,C=16,H=5,R=5",
        "maxpool:C=6,H=9",
        "maxpool:C=16,H=8,W=5,R=2,S=3,pad=0",
        "maxpool:C=3,H=7,stride=1,relu",
        "avgpool:C=6,H=9",
        "avgpool:C=17,H=6,R=2,pad=0",
        "avgpool:C=4,H=5,R=3,stride=1,bias",
        "globalavgpool:C=9,H=5",
        "globalavgpool:C=3,H=4,W=6,bias,relu",
        "lrn:C=16,H=3",
        "lrn:C=32,H=4,W=3,size=4",
        "lrn:C=7,H=4,size=3,relu",
        "lrn:C=8,H=2,size=1",
        "softmax:3x7",
        "softmax:10",
        "softmax:2x3x4",
        "transpose:3x5",
        "transpose:2x3x4",
        "add:3x4x5",
        "mul:1x20x3x3,bias,relu",
        "relu:7",
        "sigmoid:1x6x3x3",
    };
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        for (int block = 1; block <= 16; block = block == 1 ? 4 : block * 2)
            check_named(texts[i], block);
}

/* Random convolutions and poolings, most of them odd. */
static void random_windows_agree_with_the_reference(void **state)
{
    (void)state;
    struct rng r;
    rng_seed(&r, 11);
    for (int i = 0; i < 150; i++) {
        static const char *const kinds[] = {"conv2d", "depthwise", "maxpool", "avgpool"};
        static const char *const words[] = {"", ",relu", ",bias", ",add,sigmoid", ",bias,add,relu"};
        const char *kind = kinds[rng_below(&r, 4)];
        int kernel = 1 + (int)rng_below(&r, 4), dilation = 1 + (int)rng_below(&r, 2);
        int groups = 1 + (int)rng_below(&r, 3), reach = (kernel - 1) * dilation;
        int pad = (int)rng_below(&r, (uint64_t)(reach < 4 ? reach : 4) + 1);
        char text[200];
        int used = snprintf(text, sizeof text, "%s:C=%d,H=%d,W=%d,R=%d,S=%d,stride=%d,pad=%d", kind,
                            groups * (1 + (int)rng_below(&r, 9)), reach + 1 + (int)rng_below(&r, 6),
                            reach + 1 + (int)rng_below(&r, 6), kernel, kernel,
                            1 + (int)rng_below(&r, 3), pad);
        used += snprintf(text + used, sizeof text - (size_t)used, ",dilation=%d%s", dilation,
                         words[rng_below(&r, 5)]);
        if (kind == kinds[0])
            snprintf(text + used, sizeof text - (size_t)used, ",K=%d,groups=%d",
                     groups * (1 + (int)rng_below(&r, 9)), groups);
        check_named(text, 1 << rng_below(&r, 4));
    }
}

static void bad_names_are_refused_with_a_sentence(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "matmul:",
        "matmul:3",
        "matmul:3x4",
        "matmul:3x4x",
        "matmul:3x4x5x6",
        "matmul:0x4x5",
        "matmul:-1x4x5",
        "matmul:3x4x5,",
        "matmul:3x4x5,,bias",
        "matmul:3x4x5,frob",
        "matmul:3x4x5,bias,bias",
        "matmul:3x4x5 ",
        "matmul:99999999999x1x1",
        "matmul:1000000x1000000x1",
        "matmul:9999999999x9999999999x9999999999",
        "dense:axbxc",
        "conv2d:C=",
        "conv2d:C=x",
        "conv2d:C=3,C=4",
        "conv2d:Q=3",
        "conv2d:3x3",
        "conv2d:=3",
        "conv2d:C=0",
        "conv2d:H=0",
        "conv2d:R=0",
        "conv2d:stride=0",
        "conv2d:H=2,R=5,pad=0",
        "conv2d:C=5,groups=2",
        "conv2d:groups=0",
        "conv2d:C=4,K=5,groups=2",
        "conv2d:K=9999999999",
        "conv2d:C=100000,K=100000,R=9",
        "conv2d:pad=9999999999",
        "maxpool:pad=5",
        "softmax:",
        "softmax:1x1x1x1x1x1x1x1x1",
        "add:2x3,frob=3",
        "depthwise:K=3",
        "nonsense:3",
        "conv2d",
        "conv2d:C",
        "conv2d:C=3=4",
        "conv2d:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa=1",
    };
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        struct task_list l = {0};
        struct err e = ERR_INIT;
        struct model_options o = {.block = 16};
        int rc = model_task_from_name(texts[i], &o, &l, &e);
        if (rc == 0)
            print_error("\"%s\" was taken for %s\n", texts[i], l.task[0]->name);
        assert_true(rc < 0);
        assert_int_equal(e.code, rc);
        assert_true(strlen(e.msg) > 20);
        assert_int_equal(l.nr, 0);
        assert_true(model_task_from_name(texts[i], &o, &l, NULL) < 0);
        task_list_release(&l);
    }
    assert_false(model_is_named_workload("conv2d"));
    assert_false(model_is_named_workload("model.onnx"));
    assert_false(model_is_named_workload(""));
    assert_true(model_is_named_workload("conv2d:"));
    assert_non_null(strstr(model_named_workloads_help(), "matmul:MxNxK"));
}

static void equal_tasks_are_one_with_more_weight(void **state)
{
    (void)state;
    struct task_list l = {0};
    struct model_options o = {.block = 8};
    struct err e = ERR_INIT;
    assert_int_equal(model_task_from_name("conv2d:C=8,H=5,K=8", &o, &l, &e), 0);
    assert_int_equal(model_task_from_name("conv2d:H=5,C=8", &o, &l, &e), 0);
    assert_int_equal(l.nr, 1);
    assert_true(l.task[0]->weight > 1.5);
    assert_string_equal(l.task[0]->name, "conv2d_8x5x5_k8_3x3s1");
    assert_int_equal((int)l.task[0]->wl.flops, 2 * 8 * 25 * 8 * 9);
    /* Another pad: another task of the same sizes. */
    assert_int_equal(model_task_from_name("conv2d:H=5,C=8,pad=2", &o, &l, &e), 0);
    assert_int_equal(l.nr, 2);
    assert_string_equal(l.task[1]->name, "conv2d_8x5x5_k8_3x3s1_2");
    assert_int_equal(model_task_from_name("conv2d:H=5,C=8,pad=3", &o, &l, &e), 0);
    assert_string_equal(l.task[2]->name, "conv2d_8x5x5_k8_3x3s1_3");
    task_list_release(&l);
}

/* ---- graphs ---- */

static int batchnorm(struct build *b, int x)
{
    int64_t c = b->g->value[x]->shape.dim[1];
    int in[5] = {x};
    for (int i = 1; i < 5; i++)
        in[i] = weight(b, 1, &c);
    return node(b, "BatchNormalization", in, 5, NULL, 0);
}

/* Finishes the graph; makes its plan; runs it in two ways and compares; returns the tasks. */
static struct task_list finish(struct build *b, int y, int block)
{
    struct task_list l = {0};
    struct plan p = {0};
    struct model_options o = {.block = block};
    assert_int_equal(graph_output(b->g, y, &b->e), 0);
    assert_int_equal(graph_finish(b->g, &b->e), 0);
    if (plan_build(&p, b->g, &o, &l, &b->e))
        print_error("%s\n", b->e.msg);
    assert_int_equal(b->e.code, 0);
    for (int i = 0; i < l.nr; i++)
        check_task(l.task[i]);
    plan_release(&p);
    return l;
}

static void batchnorm_disappears_into_weights(void **state)
{
    (void)state;
    for (int block = 1; block <= 8; block *= 8) {
        struct build b;
        begin(&b);
        int x = input4(&b, 3, 6, 6), c = conv(&b, x, 10, 3), y = relu(&b, batchnorm(&b, c));
        /* Unfused: the same graph, its output taken before anything is folded. */
        struct build plain;
        begin(&plain);
        int px = input4(&plain, 3, 6, 6), pc = conv(&plain, px, 10, 3);
        assert_int_equal(graph_output(plain.g, pc, &plain.e), 0); /* visible: cannot be folded */
        int py = relu(&plain, batchnorm(&plain, pc));
        assert_int_equal(graph_output(plain.g, py, &plain.e), 0);
        assert_int_equal(graph_finish(plain.g, &plain.e), 0);

        struct task_list l = finish(&b, y, block);
        assert_int_equal(l.nr, block == 1 ? 1 : 2); /* with its conversion to plain */
        assert_string_equal(l.task[0]->name, "conv2d_3x6x6_k10_3x3s1_relu");
        float *folded = run_graph(&b, x, y, block);
        int64_t n = shape_size(&b.g->value[y]->shape);
        float *out[2] = {malloc((size_t)n * sizeof(float)), malloc((size_t)n * sizeof(float))};
        struct task_list pl = {0};
        struct plan p = {0};
        assert_int_equal(
            plan_build(&p, plain.g, &(struct model_options){.block = 1}, &pl, &plain.e), 0);
        float in[108];
        for (int i = 0; i < 108; i++)
            in[i] = (float)((double)((i * 37) % 101) / 50 - 1);
        struct plan_runner runner = {.call = plan_call_interpreter};
        assert_int_equal(plan_run(&p, &pl, (const float *[]){in}, out, &runner, &plain.e), 0);
        assert_close(folded, out[1], n);
        plan_release(&p);
        task_list_release(&pl);
        task_list_release(&l);
        free(out[0]);
        free(out[1]);
        free(folded);
        graph_free(b.g);
        graph_free(plain.g);
    }
}

static void residual_joins_the_later_branch(void **state)
{
    (void)state;
    struct build b;
    begin(&b);
    int x = input4(&b, 8, 5, 5), a = relu(&b, conv(&b, x, 16, 3)), left = conv(&b, a, 16, 1);
    int right = conv(&b, relu(&b, conv(&b, a, 8, 1)), 16, 3);
    int y = relu(&b, node(&b, "Add", (int[]){left, right}, 2, NULL, 0));
    struct task_list l = finish(&b, y, 8);
    const char *want[] = {"pack_8x5x5",
                          "conv2d_8x5x5_k16_3x3s1_relu",
                          "conv2d_16x5x5_k16_1x1s1",
                          "conv2d_16x5x5_k8_1x1s1_relu",
                          "conv2d_8x5x5_k16_3x3s1_add_relu",
                          "unpack_16x5x5"};
    assert_int_equal(l.nr, 6);
    for (int i = 0; i < l.nr; i++)
        assert_string_equal(l.task[i]->name, want[i]);
    task_list_release(&l);
    graph_free(b.g);
}

static void self_gated_activation_is_one_kernel(void **state)
{
    (void)state;
    struct build b;
    begin(&b);
    int x = input4(&b, 3, 5, 5), c = conv(&b, x, 4, 3), s = node(&b, "Sigmoid", &c, 1, NULL, 0);
    struct task_list l = finish(&b, node(&b, "Mul", (int[]){c, s}, 2, NULL, 0), 1);
    assert_int_equal(l.nr, 1);
    assert_string_equal(l.task[0]->name, "conv2d_3x5x5_k4_3x3s1_sigmoid_mul");
    task_list_release(&l);
    graph_free(b.g);
}

/* x * sigmoid(x), thirty times: the expression would double each time. */
static void expressions_do_not_grow_without_bound(void **state)
{
    (void)state;
    struct build b;
    begin(&b);
    int y = input4(&b, 3, 2, 2);
    for (int i = 0; i < 30; i++) {
        int s = node(&b, "Sigmoid", &y, 1, NULL, 0);
        y = node(&b, "Mul", (int[]){y, s}, 2, NULL, 0);
    }
    struct task_list l = finish(&b, y, 1);
    assert_in_range(l.nr, 1, 12);
    for (int i = 0; i < l.nr; i++)
        assert_true(strlen(l.task[i]->wl.text) < 20000);
    task_list_release(&l);
    graph_free(b.g);
}

static void dense_block_is_placed_and_scaled_once(void **state)
{
    (void)state;
    struct build b;
    begin(&b);
    int x = input4(&b, 3, 6, 6), f = conv(&b, x, 16, 3);
    struct graph_attr axis = graph_int("axis", 1);
    for (int i = 0; i < 3; i++) {
        int c = conv(&b, relu(&b, batchnorm(&b, f)), 8, 3);
        f = node(&b, "Concat", (int[]){f, c}, 2, &axis, 1);
    }
    int y = relu(&b, batchnorm(&b, f));
    assert_int_equal(graph_output(b.g, y, &b.e), 0);
    assert_int_equal(graph_finish(b.g, &b.e), 0);
    float *plain = run_graph(&b, x, y, 1), *blocked = run_graph(&b, x, y, 8),
          *odd = run_graph(&b, x, y, 16);
    int64_t n = shape_size(&b.g->value[y]->shape);
    assert_close(blocked, plain, n);
    assert_close(odd, plain, n);
    struct task_list l = {0};
    assert_int_equal(model_tasks_from_graph(b.g, &(struct model_options){.block = 8}, &l, &b.e), 0);
    for (int i = 0; i < l.nr; i++) {
        assert_null(strstr(l.task[i]->name, "concat"));
        if (strncmp(l.task[i]->name, "mul", 3) == 0) /* one scale, one shift */
            assert_memory_equal(l.task[i]->name, "mul_add_relu_", 13);
    }
    struct task_list copied = {0};
    struct model_options o = {.block = 8, .copy_concat = true};
    assert_int_equal(model_tasks_from_graph(b.g, &o, &copied, &b.e), 0);
    assert_true(copied.nr > l.nr);
    task_list_release(&copied);
    task_list_release(&l);
    free(plain);
    free(blocked);
    free(odd);
    graph_free(b.g);
}

/* Everything with windows, moved axes, views and broadcasts between blocks. */
static void mixed_network_is_the_same_in_all_layouts(void **state)
{
    (void)state;
    struct build b;
    begin(&b);
    int x = input4(&b, 3, 9, 9), a = relu(&b, conv(&b, x, 12, 3));
    struct graph_attr lrn[] = {graph_int("size", 5), graph_float("alpha", 0.01)};
    a = node(&b, "LRN", &a, 1, lrn, 2);
    int64_t two[] = {2, 2}, ones[] = {1, 1, 1, 1};
    struct graph_attr pool[] = {graph_ints("kernel_shape", two, 2), graph_ints("strides", two, 2),
                                graph_int("ceil_mode", 1)};
    a = node(&b, "AveragePool", &a, 1, pool, 3);
    /* channel shuffle */
    int shape1 = graph_const_i64(b.g, "s", 1, (int64_t[]){5}, (int64_t[]){1, 3, 4, 5, 5}, &b.e);
    int shape2 = graph_const_i64(b.g, "s", 1, (int64_t[]){4}, (int64_t[]){0, -1, 5, 5}, &b.e);
    struct graph_attr perm = graph_ints("perm", (int64_t[]){0, 2, 1, 3, 4}, 5);
    a = node(&b, "Reshape", (int[]){a, shape1}, 2, NULL, 0);
    a = node(&b, "Transpose", &a, 1, &perm, 1);
    a = node(&b, "Reshape", (int[]){a, shape2}, 2, NULL, 0);
    /* squeeze and excite */
    int c = conv(&b, a, 20, 1), g = node(&b, "GlobalAveragePool", &c, 1, NULL, 0);
    g = node(&b, "HardSigmoid", (int[]){conv(&b, relu(&b, conv(&b, g, 5, 1)), 20, 1)}, 1, NULL, 0);
    c = node(&b, "Mul", (int[]){c, g}, 2, NULL, 0);
    struct graph_attr pads = graph_ints("pads", ones, 4);
    int w = weight(&b, 4, (int64_t[]){20, 1, 3, 3});
    struct graph_attr depth[] = {pads, graph_int("group", 20)};
    c = node(&b, "Elu", (int[]){node(&b, "Conv", (int[]){c, w}, 2, depth, 2)}, 1, NULL, 0);
    struct graph_attr axis = graph_int("axis", 1);
    c = node(&b, "Concat", (int[]){c, a, c}, 3, &axis, 1);
    g = node(&b, "GlobalMaxPool", &c, 1, NULL, 0);
    g = node(&b, "Flatten", &g, 1, NULL, 0);
    int fw = weight(&b, 2, (int64_t[]){7, 52}), fb = weight(&b, 1, (int64_t[]){7});
    struct graph_attr gemm[] = {graph_int("transB", 1), graph_float("alpha", 0.5)};
    g = node(&b, "Gemm", (int[]){g, fw, fb}, 3, gemm, 2);
    g = node(&b, "Softmax", &g, 1, NULL, 0);
    assert_int_equal(graph_output(b.g, g, &b.e), 0);
    assert_int_equal(graph_finish(b.g, &b.e), 0);
    float *plain = run_graph(&b, x, g, 1);
    double sum = 0;
    for (int i = 0; i < 7; i++)
        sum += (double)plain[i];
    assert_true(fabs(sum - 1) < 1e-5);
    for (int block = 2; block <= 16; block *= 2) {
        float *blocked = run_graph(&b, x, g, block);
        assert_close(blocked, plain, 7);
        free(blocked);
    }
    free(plain);
    graph_free(b.g);
}

/* Found by the fuzzer: the scalars of the first Tile were looked up where they were left out. */
static void operators_survive_the_inputs_they_lack(void **state)
{
    (void)state;
    static const int opsets[] = {1, 5, 6, 9, 13, 20};
    const char *all = graph_operators();
    for (size_t k = 0; k < sizeof opsets / sizeof *opsets; k++)
        for (const char *p = all; *p; p += strcspn(p, " ") + 1)
            for (int nr = 0; nr <= 5; nr++)
                for (int rank = 0; rank <= 4; rank += 2) {
                    char op[64];
                    snprintf(op, sizeof op, "%.*s", (int)strcspn(p, " "), p);
                    struct err e = ERR_INIT;
                    struct graph *g = graph_new("lacking", opsets[k]);
                    int in[5], out[3];
                    int64_t dim[] = {1, 6, 2, 2};
                    for (int i = 0; i < 5; i++)
                        in[i] = i < 2 ? graph_input(g, "x", rank, dim, &e) : -1;
                    struct graph_call c = {
                        .op = op, .in = in, .nr_in = nr, .out = out, .nr_out = 3};
                    int rc = graph_node(g, &c, &e);
                    assert_true(rc == 0 || e.msg[0]);
                    graph_free(g);
                }
}

static void errors_name_operator_and_node(void **state)
{
    (void)state;
    struct build b;
    begin(&b);
    int x = input4(&b, 3, 4, 4), out;
    struct graph_call c = {
        .op = "Frobnicate", .name = "bar", .in = &x, .nr_in = 1, .out = &out, .nr_out = 1};
    assert_int_equal(graph_node(b.g, &c, &b.e), ERR_UNSUPPORTED);
    assert_memory_equal(b.e.msg,
                        "operator \"Frobnicate\" of node \"bar\" is not supported; squall "
                        "check --help lists all",
                        82);
    err_clear(&b.e);
    c.op = "MaxPool";
    assert_int_equal(graph_node(b.g, &c, &b.e), ERR_INPUT);
    assert_string_equal(b.e.msg,
                        "operator \"MaxPool\" of node \"bar\" lacks attribute \"kernel_shape\"");
    err_clear(&b.e);
    struct graph_attr a = graph_int("kernel_shape", 3);
    c.attr = &a;
    c.nr_attr = 1;
    assert_int_equal(graph_node(b.g, &c, &b.e), ERR_INPUT);
    assert_non_null(strstr(b.e.msg, "wrong type"));
    err_clear(&b.e);
    assert_true(graph_input(b.g, "huge", 2, (int64_t[]){1 << 20, 1 << 20}, &b.e) < 0);
    err_clear(&b.e);
    assert_true(graph_input(b.g, "neg", 1, (int64_t[]){-3}, &b.e) < 0);
    err_clear(&b.e);
    assert_true(graph_finish(b.g, &b.e) < 0);
    graph_free(b.g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(makers_agree_with_the_reference),
        cmocka_unit_test(random_windows_agree_with_the_reference),
        cmocka_unit_test(bad_names_are_refused_with_a_sentence),
        cmocka_unit_test(equal_tasks_are_one_with_more_weight),
        cmocka_unit_test(batchnorm_disappears_into_weights),
        cmocka_unit_test(residual_joins_the_later_branch),
        cmocka_unit_test(self_gated_activation_is_one_kernel),
        cmocka_unit_test(expressions_do_not_grow_without_bound),
        cmocka_unit_test(dense_block_is_placed_and_scaled_once),
        cmocka_unit_test(mixed_network_is_the_same_in_all_layouts),
        cmocka_unit_test(operators_survive_the_inputs_they_lack),
        cmocka_unit_test(errors_name_operator_and_node),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
