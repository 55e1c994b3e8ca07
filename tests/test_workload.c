/* SPDX-License-Identifier: Apache-2.0 */
/* Workloads: text and hash, what finish refuses, evaluation by definition. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "engine/tensor/workload.h"

static int tensor(struct workload *w, const char *name, enum wl_role role, int64_t m, int64_t n)
{
    struct layout l = layout_plain(2, (int64_t[]){m, n});
    return workload_tensor(w, name, role, &l);
}

/* y[m,n] = sum x[m, n + k + shift] over k < taps; x has `wide` columns. */
static void make_window(struct workload *w, int64_t n, int64_t taps, int64_t wide, int64_t shift,
                        bool guarded)
{
    workload_init(w, "window");
    int x = tensor(w, "x", WL_INPUT, 2, wide), y = tensor(w, "y", WL_OUTPUT, 2, n);
    int s = workload_stage(w, "window", y, WL_SUM);
    int am = workload_axis(w, s, "m", 2, false), an = workload_axis(w, s, "n", n, false);
    int ak = workload_axis(w, s, "k", taps, true);
    struct affine idx[] = {affine_axis(am, 1), affine_add(affine_axis(an, 1), affine_axis(ak, 1))};
    idx[1].base = shift;
    w->stage[s].body = guarded ? wl_load_guarded(w, x, idx, 0.5f) : wl_load(w, x, idx);
}

static void text_and_hash_are_stable(void **state)
{
    (void)state;
    struct workload a, b;
    struct err e = ERR_INIT;
    make_window(&a, 4, 3, 6, 0, false);
    make_window(&b, 4, 3, 6, 0, false);
    assert_int_equal(workload_finish(&a, &e), 0);
    assert_int_equal(workload_finish(&b, &e), 0);
    assert_string_equal(a.text, "workload window\n"
                                "input x [2,6]\n"
                                "output y [2,4]\n"
                                "stage window [m:2, n:4 | k:3] y[m,n] sum x[m,n+k]\n");
    assert_string_equal(a.text, b.text);
    assert_string_equal(a.id, b.id);
    /* Sessions are keyed by it: changing the text of workloads orphans them. */
    assert_string_equal(a.id, "a6f8912f28eef5bf");
    assert_int_equal(workload_bytes(&a), (12 + 8) * 4);
    assert_int_equal(workload_output(&a), 1);
    workload_release(&b);
    make_window(&b, 4, 2, 6, 0, false);
    assert_int_equal(workload_finish(&b, &e), 0);
    assert_string_not_equal(a.id, b.id);
    workload_release(&a);
    workload_release(&b);
}

static void finish_refuses_loads_outside(void **state)
{
    (void)state;
    static const struct {
        int64_t n, taps, wide, shift;
        bool ok;
    } cases[] = {{4, 3, 6, 0, true}, {4, 3, 5, 0, false}, {4, 3, 7, 1, true}, {4, 3, 6, -1, false}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        for (int guarded = 0; guarded < 2; guarded++) {
            struct workload w;
            struct err e = ERR_INIT;
            make_window(&w, cases[i].n, cases[i].taps, cases[i].wide, cases[i].shift, guarded);
            assert_int_equal(workload_finish(&w, &e) == 0, guarded || cases[i].ok);
            if (e.code)
                assert_non_null(strstr(e.msg, "guard the load"));
            workload_release(&w);
        }
    }
}

enum fault {
    NO_OUTPUT,
    TWO_OUTPUTS,
    EMPTY_AXIS,
    HUGE_TENSOR,
    FILLS_INPUT,
    FILLS_TWICE,
    FILLS_OUTSIDE,
    FILLS_PART,
    READS_UNFILLED,
    READS_ITSELF,
    SUM_WITHOUT_AXES,
    NO_BODY,
    NR_FAULTS
};

