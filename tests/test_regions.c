/* SPDX-License-Identifier: Apache-2.0 */
/* Regions that could flow plain: which there are, what they save, and the choice among them. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "engine/model/regions.h"
#include "scripts/lua_model.h"
#include "tests/graph_fixture.h"

enum { BLOCK = 8, SIZE = 6, UNITS = 2, CLASSES = 7 };

/* ---- a network of ShuffleNet's units ---- */

struct net {
    struct build b;
    int x, y;
    struct task_list tasks;
    struct regions regions;
};

/* Channels of `groups` groups, taken in turn from each. */
static int shuffle(struct build *b, int x, int64_t groups)
{
    int64_t c = b->g->value[x]->shape.dim[1];
    int64_t apart[] = {1, groups, c / groups, SIZE, SIZE}, whole[] = {1, c, SIZE, SIZE};
    int64_t perm[] = {0, 2, 1, 3, 4};
    struct graph_attr attr = graph_ints("perm", perm, 5);
    int first = graph_const_i64(b->g, "apart", 1, (int64_t[]){5}, apart, &b->e);
    int last = graph_const_i64(b->g, "whole", 1, (int64_t[]){4}, whole, &b->e);
    x = node(b, "Reshape", (int[]){x, first}, 2, NULL, 0);
    x = node(b, "Transpose", &x, 1, &attr, 1);
    return node(b, "Reshape", (int[]){x, last}, 2, NULL, 0);
}

/* 17 channels a group fill no blocks: only the depthwise convolution works on some. */
static int unit(struct build *b, int x)
{
    int64_t c = b->g->value[x]->shape.dim[1];
    int y = shuffle(b, relu(b, group_conv(b, x, 68, 1, 4)), 4);
    y = group_conv(b, group_conv(b, y, 68, 3, 68), c, 1, 4);
    return relu(b, node(b, "Add", (int[]){y, x}, 2, NULL, 0));
}

static int classify(struct build *b, int y)
{
    int w = weight(b, 2, (int64_t[]){CLASSES, b->g->value[y]->shape.dim[1]});
    int bias = weight(b, 1, (int64_t[]){CLASSES});
    struct graph_attr gemm = graph_int("transB", 1);
    y = node(b, "GlobalAveragePool", &y, 1, NULL, 0);
    y = node(b, "Flatten", &y, 1, NULL, 0);
    return node(b, "Gemm", (int[]){y, w, bias}, 3, &gemm, 1);
}

static void net_finish(struct net *n, int y)
{
    struct model_options o = {.block = BLOCK};
    n->y = y;
    assert_int_equal(graph_output(n->b.g, y, &n->b.e), 0);
    assert_int_equal(graph_finish(n->b.g, &n->b.e), 0);
    assert_int_equal(regions_find(&n->regions, n->b.g, &o, &n->tasks, &n->b.e), 0);
}

static void net_begin(struct net *n)
{
    *n = (struct net){0};
    begin(&n->b);
    n->x = input4(&n->b, 3, SIZE, SIZE);
}

static void net_release(struct net *n)
{
    regions_release(&n->regions);
    task_list_release(&n->tasks);
    graph_free(n->b.g);
}

static void make_shufflenet(struct net *n)
{
    net_begin(n);
    int y = relu(&n->b, conv(&n->b, n->x, 24, 3));
    for (int i = 0; i < UNITS; i++)
        y = unit(&n->b, y);
    net_finish(n, classify(&n->b, y));
}

static int count_conversions(struct net *n, const char *plain)
{
    struct model_options o = {.block = BLOCK, .plain = plain};
    struct task_list l = {0};
    struct plan p = {0};
    int nr = 0;
    assert_int_equal(plan_build(&p, n->b.g, &o, &l, &n->b.e), 0);
    for (int i = 0; i < p.nr_calls; i++)
        nr += p.call[i].group < 0;
    plan_release(&p);
    task_list_release(&l);
    return nr;
}

/* ---- costs that are made up ---- */

/* Every kernel takes one; those whose names begin so take another time. */
static double *costs(const struct net *n, const char *prefix, double other)
{
    double *cost = malloc((size_t)n->tasks.nr * sizeof *cost);
    for (int i = 0; i < n->tasks.nr; i++)
        cost[i] = strncmp(n->tasks.task[i]->name, prefix, strlen(prefix)) ? 1 : other;
    return cost;
}

/* The caller frees the text. */
static char *chosen(const struct net *n, const char *prefix, double other,
                    struct regions_gain *gain)
{
    double *cost = costs(n, prefix, other);
    struct strbuf text = {0};
    *gain = (struct regions_gain){0};
    regions_choose(&n->regions, cost, &text, gain);
    free(cost);
    return strbuf_detach(&text);
}

