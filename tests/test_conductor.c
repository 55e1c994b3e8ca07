/* SPDX-License-Identifier: Apache-2.0 */
/* The conductor on a device that is a formula: phases, budgets, commands, failures. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <math.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "tests/tune_fixture.h"

static struct task_list tasks;
static struct fake fake;
static struct run run;

static void begin(int nr_tasks)
{
    tasks_make(&tasks, nr_tasks);
    fake_init(&fake, &tasks);
    run_init(&run, &fake, &tasks);
}

/* Everything the device gave out came back, and nothing happened at a forbidden time. */
static void end(void)
{
    assert_int_equal(fake.artifacts, 0);
    assert_int_equal(fake.operands, 0);
    assert_false(fake.number_clash);
    run_release(&run);
    fake_free(&fake);
    for (int i = 0; i < tasks.nr; i++) {
        workload_release(&tasks.task[i]->wl);
        free(tasks.task[i]);
    }
    free(tasks.task);
}

static const char *ended_why(void)
{
    const struct event *ev = run_event(&run, EV_ENDED, -1, 0);
    assert_non_null(ev);
    assert_int_equal(run_count(&run, EV_ENDED, -1), 1);
    assert_ptr_equal(ev, &run.rec.ev[run.rec.nr - 1]);
    return ev->u.ended.why;
}

static bool note_contains(int task, const char *text)
{
    const struct event *ev;
    for (int i = 0; (ev = run_event(&run, EV_NOTE, task, i)); i++)
        if (strstr(ev->u.note.text, text))
            return true;
    return false;
}

static void assert_trials_once(void)
{
    int nr = run_count(&run, EV_TRIAL, -1);
    assert_int_equal(nr, run_count(&run, EV_PROPOSED, -1));
    char *had = calloc((size_t)nr + 1, 1);
    const struct event *ev;
    for (int i = 0; (ev = run_event(&run, EV_TRIAL, -1, i)); i++) {
        assert_in_range(ev->trial, 1, nr);
        assert_false(had[ev->trial]);
        had[ev->trial] = 1;
    }
    free(had);
}

static void test_budgets_and_phases(void **state)
{
    (void)state;
    begin(2);
    run_all(&run);
    assert_int_equal(run.rc, 0);
    assert_string_equal(ended_why(), "all tasks are done");
    assert_trials_once();
    static const enum phase order[] = {PHASE_DEFAULT, PHASE_EXPLORE, PHASE_REFINE, PHASE_FINAL,
                                       PHASE_DONE};
    for (int t = 0; t < 2; t++) {
        assert_int_equal(run_count(&run, EV_PHASE, t), 5);
        for (int i = 0; i < 5; i++)
            assert_int_equal(run_event(&run, EV_PHASE, t, i)->u.phase.phase, order[i]);
        /* The default trials count as explored. */
        assert_int_equal(run_count_phase(&run, PHASE_DEFAULT, t), 2);
        assert_int_equal(run_count_phase(&run, PHASE_EXPLORE, t), 38);
        assert_int_equal(run_count_phase(&run, PHASE_REFINE, t), 24);
    }
    const struct event *s = run_event(&run, EV_SESSION, -1, 0);
    assert_ptr_equal(s, &run.rec.ev[0]);
    assert_string_equal(s->u.session.target, "fake:0");
    assert_int_equal(run_count(&run, EV_TASK, -1), 2);
    assert_int_equal(run_count(&run, EV_KNOB, 0), 8);
    assert_true(run_count(&run, EV_DECISION, 0) > 0);
    assert_true(run_count(&run, EV_USAGE, -1) > 0);
    end();
}

