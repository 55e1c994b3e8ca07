/* SPDX-License-Identifier: Apache-2.0 */
/* Drift of the machine: seen by the canary, told, compensated, and the same when resumed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "engine/base/strbuf.h"
#include "engine/search/stats.h"
#include "tests/tune_fixture.h"

enum { WINDOW = 9, HALF_WAY = 32 };

static struct task_list tasks;

struct world {
    struct fake fake;
    struct run run;
};

static int setup(void **state)
{
    (void)state;
    tasks_make(&tasks, 1);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    workload_release(&tasks.task[0]->wl);
    free(tasks.task[0]);
    free(tasks.task);
    return 0;
}

static void begin(struct world *w, double drift)
{
    fake_init(&w->fake, &tasks);
    w->fake.flat = true;
    w->fake.canary_ns = 30000;
    w->fake.drift = drift;
    w->fake.drift_from = drift == 1 ? 0 : HALF_WAY;
    run_init(&w->run, &w->fake, &tasks);
}

static void end(struct world *w)
{
    run_release(&w->run);
    fake_free(&w->fake);
}

static char *codes(const struct run *r)
{
    struct strbuf sb = {0};
    const struct event *ev;
    for (int i = 0; (ev = run_event(r, EV_PROPOSED, 0, i)); i++)
        strbuf_addf(&sb, "%s\n", ev->u.proposed.code);
    return strbuf_detach(&sb);
}

static bool noted(const struct run *r, const char *text)
{
    const struct event *ev;
    for (int i = 0; (ev = run_event(r, EV_NOTE, -1, i)); i++)
        if (strstr(ev->u.note.text, text))
            return true;
    return false;
}

/* The clock drops by 20 %: everything takes 1.25 times as long. */
static void a_slower_clock_changes_no_decision(void **state)
{
    (void)state;
    struct world even, slow;
    begin(&even, 1);
    run_all(&even.run);
    begin(&slow, 1.25);
    run_all(&slow.run);
    assert_int_equal(slow.run.rc, 0);
    char *a = codes(&even.run), *b = codes(&slow.run);
    assert_string_equal(a, b);
    free(a);
    free(b);
    int drifted = 0;
    const struct event *ev;
    for (int i = 0; (ev = run_event(&slow.run, EV_TRIAL, 0, i)); i++) {
        if (ev->u.trial.status != TRIAL_OK)
            continue;
        const struct event *same = run_event(&even.run, EV_TRIAL, 0, i);
        assert_true(fabs(ev->u.trial.cost_ns / same->u.trial.cost_ns - 1) < 1e-9);
        assert_true(fabs(ev->u.trial.median_ns / same->u.trial.median_ns - 1) < 1e-9);
        /* What was measured is stored as it was. */
        double raw = stats_median(ev->u.trial.sample_ns, ev->u.trial.nr_samples);
        assert_true(ev->u.trial.drift == 1 || ev->u.trial.drift == 1.25);
        assert_true(ev->u.trial.median_ns == raw / ev->u.trial.drift);
        assert_true(ev->u.trial.canary_ns == 30000 * ev->u.trial.drift);
        drifted += ev->u.trial.drift == 1.25;
    }
    assert_true(drifted > 10);
    assert_true(noted(&slow.run, "25 % slower"));
    assert_false(noted(&even.run, "canary"));
    end(&even);
    end(&slow);
}

static void the_reference_and_the_drift_are_told(void **state)
{
    (void)state;
    struct world w;
    begin(&w, 1.25);
    run_all(&w.run);
    const struct event *first = run_event(&w.run, EV_USAGE, -1, 0);
    assert_true(first->u.usage.canary_ns == 30000);
    assert_true(first->u.usage.drift == 1);
    /* Before the event of the trial whose canary completed it. */
    int before = 0;
    for (int i = 0; &w.run.rec.ev[i] != first; i++)
        before += w.run.rec.ev[i].kind == EV_TRIAL;
    assert_true(before >= WINDOW - 1);
    const struct event *last = run_event(&w.run, EV_USAGE, -1, run_count(&w.run, EV_USAGE, -1) - 1);
    assert_true(last->u.usage.canary_ns == 30000 && last->u.usage.drift == 1.25);
    end(&w);
}

/* Times of the trials past the drop, by those without it. */
static double mean_ratio(const struct run *r)
{
    double sum = 0;
    int nr = 0;
    const struct event *ev;
    for (int i = HALF_WAY + WINDOW; (ev = run_event(r, EV_TRIAL, 0, i)); i++) {
        if (ev->u.trial.status != TRIAL_OK)
            continue;
        sum += ev->u.trial.median_ns / stats_median(ev->u.trial.sample_ns, ev->u.trial.nr_samples);
        nr++;
    }
    return sum / nr;
}

