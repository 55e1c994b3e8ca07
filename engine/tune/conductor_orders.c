/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Orders: the commands that decide.
 *
 * Where an order takes effect is part of the session. The list has the stored ones first, then
 * those of this run; they are applied in that order, each at a decision point before new flights
 * begin: a stored one as soon as the trial that it names was observed, one of this run as soon as
 * everything stored was. When nothing is left to do there may be several such moments after the
 * same trial. So an order of such a moment is stored with the number of a trial that does not
 * exist, which makes it wait for that moment again; and only one of them is applied at a time.
 *
 * Limits of the session decide nothing but its end. The last one holds from the beginning.
 */
#include "engine/tune/conductor_private.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "engine/base/arena.h"

static const struct {
    const char *name;
    enum tune_verb verb;
} verbs[] = {
    {"skip", TUNE_SKIP_TASK}, {"explore", TUNE_EXPLORE}, {"refine", TUNE_REFINE},
    {"trials", TUNE_TRIALS},  {"seconds", TUNE_SECONDS},
};

enum { NR_VERBS = sizeof verbs / sizeof *verbs };

static const char *verb_name(enum tune_verb v)
{
    int i = 0;
    while (i < NR_VERBS - 1 && verbs[i].verb != v)
        i++;
    return verbs[i].name;
}

static bool is_limit(enum tune_verb v)
{
    return v == TUNE_TRIALS || v == TUNE_SECONDS;
}

/* Events may come from a file of a stranger. False where this one is no order. */
static bool from_event(const struct conductor *c, const struct event *ev, struct tune_command *m)
{
    int i = 0;
    while (i < NR_VERBS && strcmp(ev->u.command.verb, verbs[i].name) != 0)
        i++;
    if (i == NR_VERBS || ev->task < -1 || ev->task >= c->tasks->nr)
        return false;
    *m = (struct tune_command){verbs[i].verb, ev->task, ev->u.command.value};
    if (m->verb == TUNE_SKIP_TASK)
        return m->task >= 0;
    return m->value >= 0 && (m->value <= INT32_MAX || m->verb == TUNE_SECONDS);
}

static void add(struct conductor *c, const struct tune_command *m, int64_t after)
{
    GROW(c->order, c->nr_orders, c->cap_orders);
    c->order[c->nr_orders++] = (struct order){*m, after};
}

/* False where it was so before. */
static bool set_limit(struct conductor *c, const struct tune_command *m)
{
    double old = m->verb == TUNE_TRIALS ? (double)c->o.trials : c->o.seconds;
    if (m->verb == TUNE_TRIALS)
        c->o.trials = (int64_t)m->value;
    else
        c->o.seconds = m->value;
    return old != m->value;
}

/* The last order for every task that is stored, for an event that says what is in force. */
int64_t orders_budget(const struct conductor *c, enum tune_verb v, int64_t otherwise)
{
    for (int i = 0; i < c->nr_orders; i++) {
        const struct order *o = &c->order[i];
        if (o->after >= 0 && o->m.verb == v && o->m.task < 0)
            otherwise = (int64_t)o->m.value;
    }
    return otherwise;
}

void orders_load(struct conductor *c)
{
    const struct history *h = c->history;
    struct tune_command m;
    struct event ev;
    for (int i = 0; h && h->command && h->command(h->ctx, i, &ev); i++) {
        if (!from_event(c, &ev, &m))
            continue;
        if (is_limit(m.verb))
            set_limit(c, &m);
        else
            add(c, &m, ev.u.command.after < 0 ? 0 : ev.u.command.after);
    }
    for (int i = 0; h && i < h->nr_budgets; i++)
        if (!is_limit(h->budget[i].verb) || set_limit(c, &h->budget[i]))
            add(c, &h->budget[i], -1);
}

void order_take(struct conductor *c, const struct tune_command *m)
{
    if (m->task >= -1 && m->task < c->nr_courses)
        add(c, m, -1);
}

bool orders_wait(const struct conductor *c)
{
    return c->next_order < c->nr_orders;
}

static void tell(struct conductor *c, const struct order *o, int64_t after)
{
    if (o->after >= 0)
        return; /* it is stored */
    char text[EVENT_NAME + 64];
    const char *task = o->m.task >= 0 ? c->tasks->task[o->m.task]->name : "each task";
    if (o->m.verb == TUNE_SKIP_TASK)
        snprintf(text, sizeof text, "%s", task);
    else if (is_limit(o->m.verb) && o->m.value <= 0)
        snprintf(text, sizeof text, "no limit");
    else if (o->m.verb == TUNE_SECONDS)
        snprintf(text, sizeof text, "%.6g", o->m.value);
    else if (o->m.verb == TUNE_TRIALS)
        snprintf(text, sizeof text, "%.0f", o->m.value);
    else
        snprintf(text, sizeof text, "%.0f trials of %s", o->m.value, task);
    emit_order(c, &o->m, verb_name(o->m.verb), text, after);
}

static void skip(struct conductor *c, const struct order *o, int64_t after)
{
    struct course *t = &c->course[o->m.task];
    if (t->phase >= PHASE_FINAL)
        return;
    tell(c, o, after);
    t->skipped = true; /* the flight that is out is finished first: observe_oldest() */
    if (!in_flight(c, t))
        course_finish(t, "skipped by a person");
}

static void change_limit(struct conductor *c, const struct order *o, int64_t after)
{
    set_limit(c, &o->m);
    tell(c, o, after);
    if (c->draining)
        emit_note(c, -1, 1, "the session is ending: the new limit counts when it is resumed");
}

static void change_budget(struct conductor *c, const struct order *o, int64_t after)
{
    int64_t trials = (int64_t)o->m.value;
    bool explore = o->m.verb == TUNE_EXPLORE, all = o->m.task < 0;
    int first = all ? 0 : o->m.task, end = all ? c->nr_courses : first + 1, nr_out = 0;
    bool changes = false;
    if (!(explore ? c->explore : c->refine)) {
        emit_note(c, -1, 1, "the session does not %s: a budget for that changes nothing",
                  verb_name(o->m.verb));
        return;
    }
    for (int i = first; i < end; i++)
        changes |= trials != (explore ? c->course[i].explore : c->course[i].refine);
    if (!changes)
        return;
    tell(c, o, after);
    for (int i = first; i < end && !is_ending(c); i++) {
        struct course *t = &c->course[i];
        if (!all)
            t->skipped = false; /* it was asked for by name */
        course_set_budget(t, explore ? PHASE_EXPLORE : PHASE_REFINE, trials);
        nr_out +=
            explore ? t->explored_out && t->explored < trials : t->refined_out && t->used < trials;
    }
    if (o->after < 0 && nr_out > 0)
        emit_note(c, o->m.task, 0, "no more trials for %d of %d tasks: %s", nr_out, end - first,
                  explore ? "their strategy has nothing more to explore"
                          : "their refinement has converged");
}

static void apply(struct conductor *c, const struct order *o, int64_t after)
{
    if (o->m.verb == TUNE_SKIP_TASK)
        skip(c, o, after);
    else if (is_limit(o->m.verb))
        change_limit(c, o, after);
    else
        change_budget(c, o, after);
}

bool orders_apply(struct conductor *c, bool idle)
{
    bool any = false;
    while (orders_wait(c) && !is_ending(c) && !(any && idle)) {
        const struct order o = c->order[c->next_order];
        int64_t when = o.after < 0 ? c->last_stored : o.after;
        if (!idle && when > c->observed)
            break;
        c->next_order++;
        apply(c, &o, idle ? c->next_trial : c->observed);
        any = true;
    }
    return any;
}
