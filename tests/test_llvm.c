/* SPDX-License-Identifier: Apache-2.0 */
/* The llvm backend: compiled kernels compute what the workload's reference says, for the default and
 * for random candidates, with one thread and with several. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "backends/llvm/llvm.h"
#include "engine/base/clock.h"
#include "engine/model/model.h"

struct bench {
    struct target *target;
    struct builder *builder;
    struct loader *loader;
};

static void open_bench(struct bench *b, const char *spec, int threads)
{
    struct err e = ERR_INIT;
    if (llvm_backend.target_open(spec, threads, &b->target, &e) ||
        !(b->builder = llvm_backend.builder_new(b->target, &e)) ||
        !(b->loader = llvm_backend.loader_new(&e)))
        fail_msg("%s", e.msg);
}

static void close_bench(struct bench *b)
{
    llvm_backend.loader_free(b->loader);
    llvm_backend.builder_free(b->builder);
    llvm_backend.target_close(b->target);
}

/* Buffers as the runner makes them: 64-byte aligned, readable a vector past the end. */
static float *new_buffer(int64_t bytes)
{
    size_t size = ((size_t)bytes + 191) / 64 * 64;
    float *p = aligned_alloc(64, size);
    memset(p, 0, size);
    return p;
}

static float *operand(const struct task *t, const struct buffer *b)
{
    const struct layout *l = &t->wl.tensor[b->tensor].layout;
    float *stored = new_buffer(layout_stored_size(&b->layout) * 4);
    if (b->role == BUF_OUTPUT)
        return stored;
    float *logical = new_buffer(layout_logical_size(l) * 4);
    task_fill(t, b->tensor, logical);
    layout_pack(&b->layout, logical, stored);
    free(logical);
    return stored;
}

static void check_candidate(struct bench *b, const struct task *t, const struct space *space,
                            const struct candidate *c, const float *expected)
{
    struct err e = ERR_INIT;
    struct artifact a;
    struct strbuf text = {0};
    candidate_code(space, c, &text);
    if (llvm_backend.build(b->builder, t, space, c, &a, &e))
        fail_msg("%s %s: %s", t->name, strbuf_text(&text), e.msg);
    struct loaded k;
    if (llvm_backend.load(b->loader, &a, &k, &e))
        fail_msg("%s %s: %s", t->name, strbuf_text(&text), e.msg);
    void *buf[ARTIFACT_MAX_BUFFERS];
    const float *out = NULL;
    int64_t n = 0;
    for (int i = 0; i < a.nr_buffers; i++) {
        buf[i] = a.buf[i].role == BUF_SCRATCH ? new_buffer(a.buf[i].bytes) : operand(t, &a.buf[i]);
        if (a.buf[i].role == BUF_OUTPUT) {
            out = buf[i];
            n = layout_logical_size(&a.buf[i].layout);
        }
    }
    k.call(buf);
    const struct layout *l = &t->wl.tensor[workload_output(&t->wl)].layout;
    float *got = new_buffer(n * 4), *want = new_buffer(n * 4);
    layout_unpack(l, out, got);
    layout_unpack(l, expected, want);
    int64_t at = 0;
    double error = task_error(t, got, want, n, &at);
    if (!(error <= 1))
        fail_msg("%s %s: element %lld is %g, expected %g", t->name, strbuf_text(&text),
                 (long long)at, (double)got[at], (double)want[at]);
    free(got);
    free(want);
    for (int i = 0; i < a.nr_buffers; i++)
        free(buf[i]);
    llvm_backend.unload(b->loader, &k);
    artifact_release(&a);
    strbuf_release(&text);
}

static void check_named(struct bench *b, const char *name, int samples)
{
    struct err e = ERR_INIT;
    struct task_list list = {0};
    struct model_options o = {.block = llvm_backend.target_info(b->target)->lanes};
    if (model_task_from_name(name, &o, &list, &e))
        fail_msg("%s: %s", name, e.msg);
    for (int i = 0; i < list.nr; i++) {
        const struct task *t = list.task[i];
        struct space space;
        space_init(&space);
        float *expected = task_expected(t, &e);
        if (!expected || llvm_backend.space(b->target, t, &space, &e))
            fail_msg("%s: %s", t->name, e.msg);
        struct rng r;
        rng_seed(&r, 7);
        struct candidate c = space.sketch[0]->start;
        for (int k = 0; k < samples; k++) {
            check_candidate(b, t, &space, &c, expected);
            if (!space_sample(&space, -1, &r, &c))
                fail_msg("%s: no candidate", t->name);
        }
        free(expected);
        space_release(&space);
    }
    task_list_release(&list);
}

static const char *const names[] = {
    "matmul:48x96x40",
    "matmul:7x13x5",
    "matmul:5x37x6",
    "dense:2x101x30",
    "matmul:9x1021x12,const,relu",
    "matmul:32x64x24,const,bias,relu",
    "dense:1x80x64",
    "dense:3x17x24",
    "matmul:6x11x20,const,bias,gelu",
    "matmul:6x11x20,tanh",
    "sigmoid:3x7x5",
    "softmax:7x33",
    "softmax:5x1000",
    "softmax:16x64",
    "softmax:1x10",
    "globalavgpool:N=2,C=9,H=7",
    "globalavgpool:C=5,H=17,W=16,relu",
    "dense:1x1x50,bias",
    "conv2d:C=5,H=9,W=7,K=6,R=3,S=3,pad=1,bias,relu",
    "conv2d:C=32,H=8,W=8,K=48,R=3,S=3,pad=1,bias,relu,add",
    "conv2d:C=3,H=28,W=28,K=16,R=7,S=7,stride=2,pad=3",
    "conv2d:C=16,H=14,W=14,K=32,R=1,S=1,stride=2,pad=0,bias",
    "conv2d:C=8,H=9,W=9,K=8,R=3,S=3,dilation=2,pad=2,groups=2,bias",
    "conv2d:C=16,H=14,W=14,K=32,R=3,S=3,pad=1,bias,relu",
    "conv2d:C=20,H=6,W=6,K=40,R=3,S=3,pad=1,bias",
};

static void check_all(const char *spec, int threads, int samples)
{
    struct bench b;
    open_bench(&b, spec, threads);
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        check_named(&b, names[i], samples);
    close_bench(&b);
}

static void host_kernels_are_right(void **state)
{
    (void)state;
    check_all("", 1, 12);
}

static void parallel_kernels_are_right(void **state)
{
    (void)state;
    check_all("", 2, 6);
}

/* Four lanes run on any x86-64, so this also covers narrower vectors than the host's. */
static void narrow_vectors_are_right(void **state)
{
    (void)state;
    check_all("cpu=x86-64-v2", 1, 6);
}

static void wrong_targets_are_refused(void **state)
{
    (void)state;
    static const char *const bad[] = {"cpu=", "cpu=z80", "speed=11", "cpu"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct err e = ERR_INIT;
        struct target *t = NULL;
        assert_int_equal(llvm_backend.target_open(bad[i], 1, &t, &e), ERR_USAGE);
        assert_true(e.msg[0] != '\0');
        assert_null(t);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(host_kernels_are_right),
        cmocka_unit_test(parallel_kernels_are_right),
        cmocka_unit_test(narrow_vectors_are_right),
        cmocka_unit_test(wrong_targets_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
