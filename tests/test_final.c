/* SPDX-License-Identifier: Apache-2.0 */
/* The final measurement of a task: until its finalists are separated, tied, or enough was spent. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/tune_fixture.h"

enum { MAX_ROUNDS = 8, SAMPLES = 12 };

static struct task_list tasks;
static struct fake fake;
static struct run run;

static void begin(double gap, double noise)
{
    tasks_make(&tasks, 1);
    fake_init(&fake, &tasks);
    fake.flat = true;
    fake.final_gap = gap;
    fake.final_noise = noise;
    run_init(&run, &fake, &tasks);
}

static void end(void)
{
    run_release(&run);
    fake_free(&fake);
    workload_release(&tasks.task[0]->wl);
    free(tasks.task[0]);
    free(tasks.task);
}

static const struct event *result(void)
{
    run_all(&run);
    assert_int_equal(run.rc, 0);
    assert_int_equal(run_count(&run, EV_RESULT, 0), 1);
    return run_event(&run, EV_RESULT, 0, 0);
}

static int finalists(void)
{
    return fake.final_nr[0];
}

/* Rounds in which each was first once, three at least. */
static int obligatory(void)
{
    return finalists() > 3 ? finalists() : 3;
}

static void a_clear_difference_ends_it_early(void **state)
{
    (void)state;
    begin(0.2, 0.02);
    const struct event *ev = result();
    assert_in_range(finalists(), 2, 4);
    assert_int_equal(ev->u.result.verdict, FINAL_SEPARATED);
    assert_int_equal(ev->u.result.rounds, obligatory());
    assert_int_equal(fake.finals, obligatory());
    assert_int_equal(ev->u.result.pairs, SAMPLES * obligatory());
    assert_true(ev->u.result.p_value < 1e-4);
    assert_true(ev->u.result.gain_lo < ev->u.result.gain);
    assert_true(ev->u.result.gain < ev->u.result.gain_hi);
    assert_true(ev->u.result.gain_lo > 0.1 || ev->u.result.gain_hi < -0.1);
    assert_non_null(strstr(ev->u.result.why, "refined is "));
    assert_non_null(strstr(ev->u.result.why, "er than explored"));
    end();
}

static void equals_tie(void **state)
{
    (void)state;
    begin(0, 0.01);
    const struct event *ev = result();
    assert_int_equal(ev->u.result.verdict, FINAL_TIED);
    assert_in_range(ev->u.result.rounds, obligatory(), MAX_ROUNDS);
    assert_true(ev->u.result.gain_lo >= -0.01 && ev->u.result.gain_hi <= 0.01);
    assert_true(ev->u.result.p_value > 0.05 / 6);
    assert_non_null(strstr(ev->u.result.why, "refined ties with explored"));
    end();
}

static void what_noise_hides_goes_to_the_cap(void **state)
{
    (void)state;
    begin(0, 0.3);
    const struct event *ev = result();
    assert_int_equal(ev->u.result.verdict, FINAL_OPEN);
    assert_int_equal(ev->u.result.rounds, MAX_ROUNDS);
    assert_int_equal(fake.finals, MAX_ROUNDS);
    assert_int_equal(ev->u.result.pairs, SAMPLES * MAX_ROUNDS);
    assert_non_null(strstr(ev->u.result.why, "not separated in 8 rounds"));
    end();
}

/* With some of the noises the obligatory rounds are too few and eight are enough. */
static void a_small_difference_is_found_in_more_rounds(void **state)
{
    (void)state;
    const struct event *ev = NULL;
    for (uint64_t seed = 0; !ev && seed < 100; seed++) {
        begin(0.03, 0.2);
        fake.final_seed = seed * 1000;
        ev = result();
        /* Who was clearly slower than the leader is left out of the later rounds. */
        if (ev->u.result.verdict != FINAL_SEPARATED || ev->u.result.rounds == obligatory() ||
            fake.final_nr[fake.finals - 1] == finalists()) {
            ev = NULL;
            end();
        }
    }
    assert_non_null(ev);
    assert_in_range(ev->u.result.rounds, obligatory() + 1, MAX_ROUNDS);
    for (int i = 0; i < obligatory(); i++)
        assert_int_equal(fake.final_nr[i], finalists());
    assert_true(isfinite(ev->u.result.default_ns) && isfinite(ev->u.result.default_lo));
    end();
}

/* Half of the samples are of moments at which a neighbour took the machine, and of the best kernel
 * one more: its median is behind that of the second, and in nearly all pairs it is the fastest. */
static void a_burst_does_not_turn_the_order(void **state)
{
    (void)state;
    begin(0.2, 0.02);
    fake.final_bursts = true;
    const struct event *ev = result();
    assert_true(ev->u.result.refined_ns < ev->u.result.default_ns);
    assert_true(ev->u.result.refined_lo <= ev->u.result.refined_ns);
    assert_true(ev->u.result.refined_ns <= ev->u.result.refined_hi);
    assert_true(ev->u.result.gain > 0.1);
    assert_int_equal(ev->u.result.verdict, FINAL_SEPARATED);
    end();
}

static void a_finalist_that_fails_is_out_and_the_others_go_on(void **state)
{
    (void)state;
    begin(0.2, 0.02);
    fake.wrong_final = true;
    const struct event *ev = result();
    assert_non_null(strstr(run_event(&run, EV_NOTE, 0, 0)->u.note.text, "wrong_result"));
    /* One round was in vain; of the others everybody else has all samples. */
    assert_int_equal(fake.finals, ev->u.result.rounds + 1);
    assert_int_equal(fake.final_nr[fake.finals - 1], finalists() - 1);
    assert_true(isfinite(ev->u.result.default_ns));
    assert_true(ev->u.result.verdict == FINAL_SEPARATED || ev->u.result.verdict == FINAL_NONE);
    end();
}

static void without_refining_explored_and_default_are_compared(void **state)
{
    (void)state;
    begin(0.2, 0.02);
    strcpy(run.o.refine_strategy, "none");
    const struct event *ev = result();
    assert_int_equal(ev->u.result.verdict, FINAL_SEPARATED);
    assert_true(isnan(ev->u.result.refined_ns));
    assert_non_null(strstr(ev->u.result.why, "explored is 16."));
    assert_non_null(strstr(ev->u.result.why, " % faster than default ("));
    end();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_clear_difference_ends_it_early),
        cmocka_unit_test(equals_tie),
        cmocka_unit_test(what_noise_hides_goes_to_the_cap),
        cmocka_unit_test(a_burst_does_not_turn_the_order),
        cmocka_unit_test(a_small_difference_is_found_in_more_rounds),
        cmocka_unit_test(a_finalist_that_fails_is_out_and_the_others_go_on),
        cmocka_unit_test(without_refining_explored_and_default_are_compared),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
