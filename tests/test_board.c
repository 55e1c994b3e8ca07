/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <jansson.h>

#include "engine/base/clock.h"
#include "engine/base/rng.h"
#include "engine/tune/board.h"
#include "tests/story.h"

static struct story *story;

static int setup(void **state)
{
    (void)state;
    story = calloc(1, sizeof *story);
    return story ? 0 : -1;
}

static int teardown(void **state)
{
    (void)state;
    free(story);
    return 0;
}

static void tell(struct board *b)
{
    for (int i = 0; i < story->nr; i++)
        board_apply(b, &story->ev[i]);
}

static char *json_of(const struct board *b)
{
    struct strbuf out = {0};
    board_json(b, &out);
    return strbuf_detach(&out);
}

static void the_story_is_what_the_board_tells(void **state)
{
    (void)state;
    struct board b;
    board_init(&b);
    story_tell(story);
    tell(&b);
    assert_true(b.has_session && b.ended && !b.finished);
    assert_string_equal(b.why, "stopped by a person");
    assert_int_equal(b.nr_tasks, 2);
    assert_int_equal(b.nr_trials, STORY_TRIALS);
    assert_int_equal(b.nr_ended, STORY_TRIALS);
    assert_int_equal(b.by_status[TRIAL_OK], 6);
    assert_int_equal(b.seq, story->nr);
    assert_int_equal(b.measuring, 0);
    assert_int_equal(b.current, 1);

    const struct board_task *t = &b.task[0];
    assert_int_equal(t->phase, PHASE_DONE);
    assert_int_equal(t->nr_trials, 6);
    assert_int_equal(t->by_status[TRIAL_CUT], 1);
    assert_int_equal(t->default_trial, 1);
    assert_int_equal(t->best, 5);
    assert_int_equal(t->best_explored, 2);
    assert_int_equal(t->best_refined, 5);
    assert_int_equal(t->centre, 5);
    assert_true(t->verdict == FINAL_SEPARATED && t->gain == 0.25 && t->gain_hi == 0.26);
    assert_true(t->final && t->default_ns == 4.1e6 && t->explored_ns == 2.05e6);
    assert_true(t->refined_ns == 1.52e6 && t->best_ns == 1.52e6 && t->error == 0.125);
    assert_true(t->lo[2] == 1.5e6 && t->hi[2] == 1.54e6);
    assert_int_equal(t->nr_knobs, 2);
    assert_string_equal(t->knob[1].name, "unroll");
    const int64_t leaders[] = {6, 5, 2, 1}, points[] = {1, 2, 5};
    assert_int_equal(t->nr_leaders, 4);
    assert_memory_equal(t->leader, leaders, sizeof leaders);
    assert_int_equal(t->nr_points, 3);
    for (int i = 0; i < 3; i++)
        assert_int_equal(t->point[i].trial, points[i]);
    assert_int_equal(t->nr_ring, 1);
    assert_int_equal(t->ring[0], 6);

    t = &b.task[1];
    assert_true(!t->final && t->default_ns == 800e3 && t->explored_ns == 400e3);
    assert_true(isnan(t->refined_ns) && t->best_ns == 400e3);
    assert_int_equal(t->nr_phase, 2);
    assert_int_equal(t->budget, 8);

    const struct board_trial *k = board_trial(&b, 5);
    assert_string_equal(k->code, "0:5.59/1");
    assert_string_equal(k->strategy, "droplet");
    assert_int_equal(k->verdict, VERDICT_MOVED);
    assert_true(k->p_value == 0.004 && k->checked);
    assert_int_equal(board_trial(&b, 6)->verdict, VERDICT_NOISE);
    assert_int_equal(board_trial(&b, 2)->verdict, 255);
    assert_string_equal(board_trial(&b, 9)->reason, "signal 11 (Segmentation fault)");
    assert_null(board_trial(&b, 0));
    assert_null(board_trial(&b, 10));

    struct board_model m = board_model(&b);
    assert_true(m.default_ns == 3 * 4.1e6 + 800e3);
    assert_true(m.explored_ns == 3 * 2.05e6 + 400e3);
    assert_true(m.refined_ns == 3 * 1.52e6 + 400e3);
    assert_float_equal(board_gflops(&b.task[0], 1e6), 231.211008, 1e-9);
    assert_float_equal(board_trials_per_s(&b), 9e9 / (double)b.t_ns, 1e-12);
    board_release(&b);
}

