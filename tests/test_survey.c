/* SPDX-License-Identifier: Apache-2.0 */
/* Surveys: costs of some tasks, from a conductor that stores nothing. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "engine/tune/survey.h"
#include "tests/tune_fixture.h"

enum { TASKS = 4 };

struct world {
    struct task_list tasks;
    struct fake fake;
    struct tune_options o;
    double cost_ns[TASKS];
    struct err err;
};

static void world_init(struct world *w)
{
    *w = (struct world){0};
    tasks_make(&w->tasks, TASKS);
    fake_init(&w->fake, &w->tasks);
    w->fake.flat = true;
    options_init(&w->o);
}

static int survey(struct world *w, const bool *wanted, bool stop)
{
    struct survey *s = survey_start(&w->o, &w->tasks, wanted, &w->fake.device, &w->err);
    assert_non_null(s);
    if (stop)
        conductor_command(survey_conductor(s), TUNE_ABANDON, -1);
    int rc = survey_join(s, w->cost_ns, &w->err);
    survey_free(s);
    assert_int_equal(w->fake.artifacts, 0);
    assert_int_equal(w->fake.operands, 0);
    return rc;
}

static void world_release(struct world *w)
{
    fake_free(&w->fake);
    task_list_release(&w->tasks);
}

static void wanted_tasks_get_costs(void **state)
{
    (void)state;
    struct world w;
    world_init(&w);
    assert_int_equal(survey(&w, (bool[]){false, true, false, true}, false), 0);
    assert_true(isnan(w.cost_ns[0]) && isnan(w.cost_ns[2]));
    assert_true(w.cost_ns[1] > 3000 && w.cost_ns[1] < 30000);
    assert_true(w.cost_ns[3] > 3000 && w.cost_ns[3] < 30000);
    /* Default and explored ones, whatever the session is to do. */
    assert_in_range(w.fake.builds, 2, 2 * (SURVEY_TRIALS + 1));
    world_release(&w);
}

static void what_does_not_build_has_no_cost(void **state)
{
    (void)state;
    struct world w;
    world_init(&w);
    w.fake.broken_task = 1;
    assert_int_equal(survey(&w, (bool[]){true, true, false, false}, false), 0);
    assert_true(w.cost_ns[0] > 0);
    assert_true(isnan(w.cost_ns[1]));
    world_release(&w);
}

static void a_stopped_survey_says_so(void **state)
{
    (void)state;
    struct world w;
    world_init(&w);
    w.fake.block_measure = 1; /* cannot end by itself */
    assert_int_equal(survey(&w, (bool[]){true, true, true, true}, true), ERR_INTERRUPTED);
    world_release(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(wanted_tasks_get_costs),
        cmocka_unit_test(what_does_not_build_has_no_cost),
        cmocka_unit_test(a_stopped_survey_says_so),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
