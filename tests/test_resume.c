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
#include "engine/search/trees.h"
#include "tests/tune_fixture.h"

/* One run of a session of three tasks; the caller takes the events over. */
struct story {
    int nr_tasks, jobs;
    bool shuffle;
    int64_t trials, stop_at;
    enum tune_verb verb;
    int verb_task;
    double verb_value;
    int64_t explore, refine; /* 0: as options_init() has them */
    const struct tune_command *budget;
    int nr_budgets;
    const struct event *past;
    int nr_past, resumed;
    bool knows_results;
    bool learns;             /* with a cost model */
    const struct kept *kept; /* what the past learned */
    int nr_kept;
    /* of the run */
    int rc;
    struct err err;
    struct event *ev;
    int nr;
    struct kept *learned; /* the caller frees, where it learns */
    int nr_learned;
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
    run.o.cost_model = fake.features = s->learns;
    run.kept = s->kept;
    run.nr_kept = s->nr_kept;
    run.o.trials = s->trials;
    run.past = s->past;
    run.nr_past = s->nr_past;
    run.resumed = s->resumed;
    run.knows_results = s->knows_results;
    run.rec.at_trial = s->stop_at;
    run.rec.verb = s->verb;
    run.rec.verb_task = s->verb_task;
    run.rec.verb_value = s->verb_value;
    run.o.explore = s->explore ? s->explore : run.o.explore;
    run.o.refine = s->refine ? s->refine : run.o.refine;
    run.budget = s->budget;
    run.nr_budgets = s->nr_budgets;
    run_all(&run);
    s->rc = run.rc;
    s->err = run.err;
    s->nr = run.rec.nr;
    s->ev = run.rec.ev;
    run.rec.ev = NULL;
    s->nr_learned = run.rec.nr_kept;
    s->learned = run.rec.kept;
    run.rec.kept = NULL;
    run.rec.nr_kept = 0;
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
                          .explore = first->explore,
                          .refine = first->refine,
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

/* ---- what the cost model learned */

enum memory { MEMORY_WHOLE, MEMORY_LOST, MEMORY_DAMAGED, MEMORY_OF_STRANGERS, NR_MEMORIES };

/* What is in the session when it is killed before event `cut`. The caller frees. */
static struct kept *remembered(const struct story *first, int cut, enum memory how, int *nr)
{
    struct kept *kept = xcalloc((size_t)first->nr_learned + 1, sizeof *kept);
    *nr = 0;
    for (int i = 0; i < first->nr_learned && how != MEMORY_LOST; i++) {
        const struct kept *k = &first->learned[i];
        if (k->before > cut || (k->before == cut && cut % 2)) /* it may just have been committed */
            continue;
        struct kept *mine = &kept[(*nr)++];
        *mine = (struct kept){k->data, k->before, xmalloc(k->len), k->len};
        memcpy(mine->bytes, k->bytes, k->len);
        if (how == MEMORY_DAMAGED)
            mine->bytes[k->len * (size_t)(i + 1) / (size_t)(first->nr_learned + 2)] ^= 4;
        else if (how == MEMORY_OF_STRANGERS)
            memset(mine->bytes, 0x7f, k->len);
    }
    return kept;
}

static int count_notes(const struct story *s, const char *text)
{
    int n = 0;
    for (int i = 0; i < s->nr; i++)
        n += s->ev[i].kind == EV_NOTE && strstr(s->ev[i].u.note.text, text);
    return n;
}

/* What was remembered is not learned again, and what was not is learned as it was. */
static void assert_learned(const struct story *s, const struct story *first, int skipped)
{
    assert_int_equal(s->nr_learned, first->nr_learned - skipped);
    for (int i = 0; i < s->nr_learned; i++) {
        const struct kept *was = &first->learned[skipped + i], *is = &s->learned[i];
        assert_true(is->data == was->data && is->len == was->len);
        assert_memory_equal(is->bytes, was->bytes, is->len);
    }
}

static void killed_and_remembered(const struct story *first, int cut, enum memory how,
                                  const char *want)
{
    int nr_kept, nr;
    struct kept *kept = remembered(first, cut, how, &nr_kept);
    struct story s = {.nr_tasks = first->nr_tasks,
                      .jobs = 1,
                      .past = first->ev,
                      .nr_past = cut,
                      .resumed = 1,
                      .learns = true,
                      .kept = kept,
                      .nr_kept = nr_kept};
    tell(&s);
    assert_int_equal(s.rc, 0);
    assert_learned(&s, first, how == MEMORY_WHOLE ? nr_kept : 0);
    /* Damage is no news where no stored trial was chosen by the trees: by the last ones, or those
     * before, which are in use until the last are. */
    int notes = count_notes(&s, "what the session should tell");
    if (how == MEMORY_WHOLE || nr_kept == 0)
        assert_int_equal(notes, 0);
    else if (nr_kept > 2)
        assert_int_equal(notes, 1);
    else
        assert_in_range(notes, 0, 1);
    struct event *all = joined(first->ev, cut, &s, &nr);
    char *got = essence(all, nr);
    assert_same(got, want);
    free(got);
    free(all);
    kept_free(kept, nr_kept);
    kept_free(s.learned, s.nr_learned);
}

/* Decisions are those of the uninterrupted session, whatever is left of what it learned. */
static void test_killed_with_a_cost_model(void **state)
{
    (void)state;
    if (trees_missing())
        skip();
    struct story first = {.nr_tasks = 2, .jobs = 2, .shuffle = true, .learns = true};
    struct story plain = {.nr_tasks = 2, .jobs = 2, .shuffle = true};
    tell(&first);
    tell(&plain);
    char *want = essence(first.ev, first.nr), *other = essence(plain.ev, plain.nr);
    assert_true(first.nr_learned >= 4);
    assert_string_not_equal(want, other); /* it decides something */
    for (int cut = 1, i = 0; cut < first.nr; cut += first.nr / 16, i++)
        killed_and_remembered(&first, cut,
                              i % 4 ? MEMORY_WHOLE : (enum memory)(i / 4 % NR_MEMORIES), want);
    for (int how = 0; how < NR_MEMORIES; how++)
        killed_and_remembered(&first, first.nr - 1, (enum memory)how, want);
    free(want);
    free(other);
    free(plain.ev);
    kept_free(plain.learned, plain.nr_learned);
    kept_free(first.learned, first.nr_learned);
    free(first.ev);
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

/* ---- budgets that change */

static int count_phase(const struct event *ev, int nr, int task, enum phase p)
{
    int n = 0;
    for (int i = 0; i < nr; i++)
        n += ev[i].kind == EV_PROPOSED && ev[i].task == task && ev[i].u.proposed.phase == p;
    return n;
}

static int count_kind(const struct event *ev, int nr, enum event_kind kind, int task)
{
    int n = 0;
    for (int i = 0; i < nr; i++)
        n += ev[i].kind == kind && ev[i].task == task;
    return n;
}

/* A finished session and its resumption with other budgets; the events of both. */
static struct event *resumed_with(const struct tune_command *budget, int nr_budgets, int jobs,
                                  int *nr_first, int *nr)
{
    struct story first = {.nr_tasks = 2, .jobs = 1, .explore = 16, .refine = 8};
    tell(&first);
    assert_int_equal(first.rc, 0);
    struct story more = {.nr_tasks = 2,
                         .jobs = jobs,
                         .shuffle = jobs > 1,
                         .explore = 16,
                         .refine = 8,
                         .budget = budget,
                         .nr_budgets = nr_budgets,
                         .past = first.ev,
                         .nr_past = first.nr,
                         .resumed = 1,
                         .knows_results = true};
    tell(&more);
    assert_int_equal(more.rc, 0);
    *nr_first = first.nr;
    struct event *all = joined(first.ev, first.nr, &more, nr);
    free(first.ev);
    return all;
}

static void test_more_refinement_goes_on_where_it_stood(void **state)
{
    (void)state;
    int nr_first, nr;
    static const struct tune_command more = {TUNE_REFINE, -1, 24};
    struct event *ev = resumed_with(&more, 1, 1, &nr_first, &nr);
    const struct event *rest = ev + nr_first;
    int nr_rest = nr - nr_first;
    for (int t = 0; t < 2; t++) {
        assert_int_equal(count_phase(ev, nr_first, t, PHASE_REFINE), 8);
        assert_int_equal(count_phase(rest, nr_rest, t, PHASE_REFINE), 16);
        assert_int_equal(count_phase(rest, nr_rest, t, PHASE_EXPLORE), 0);
        assert_int_equal(count_kind(rest, nr_rest, EV_RESULT, t), 1);
    }
    assert_int_equal(count_ends(ev, nr), 2 * (16 + 24));
    assert_int_equal(count_kind(rest, nr_rest, EV_COMMAND, -1), 1);
    for (int i = 0; i < nr_rest; i++)
        if (rest[i].kind == EV_COMMAND) {
            assert_string_equal(rest[i].u.command.verb, "refine");
            assert_string_equal(rest[i].u.command.text, "24 trials of each task");
            assert_int_equal(rest[i].u.command.after, 2 * (16 + 8));
        }
    struct story s = {.nr_tasks = 2, .ev = ev, .nr = nr, .explore = 16, .refine = 8};
    killed_everywhere(&s, 11);
    free(ev);
}

static void test_more_exploration_refines_anew(void **state)
{
    (void)state;
    int nr_first, nr;
    static const struct tune_command more = {TUNE_EXPLORE, -1, 40};
    struct event *ev = resumed_with(&more, 1, 1, &nr_first, &nr);
    const struct event *rest = ev + nr_first;
    int nr_rest = nr - nr_first;
    for (int t = 0; t < 2; t++) {
        assert_int_equal(count_phase(rest, nr_rest, t, PHASE_EXPLORE), 24);
        assert_int_equal(count_phase(rest, nr_rest, t, PHASE_REFINE), 8);
        assert_int_equal(count_kind(rest, nr_rest, EV_RESULT, t), 1);
    }
    struct story s = {.nr_tasks = 2, .ev = ev, .nr = nr, .explore = 16, .refine = 8};
    killed_everywhere(&s, 17);
    free(ev);
}

static void test_changed_budgets_decide_equally(void **state)
{
    (void)state;
    static const struct tune_command more[] = {
        {TUNE_EXPLORE, -1, 24}, {TUNE_REFINE, 1, 30}, {TUNE_REFINE, 0, 0}};
    char *want = NULL;
    for (int jobs = 1; jobs <= 4; jobs *= 2) {
        int nr_first, nr;
        struct event *ev = resumed_with(more, 3, jobs, &nr_first, &nr);
        char *got = essence(ev, nr);
        if (want)
            assert_same(got, want);
        assert_int_equal(count_phase(ev, nr, 0, PHASE_REFINE), 8);
        assert_int_equal(count_phase(ev, nr, 1, PHASE_REFINE), 8 + 30);
        free(want);
        want = got;
        free(ev);
    }
    free(want);
}

/* Did refining the task end because it brought nothing? */
static bool stagnated(const struct event *ev, int nr, int task)
{
    bool yes = false;
    for (int i = 0; i < nr; i++)
        yes |= ev[i].kind == EV_PHASE && ev[i].task == task && ev[i].u.phase.phase == PHASE_FINAL &&
               !strcmp(ev[i].u.phase.why, "stagnated");
    return yes;
}

static struct event *refined_on(struct story *first, int64_t trials, int *nr)
{
    struct tune_command more = {TUNE_REFINE, -1, trials};
    struct story s = *first;
    s.past = first->ev;
    s.nr_past = first->nr;
    s.resumed = 1;
    s.knows_results = true;
    s.budget = &more;
    s.nr_budgets = 1;
    tell(&s);
    assert_int_equal(s.rc, 0);
    kept_free(s.learned, s.nr_learned);
    *nr = s.nr;
    return s.ev;
}

/* Refining rests where half of its budget has brought no gain, and goes on for a larger one only.
 */
static void test_a_refinement_that_rests_goes_on_when_it_is_given_more(void **state)
{
    (void)state;
    enum { TASKS = 4, BUDGET = 36, MORE = 60 };
    if (trees_missing())
        skip();
    struct story first = {
        .nr_tasks = TASKS, .jobs = 1, .learns = true, .explore = 256, .refine = BUDGET};
    tell(&first);
    int nr_more, nr_less, rested = 0;
    struct event *more = refined_on(&first, MORE, &nr_more);
    struct event *less = refined_on(&first, BUDGET - 1, &nr_less);
    for (int t = 0; t < TASKS; t++) {
        if (!stagnated(first.ev, first.nr, t))
            continue;
        int refined = count_phase(first.ev, first.nr, t, PHASE_REFINE);
        assert_in_range(refined, BUDGET / 2, BUDGET - 1);
        assert_in_range(count_phase(more, nr_more, t, PHASE_REFINE), 1, MORE - refined);
        assert_int_equal(count_kind(more, nr_more, EV_RESULT, t), 1);
        assert_int_equal(count_phase(less, nr_less, t, PHASE_REFINE), 0);
        assert_int_equal(count_kind(less, nr_less, EV_RESULT, t), 0);
        rested++;
    }
    assert_true(rested > 0);
    free(more);
    free(less);
    kept_free(first.learned, first.nr_learned);
    free(first.ev);
}

/* The same once more is no change. */
static void test_the_same_budget_again_changes_nothing(void **state)
{
    (void)state;
    int nr_first, nr;
    static const struct tune_command same[] = {{TUNE_EXPLORE, -1, 16}, {TUNE_REFINE, 1, 8}};
    struct event *ev = resumed_with(same, 2, 1, &nr_first, &nr);
    assert_int_equal(count_ends(ev + nr_first, nr - nr_first), 0);
    assert_int_equal(count_kind(ev + nr_first, nr - nr_first, EV_COMMAND, -1), 0);
    assert_int_equal(count_kind(ev + nr_first, nr - nr_first, EV_COMMAND, 1), 0);
    free(ev);
}

/* At any moment, among them the one when nothing is left to do. */
static void test_budgets_change_while_running(void **state)
{
    (void)state;
    static const struct story orders[] = {
        {.verb = TUNE_REFINE, .verb_task = 1, .verb_value = 40},
        {.verb = TUNE_REFINE, .verb_task = -1, .verb_value = 4},
        {.verb = TUNE_EXPLORE, .verb_task = 0, .verb_value = 60},
        {.verb = TUNE_EXPLORE, .verb_task = -1, .verb_value = 10},
        {.verb = TUNE_TRIALS, .verb_task = -1, .verb_value = 81},
    };
    static const int64_t at[] = {1, 20, 60, AT_FINAL};
    for (size_t i = 0; i < sizeof orders / sizeof *orders; i++)
        for (int k = 0; k < 4; k++) {
            struct story s = orders[i];
            s.nr_tasks = k == 3 ? 1 : 2;
            if (s.verb_task >= s.nr_tasks)
                s.verb_task = 0;
            s.jobs = 2;
            s.shuffle = true;
            s.stop_at = at[k];
            tell(&s);
            assert_int_equal(s.rc, 0);
            if (s.verb == TUNE_TRIALS && k < 3)
                assert_int_equal(count_ends(s.ev, s.nr), 81);
            killed_everywhere(&s, 29);
            free(s.ev);
        }
}

static void test_a_task_skipped_goes_on_when_asked_by_name(void **state)
{
    (void)state;
    struct story s = {
        .nr_tasks = 2, .jobs = 1, .stop_at = 20, .verb = TUNE_SKIP_TASK, .verb_task = 1};
    tell(&s);
    static const struct tune_command all = {TUNE_REFINE, -1, 30}, one = {TUNE_REFINE, 1, 30};
    for (int i = 0; i < 2; i++) {
        struct story more = {.nr_tasks = 2,
                             .jobs = 1,
                             .budget = i ? &one : &all,
                             .nr_budgets = 1,
                             .past = s.ev,
                             .nr_past = s.nr,
                             .resumed = 1,
                             .knows_results = true};
        tell(&more);
        assert_int_equal(more.rc, 0);
        assert_int_equal(count_phase(more.ev, more.nr, 0, PHASE_REFINE), i ? 0 : 6);
        assert_int_equal(count_phase(more.ev, more.nr, 1, PHASE_REFINE), i ? 30 : 0);
        free(more.ev);
    }
    free(s.ev);
}

/* A limit that ends the session in the middle of a change, then a larger one. */
static void test_a_limit_before_and_after_a_change(void **state)
{
    (void)state;
    struct story s = {.nr_tasks = 3, .jobs = 1, .trials = 101};
    tell(&s);
    static const struct tune_command more[] = {{TUNE_REFINE, -1, 40}, {TUNE_TRIALS, -1, 171}};
    struct story rest = {.nr_tasks = 3,
                         .jobs = 2,
                         .trials = 101,
                         .budget = more,
                         .nr_budgets = 2,
                         .past = s.ev,
                         .nr_past = s.nr,
                         .resumed = 1,
                         .knows_results = true};
    tell(&rest);
    assert_int_equal(rest.rc, 0);
    assert_int_equal(count_ends(rest.ev, rest.nr), 70);
    int nr;
    struct event *all = joined(s.ev, s.nr, &rest, &nr);
    struct story both = {.nr_tasks = 3, .ev = all, .nr = nr, .trials = 101};
    killed_everywhere(&both, 13);
    /* Less than there is already cuts nothing off. */
    static const struct tune_command less = {TUNE_TRIALS, -1, 50};
    struct story end = {.nr_tasks = 3,
                        .jobs = 1,
                        .trials = 101,
                        .budget = &less,
                        .nr_budgets = 1,
                        .past = all,
                        .nr_past = nr,
                        .resumed = 2,
                        .knows_results = true};
    tell(&end);
    assert_int_equal(end.rc, 0);
    assert_int_equal(count_ends(end.ev, end.nr), 0);
    assert_string_equal(end.ev[end.nr - 1].u.ended.why, "171 trials used");
    free(end.ev);
    free(all);
    free(s.ev);
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
        cmocka_unit_test(test_killed_with_a_cost_model),
        cmocka_unit_test(test_killed_with_a_session_budget),
        cmocka_unit_test(test_skip_takes_effect_at_the_same_trial_again),
        cmocka_unit_test(test_more_trials_go_on_where_fewer_ended),
        cmocka_unit_test(test_more_refinement_goes_on_where_it_stood),
        cmocka_unit_test(test_more_exploration_refines_anew),
        cmocka_unit_test(test_changed_budgets_decide_equally),
        cmocka_unit_test(test_a_refinement_that_rests_goes_on_when_it_is_given_more),
        cmocka_unit_test(test_the_same_budget_again_changes_nothing),
        cmocka_unit_test(test_budgets_change_while_running),
        cmocka_unit_test(test_a_task_skipped_goes_on_when_asked_by_name),
        cmocka_unit_test(test_a_limit_before_and_after_a_change),
        cmocka_unit_test(test_another_input_is_refused),
        cmocka_unit_test(test_finished_session_has_nothing_to_do),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