/* What led by one lucky measurement and loses the last one must not keep the star. */
static void the_final_measurement_says_which_trial_is_the_best(void **state)
{
    (void)state;
    struct board b;
    board_init(&b);
    story_tell(story);
    struct event *ev = story_add(story, EV_RESULT, 0, 1);
    ev->u.result.default_ns = ev->u.result.explored_ns = ev->u.result.refined_ns = 4e6;
    ev->u.result.default_trial = ev->u.result.explored_trial = ev->u.result.refined_trial = 1;
    tell(&b);
    assert_int_equal(b.task[0].best, 1);
    assert_true(b.task[0].best_ns == 4e6);
    board_release(&b);
}

/* What a resumed session tells again changes nothing but the state of the session itself. */
static void events_told_twice_count_once(void **state)
{
    (void)state;
    struct board b;
    board_init(&b);
    story_tell(story);
    tell(&b);
    char *once = json_of(&b);
    int64_t ring = b.task[0].nr_ring;
    for (int i = 0; i < story->nr; i++)
        if (story->ev[i].kind != EV_NOTE && story->ev[i].kind != EV_PHASE &&
            !(story->ev[i].kind == EV_INCUMBENT && story->ev[i].trial != 5 &&
              story->ev[i].trial != 8)) {
            board_apply(&b, &story->ev[i]);
        }
    char *twice = json_of(&b);
    assert_string_equal(once, twice);
    assert_int_equal(b.task[0].nr_ring, ring);
    assert_int_equal(b.task[0].nr_points, 3);
    free(once);
    free(twice);
    board_release(&b);
}

static void a_phase_without_a_find_keeps_what_it_began_with(void **state)
{
    (void)state;
    struct board b;
    board_init(&b);
    story_task(story, 0, "a", 1, 0);
    story_phase(story, 0, PHASE_DEFAULT, "default");
    story_proposed(story, 0, 1, PHASE_DEFAULT, ORIGIN_DEFAULT, 0);
    story_ended(story, 0, 1, TRIAL_OK, 100, "");
    story_phase(story, 0, PHASE_EXPLORE, "random");
    story_proposed(story, 0, 2, PHASE_EXPLORE, ORIGIN_SAMPLE, 0);
    story_ended(story, 0, 2, TRIAL_OK, 200, "");
    tell(&b);
    assert_true(isnan(b.task[0].explored_ns));
    story->nr = 0;
    story_phase(story, 0, PHASE_REFINE, "droplet");
    story_phase(story, 0, PHASE_FINAL, "");
    tell(&b);
    assert_true(b.task[0].explored_ns == 100 && b.task[0].refined_ns == 100);
    assert_int_equal(b.task[0].best_explored, 1);
    assert_int_equal(b.task[0].leader[0], 1);
    board_release(&b);
}

static void a_new_centre_finds_its_ring(void **state)
{
    (void)state;
    struct board b;
    board_init(&b);
    story_task(story, 0, "a", 1, 0);
    story_task(story, 1, "b", 1, 0);
    story_phase(story, 0, PHASE_REFINE, "droplet");
    story_proposed(story, 0, 1, PHASE_REFINE, ORIGIN_START, 0);
    story_incumbent(story, 0, 1, PHASE_REFINE, 100, true);
    story_proposed(story, 0, 2, PHASE_REFINE, ORIGIN_NEIGHBOUR, 1);
    story_proposed(story, 0, 3, PHASE_REFINE, ORIGIN_SPECULATE, 2);
    story_proposed(story, 1, 4, PHASE_REFINE, ORIGIN_SPECULATE, 2);
    story_proposed(story, 0, 5, PHASE_REFINE, ORIGIN_NEIGHBOUR, 1);
    tell(&b);
    assert_int_equal(b.task[0].nr_ring, 2);
    assert_int_equal(b.task[0].ring[1], 5);
    story->nr = 0;
    story_incumbent(story, 0, 2, PHASE_REFINE, 90, true);
    story_proposed(story, 0, 6, PHASE_REFINE, ORIGIN_NEIGHBOUR, 2);
    story_proposed(story, 0, 6, PHASE_REFINE, ORIGIN_NEIGHBOUR, 2);
    tell(&b);
    const int64_t ring[] = {3, 6};
    assert_int_equal(b.task[0].nr_ring, 2);
    assert_memory_equal(b.task[0].ring, ring, sizeof ring);
    board_release(&b);
}