/* ---- tests ---- */

static void units_of_plain_operators_have_regions(void **state)
{
    (void)state;
    struct net n;
    make_shufflenet(&n);
    /* The first convolution, whose result is read plain, and each depthwise one. */
    assert_int_equal(n.regions.nr, 1 + UNITS);
    for (int i = 0; i < n.regions.nr; i++)
        assert_int_equal(n.regions.region[i].nr_groups, 1);
    /* Once blocked with its conversions, once plain. */
    assert_int_equal(n.regions.region[0].nr_changes, 3);
    for (int i = 1; i < n.regions.nr; i++)
        assert_int_equal(n.regions.region[i].nr_changes, 4);
    assert_int_equal(count_conversions(&n, NULL), 1 + 2 * UNITS);
    net_release(&n);
}

static void plain_regions_save_conversions_and_compute_the_same(void **state)
{
    (void)state;
    struct net n;
    struct regions_gain gain;
    make_shufflenet(&n);
    char *text = chosen(&n, "", 1, &gain);
    struct model_options o = {.block = BLOCK, .plain = text};
    assert_int_equal(gain.kernels, 1 + UNITS);
    assert_int_equal(count_conversions(&n, text), 0);
    float *plain = run_graph(&n.b, n.x, n.y, 1), *blocked = run_graph(&n.b, n.x, n.y, BLOCK);
    float *mixed = run_planned(&n.b, n.x, n.y, &o);
    assert_close(blocked, plain, CLASSES);
    assert_close(mixed, plain, CLASSES);
    free(plain);
    free(blocked);
    free(mixed);
    free(text);
    net_release(&n);
}

static void the_choice_follows_the_costs(void **state)
{
    (void)state;
    struct net n;
    struct regions_gain gain;
    make_shufflenet(&n);
    /* One kernel instead of two or three. */
    char *text = chosen(&n, "", 1, &gain);
    assert_true(*text);
    assert_int_equal((int)gain.blocked_ns, 2 + 3 * UNITS);
    assert_int_equal((int)gain.plain_ns, 1 + UNITS);
    free(text);
    /* Conversions for nothing: nothing is gained. */
    struct strbuf none = {0};
    double *cost = costs(&n, "", 1);
    for (int i = 0; i < n.tasks.nr; i++)
        cost[i] = strstr(n.tasks.task[i]->name, "pack") ? 0 : 1;
    gain = (struct regions_gain){0};
    regions_choose(&n.regions, cost, &none, &gain);
    assert_string_equal(strbuf_text(&none), "");
    assert_int_equal(gain.kernels, 0);
    /* Two percent are no gain, four are one. */
    for (int percent = 2; percent <= 4; percent += 2) {
        for (int i = 0; i < n.tasks.nr; i++)
            cost[i] = strstr(n.tasks.task[i]->name, "pack") ? 0.005 * percent : 1 - 0.001 * percent;
        gain = (struct regions_gain){0};
        regions_choose(&n.regions, cost, &none, &gain);
        assert_int_equal(gain.kernels, percent == 4 ? UNITS : 0);
    }
    strbuf_release(&none);
    free(cost);
    /* What was not measured stays in blocks. */
    text = chosen(&n, "", NAN, &gain);
    assert_string_equal(text, "");
    free(text);
    net_release(&n);
}

/* Each kernel of a plan with a region plain is one of the tasks that were found, and none besides
 * the changes: the rest of the model is the same. */
static void changes_are_all_that_changes(void **state)
{
    (void)state;
    struct net n;
    struct regions_gain gain;
    make_shufflenet(&n);
    char *text = chosen(&n, "", 1, &gain);
    int *calls = calloc((size_t)n.tasks.nr, sizeof *calls), nr = n.tasks.nr;
    for (int flat = 0; flat < 2; flat++) {
        struct model_options o = {.block = BLOCK, .plain = flat ? text : NULL};
        struct plan p = {0};
        assert_int_equal(plan_build(&p, n.b.g, &o, &n.tasks, &n.b.e), 0);
        assert_int_equal(n.tasks.nr, nr);
        for (int i = 0; i < p.nr_calls; i++)
            calls[p.call[i].task] += flat ? 1 : -1;
        plan_release(&p);
    }
    for (int i = 0; i < n.regions.nr; i++)
        for (int k = 0; k < n.regions.region[i].nr_changes; k++)
            calls[n.regions.region[i].change[k].task] -= n.regions.region[i].change[k].calls;
    for (int i = 0; i < nr; i++)
        assert_int_equal(calls[i], 0);
    free(calls);
    free(text);
    net_release(&n);
}

