/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Determinism: a session is a function of its seed and its results. Builders more or fewer, stopped
 * and resumed, killed at any event and resumed: the same proposals, decisions and results.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "engine/base/arena.h"
#include "tests/tune_fixture.h"

/* One run of a session of three tasks; the caller takes the events over. */
struct story {
    int nr_tasks, jobs;
    bool shuffle;
    int64_t trials, stop_at;
    enum tune_verb verb;
    int verb_task;
    const struct event *past;
    int nr_past, resumed;
    bool knows_results;
    bool skip; /* skip task 1 after 20 trials */
    /* of the run */
    int rc;
    struct err err;
    struct event *ev;
    int nr;
};

static void tell(struct story *s)
{
    struct task_list tasks;
    struct fake fake;
    struct run run;
    tasks_make(&tasks, s->nr_tasks);
    fake_init(&fake, &tasks);
    fake.shuffle = s->shuffle;
    fake.info.cores = 4;
    run_init(&run, &fake, &tasks);
    run.o.jobs = s->jobs;
    run.o.trials = s->trials;
    run.past = s->past;
    run.nr_past = s->nr_past;
    run.resumed = s->resumed;
    run.knows_results = s->knows_results;
    run.rec.at_trial = s->stop_at;
    run.rec.verb = s->verb;
    run.rec.verb_task = s->verb_task;
    run_all(&run);
    s->rc = run.rc;
    s->err = run.err;
    s->nr = run.rec.nr;
    s->ev = run.rec.ev;
    run.rec.ev = NULL;
    assert_int_equal(fake.artifacts, 0);
    assert_int_equal(fake.operands, 0);
    run_release(&run);
    fake_free(&fake);
    for (int i = 0; i < tasks.nr; i++) {
        workload_release(&tasks.task[i]->wl);
        free(tasks.task[i]);
    }
    free(tasks.task);
}

/* Past and present together; frees the present. */
static struct event *joined(const struct event *past, int nr_past, struct story *s, int *nr)
{
    struct event *all = xcalloc((size_t)(nr_past + s->nr) + 1, sizeof *all);
    if (nr_past)
        memcpy(all, past, (size_t)nr_past * sizeof *all);
    memcpy(all + nr_past, s->ev, (size_t)s->nr * sizeof *all);
    free(s->ev);
    *nr = nr_past + s->nr;
    return all;
}

static int count_ends(const struct event *ev, int nr)
{
    int n = 0;
    for (int i = 0; i < nr; i++)
        n += ev[i].kind == EV_TRIAL;
    return n;
}

/* Fails with the first line that differs: the texts are long. */
static void assert_same(const char *got, const char *want)
{
    if (strcmp(got, want) == 0)
        return;
    int i = 0, line = 0;
    for (; got[i] && got[i] == want[i]; i++)
        if (got[i] == '\n')
            line = i + 1;
    fail_msg("got '%.*s', want '%.*s'", (int)strcspn(got + line, "\n"), got + line,
             (int)strcspn(want + line, "\n"), want + line);
}

static void test_builders_do_not_matter(void **state)
{
    (void)state;
    char *want = NULL, *want_all = NULL;
    static const int jobs[] = {1, 1, 2, 4};
    for (int i = 0; i < 4; i++) {
        struct story s = {.nr_tasks = 3, .jobs = jobs[i], .shuffle = i > 0};
        tell(&s);
        assert_int_equal(s.rc, 0);
        char *got = sequence(s.ev, s.nr), *all = essence(s.ev, s.nr);
        if (i > 0) {
            assert_same(got, want);
            assert_same(all, want_all);
        }
        free(want);
        free(want_all);
        free(s.ev);
        want = got;
        want_all = all;
    }
    free(want);
    free(want_all);
}

static void test_seed_matters(void **state)
{
    (void)state;
    struct story a = {.nr_tasks = 1, .jobs = 1};
    tell(&a);
    char *one = sequence(a.ev, a.nr);
    assert_non_null(strstr(one, "droplet"));
    assert_non_null(strstr(one, "evolutionary"));
    free(one);
    free(a.ev);
}

static void resume_until_done(int nr_tasks, int stop_every, bool knows_results, const char *want,
                              int want_ends)
{
    struct event *past = NULL;
    int nr_past = 0;
    for (int run = 0;; run++) {
        struct story s = {.nr_tasks = nr_tasks,
                          .jobs = 2,
                          .shuffle = true,
                          .stop_at = stop_every,
                          .verb = run % 3 == 2 ? TUNE_ABANDON : TUNE_STOP,
                          .past = past,
                          .nr_past = nr_past,
                          .resumed = run,
                          .knows_results = knows_results};
        tell(&s);
        int rc = s.rc;
        struct event *all = joined(past, nr_past, &s, &nr_past);
        free(past);
        past = all;
        if (rc == 0)
            break;
        assert_int_equal(rc, ERR_INTERRUPTED);
    }
    assert_int_equal(count_ends(past, nr_past), want_ends);
    char *got = essence(past, nr_past);
    assert_same(got, want);
    free(got);
    free(past);
}

static void test_stopped_and_resumed_again_and_again(void **state)
{
    (void)state;
    for (int nr_tasks = 1; nr_tasks <= 3; nr_tasks += 2) {
        struct story s = {.nr_tasks = nr_tasks, .jobs = 1};
        tell(&s);
        char *want = essence(s.ev, s.nr);
        int ends = count_ends(s.ev, s.nr);
        free(s.ev);
        static const int every[] = {1, 2, 7, 16, 23, 50};
        for (int i = nr_tasks > 1; i < 6; i++)
            resume_until_done(nr_tasks, every[i], i % 2, want, ends);
        free(want);
    }
}