static void notes_are_the_last_ones(void **state)
{
    (void)state;
    struct board b;
    board_init(&b);
    story_add(story, EV_NOTE, -1, 0);
    for (int i = 1; i <= 3 * BOARD_NOTES; i++) {
        story->ev[0].u.note.level = i;
        board_apply(&b, &story->ev[0]);
    }
    assert_int_equal(b.nr_notes, BOARD_NOTES);
    assert_int_equal(b.note[0].u.note.level, 2 * BOARD_NOTES + 1);
    assert_int_equal(b.note[BOARD_NOTES - 1].u.note.level, 3 * BOARD_NOTES);
    board_release(&b);
}

/* Any numbers in any event: no crash, no memory without bound (the sanitizers watch). */
static void a_strangers_events_do_no_harm(void **state)
{
    (void)state;
    static const int64_t numbers[] = {-5, 0, 1, 2, 3, 9, 10, 8000, 1 << 20, INT32_MAX, INT64_MAX};
    static const int32_t tasks[] = {-1, 0, 1, 2, 70000, INT32_MAX, INT32_MIN};
    struct board b;
    struct rng r;
    board_init(&b);
    rng_seed(&r, 17);
    story_tell(story);
    for (int i = 0; i < 20000; i++) {
        struct event ev = story->ev[rng_below(&r, (uint64_t)story->nr)];
        if (rng_below(&r, 2))
            ev.task = tasks[rng_below(&r, sizeof tasks / sizeof *tasks)];
        if (rng_below(&r, 2))
            ev.trial = numbers[rng_below(&r, sizeof numbers / sizeof *numbers)];
        if (ev.kind == EV_PROPOSED)
            ev.u.proposed.parent = numbers[rng_below(&r, sizeof numbers / sizeof *numbers)];
        if (ev.kind == EV_RESULT)
            ev.u.result.refined_trial = numbers[rng_below(&r, sizeof numbers / sizeof *numbers)];
        if (ev.kind == EV_TRIAL)
            ev.u.trial.median_ns = rng_below(&r, 2) ? NAN : INFINITY;
        board_apply(&b, &ev);
    }
    char *json = json_of(&b);
    json_t *j = json_loads(json, 0, NULL);
    assert_non_null(j);
    json_decref(j);
    free(json);
    board_release(&b);
}

static void json_has_the_promised_shape(void **state)
{
    (void)state;
    struct board b;
    board_init(&b);
    char *text = json_of(&b);
    json_t *j = json_loads(text, 0, NULL);
    assert_true(json_is_null(json_object_get(json_object_get(j, "model"), "default_ns")));
    assert_int_equal(json_array_size(json_object_get(j, "tasks")), 0);
    json_decref(j);
    free(text);

    story_tell(story);
    tell(&b);
    text = json_of(&b);
    j = json_loads(text, 0, NULL);
    const char *state_text, *name, *workload;
    double weight, default_ns, explored_ns, gflops, model, rate;
    json_t *refined;
    int ok, cut, build_error, trials;
    assert_int_equal(json_unpack(json_array_get(json_object_get(j, "tasks"), 1),
                                 "{s:s, s:s, s:F, s:F, s:F, s:o, s:F, s:{s:i, s:i, s:i}}", "name",
                                 &name, "workload", &workload, "weight", &weight, "default_ns",
                                 &default_ns, "explored_ns", &explored_ns, "refined_ns", &refined,
                                 "gflops", &gflops, "trials", "ok", &ok, "cut", &cut, "build_error",
                                 &build_error),
                     0);
    assert_string_equal(name, "matmul_512x512x512");
    assert_string_equal(workload, "000000000000abc1");
    assert_true(weight == 1 && default_ns == 800e3 && explored_ns == 400e3);
    assert_true(json_is_null(refined));
    assert_float_equal(gflops, 671.08864, 1e-6);
    assert_int_equal(ok, 2);
    assert_int_equal(json_unpack(j, "{s:{s:s}, s:{s:F}, s:i, s:F}", "session", "state", &state_text,
                                 "model", "refined_ns", &model, "trials", &trials, "trials_per_s",
                                 &rate),
                     0);
    assert_string_equal(state_text, "interrupted");
    assert_true(model == 3 * 1.52e6 + 400e3);
    assert_int_equal(trials, 9);
    json_t *statuses = json_object_get(json_array_get(json_object_get(j, "tasks"), 0), "trials");
    for (int i = TRIAL_PENDING + 1; i < TRIAL_NR_STATUS; i++)
        assert_true(
            json_is_integer(json_object_get(statuses, trial_status_name((enum trial_status)i))));
    json_decref(j);
    free(text);
    board_release(&b);
}

