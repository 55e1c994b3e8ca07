/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The session.
 *
 *     decision point: commands, limits, then flights of the tasks the scheduler picks, until
 *                     MAX_FLIGHTS are in flight
 *     wait            until the oldest flight is complete
 *     observe         that flight; back to the decision point
 *
 * At a decision point all that is known is what was observed, and flights are observed in the order
 * in which they began: so what is decided is a function of the results. Between two points every
 * number `observed` occurs once, which is how a stored command finds its place again. Finals and
 * notices of the pipeline come in any order and decide nothing.
 */
#include "engine/tune/conductor_private.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <unistd.h>

#include "engine/base/arena.h"
#include "engine/base/clock.h"
#include "engine/tune/pipeline_private.h"

/* ---- commands */

static void take_command(struct conductor *c, const struct tune_command *m)
{
    switch (m->verb) {
    case TUNE_PAUSE:
    case TUNE_GO:
        if (c->paused == (m->verb == TUNE_PAUSE))
            return;
        c->paused = !c->paused;
        emit_command(c, c->paused ? "pause" : "go");
        clock_pause(c, c->paused);
        return;
    case TUNE_SKIP_TASK:
        if (m->task >= 0)
            order_take(c, m);
        return;
    case TUNE_EXPLORE:
    case TUNE_REFINE:
    case TUNE_TRIALS:
    case TUNE_SECONDS:
        order_take(c, m);
        return;
    case TUNE_STOP:
    case TUNE_ABANDON:
        if (!c->stopping)
            emit_command(c, "stop");
        return;
    }
}

/* No callback under the lock: the inbox is taken away as a whole. */
static void take_commands(struct conductor *c)
{
    pthread_mutex_lock(&c->lock);
    struct tune_command *m = c->inbox;
    int nr = c->nr_inbox;
    bool stop = c->stop, abandon = c->abandon;
    c->inbox = NULL;
    c->nr_inbox = c->cap_inbox = 0;
    pthread_mutex_unlock(&c->lock);
    for (int i = 0; i < nr; i++)
        take_command(c, &m[i]);
    free(m);
    c->stopping |= stop;
    c->abandoning |= abandon;
}

bool in_flight(const struct conductor *c, const struct course *t)
{
    for (int i = 0; i < c->nr_flights; i++)
        if (c->flight[i]->t == t)
            return true;
    return false;
}

/* ---- waiting */

static void handle(struct conductor *c, const struct notice *n)
{
    struct work *w = n->work;
    if (w->final) {
        if (n->kind == NOTICE_DONE && !c->stopping)
            final_step(w->user, w);
        return;
    }
    struct item *it = w->user;
    if (n->kind == NOTICE_MEASURING)
        emit_measuring(it->flight->t, it->flight->t->trial[it->at].o.trial, n->mono_ns);
    else
        trial_end(c, it);
}

bool is_ending(const struct conductor *c)
{
    return c->stopping || c->err.code < 0;
}

static void step(struct conductor *c)
{
    take_commands(c);
    if (is_ending(c))
        return;
    struct notice n;
    if (pipeline_next(c->pipeline, TICK_NS, &n))
        handle(c, &n);
    pipeline_watch(c->pipeline, &c->err);
    if (!c->paused && clock_mono_ns() - c->usage_at >= USAGE_EVERY_NS)
        emit_usage(c);
}

static void wait_for_flight(struct conductor *c, const struct flight *f)
{
    while (!is_ending(c) && (f->open > 0 || c->paused))
        step(c);
}

/* Or until there is an order, which may give the tasks more to do. */
static void wait_for_finals(struct conductor *c)
{
    while (!is_ending(c) && !orders_wait(c) && (c->nr_finals > 0 || c->paused))
        step(c);
}

void wait_for_final(struct conductor *c, const struct course *t)
{
    while (!is_ending(c) && t->final)
        step(c);
}

/* ---- decision points */

int64_t trials_limit(const struct conductor *c)
{
    if (c->o.trials <= 0)
        return INT64_MAX;
    return c->o.trials > c->last_stored ? c->o.trials : c->last_stored;
}

static bool limit_is_reached(struct conductor *c)
{
    if (c->draining)
        return true;
    if (c->next_trial > trials_limit(c))
        snprintf(c->drain_why, sizeof c->drain_why, "%" PRId64 " trials used", c->next_trial - 1);
    else if (c->o.seconds > 0 && !is_replaying(c) &&
             (double)clock_session_ns(c, device_now(c->device)) * 1e-9 >= c->o.seconds)
        snprintf(c->drain_why, sizeof c->drain_why, "%.6g seconds used", c->o.seconds);
    else
        return false;
    c->draining = true;
    return true;
}

/* No more trials: every task that has something gets its final. */
static void drain(struct conductor *c)
{
    for (int i = 0; i < c->nr_courses; i++)
        if (!in_flight(c, &c->course[i]))
            course_finish(&c->course[i], c->drain_why);
}

/* Operands of the task that comes next in the first round, while this one's trials run. */
static void look_ahead(struct conductor *c, int picked)
{
    if (is_replaying(c))
        return;
    for (int i = picked + 1; i < c->nr_courses; i++)
        if (c->course[i].phase == PHASE_WAITING) {
            pipeline_prefetch(c->pipeline, i);
            return;
        }
}

