/* SPDX-License-Identifier: Apache-2.0 */
/* Lowering: any valid candidate's loop program computes what the workload defines. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "engine/model/model.h"
#include "engine/tensor/sketch.h"

static const struct sketch_target target = {
    .lanes = 8, .registers = 16, .threads = 1, .l1_bytes = 32768, .l2_bytes = 1 << 20};
static const struct sketch_target threaded = {
    .lanes = 4, .registers = 32, .threads = 3, .l1_bytes = 32768, .l2_bytes = 1 << 20};

/* Logical operands -> stored arrays of every tensor, readable a vector past their end. */
static float **stored_operands(const struct task *t)
{
    const struct workload *w = &t->wl;
    float **stored = calloc((size_t)w->nr_tensors, sizeof *stored);
    for (int i = 0; i < w->nr_tensors; i++) {
        const struct layout *l = &w->tensor[i].layout;
        stored[i] = calloc((size_t)layout_stored_size(l) + 64, sizeof(float));
        if (w->tensor[i].role != WL_INPUT && w->tensor[i].role != WL_CONST)
            continue;
        float *logical = calloc((size_t)layout_logical_size(l), sizeof(float));
        task_fill(t, i, logical);
        layout_pack(l, logical, stored[i]);
        free(logical);
    }
    return stored;
}

static void free_arrays(float **a, int nr)
{
    for (int i = 0; i < nr; i++)
        free(a[i]);
    free(a);
}

static void run_program(const struct task *t, const struct loop_program *p, float *const *stored,
                        float *out)
{
    int output = workload_output(&t->wl);
    float **buf = calloc((size_t)p->nr_buffers, sizeof *buf);
    for (int i = 0; i < p->nr_buffers; i++) {
        const struct lp_buffer *b = &p->buffer[i];
        if (b->scope == LP_REGISTER)
            continue;
        buf[i] = calloc((size_t)b->size + 64, sizeof(float));
        if (b->scope != LP_TENSOR || b->tensor == output)
            continue;
        if (b->packed) /* constants are stored in their plain logical layout */
            layout_pack(&b->layout, stored[b->tensor], buf[i]);
        else
            memcpy(buf[i], stored[b->tensor], (size_t)b->size * sizeof(float));
    }
    loop_program_interpret(p, buf);
    for (int i = 0; i < p->nr_buffers; i++)
        if (p->buffer[i].scope == LP_TENSOR && p->buffer[i].tensor == output)
            memcpy(out, buf[i], (size_t)p->buffer[i].size * sizeof(float));
    free_arrays(buf, p->nr_buffers);
}

static void check_task(const struct task *t, const struct sketch_target *target_, int samples)
{
    struct err e = ERR_INIT;
    struct space space;
    space_init(&space);
    if (sketches_of(&t->wl, target_, &space, &e))
        fail_msg("%s: %s", t->name, e.msg);
    float **stored = stored_operands(t);
    workload_interpret(&t->wl, stored);
    int output = workload_output(&t->wl);
    int64_t n = layout_stored_size(&t->wl.tensor[output].layout);
    float *got = calloc((size_t)n, sizeof *got);
    struct rng r;
    rng_seed(&r, 42);
    for (int i = 0; i < samples; i++) {
        struct candidate c = space.sketch[0]->start;
        if (i && !space_sample(&space, -1, &r, &c))
            fail_msg("%s: no candidate", t->name);
        struct loop_program p;
        if (lower(&t->wl, &space, &c, &p, &e))
            fail_msg("%s: %s", t->name, e.msg);
        run_program(t, &p, stored, got);
        int64_t at = 0;
        double error = task_error(t, got, stored[output], n, &at);
        if (!(error <= 1)) {
            struct strbuf text = {0};
            candidate_code(&space, &c, &text);
            strbuf_addc(&text, '\n');
            loop_program_print(&p, &text);
            fail_msg("%s: element %lld is %g, expected %g\n%s", t->name, (long long)at,
                     (double)got[at], (double)stored[output][at], strbuf_text(&text));
        }
        loop_program_release(&p);
    }
    free(got);
    free_arrays(stored, t->wl.nr_tensors);
    space_release(&space);
}

