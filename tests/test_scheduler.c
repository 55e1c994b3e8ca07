/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <math.h>

#include <cmocka.h>

#include "engine/tune/scheduler.h"

static void batch(struct sched_task *t, int64_t trials, double best_ns)
{
    sched_begin(t);
    sched_end(t, trials, best_ns);
}

static void test_first_rounds_go_in_order(void **state)
{
    (void)state;
    struct sched_task t[3];
    for (int i = 0; i < 3; i++)
        sched_task_init(&t[i], i == 1 ? 100 : 1);
    for (int round = 0; round < SCHED_WARM_ROUNDS; round++)
        for (int i = 0; i < 3; i++) {
            assert_int_equal(scheduler_pick(t, 3), i);
            batch(&t[i], 16, 1000);
        }
    assert_int_equal(scheduler_pick(t, 3), 1); /* and then by what they promise */
}

static void test_busy_and_ended_tasks_are_passed_by(void **state)
{
    (void)state;
    struct sched_task t[2];
    sched_task_init(&t[0], 1);
    sched_task_init(&t[1], 1);
    sched_begin(&t[0]);
    assert_int_equal(scheduler_pick(t, 2), 1);
    t[1].live = false;
    assert_int_equal(scheduler_pick(t, 2), -1);
    sched_end(&t[0], 16, 500);
    assert_int_equal(scheduler_pick(t, 2), 0);
}

static void test_task_without_a_valid_trial_comes_first(void **state)
{
    (void)state;
    struct sched_task t[2];
    sched_task_init(&t[0], 1000);
    sched_task_init(&t[1], 1);
    for (int i = 0; i < 3; i++) {
        batch(&t[0], 16, 1e6);
        batch(&t[1], 16, INFINITY);
    }
    assert_int_equal(scheduler_pick(t, 2), 1);
    assert_true(sched_gradient(&t[1]) == 0);
}

static void test_recent_gain_counts(void **state)
{
    (void)state;
    struct sched_task t[2];
    for (int i = 0; i < 2; i++)
        sched_task_init(&t[i], 1);
    /* Both stand at 1000 after 64 trials; only the second still gets better. */
    static const double stale[] = {1000, 1000, 1000, 1000}, rising[] = {5000, 3000, 2000, 1000};
    for (int i = 0; i < 4; i++) {
        batch(&t[0], 16, stale[i]);
        batch(&t[1], 16, rising[i]);
    }
    assert_int_equal(scheduler_pick(t, 2), 1);
    /* g1 = (5000 - 1000) / 48, g2 = 1000 / 64, alpha = 0.2 */
    assert_true(fabs(sched_gradient(&t[1]) - (0.2 * 4000 / 48 + 0.8 * 1000 / 64)) < 1e-9);
}

static void test_weight_and_time_count(void **state)
{
    (void)state;
    struct sched_task t[2];
    sched_task_init(&t[0], 1);
    sched_task_init(&t[1], 3);
    for (int i = 0; i < 4; i++) {
        batch(&t[0], 16, 2000);
        batch(&t[1], 16, 1000);
    }
    assert_int_equal(scheduler_pick(t, 2), 1);
    sched_phase(&t[0]); /* a new phase promises anew */
    assert_int_equal(scheduler_pick(t, 2), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_first_rounds_go_in_order),
        cmocka_unit_test(test_busy_and_ended_tasks_are_passed_by),
        cmocka_unit_test(test_task_without_a_valid_trial_comes_first),
        cmocka_unit_test(test_recent_gain_counts),
        cmocka_unit_test(test_weight_and_time_count),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