static void fill_flights(struct conductor *c)
{
    while (c->nr_flights < MAX_FLIGHTS && !limit_is_reached(c)) {
        int i = scheduler_pick(c->sched, c->nr_courses);
        if (i < 0)
            return;
        int rc;
        struct flight *f = course_fly(&c->course[i], &rc, &c->err);
        if (rc < 0)
            return;
        if (!f)
            continue; /* the course came to its end */
        sched_begin(&c->sched[i]);
        c->flight[c->nr_flights++] = f;
        look_ahead(c, i);
    }
    if (c->draining)
        drain(c);
}

static void observe_oldest(struct conductor *c)
{
    struct flight *f = c->flight[0];
    struct course *t = f->t;
    int64_t last = c->observed;
    for (int i = 0; i < f->nr; i++)
        if (f->item[i].fresh)
            last = t->trial[f->item[i].at].o.trial;
    course_observe(f);
    model_observe(f);
    model_step(c);
    sched_end(&c->sched[t->number], f->nr_fresh, course_best_ns(t));
    c->observed = last;
    c->flight[0] = c->flight[1];
    c->nr_flights--;
    flight_free(f);
    if (t->skipped)
        course_finish(t, "skipped by a person");
}

static void run(struct conductor *c)
{
    while (!is_ending(c)) {
        take_commands(c);
        if (is_ending(c))
            return;
        orders_apply(c, false);
        fill_flights(c);
        if (is_ending(c))
            return;
        if (c->nr_flights == 0) {
            wait_for_finals(c);
            if (!orders_apply(c, true))
                return;
            continue;
        }
        wait_for_flight(c, c->flight[0]);
        if (!is_ending(c))
            observe_oldest(c);
    }
}

/* ---- beginning and end */

/* A task without a space is told and left out; a session without any task ends. */
static void open_courses(struct conductor *c)
{
    int nr = c->tasks->nr, dead = 0;
    struct err first = ERR_INIT, *e = xcalloc((size_t)nr, sizeof *e);
    c->course = xcalloc((size_t)nr, sizeof *c->course);
    c->sched = xcalloc((size_t)nr, sizeof *c->sched);
    c->nr_courses = nr;
    for (int i = 0; i < nr; i++) {
        sched_task_init(&c->sched[i], c->tasks->task[i]->weight);
        if (course_init(c, &c->course[i], i, &e[i]) < 0)
            err_set(&e[i], ERR_UNSUPPORTED, "the device has no space for it");
    }
    emit_opening(c);
    model_open(c);
    for (int i = 0; i < nr; i++) {
        if (e[i].code == 0)
            continue;
        dead++;
        err_prefix(&e[i], "task \"%s\" cannot be tuned", c->tasks->task[i]->name);
        err_set(&first, e[i].code, "%s", e[i].msg);
        emit_note(c, i, 2, "%s", e[i].msg);
        c->course[i].dead = true;
        course_done(&c->course[i], "cannot be tuned");
    }
    if (dead == nr)
        c->err = first;
    free(e);
}

/* What ended before the stop took hold still counts. */
static void drain_notices(struct conductor *c)
{
    struct notice n;
    pipeline_stop(c->pipeline);
    pipeline_settle(c->pipeline);
    c->stopping = true;
    while (pipeline_next(c->pipeline, 0, &n))
        handle(c, &n);
}

static void end_session(struct conductor *c, bool interrupted)
{
    bool finished = c->err.code == 0 && !interrupted;
    char why[sizeof((struct event *)0)->u.ended.why];
    if (c->err.code < 0)
        snprintf(why, sizeof why, "%.*s", (int)sizeof why - 1, c->err.msg);
    else
        snprintf(why, sizeof why, "%s",
                 interrupted   ? "stopped"
                 : c->draining ? c->drain_why
                               : "all tasks are done");
    if (c->err.code < 0)
        emit_note(c, -1, 2, "%s", c->err.msg);
    if (interrupted)
        err_set(&c->err, ERR_INTERRUPTED, "the session was stopped and can be resumed");
    emit_usage(c);
    emit_ended(c, finished, why);
}

static void close_session(struct conductor *c)
{
    pipeline_close(c->pipeline);
    for (int i = 0; i < c->nr_flights; i++)
        flight_free(c->flight[i]);
    c->nr_flights = 0;
    for (int i = 0; i < c->nr_courses; i++)
        course_release(&c->course[i]);
    model_close(c);
}

void *conductor_main(void *arg)
{
    struct conductor *c = arg;
    thread_avoid_core(c->info->cores >= 2 && c->info->threads < c->info->cores ? c->info->cores - 1
                                                                               : -1);
    open_courses(c);
    if (c->err.code == 0)
        run(c);
    bool interrupted = c->stopping && c->err.code == 0;
    drain_notices(c);
    end_session(c, interrupted);
    close_session(c);
    uint64_t one = 1;
    ssize_t n = write(c->done_fd, &one, sizeof one);
    assert(n == sizeof one);
    (void)n;
    return NULL;
}