static void test_result_never_reports_a_regression(void **state)
{
    (void)state;
    begin(3);
    run_all(&run);
    for (int t = 0; t < 3; t++) {
        assert_int_equal(run_count(&run, EV_RESULT, t), 1);
        const struct event *ev = run_event(&run, EV_RESULT, t, 0);
        double d = ev->u.result.default_ns, x = ev->u.result.explored_ns;
        double r = ev->u.result.refined_ns;
        assert_true(r <= x && x <= d);
        assert_true(ev->u.result.refined_lo <= r && r <= ev->u.result.refined_hi);
        assert_true(ev->u.result.default_lo <= d && d <= ev->u.result.default_hi);
        assert_true(ev->u.result.error == 0.25);
        assert_true(ev->u.result.refined_trial > 0 && ev->u.result.default_trial > 0);
        assert_true(ev->u.result.why[0] != 0);
    }
    end();
}

static void test_phases_can_be_skipped(void **state)
{
    (void)state;
    begin(1);
    strcpy(run.o.refine_strategy, "none");
    run_all(&run);
    assert_int_equal(run.rc, 0);
    assert_int_equal(run_count(&run, EV_TRIAL, 0), 40);
    assert_true(isnan(run_event(&run, EV_RESULT, 0, 0)->u.result.refined_ns));
    end();

    begin(1);
    run.o.explore = 0;
    run_all(&run);
    assert_int_equal(run.rc, 0);
    assert_int_equal(run_count_phase(&run, PHASE_DEFAULT, 0), 2);
    assert_int_equal(run_count_phase(&run, PHASE_EXPLORE, 0), 0);
    int refined = run_count_phase(&run, PHASE_REFINE, 0);
    assert_in_range(refined, 1, 24);
    const struct event *final = run_event(&run, EV_PHASE, 0, 2);
    assert_int_equal(final->u.phase.phase, PHASE_FINAL);
    assert_string_equal(final->u.phase.why, refined == 24 ? "budget used" : "converged");
    end();
}

static void test_incumbents_only_improve(void **state)
{
    (void)state;
    begin(2);
    run_all(&run);
    for (int t = 0; t < 2; t++) {
        double best = INFINITY;
        const struct event *ev;
        for (int i = 0; (ev = run_event(&run, EV_INCUMBENT, t, i)); i++) {
            if (ev->u.incumbent.centre)
                continue;
            assert_true(ev->u.incumbent.cost_ns < best);
            best = ev->u.incumbent.cost_ns;
        }
        assert_true(isfinite(best));
    }
    end();
}

static void test_session_budget_of_trials(void **state)
{
    (void)state;
    begin(3);
    run.o.trials = 57;
    run_all(&run);
    assert_int_equal(run.rc, 0);
    assert_string_equal(ended_why(), "57 trials used");
    assert_int_equal(run_count(&run, EV_TRIAL, -1), 57);
    assert_trials_once();
    for (int t = 0; t < 3; t++)
        assert_int_equal(run_count(&run, EV_RESULT, t), 1);
    end();
}

static void test_session_budget_of_time(void **state)
{
    (void)state;
    begin(2);
    run.o.seconds = 0.2;
    run.o.explore = 1000000;
    fake.measure_us = 500;
    strcpy(run.o.explore_strategy, "random");
    run_all(&run);
    assert_int_equal(run.rc, 0);
    assert_string_equal(ended_why(), "0.2 seconds used");
    assert_true(run_event(&run, EV_ENDED, -1, 0)->u.ended.finished);
    end();
}

static void test_unlimited_phases_end_when_they_stagnate(void **state)
{
    (void)state;
    begin(1);
    run.o.explore = -1;
    run.o.refine = -1;
    run_all(&run);
    assert_int_equal(run.rc, 0);
    assert_true(run_count(&run, EV_TRIAL, 0) >= 64);
    end();
}

static void test_small_space_is_exhausted(void **state)
{
    (void)state;
    static const char *const names[] = {"random", "grid", "evolutionary"};
    for (int i = 0; i < 3; i++) {
        begin(1);
        fake.tiny = fake.flat = true;
        strcpy(run.o.explore_strategy, names[i]);
        run_all(&run);
        assert_int_equal(run.rc, 0);
        assert_int_equal(run_count(&run, EV_TRIAL, 0), 12);
        assert_trials_once();
        end();
    }
}

/* ---- failures */

