/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/tune/survey.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/arena.h"
#include "engine/tune/board.h"

/* A usual build takes a twentieth of a second, and there are others to choose from. */
#define BUILD_TIMEOUT_NS INT64_C(5000000000)

struct survey {
    struct conductor *conductor;
    struct task_list tasks; /* the wanted ones, borrowed */
    int *number;            /* of each of them in the caller's list */
    int nr_all;
    struct board board; /* the conductor's thread fills it; read after the join */
    struct event_sink sink;
};

static void take_event(void *ctx, const struct event *ev)
{
    struct survey *s = ctx;
    board_apply(&s->board, ev);
}

static void take_tasks(struct survey *s, const struct task_list *all, const bool *wanted)
{
    s->nr_all = all->nr;
    s->number = xcalloc((size_t)all->nr + 1, sizeof *s->number);
    memcpy(s->tasks.name, all->name, sizeof s->tasks.name);
    for (int i = 0; i < all->nr; i++) {
        if (!wanted[i])
            continue;
        GROW(s->tasks.task, s->tasks.nr, s->tasks.cap);
        s->number[s->tasks.nr] = i;
        s->tasks.task[s->tasks.nr++] = all->task[i];
    }
}

/* Few trials of every task: nothing to learn from, and nothing to refine. */
static struct tune_options options_of(const struct tune_options *o)
{
    struct tune_options few = *o;
    few.trials = 0;
    few.explore = SURVEY_TRIALS;
    few.refine = 0;
    few.seconds = SURVEY_SECONDS;
    few.cost_model = false;
    few.lessons = NULL;
    if (few.build_timeout_ns > BUILD_TIMEOUT_NS)
        few.build_timeout_ns = BUILD_TIMEOUT_NS;
    strcpy(few.explore_strategy, "evolutionary");
    strcpy(few.refine_strategy, "none");
    return few;
}

struct survey *survey_start(const struct tune_options *o, const struct task_list *tasks,
                            const bool *wanted, struct device *device, struct err *e)
{
    struct survey *s = xcalloc(1, sizeof *s);
    struct tune_options few = options_of(o);
    board_init(&s->board);
    take_tasks(s, tasks, wanted);
    s->sink = (struct event_sink){.emit = take_event, .ctx = s};
    s->conductor = conductor_start(&few, &s->tasks, device, &s->sink, NULL, e);
    if (s->conductor)
        return s;
    survey_free(s);
    return NULL;
}

struct conductor *survey_conductor(struct survey *s)
{
    return s->conductor;
}

int survey_join(struct survey *s, double *cost_ns, struct err *e)
{
    int rc = conductor_join(s->conductor, e);
    for (int i = 0; i < s->nr_all; i++)
        cost_ns[i] = NAN;
    for (int i = 0; i < s->board.nr_tasks && i < s->tasks.nr; i++)
        cost_ns[s->number[i]] = s->board.task[i].best_ns;
    return rc;
}

void survey_free(struct survey *s)
{
    if (s->conductor && conductor_stuck(s->conductor) > 0)
        return;
    if (s->conductor)
        conductor_free(s->conductor);
    board_release(&s->board);
    free(s->tasks.task);
    free(s->number);
    free(s);
}