static void check_named(const char *name, int block, int samples)
{
    struct err e = ERR_INIT;
    struct task_list list = {0};
    struct model_options o = {.block = block};
    if (model_task_from_name(name, &o, &list, &e))
        fail_msg("%s: %s", name, e.msg);
    for (int i = 0; i < list.nr; i++) {
        check_task(list.task[i], &target, samples);
        check_task(list.task[i], &threaded, samples);
    }
    task_list_release(&list);
}

static void matmul_and_dense(void **state)
{
    (void)state;
    check_named("matmul:12x24x10", 1, 60);
    check_named("matmul:7x13x5", 1, 40);
    check_named("matmul:5x37x6", 1, 60); /* a prime longer than the vectors */
    check_named("dense:2x101x9", 1, 40);
    check_named("matmul:16x32x8,const,bias,relu", 1, 40);
    check_named("dense:1x40x24", 1, 40);
    check_named("dense:3x17x24", 1, 40);
}

static void convolutions(void **state)
{
    (void)state;
    check_named("conv2d:C=5,H=9,W=7,K=6,R=3,S=3,pad=1,bias,relu", 1, 40);
    check_named("conv2d:C=16,H=8,W=8,K=24,R=3,S=3,pad=1,bias,relu,add", 8, 40);
    check_named("conv2d:C=3,H=14,W=14,K=16,R=7,S=7,stride=2,pad=3", 8, 30);
    check_named("conv2d:C=8,H=7,W=7,K=16,R=1,S=1,stride=2,pad=0,bias", 8, 40);
    check_named("conv2d:C=8,H=9,W=9,K=8,R=3,S=3,dilation=2,pad=2,groups=2,bias", 1, 40);
    check_named("conv2d:C=16,H=6,W=6,K=16,R=3,S=3,pad=1,groups=2,bias", 8, 40);
    check_named("conv2d:C=12,H=6,W=6,K=20,R=3,S=3,pad=1,bias", 8, 40);
}

static void winograd_sketches_compute_the_convolution(void **state)
{
    (void)state;
    check_named("conv2d:C=16,H=8,W=8,K=16,R=3,S=3,pad=1,bias,relu", 8, 60);
    check_named("conv2d:C=8,H=7,W=9,K=24,R=3,S=3,pad=1,bias,relu,add", 8, 60);
    check_named("conv2d:C=12,H=10,W=10,K=20,R=3,S=3,pad=0", 8, 60);
    check_named("conv2d:N=2,C=8,H=11,W=5,K=13,R=3,S=3,pad=1,bias", 8, 60);
}

static bool has_sketch(const struct space *s, const char *name)
{
    for (int i = 0; i < s->nr_sketches; i++)
        if (strcmp(s->sketch[i]->name, name) == 0)
            return true;
    return false;
}

/* Strips of several rows of tiles, and of parts of one; the last ones overhang. */
static void winograd_in_strips_computes_the_convolution(void **state)
{
    (void)state;
    struct err e = ERR_INIT;
    static const int64_t l2[] = {60000, 200000};
    for (int i = 0; i < 2; i++) {
        struct sketch_target small = target, shared = threaded;
        small.l2_bytes = shared.l2_bytes = l2[i];
        struct task_list list = {0};
        struct model_options o = {.block = 8};
        if (model_task_from_name("conv2d:N=2,C=12,H=23,W=41,K=16,R=3,S=3,pad=1,bias,relu,add", &o,
                                 &list, &e))
            fail_msg("%s", e.msg);
        struct space space;
        space_init(&space);
        assert_int_equal(sketches_of(&list.task[0]->wl, &small, &space, &e), 0);
        assert_true(has_sketch(&space, "winograd4-strips"));
        assert_true(has_sketch(&space, "winograd2-strips"));
        space_release(&space);
        check_task(list.task[0], &small, 40);
        check_task(list.task[0], &shared, 40);
        task_list_release(&list);
    }
}

