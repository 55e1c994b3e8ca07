/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/screen_fixture.h"

#include "tests/demo_events.h"

static bool reached(const struct board *b, enum moment m)
{
    const struct board_task *t = b->current >= 0 ? &b->task[b->current] : NULL;
    switch (m) {
    case MOMENT_EMPTY:
        return true;
    case MOMENT_OPENED:
        return b->nr_tasks == 6 && b->task[5].nr_knobs == 6;
    case MOMENT_EXPLORING:
        return b->current == 2 && t->phase == PHASE_EXPLORE && t->nr_phase == 23;
    case MOMENT_REFINING:
        return b->current == 1 && t->phase == PHASE_REFINE && t->nr_phase >= 17 && b->measuring &&
               t->nr_ring > 8 && board_trial(b, t->ring[6])->verdict != 255 &&
               board_trial(b, t->ring[8])->verdict == 255;
    case MOMENT_FAILING:
        return b->current == 0 && t->phase == PHASE_EXPLORE && t->nr_phase == 30;
    case MOMENT_FINISHED:
        return b->ended;
    }
    return false;
}

void fixture_board(struct board *b, enum moment m)
{
    const struct demo_options o = {.seed = 42, .nr_tasks = 6, .explore = 48, .refine = 60,
                                   .failing = m == MOMENT_FAILING ? 1 : 0.06};
    struct demo d;
    demo_init(&d, &o);
    board_init(b);
    for (int i = 0; i < d.nr && !reached(b, m); i++)
        board_apply(b, &d.event[i]);
    demo_release(&d);
}