static void test_failures_are_data(void **state)
{
    (void)state;
    begin(2);
    run.o.explore = 400;
    strcpy(run.o.explore_strategy, "random");
    run_all(&run);
    assert_int_equal(run.rc, 0);
    int by[TRIAL_NR_STATUS] = {0};
    const struct event *ev;
    for (int i = 0; (ev = run_event(&run, EV_TRIAL, -1, i)); i++) {
        by[ev->u.trial.status]++;
        assert_true((ev->u.trial.status == TRIAL_OK) == isfinite(ev->u.trial.cost_ns));
        if (ev->u.trial.status != TRIAL_OK && ev->u.trial.status != TRIAL_CUT)
            assert_true(ev->u.trial.reason[0] != 0);
    }
    assert_true(by[TRIAL_BUILD_ERROR] > 0 && by[TRIAL_CRASHED] > 0 && by[TRIAL_WRONG_RESULT] > 0);
    assert_true(by[TRIAL_RUN_TIMEOUT] > 0 && by[TRIAL_CUT] > 0 && by[TRIAL_OK] > 0);
    end();
}

static void test_hopeless_task_is_given_up(void **state)
{
    (void)state;
    begin(2);
    run.o.explore = 300;
    fake.broken_task = 1;
    run_all(&run);
    assert_int_equal(run.rc, 0);
    assert_in_range(run_count(&run, EV_TRIAL, 1), 64, 64 + 15);
    assert_true(note_contains(1, "no valid trial"));
    assert_true(note_contains(1, "build_error"));
    assert_int_equal(run_count(&run, EV_RESULT, 1), 0);
    assert_int_equal(run_count(&run, EV_RESULT, 0), 1);
    assert_true(run_count(&run, EV_TRIAL, 0) > 300);
    end();
}

static void test_task_without_operands_is_given_up(void **state)
{
    (void)state;
    begin(2);
    fake.without_operands = 0;
    run_all(&run);
    assert_int_equal(run.rc, 0);
    const struct event *ev = run_event(&run, EV_TRIAL, 0, 0);
    assert_int_equal(ev->u.trial.status, TRIAL_DEVICE_ERROR);
    assert_non_null(strstr(ev->u.trial.reason, "no room"));
    assert_true(note_contains(0, "no valid trial"));
    assert_int_equal(run_count(&run, EV_RESULT, 1), 1);
    end();
}

static void test_task_without_space_is_left_out(void **state)
{
    (void)state;
    begin(2);
    fake.without_space = 0;
    run_all(&run);
    assert_int_equal(run.rc, 0);
    assert_true(note_contains(0, "no sketch fits"));
    assert_int_equal(run_count(&run, EV_TRIAL, 0), 0);
    assert_int_equal(run_count(&run, EV_RESULT, 1), 1);
    end();

    begin(1);
    fake.without_space = 0;
    run_all(&run);
    assert_int_equal(run.rc, ERR_UNSUPPORTED);
    assert_non_null(strstr(run.err.msg, "no sketch fits"));
    end();
}

static void test_dead_device_ends_the_session(void **state)
{
    (void)state;
    begin(1);
    fake.dead = true;
    run_all(&run);
    assert_int_equal(run.rc, ERR_BACKEND);
    assert_non_null(strstr(run.err.msg, "does not run"));
    ended_why();
    assert_false(run_event(&run, EV_ENDED, -1, 0)->u.ended.finished);
    end();
}

static void test_one_device_error_is_tried_again(void **state)
{
    (void)state;
    begin(1);
    fake.flat = true;
    fake.flaky_measure = 20;
    run_all(&run);
    assert_int_equal(run.rc, 0);
    const struct event *ev;
    for (int i = 0; (ev = run_event(&run, EV_TRIAL, -1, i)); i++)
        assert_int_not_equal(ev->u.trial.status, TRIAL_DEVICE_ERROR);
    assert_int_equal(run_count(&run, EV_RESULT, 0), 1);
    ev = run_event(&run, EV_USAGE, -1, run_count(&run, EV_USAGE, -1) - 1);
    assert_int_equal(ev->u.usage.restarts, 1);
    end();
}