/* Cut off after any event, as by kill -9; then resumed. */
static void killed_everywhere(struct story *first, int stride)
{
    char *want = essence(first->ev, first->nr);
    int ends = count_ends(first->ev, first->nr), from = 1;
    for (int i = 0; i < first->nr; i++)
        if (first->ev[i].kind == EV_COMMAND)
            from = i + 1;
    for (int cut = from; cut < first->nr; cut += stride) {
        struct story s = {.nr_tasks = first->nr_tasks,
                          .jobs = 1,
                          .past = first->ev,
                          .nr_past = cut,
                          .resumed = 1,
                          .knows_results = cut % 2,
                          .trials = first->trials};
        tell(&s);
        assert_int_equal(s.rc, 0);
        int nr;
        struct event *all = joined(first->ev, cut, &s, &nr);
        assert_int_equal(count_ends(all, nr), ends);
        char *got = essence(all, nr);
        assert_same(got, want);
        free(got);
        free(all);
    }
    free(want);
}

static void test_killed_anywhere_and_resumed(void **state)
{
    (void)state;
    struct story s = {.nr_tasks = 2, .jobs = 2, .shuffle = true};
    tell(&s);
    killed_everywhere(&s, 13);
    free(s.ev);
}

static void test_killed_with_a_session_budget(void **state)
{
    (void)state;
    struct story s = {.nr_tasks = 3, .jobs = 2, .trials = 77};
    tell(&s);
    assert_int_equal(count_ends(s.ev, s.nr), 77);
    killed_everywhere(&s, 17);
    free(s.ev);
}

static void test_skip_takes_effect_at_the_same_trial_again(void **state)
{
    (void)state;
    struct story s = {.nr_tasks = 3,
                      .jobs = 2,
                      .shuffle = true,
                      .stop_at = 20,
                      .verb = TUNE_SKIP_TASK,
                      .verb_task = 1};
    tell(&s);
    assert_int_equal(s.rc, 0);
    killed_everywhere(&s, 19);
    free(s.ev);
}

static void test_more_trials_go_on_where_fewer_ended(void **state)
{
    (void)state;
    struct story all = {.nr_tasks = 2, .jobs = 1};
    tell(&all);
    char *want = sequence(all.ev, all.nr);
    struct story part = {.nr_tasks = 2, .jobs = 1, .trials = 45};
    tell(&part);
    assert_int_equal(count_ends(part.ev, part.nr), 45);
    struct story rest = {.nr_tasks = 2,
                         .jobs = 1,
                         .past = part.ev,
                         .nr_past = part.nr,
                         .resumed = 1,
                         .knows_results = true};
    tell(&rest);
    assert_int_equal(rest.rc, 0);
    assert_int_equal(count_ends(rest.ev, rest.nr), count_ends(all.ev, all.nr) - 45);
    /* Every task has a result again, of all of its trials. */
    int results = 0;
    for (int i = 0; i < rest.nr; i++)
        results += rest.ev[i].kind == EV_RESULT;
    assert_int_equal(results, 2);
    /* The last decision of the whole is the last decision of the rest. */
    char *got = sequence(rest.ev, rest.nr);
    const char *tail = want + strlen(want) - 200;
    assert_string_equal(got + strlen(got) - 200, tail);
    free(got);
    free(want);
    free(all.ev);
    free(part.ev);
    free(rest.ev);
}

static void test_another_input_is_refused(void **state)
{
    (void)state;
    struct story s = {.nr_tasks = 1, .jobs = 1, .stop_at = 30, .verb = TUNE_STOP};
    tell(&s);
    for (int i = 0; i < s.nr; i++)
        if (s.ev[i].kind == EV_PROPOSED && s.ev[i].trial == 5)
            strcpy(s.ev[i].u.proposed.code, "0:1/2/3");
    struct story again = {.nr_tasks = 1, .jobs = 1, .past = s.ev, .nr_past = s.nr, .resumed = 1};
    tell(&again);
    assert_int_equal(again.rc, ERR_SESSION);
    assert_non_null(strstr(again.err.msg, "trial 5"));
    assert_non_null(strstr(again.err.msg, "another version or input"));
    assert_false(again.ev[again.nr - 1].u.ended.finished);
    free(s.ev);
    free(again.ev);
}

static void test_finished_session_has_nothing_to_do(void **state)
{
    (void)state;
    struct story s = {.nr_tasks = 2, .jobs = 1};
    tell(&s);
    struct story again = {.nr_tasks = 2,
                          .jobs = 1,
                          .past = s.ev,
                          .nr_past = s.nr,
                          .resumed = 1,
                          .knows_results = true};
    tell(&again);
    assert_int_equal(again.rc, 0);
    for (int i = 0; i < again.nr; i++) {
        assert_int_not_equal(again.ev[i].kind, EV_TRIAL);
        assert_int_not_equal(again.ev[i].kind, EV_MEASURING);
        assert_int_not_equal(again.ev[i].kind, EV_RESULT);
    }
    assert_int_equal(again.ev[0].u.session.resumed, 1);
    /* Active time goes on from what was spent. */
    assert_true(again.ev[0].t_ns >= s.ev[s.nr - 1].t_ns - 1000);
    free(s.ev);
    free(again.ev);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_builders_do_not_matter),
        cmocka_unit_test(test_seed_matters),
        cmocka_unit_test(test_stopped_and_resumed_again_and_again),
        cmocka_unit_test(test_killed_anywhere_and_resumed),
        cmocka_unit_test(test_killed_with_a_session_budget),
        cmocka_unit_test(test_skip_takes_effect_at_the_same_trial_again),
        cmocka_unit_test(test_more_trials_go_on_where_fewer_ended),
        cmocka_unit_test(test_another_input_is_refused),
        cmocka_unit_test(test_finished_session_has_nothing_to_do),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