static void make_fault(struct workload *w, enum fault fault)
{
    workload_init(w, "fault");
    int64_t n = fault == HUGE_TENSOR ? INT64_C(1) << 39 : 4;
    int x = tensor(w, "x", WL_INPUT, 2, n);
    int t = tensor(w, "t", WL_TEMP, 2, 4);
    int y = tensor(w, "y", fault == NO_OUTPUT ? WL_TEMP : WL_OUTPUT, 2, 4);
    if (fault == TWO_OUTPUTS)
        tensor(w, "z", WL_OUTPUT, 2, 4);
    struct affine same[] = {affine_axis(0, 1), affine_axis(1, 1)};
    for (int i = 0; i < 2; i++) {
        int out = i ? y : fault == FILLS_INPUT ? x : t;
        int s = workload_stage(w, i ? "out" : "first", out,
                               fault == SUM_WITHOUT_AXES ? WL_SUM : WL_NONE);
        workload_axis(w, s, "m", fault == FILLS_PART && i ? 1 : 2, false);
        workload_axis(w, s, "n", fault == EMPTY_AXIS ? 0 : 4, false);
        if (fault == FILLS_TWICE)
            w->stage[s].out_idx[1].coef[1] = 0;
        if (fault == FILLS_OUTSIDE)
            w->stage[s].out_idx[1].base = 1;
        int from = i ? t : x;
        if (fault == READS_UNFILLED)
            from = i ? x : t;
        if (fault == READS_ITSELF && i)
            from = y;
        w->stage[s].body = fault == NO_BODY ? NULL : wl_load(w, from, same);
    }
}

static void finish_refuses_what_is_no_computation(void **state)
{
    (void)state;
    for (int f = 0; f <= NR_FAULTS; f++) {
        struct workload w;
        struct err e = ERR_INIT;
        make_fault(&w, (enum fault)f);
        int rc = workload_finish(&w, &e);
        assert_int_equal(rc == 0, f == NR_FAULTS);
        assert_int_equal(e.code, rc);
        assert_int_equal(strlen(e.msg) > 10, f != NR_FAULTS);
        workload_release(&w);
    }
}

static void finish_refuses_too_many(void **state)
{
    (void)state;
    struct workload w;
    struct err e = ERR_INIT;
    workload_init(&w, "many");
    for (int i = 0; i < WL_MAX_TENSORS + 3; i++)
        tensor(&w, "x", WL_INPUT, 2, 2);
    assert_int_equal(workload_finish(&w, &e), ERR_LIMIT);
    workload_release(&w);
}

static void interpreter_follows_the_definition(void **state)
{
    (void)state;
    struct workload w;
    struct err e = ERR_INIT;
    make_window(&w, 4, 3, 4, -1, true);
    assert_int_equal(workload_finish(&w, &e), 0);
    float x[] = {1, 2, 3, 4, 10, 20, 30, 40}, y[8];
    workload_interpret(&w, (float *[]){x, y});
    const float want[] = {3.5f, 6, 9, 7.5f, 30.5f, 60, 90, 70.5f};
    assert_memory_equal(y, want, sizeof want);
    workload_release(&w);
}

static void every_operation_is_evaluated(void **state)
{
    (void)state;
    static const struct {
        enum wl_op op;
        double want; /* of 0.75 and 2 */
    } cases[] = {{WL_ADD, 2.75},
                 {WL_SUB, -1.25},
                 {WL_MUL, 1.5},
                 {WL_DIV, 0.375},
                 {WL_MAX, 2},
                 {WL_MIN, 0.75},
                 {WL_POW, 0.5625},
                 {WL_NEG, -0.75},
                 {WL_ABS, 0.75},
                 {WL_EXP, 2.117000016612675},
                 {WL_LOG, -0.2876820724517809},
                 {WL_SQRT, 0.8660254037844386},
                 {WL_TANH, 0.6351489523872873},
                 {WL_ERF, 0.7111556336535151}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct workload w;
        struct err e = ERR_INIT;
        workload_init(&w, "op");
        int y = tensor(&w, "y", WL_OUTPUT, 1, 1), s = workload_stage(&w, "out", y, WL_NONE);
        workload_axis(&w, s, "m", 1, false);
        workload_axis(&w, s, "n", 1, false);
        const struct wl_expr *a = wl_literal(&w, 0.75f), *b = wl_literal(&w, 2);
        w.stage[s].body =
            cases[i].op >= WL_NEG ? wl_unary(&w, cases[i].op, a) : wl_binary(&w, cases[i].op, a, b);
        assert_int_equal(workload_finish(&w, &e), 0);
        float got;
        workload_interpret(&w, (float *[]){&got});
        assert_true(fabs((double)got - cases[i].want) < 1e-6);
        workload_release(&w);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(text_and_hash_are_stable),
        cmocka_unit_test(finish_refuses_loads_outside),
        cmocka_unit_test(finish_refuses_what_is_no_computation),
        cmocka_unit_test(finish_refuses_too_many),
        cmocka_unit_test(interpreter_follows_the_definition),
        cmocka_unit_test(every_operation_is_evaluated),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