static void test_hung_builds_time_out_and_the_search_goes_on(void **state)
{
    (void)state;
    begin(1);
    run.o.build_timeout_ns = 1000000000;
    fake.hang_build = 9;
    fake.hang_builds = 2;
    run_all(&run);
    assert_int_equal(run.rc, 0);
    int timeouts = 0;
    const struct event *ev;
    for (int i = 0; (ev = run_event(&run, EV_TRIAL, -1, i)); i++)
        timeouts += ev->u.trial.status == TRIAL_BUILD_TIMEOUT;
    assert_true(timeouts >= 2);
    assert_int_equal(run_count(&run, EV_TRIAL, 0), 64);
    assert_int_equal(run_count(&run, EV_RESULT, 0), 1);
    end();
}

static void test_too_many_hung_builds_end_the_session(void **state)
{
    (void)state;
    begin(1);
    run.o.build_timeout_ns = 30000000;
    fake.hang_build = 3;
    fake.hang_builds = 1000;
    run_all(&run);
    assert_int_equal(run.rc, ERR_BACKEND);
    assert_non_null(strstr(run.err.msg, "hang"));
    end();
}

static void test_builders_are_parked_when_kernels_use_every_core(void **state)
{
    (void)state;
    begin(2);
    fake.info.cores = fake.info.threads = 4;
    fake.shuffle = true;
    run.o.jobs = 3;
    run_all(&run);
    assert_int_equal(run.rc, 0);
    assert_false(fake.overlap);
    end();
}

static void test_operands_of_large_tasks_are_not_all_kept(void **state)
{
    (void)state;
    begin(16);
    run.o.trials = 40;
    for (int i = 0; i < 16; i++) {
        struct layout l = layout_plain(1, (int64_t[]){INT64_C(1) << 28}); /* 1 GiB, never filled */
        workload_tensor(&tasks.task[i]->wl, "x", WL_INPUT, &l);
    }
    run_all(&run);
    assert_int_equal(run.rc, 0);
    assert_int_equal(run_count(&run, EV_RESULT, -1), 16);
    /* Of two flights, two finals, one that is prepared, and some on their way out. */
    assert_in_range(fake.most_operands, 1, 8);
    end();
}

static void test_unknown_strategy_is_refused(void **state)
{
    (void)state;
    begin(1);
    strcpy(run.o.explore_strategy, "astrology");
    run_all(&run);
    assert_int_equal(run.rc, ERR_USAGE);
    assert_non_null(strstr(run.err.msg, "\"astrology\""));
    assert_non_null(strstr(run.err.msg, "evolutionary"));
    end();
}

/* ---- commands */

static void test_skip_ends_one_task(void **state)
{
    (void)state;
    begin(2);
    run.rec.at_trial = 20;
    run.rec.verb = TUNE_SKIP_TASK;
    run.rec.verb_task = 1;
    run_all(&run);
    assert_int_equal(run.rc, 0);
    const struct event *ev = run_event(&run, EV_COMMAND, 1, 0);
    assert_non_null(ev);
    assert_string_equal(ev->u.command.verb, "skip");
    assert_string_equal(ev->u.command.text, "task1");
    assert_true(run_count(&run, EV_TRIAL, 1) < 40);
    assert_int_equal(run_count(&run, EV_TRIAL, 0), 64);
    assert_int_equal(run_count(&run, EV_RESULT, 1), 1); /* with what it has */
    end();
}

static void test_pause_holds_and_go_goes_on(void **state)
{
    (void)state;
    begin(1);
    run_all(&run);
    char *want = sequence(run.rec.ev, run.rec.nr);
    end();

    begin(1);
    fake.measure_us = 200;
    run_start(&run);
    run_wait_trials(&run, 10);
    conductor_command(run.rec.conductor, TUNE_PAUSE, -1);
    pthread_mutex_lock(&fake.lock);
    int64_t before = fake.measures;
    pthread_mutex_unlock(&fake.lock);
    nanosleep(&(struct timespec){.tv_nsec = 50000000}, NULL);
    pthread_mutex_lock(&fake.lock);
    assert_true(fake.measures <= before + 1); /* one may have been on its way */
    pthread_mutex_unlock(&fake.lock);
    conductor_command(run.rec.conductor, TUNE_GO, -1);
    run_join(&run);
    assert_int_equal(run.rc, 0);
    char *got = sequence(run.rec.ev, run.rec.nr);
    assert_string_equal(got, want);
    assert_string_equal(run_event(&run, EV_COMMAND, -1, 0)->u.command.verb, "pause");
    assert_string_equal(run_event(&run, EV_COMMAND, -1, 1)->u.command.verb, "go");
    free(got);
    free(want);
    end();
}