/* The flag `knob` of the default schedule, set; false where there is none. */
static bool set_flag(const struct space *s, const char *knob, struct candidate *c)
{
    const struct sketch *k = s->sketch[0];
    *c = k->start;
    for (int i = 0; i < k->nr_knobs; i++)
        if (strcmp(k->knob[i].name, knob) == 0) {
            c->v[k->knob[i].slot] = 1;
            return true;
        }
    return false;
}

/* Of an image that is padded, a register tile that covers whole rows leaves out the taps beside
 * them, and rows of padding are passed over; without padding there is nothing to skip. */
static void taps_on_padding_are_skipped(void **state)
{
    (void)state;
    struct err e = ERR_INIT;
    struct task_list list = {0};
    struct space space;
    struct candidate c;
    struct loop_program p;
    struct strbuf text = {0};
    struct model_options o = {.block = 8};
    if (model_task_from_name("conv2d:C=8,H=7,K=8,R=3,pad=1", &o, &list, &e) ||
        model_task_from_name("conv2d:C=8,H=7,K=8,R=3,pad=0", &o, &list, &e))
        fail_msg("%s", e.msg);
    for (int i = 0; i < 2; i++) {
        space_init(&space);
        assert_int_equal(sketches_of(&list.task[i]->wl, &target, &space, &e), 0);
        assert_int_equal(set_flag(&space, "skip_padding", &c), i == 0);
        if (i == 0) {
            assert_int_equal(lower(&list.task[i]->wl, &space, &c, &p, &e), 0);
            loop_program_print(&p, &text);
            assert_non_null(strstr(strbuf_text(&text), "in vain unless"));
            assert_non_null(strstr(strbuf_text(&text), "if "));
            loop_program_release(&p);
        }
        space_release(&space);
    }
    strbuf_release(&text);
    task_list_release(&list);
    check_named("conv2d:C=5,H=9,W=16,K=6,R=3,S=3,pad=1,bias", 1,
                40); /* in vectors along the rows */
    check_named("maxpool:C=16,H=9,R=3,stride=2,pad=1", 8, 40);
    check_named("avgpool:C=16,H=9,R=3,stride=1,pad=1", 8, 40);
    check_named("depthwise:C=16,H=7,R=5,pad=2", 8, 40);
}

/* Does the default schedule add up lanes? */
static bool adds_lanes(const char *name)
{
    struct err e = ERR_INIT;
    struct task_list list = {0};
    struct space space;
    struct loop_program p;
    struct strbuf text = {0};
    space_init(&space);
    if (model_task_from_name(name, &(struct model_options){.block = 1}, &list, &e) ||
        sketches_of(&list.task[0]->wl, &target, &space, &e) ||
        lower(&list.task[0]->wl, &space, &space.sketch[0]->start, &p, &e))
        fail_msg("%s: %s", name, e.msg);
    loop_program_print(&p, &text);
    bool yes = strstr(strbuf_text(&text), "over lanes of") != NULL;
    strbuf_release(&text);
    loop_program_release(&p);
    space_release(&space);
    task_list_release(&list);
    return yes;
}

static void rows_are_in_vectors_where_they_would_be_gathered(void **state)
{
    (void)state;
    assert_true(adds_lanes("softmax:5x1000"));
    assert_true(adds_lanes("globalavgpool:C=5,H=17,W=16,relu"));
    assert_true(adds_lanes("globalavgpool:C=5,H=7"));
    assert_false(adds_lanes("globalavgpool:C=5,H=3"));
    assert_false(adds_lanes("matmul:12x24x10"));
    assert_false(adds_lanes("dense:4x8x64"));
    assert_false(adds_lanes("maxpool:C=4,H=12,R=3"));
    assert_false(adds_lanes("conv2d:C=5,H=9,W=7,K=6,R=3,S=3,pad=1"));
}

/* Sums along a row of memory are vectors of partial sums: whole rows, rows with a rest, rows that
 * are shorter than a vector, several reduced axes, one sum in all. */
