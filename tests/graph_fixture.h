/* SPDX-License-Identifier: Apache-2.0 */
/* Graphs made in a test, and what they compute. Include after cmocka.h. */
#ifndef TESTS_GRAPH_FIXTURE_H
#define TESTS_GRAPH_FIXTURE_H

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/rng.h"
#include "engine/model/plan.h"

struct build {
    struct graph *g;
    struct err e;
    struct rng rng;
};

static inline void begin(struct build *b)
{
    *b = (struct build){.g = graph_new("net", 13)};
    rng_seed(&b->rng, 3);
}

static inline int input4(struct build *b, int64_t c, int64_t h, int64_t w)
{
    int v = graph_input(b->g, "x", 4, (int64_t[]){1, c, h, w}, &b->e);
    assert_true(v >= 0);
    return v;
}

static inline int weight(struct build *b, int rank, const int64_t *dim)
{
    struct shape s = {.rank = rank};
    memcpy(s.dim, dim, (size_t)rank * sizeof *dim);
    int64_t n = shape_size(&s);
    float *data = malloc((size_t)n * sizeof *data);
    for (int64_t i = 0; i < n; i++)
        data[i] = (float)(rng_unit(&b->rng) * 0.8 + (rank == 1 ? 0.2 : -0.4));
    int v = graph_const_f32(b->g, "w", rank, dim, data, &b->e);
    free(data);
    assert_true(v >= 0);
    return v;
}

static inline int node(struct build *b, const char *op, const int *in, int nr_in,
                       const struct graph_attr *attr, int nr_attr)
{
    int out = -1;
    struct graph_call c = {.op = op,
                           .name = op,
                           .in = in,
                           .nr_in = nr_in,
                           .attr = attr,
                           .nr_attr = nr_attr,
                           .out = &out,
                           .nr_out = 1};
    if (graph_node(b->g, &c, &b->e))
        print_error("%s\n", b->e.msg);
    assert_true(out >= 0);
    return out;
}

static inline int group_conv(struct build *b, int x, int64_t k, int64_t r, int64_t groups)
{
    int64_t c = b->g->value[x]->shape.dim[1], pads[] = {r / 2, r / 2, r / 2, r / 2};
    int w = weight(b, 4, (int64_t[]){k, c / groups, r, r});
    struct graph_attr attr[] = {graph_ints("pads", pads, 4), graph_int("group", groups)};
    return node(b, "Conv", (int[]){x, w}, 2, attr, 2);
}

static inline int conv(struct build *b, int x, int64_t k, int64_t r)
{
    return group_conv(b, x, k, r, 1);
}

static inline int relu(struct build *b, int x)
{
    return node(b, "Relu", &x, 1, NULL, 0);
}

/* The output of the graph when planned as `o` says, on a fixed input. The caller frees. */
static inline float *run_planned(struct build *b, int x, int y, const struct model_options *o)
{
    struct task_list l = {0};
    struct plan p = {0};
    assert_int_equal(plan_build(&p, b->g, o, &l, &b->e), 0);
    int64_t n = shape_size(&b->g->value[x]->shape), m = shape_size(&b->g->value[y]->shape);
    float *in = malloc((size_t)n * sizeof *in), *out = malloc((size_t)m * sizeof *out);
    for (int64_t i = 0; i < n; i++)
        in[i] = (float)((double)((i * 37) % 101) / 50 - 1);
    struct plan_runner runner = {.call = plan_call_interpreter};
    assert_int_equal(plan_run(&p, &l, (const float *[]){in}, (float *[]){out}, &runner, &b->e), 0);
    plan_release(&p);
    task_list_release(&l);
    free(in);
    return out;
}

static inline float *run_graph(struct build *b, int x, int y, int block)
{
    return run_planned(b, x, y, &(struct model_options){.block = block});
}

static inline void assert_close(const float *a, const float *b, int64_t n)
{
    double rms = 0;
    for (int64_t i = 0; i < n; i++)
        rms += (double)b[i] * (double)b[i];
    rms = sqrt(rms / (double)n) + 1e-30;
    for (int64_t i = 0; i < n; i++)
        assert_true(fabs((double)a[i] - (double)b[i]) < 1e-5 * (rms + fabs((double)b[i])));
}

#endif