static void test_stop_is_resumable(void **state)
{
    (void)state;
    begin(1);
    run.rec.at_trial = 13;
    run.rec.verb = TUNE_STOP;
    run_start(&run);
    struct pollfd p = {.fd = conductor_fd(run.rec.conductor), .events = POLLIN};
    assert_int_equal(poll(&p, 1, -1), 1);
    run_join(&run);
    assert_int_equal(run.rc, ERR_INTERRUPTED);
    assert_string_equal(ended_why(), "stopped");
    assert_false(run_event(&run, EV_ENDED, -1, 0)->u.ended.finished);
    assert_int_equal(run_count(&run, EV_RESULT, -1), 0);
    end();
}

static void test_stop_while_paused(void **state)
{
    (void)state;
    begin(1);
    run_start(&run);
    conductor_command(run.rec.conductor, TUNE_PAUSE, -1);
    conductor_command(run.rec.conductor, TUNE_STOP, -1);
    run_join(&run);
    assert_int_equal(run.rc, ERR_INTERRUPTED);
    end();
}

static void test_abandon_does_not_wait(void **state)
{
    (void)state;
    begin(1);
    fake.block_measure = 12;
    run_start(&run);
    pthread_mutex_lock(&fake.lock);
    while (fake.measures < 12)
        pthread_cond_wait(&fake.cond, &fake.lock);
    pthread_mutex_unlock(&fake.lock);
    conductor_command(run.rec.conductor, TUNE_ABANDON, -1);
    run_join(&run);
    assert_int_equal(run.rc, ERR_INTERRUPTED);
    /* The interrupted measurement is no result. */
    const struct event *ev;
    for (int i = 0; (ev = run_event(&run, EV_TRIAL, -1, i)); i++)
        assert_int_not_equal(ev->u.trial.status, TRIAL_DEVICE_ERROR);
    end();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_budgets_and_phases),
        cmocka_unit_test(test_result_never_reports_a_regression),
        cmocka_unit_test(test_phases_can_be_skipped),
        cmocka_unit_test(test_incumbents_only_improve),
        cmocka_unit_test(test_session_budget_of_trials),
        cmocka_unit_test(test_session_budget_of_time),
        cmocka_unit_test(test_unlimited_phases_end_when_they_stagnate),
        cmocka_unit_test(test_small_space_is_exhausted),
        cmocka_unit_test(test_failures_are_data),
        cmocka_unit_test(test_hopeless_task_is_given_up),
        cmocka_unit_test(test_task_without_operands_is_given_up),
        cmocka_unit_test(test_task_without_space_is_left_out),
        cmocka_unit_test(test_dead_device_ends_the_session),
        cmocka_unit_test(test_one_device_error_is_tried_again),
        cmocka_unit_test(test_hung_builds_time_out_and_the_search_goes_on),
        cmocka_unit_test(test_too_many_hung_builds_end_the_session),
        cmocka_unit_test(test_builders_are_parked_when_kernels_use_every_core),
        cmocka_unit_test(test_operands_of_large_tasks_are_not_all_kept),
        cmocka_unit_test(test_unknown_strategy_is_refused),
        cmocka_unit_test(test_skip_ends_one_task),
        cmocka_unit_test(test_pause_holds_and_go_goes_on),
        cmocka_unit_test(test_stop_is_resumable),
        cmocka_unit_test(test_stop_while_paused),
        cmocka_unit_test(test_abandon_does_not_wait),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