/* 1x1 convolutions on both sides pass the blocks on to the depthwise one. */
static void larger_regions_flip_as_a_whole(void **state)
{
    (void)state;
    struct net n;
    net_begin(&n);
    int y = relu(&n.b, conv(&n.b, n.x, 24, 3));
    y = shuffle(&n.b, y, 2);
    y = conv(&n.b, group_conv(&n.b, conv(&n.b, y, 20, 1), 20, 3, 20), 24, 1);
    y = conv(&n.b, shuffle(&n.b, y, 2), 24, 3);
    net_finish(&n, classify(&n.b, y));
    struct regions_gain gain;
    /* The convolution before the first shuffle, the three between, the last one with the pool. */
    assert_int_equal(n.regions.nr, 3);
    assert_int_equal(n.regions.region[1].nr_groups, 3);
    char *text = chosen(&n, "unpack", 10, &gain);
    struct model_options o = {.block = BLOCK, .plain = text};
    float *plain = run_graph(&n.b, n.x, n.y, 1), *mixed = run_planned(&n.b, n.x, n.y, &o);
    assert_close(mixed, plain, CLASSES);
    free(plain);
    free(mixed);
    free(text);
    net_release(&n);
}

/* Conversions at the edges of a model are no reason to measure anything. */
static void networks_that_flow_in_blocks_have_no_regions(void **state)
{
    (void)state;
    for (int i = 0; lua_model_name(i); i++)
        for (int block = 1; block <= 16; block *= 2) {
            struct err e = ERR_INIT;
            struct graph *g = lua_model_graph(lua_model_name(i), &e);
            struct task_list l = {0};
            struct regions r;
            assert_non_null(g);
            assert_int_equal(
                regions_find(&r, g, &(struct model_options){.block = block}, &l, &e), 0);
            if (r.nr)
                print_error("%s, block %d: %d regions\n", lua_model_name(i), block, r.nr);
            assert_int_equal(r.nr, 0);
            regions_release(&r);
            task_list_release(&l);
            graph_free(g);
        }
}

static void choices_from_outside_are_refused_with_a_sentence(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "", "\n", "12", "12:", "x", "12:x", "12:1,", "12:1,,2", "12:2,1", "12:1,1", "12:1-",
        "12:3-1", "12:3-3", "12:1 2", "12:12", "12:0-12", "12:-1", "12: 1", "13:1", "0:0", "12:1;2",
        "99999999999999999999:1", "12:99999999999999999999", "12:1-2-3", "+12:1",
    };
    bool plain[12];
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct err e = ERR_INIT;
        memset(plain, 0, sizeof plain);
        if (!regions_read(bad[i], 12, plain, &e))
            print_error("\"%s\" was taken\n", bad[i]);
        assert_int_equal(e.code, ERR_INPUT);
        assert_true(strlen(e.msg) > 20);
        assert_null(strchr(e.msg, '\n'));
    }
    struct err e = ERR_INIT;
    memset(plain, 0, sizeof plain);
    assert_int_equal(regions_read("12:0,3-5,11\nrest", 12, plain, &e), 0);
    for (int i = 0; i < 12; i++)
        assert_int_equal(plain[i], i == 0 || (i >= 3 && i <= 5) || i == 11);
}

/* Any group may be told to flow plain, also those that do anyway. */
static void every_group_can_flow_plain(void **state)
{
    (void)state;
    struct net n;
    make_shufflenet(&n);
    float *plain = run_graph(&n.b, n.x, n.y, 1);
    for (int i = -1; i < n.regions.nr_groups; i++) {
        char text[32];
        if (i < 0)
            snprintf(text, sizeof text, "%d:0-%d", n.regions.nr_groups, n.regions.nr_groups - 1);
        else
            snprintf(text, sizeof text, "%d:%d", n.regions.nr_groups, i);
        struct model_options o = {.block = BLOCK, .plain = text};
        float *mixed = run_planned(&n.b, n.x, n.y, &o);
        assert_close(mixed, plain, CLASSES);
        free(mixed);
    }
    free(plain);
    net_release(&n);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(units_of_plain_operators_have_regions),
        cmocka_unit_test(plain_regions_save_conversions_and_compute_the_same),
        cmocka_unit_test(the_choice_follows_the_costs),
        cmocka_unit_test(changes_are_all_that_changes),
        cmocka_unit_test(larger_regions_flip_as_a_whole),
        cmocka_unit_test(networks_that_flow_in_blocks_have_no_regions),
        cmocka_unit_test(choices_from_outside_are_refused_with_a_sentence),
        cmocka_unit_test(every_group_can_flow_plain),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