static void what_the_canary_cannot_know_is_not_compensated(void **state)
{
    (void)state;
    struct world w;
    begin(&w, 1.25);
    w.fake.info.threads = 2;
    run_all(&w.run);
    assert_true(mean_ratio(&w.run) == 1);
    assert_true(noted(&w.run, "not compensated"));
    end(&w);
    /* It changed while the trial was measured. */
    begin(&w, 1.25);
    w.fake.unsteady = true;
    run_all(&w.run);
    assert_true(mean_ratio(&w.run) == 1);
    end(&w);
    /* More than twice as slow is no drift. */
    begin(&w, 2.2);
    w.run.o.explore = 80;
    run_all(&w.run);
    assert_true(mean_ratio(&w.run) == 1);
    end(&w);
    /* A task that memory bounds. */
    const int64_t dims[] = {1000};
    struct layout l = layout_plain(1, dims);
    workload_tensor(&tasks.task[0]->wl, "x", WL_INPUT, &l);
    tasks.task[0]->wl.flops = 4000;
    begin(&w, 1.25);
    run_all(&w.run);
    assert_true(mean_ratio(&w.run) == 1);
    end(&w);
    tasks.task[0]->wl.flops = 16000;
    begin(&w, 1.25);
    run_all(&w.run);
    assert_true(fabs(mean_ratio(&w.run) - 0.8) < 1e-9);
    end(&w);
}

static int nr_cut_of_refine(const struct run *r)
{
    int nr = 0;
    const struct event *p, *ev;
    for (int i = 0; (p = run_event(r, EV_PROPOSED, 0, i)); i++)
        for (int k = 0; p->u.proposed.phase == PHASE_REFINE && (ev = run_event(r, EV_TRIAL, 0, k));
             k++)
            nr += ev->trial == p->trial && ev->u.trial.status == TRIAL_CUT;
    return nr;
}

/* Half as slow again: an equal of the incumbent would be cut by a limit of the faster machine. */
static void a_slower_machine_does_not_cut_everything(void **state)
{
    (void)state;
    struct world even, slow;
    begin(&even, 1);
    run_all(&even.run);
    begin(&slow, 1.5);
    run_all(&slow.run);
    int usual = nr_cut_of_refine(&even.run), now = nr_cut_of_refine(&slow.run);
    assert_in_range(now, 0, usual + 2);
    end(&even);
    end(&slow);
}

static void without_a_canary_nothing_changes(void **state)
{
    (void)state;
    struct world with, without;
    begin(&with, 1);
    run_all(&with.run);
    begin(&without, 1);
    without.fake.canary_ns = 0;
    run_all(&without.run);
    char *a = essence(with.run.rec.ev, with.run.rec.nr);
    char *b = essence(without.run.rec.ev, without.run.rec.nr);
    assert_string_equal(a, b);
    free(a);
    free(b);
    const struct event *ev = run_event(&without.run, EV_TRIAL, 0, 0);
    assert_true(isnan(ev->u.trial.canary_ns) && isnan(ev->u.trial.drift));
    ev = run_event(&without.run, EV_USAGE, -1, 0);
    assert_true(isnan(ev->u.usage.canary_ns) && isnan(ev->u.usage.drift));
    end(&with);
    end(&without);
}

/* Stopped after the drop and gone on with: the reference and the costs are those of the first run.
 */
static void a_resumed_session_decides_the_same(void **state)
{
    (void)state;
    struct world whole, first, second;
    begin(&whole, 1.25);
    run_all(&whole.run);
    begin(&first, 1.25);
    first.run.rec.at_trial = HALF_WAY + 14;
    first.run.rec.verb = TUNE_STOP;
    run_all(&first.run);
    assert_int_equal(first.run.rc, ERR_INTERRUPTED);
    begin(&second, 1.25);
    second.fake.drift_from = 1;
    second.run.past = first.run.rec.ev;
    second.run.nr_past = first.run.rec.nr;
    second.run.resumed = 1;
    run_all(&second.run);
    assert_int_equal(second.run.rc, 0);

    int nr = first.run.rec.nr + second.run.rec.nr;
    struct event *both = calloc((size_t)nr, sizeof *both);
    memcpy(both, first.run.rec.ev, (size_t)first.run.rec.nr * sizeof *both);
    memcpy(both + first.run.rec.nr, second.run.rec.ev, (size_t)second.run.rec.nr * sizeof *both);
    char *a = essence(whole.run.rec.ev, whole.run.rec.nr), *b = essence(both, nr);
    assert_string_equal(a, b);
    free(a);
    free(b);
    free(both);
    end(&whole);
    end(&first);
    end(&second);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_slower_clock_changes_no_decision, setup, teardown),
        cmocka_unit_test_setup_teardown(the_reference_and_the_drift_are_told, setup, teardown),
        cmocka_unit_test_setup_teardown(what_the_canary_cannot_know_is_not_compensated, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(a_slower_machine_does_not_cut_everything, setup, teardown),
        cmocka_unit_test_setup_teardown(without_a_canary_nothing_changes, setup, teardown),
        cmocka_unit_test_setup_teardown(a_resumed_session_decides_the_same, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