static void a_million_trials_take_seconds(void **state)
{
    (void)state;
    enum { TRIALS = 1000000 };
    struct board b;
    struct rng r;
    board_init(&b);
    rng_seed(&r, 23);
    story_task(story, 0, "a", 1, 1e6);
    story_phase(story, 0, PHASE_EXPLORE, "random");
    tell(&b);
    story->nr = 0;
    story_proposed(story, 0, 1, PHASE_EXPLORE, ORIGIN_SAMPLE, 0);
    story_ended(story, 0, 1, TRIAL_OK, 100, "");
    int64_t start = clock_mono_ns();
    for (int64_t id = 1; id <= TRIALS; id++) {
        for (int i = 0; i < story->nr; i++)
            story->ev[i].trial = id;
        story->ev[2].u.trial.median_ns = 100 + 900 * rng_unit(&r);
        tell(&b);
    }
    int64_t took = clock_mono_ns() - start;
    assert_int_equal(b.nr_ended, TRIALS);
    assert_int_equal(b.task[0].nr_leaders, BOARD_LEADERS);
    for (int i = 1; i < BOARD_LEADERS; i++)
        assert_true(board_trial(&b, b.task[0].leader[i - 1])->median_ns <=
                    board_trial(&b, b.task[0].leader[i])->median_ns);
    print_message("3 events each of %d trials: %.2f s\n", TRIALS, (double)took / 1e9);
    assert_true(took < INT64_C(20000000000)); /* about 0.5 s; sanitizers and a busy machine */
    board_release(&b);
}

static void a_task_that_goes_on_is_measured_anew(void **state)
{
    (void)state;
    struct board b;
    board_init(&b);
    story_tell(story);
    tell(&b);
    struct event ev = {.kind = EV_COMMAND, .task = -1};
    strcpy(ev.u.command.verb, "refine");
    ev.u.command.value = 24;
    board_apply(&b, &ev);
    strcpy(ev.u.command.verb, "trials");
    ev.u.command.value = 1000;
    board_apply(&b, &ev);
    assert_int_equal(b.session.u.session.refine, 24);
    assert_int_equal(b.session.u.session.trials, 1000);
    assert_true(b.task[0].final);
    ev = (struct event){.kind = EV_PHASE, .task = 0};
    ev.u.phase.phase = PHASE_REFINE;
    ev.u.phase.budget = 24;
    ev.u.phase.used = 2;
    board_apply(&b, &ev);
    const struct board_task *t = &b.task[0];
    assert_false(t->final);
    assert_int_equal(t->budget, 24);
    assert_int_equal(t->nr_phase, 2);
    /* Until then its stages are the trials again. */
    assert_true(t->best_ns == board_trial(&b, 5)->median_ns && t->refined_ns == t->best_ns);
    assert_true(t->default_ns == board_trial(&b, 1)->median_ns);
    board_release(&b);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(the_story_is_what_the_board_tells),
        TEST(the_final_measurement_says_which_trial_is_the_best),
        TEST(events_told_twice_count_once),
        TEST(a_phase_without_a_find_keeps_what_it_began_with),
        TEST(a_new_centre_finds_its_ring),
        TEST(notes_are_the_last_ones),
        TEST(a_strangers_events_do_no_harm),
        TEST(a_task_that_goes_on_is_measured_anew),
        TEST(json_has_the_promised_shape),
        TEST(a_million_trials_take_seconds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