static void rows_in_vectors(void **state)
{
    (void)state;
    check_named("softmax:7x33", 1, 40);
    check_named("softmax:5x1000", 1, 20);
    check_named("softmax:16x64", 1, 20);
    check_named("softmax:1x5", 1, 20);
    check_named("globalavgpool:N=2,C=9,H=7", 1, 40);
    check_named("globalavgpool:C=5,H=17,W=16,relu", 1, 40);
    check_named("dense:1x1x50,bias", 1, 40);
}

/* All that a program is made of, but the names of its variables. */
static void describe(const struct loop_program *p, struct strbuf *out)
{
    loop_program_print(p, out);
    for (int i = 0; i < p->nr_buffers; i++) {
        const struct lp_buffer *b = &p->buffer[i];
        strbuf_addf(out, "%s %d %d %d %lld:", b->name, b->scope, b->packed, b->per_thread,
                    (long long)b->size);
        for (int k = 0; b->packed && k < b->layout.nr_p; k++)
            strbuf_addf(out, " %lld/%lld/%d", (long long)b->layout.p[k].extent,
                        (long long)b->layout.p[k].coef, b->layout.p[k].dim);
    }
}

struct described {
    uint64_t twins;
    struct strbuf text, code;
};

static void describe_candidate(const struct task *t, const struct space *s,
                               const struct candidate *c, struct described *out)
{
    struct loop_program p;
    struct err e = ERR_INIT;
    assert_int_equal(lower(&t->wl, s, c, &p, &e), 0);
    out->twins = s->sketch[c->sketch]->twins(s->sketch[c->sketch], c);
    describe(&p, &out->text);
    candidate_code(s, c, &out->code);
    loop_program_release(&p);
}

/* Samples and their neighbours; returns how many were twins of others. */
static int check_twins(const struct task *t, const struct sketch_target *target_)
{
    enum { SAMPLES = 12, MOST = 600 };
    struct err e = ERR_INIT;
    struct space space;
    struct rng r;
    space_init(&space);
    assert_int_equal(sketches_of(&t->wl, target_, &space, &e), 0);
    struct described *d = calloc(MOST, sizeof *d);
    int nr = 0, twins = 0;
    rng_seed(&r, 5);
    for (int i = 0; i < SAMPLES; i++) {
        struct candidate c;
        struct neighbour *n;
        assert_true(space_sample(&space, -1, &r, &c));
        int near = space_neighbours(&space, &c, &n);
        describe_candidate(t, &space, &c, &d[nr++]);
        for (int k = 0; k < near && k < MOST / SAMPLES - 1; k++)
            describe_candidate(t, &space, &n[k].c, &d[nr++]);
        free(n);
    }
    for (int i = 0; i < nr; i++)
        for (int k = 0; k < i; k++) {
            if (d[i].twins != d[k].twins || strcmp(d[i].code.buf, d[k].code.buf) == 0)
                continue;
            twins++;
            if (strcmp(strbuf_text(&d[i].text), strbuf_text(&d[k].text)) != 0)
                fail_msg("%s: %s is no twin of %s:\n%s\n%s", t->name, d[i].code.buf, d[k].code.buf,
                         d[i].text.buf, d[k].text.buf);
        }
    for (int i = 0; i < nr; i++) {
        strbuf_release(&d[i].text);
        strbuf_release(&d[i].code);
    }
    free(d);
    space_release(&space);
    return twins;
}

static void twins_are_the_same_program(void **state)
{
    (void)state;
    static const char *const name[] = {"matmul:24x40x36",      "matmul:24x40x36,const",
                                       "conv2d:C=8,H=12,K=16", "conv2d:C=4,H=9,K=8,stride=2",
                                       "depthwise:C=16,H=12",  "dense:1x60x48",
                                       "conv2d:C=3,H=12,K=16", "conv2d:C=16,H=8,K=8,R=1,add,relu",
                                       "softmax:6x24"};
    int twins = 0, threaded_twins = 0;
    for (size_t i = 0; i < sizeof name / sizeof *name; i++) {
        struct err e = ERR_INIT;
        struct task_list list = {0};
        struct model_options o = {.block = 8};
        if (model_task_from_name(name[i], &o, &list, &e))
            fail_msg("%s: %s", name[i], e.msg);
        for (int k = 0; k < list.nr; k++) {
            twins += check_twins(list.task[k], &target);
            threaded_twins += check_twins(list.task[k], &threaded);
        }
        task_list_release(&list);
    }
    assert_true(twins > 500 && threaded_twins > 100);
}

