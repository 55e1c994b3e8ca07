/* SPDX-License-Identifier: Apache-2.0 */
/* Budgets by keys: of the selected task in steps, of the session and of each task by a line of text. */
#include "ui/screen_view.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* One step: a batch or two of refinement, so that a descent sees most of a ring. */
enum { STEP = 16 };

bool view_parse_budget(const char *text, struct tune_command *out)
{
    static const struct {
        const char *word;
        enum tune_verb verb;
    } words[] = {
        {"refine", TUNE_REFINE}, {"explore", TUNE_EXPLORE}, {"trials", TUNE_TRIALS}, {"time", TUNE_SECONDS},
    };
    char word[16], number[32], *end, rest;
    if (sscanf(text, "%15s %31s %c", word, number, &rest) != 2)
        return false;
    double value = strtod(number, &end);
    if (*end || !(value >= 0) || value > INT32_MAX)
        return false;
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        if (strcmp(word, words[i].word) != 0)
            continue;
        *out = (struct tune_command){words[i].verb, -1, value};
        return words[i].verb == TUNE_SECONDS || value == floor(value);
    }
    return false;
}

enum action view_step_budget(struct view *v, const struct board *b, int by)
{
    const struct board_task *t = view_task(v, b);
    if (!view_can(v, b, CMD_MORE) || !t) {
        view_say(v, v->stopping ? "the session is stopping" : "no search is running: nothing to refine");
        return ACT_NONE;
    }
    /* The key again, before the search has come to the last one. */
    bool again = v->asked.verb == TUNE_REFINE && v->asked.task == v->task;
    double now = again ? v->asked.value : (double)t->refine, next = fmax(0, now + by * STEP);
    if (next == now) {
        view_say(v, "%s has no trials of refinement to take away", t->name);
        return ACT_NONE;
    }
    v->asked = (struct tune_command){TUNE_REFINE, v->task, next};
    v->action_budget = v->asked;
    return ACT_BUDGET;
}

enum action view_budget_key(struct view *v, int key)
{
    if (key == UK_ESC) {
        v->prompt = PROMPT_NONE;
        return ACT_NONE;
    }
    if (key != UK_ENTER) {
        view_edit(v->entry, sizeof v->entry, key);
        return ACT_NONE;
    }
    v->prompt = PROMPT_NONE;
    if (!v->entry[strspn(v->entry, " ")])
        return ACT_NONE;
    if (!view_parse_budget(v->entry, &v->action_budget)) {
        view_say(v, "\"%s\" is no budget; say refine 96, explore 200, trials 5000 or time 60", v->entry);
        return ACT_NONE;
    }
    v->asked = (struct tune_command){0}; /* what a task had may have changed */
    return ACT_BUDGET;
}