/* The loops of a program's first register tile that are around the store of the reduction, from the
 * outermost: "x7 k2-1 " is 7 pixels by 2 blocks of channels, the last of which is loaded anew. */
static void tile_of(const struct loop_program *p, const struct lp_node *n, struct strbuf *out)
{
    if (!n->body) {
        assert_int_equal(n->kind, LP_STORE);
        return;
    }
    assert_int_equal(n->kind, LP_FOR);
    if (n->loop == LP_UNROLL) {
        strbuf_addf(out, "%c%lld", p->var_name[n->var[0]][0], (long long)n->extent[0]);
        strbuf_adds(out, n->again ? "-" : " ");
        if (n->again)
            strbuf_addf(out, "%lld ", (long long)n->again);
    }
    tile_of(p, n->body, out);
}

/* The first sums of a tile are set to zero in the same loops. */
static const struct lp_node *first_tile(const struct lp_node *n)
{
    while (n->kind == LP_FOR && n->loop != LP_UNROLL && n->loop != LP_VECTOR)
        n = n->body;
    return n;
}

static void assert_tile(const char *name, const struct sketch_target *target_, const char *code,
                        const char *want)
{
    struct err e = ERR_INIT;
    struct task_list list = {0};
    struct model_options o = {.block = 8};
    struct space space;
    struct candidate c;
    struct loop_program p;
    struct strbuf text = {0};
    space_init(&space);
    assert_int_equal(model_task_from_name(name, &o, &list, &e), 0);
    assert_int_equal(sketches_of(&list.task[0]->wl, target_, &space, &e), 0);
    if (candidate_parse(&space, code, &c, &e))
        fail_msg("%s: %s", code, e.msg);
    assert_int_equal(lower(&list.task[0]->wl, &space, &c, &p, &e), 0);
    tile_of(&p, first_tile(p.nest[0].body), &text);
    assert_string_equal(strbuf_text(&text), want);
    strbuf_release(&text);
    loop_program_release(&p);
    space_release(&space);
    task_list_release(&list);
}

static void the_longest_side_of_a_tile_is_outermost(void **state)
{
    (void)state;
    static const char conv[] = "conv2d:C=16,H=14,K=48,R=1";
    /* 2 x 2 pixels are four, more than three blocks of channels; 2 pixels are less. */
    assert_tile(conv, &target, "0:2.1.1.3/7.1.1.2/7.1.1.2/1.1.1.8/1.2/1.8/0.1.2/1/0", "y2 x2 k3 ");
    assert_tile(conv, &target, "0:2.1.1.3/7.1.1.2/14.1.1.1/1.1.1.8/1.2/1.8/0.1.2/1/0", "k3 y2 ");
}

static void what_finds_no_register_is_loaded_anew(void **state)
{
    (void)state;
    static const char conv[] = "conv2d:C=16,H=7,K=32,R=1";
    static const char code[] = "0:2.1.1.2/7.1.1.1/1.1.1.7/1.1.1.8/1.2/1.8/0.1.2/1/0";
    struct sketch_target wide = target;
    wide.registers = 32;
    /* 14 sums, 2 blocks and a pixel are 17. */
    assert_tile(conv, &target, code, "x7 k2-1 ");
    assert_tile(conv, &wide, code, "x7 k2 ");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(matmul_and_dense),
        cmocka_unit_test(convolutions),
        cmocka_unit_test(rows_in_vectors),
        cmocka_unit_test(rows_are_in_vectors_where_they_would_be_gathered),
        cmocka_unit_test(winograd_sketches_compute_the_convolution),
        cmocka_unit_test(winograd_in_strips_computes_the_convolution),
        cmocka_unit_test(twins_are_the_same_program),
        cmocka_unit_test(taps_on_padding_are_skipped),
        cmocka_unit_test(the_longest_side_of_a_tile_is_outermost),
        cmocka_unit_test(what_finds_no_register_is_loaded_anew),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
