/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A task's way through its phases.
 *
 *   waiting -> default -> explore -> refine -> final -> done
 *
 * course_fly() goes on from where the course stands until there is a flight with something to
 * measure, passing phases that are over or skipped. Flights of one course do not overlap: a
 * strategy sees all results of a batch before it proposes the next.
 *
 * A proposal that is a trial already is answered with that trial, and counts for nothing; a
 * strategy that proposes nothing else for BARREN_ROUNDS rounds is over.
 */
#include "engine/tune/conductor_private.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/arena.h"
#include "engine/base/clock.h"

/* ---- life */

int course_init(struct conductor *c, struct course *t, int number, struct err *e)
{
    t->c = c;
    t->number = number;
    t->task = c->tasks->task[number];
    t->phase = PHASE_WAITING;
    for (int r = 0; r < NR_ROLES; r++)
        t->role[r].at = -1;
    space_init(&t->space);
    int rc = c->device->class->space(c->device, t->task, &t->space, e);
    if (rc == 0 && t->space.nr_sketches == 0)
        rc = err_set(e, ERR_UNSUPPORTED, "the device has no sketch for it");
    return rc;
}

static void end_strategy(struct course *t)
{
    if (t->strategy)
        t->class->destroy(t->strategy);
    free(t->known);
    t->known = NULL;
    t->strategy = NULL;
    t->class = NULL;
}

/* The space stays: kernels of threads that hang may still read it (conductor_free()). */
void course_release(struct course *t)
{
    end_strategy(t);
    final_free(t->final);
    t->final = NULL;
    trials_release(t);
}

void flight_free(struct flight *f)
{
    for (int i = 0; i < f->nr; i++) {
        struct item *it = &f->item[i];
        for (int k = 0; k < it->work.nr; k++)
            kernel_unref(it->work.kernel[k]);
        kernel_unref(it->kernel);
    }
    free(f);
}

/* ---- the strategy's environment */

static bool seen(void *ctx, const struct candidate *c)
{
    return trial_find(ctx, c) >= 0;
}

static void set_centre(struct course *t, int at)
{
    if (at < 0 || t->role[ROLE_CENTRE].at == at || t->trial[at].o.status != TRIAL_OK)
        return;
    struct kernel *k = role_kernel(t, at);
    role_set(t, ROLE_CENTRE, at, k);
    kernel_unref(k);
    if (!is_replaying(t->c))
        emit_incumbent(t, at, t->phase, true);
}

static void decided(void *ctx, const struct decision *d)
{
    struct course *t = ctx;
    if (!is_replaying(t->c))
        emit_decision(t, d);
    int at = trial_by_number(t, d->trial);
    if (d->verdict != VERDICT_MOVED || at < 0 || t->phase != PHASE_REFINE)
        return;
    set_centre(t, at);
    int best = t->role[ROLE_MOVED].at;
    const struct trial *k = &t->trial[at];
    if (k->phase != PHASE_REFINE || k->o.status != TRIAL_OK)
        return; /* a start among the explored ones: those have a role of their own */
    if (best < 0 || k->o.cost_ns < t->trial[best].o.cost_ns) {
        struct kernel *code = role_kernel(t, at);
        role_set(t, ROLE_MOVED, at, code);
        kernel_unref(code);
    }
}

static int by_cost(const void *a, const void *b)
{
    const struct observation *x = a, *y = b;
    if (x->cost_ns != y->cost_ns)
        return x->cost_ns < y->cost_ns ? -1 : 1;
    return x->trial < y->trial ? -1 : x->trial > y->trial;
}

/* All ok trials so far, best first. */
static int known_of(struct course *t)
{
    int nr = 0;
    t->known = xcalloc((size_t)t->nr_trials + 1, sizeof *t->known);
    for (int i = 0; i < t->nr_trials; i++)
        if (t->trial[i].o.status == TRIAL_OK)
            t->known[nr++] = t->trial[i].o;
    qsort(t->known, (size_t)nr, sizeof *t->known, by_cost);
    return nr;
}

static int begin_strategy(struct course *t, const struct strategy_class *class, struct err *e)
{
    /* A stream for each phase of each task: what one of them draws does not shift the others. */
    uint64_t seed = rng_mix(rng_mix(t->c->o.seed, (uint64_t)t->number), (uint64_t)t->phase);
    int nr_known = known_of(t);
    struct strategy_env env = {
        .space = &t->space,
        .seed = seed,
        .nr_known = nr_known,
        .known = t->known,
        .seen = seen,
        .decided = decided,
        .score = model_score,
        .ctx = t,
        /* and not the number of builders: that is the machine's */
        .batch = t->phase == PHASE_REFINE ? BATCH_DESCENT : BATCH_EXPLORE,
        .budget = UNLIMITED_PLAN,
    };
    if (t->budget >= 0)
        env.budget = t->budget < INT_MAX ? (int)t->budget : INT_MAX;
    int64_t since = clock_mono_ns();
    t->class = class;
    t->strategy = class->create(&env, e);
    t->c->search_ns += clock_mono_ns() - since;
    if (t->strategy)
        return 0;
    free(t->known);
    t->known = NULL;
    t->class = NULL;
    return err_set(e, ERR_INPUT, "it gave no reason"); /* unless it did */
}

/* ---- phases */

static void enter(struct course *t, enum phase phase, const char *strategy, int64_t budget)
{
    t->phase = phase;
    t->budget = budget;
    t->barren = 0;
    t->stale_ns = course_best_ns(t);
    if (phase != PHASE_EXPLORE)
        t->used = 0; /* the default trials count as explored */
    t->stale_used = t->used;
    sched_phase(&t->c->sched[t->number]);
    if (!is_replaying(t->c))
        emit_phase(t, strategy, budget);
}

static void leave(struct course *t, const char *why)
{
    snprintf(t->why, sizeof t->why, "%s", why);
    end_strategy(t);
}

void course_done(struct course *t, const char *why)
{
    leave(t, why);
    t->phase = PHASE_DONE;
    t->c->sched[t->number].live = false;
    emit_phase(t, "", 0);
    trials_release(t);
    pipeline_drop_operands(t->c->pipeline, t->number);
}

/* A task without anything to show for it says so, and why. */
static void give_up(struct course *t, const char *why)
{
    char failures[128];
    trials_failures(t, failures, sizeof failures);
    bool tell = !is_replaying(t->c);
    if (tell && t->nr_trials > 0)
        emit_note(t->c, t->number, 2, "task \"%s\" has no valid trial: %s; %s", t->task->name,
                  failures, why);
    else if (tell)
        emit_note(t->c, t->number, 1, "task \"%s\" was not tuned: %s", t->task->name, why);
    course_done(t, why);
}

void course_finish(struct course *t, const char *why)
{
    if (t->phase >= PHASE_FINAL)
        return;
    t->c->sched[t->number].live = false;
    if (t->nr_ok == 0) {
        give_up(t, why);
        return;
    }
    leave(t, why);
    enter(t, PHASE_FINAL, "", 0);
    final_begin(t);
}

static const char *phase_is_over(const struct course *t)
{
    if (t->phase == PHASE_DEFAULT)
        return t->used > 0 ? "measured" : NULL;
    if (t->budget >= 0 && t->used >= t->budget)
        return "budget used";
    if (t->budget < 0 && t->used - t->stale_used >= STALE_TRIALS)
        return "stagnated";
    if (t->barren >= BARREN_ROUNDS)
        return "space exhausted";
    return NULL;
}

/* Enters the phase that follows, or ends the course. */
static void next_phase(struct course *t, const char *why)
{
    const struct conductor *c = t->c;
    enum phase from = t->phase;
    leave(t, why);
    if (from == PHASE_DEFAULT && c->explore && c->o.explore != 0)
        enter(t, PHASE_EXPLORE, c->explore->name, c->o.explore);
    else if (from <= PHASE_EXPLORE && c->refine && c->o.refine != 0 && t->nr_ok > 0)
        enter(t, PHASE_REFINE, c->refine->name, c->o.refine);
    else
        course_finish(t, why);
}

/* ---- flights */

static struct flight *flight_new(struct course *t)
{
    struct flight *f = xcalloc(1, sizeof *f);
    f->t = t;
    f->phase = t->phase;
    return f;
}

static void default_proposals(struct course *t, struct flight *f)
{
    int nr = t->space.nr_sketches;
    if (t->c->explore && t->c->o.explore > 0 && nr > t->c->o.explore)
        nr = (int)t->c->o.explore;
    for (int i = 0; i < nr; i++) {
        const struct sketch *k = t->space.sketch[i];
        struct proposal *p = &f->item[f->nr++].p;
        *p = (struct proposal){.c = k->start, .origin = ORIGIN_DEFAULT, .knob = -1};
        snprintf(p->note, sizeof p->note, "untuned \"%s\"", k->name);
    }
}

/* The number of proposals; 0: the strategy is over. */
static int strategy_proposals(struct course *t, struct flight *f)
{
    struct proposal p[BATCH_REFINE];
    memset(p, 0, sizeof p);
    int want = t->phase == PHASE_REFINE ? BATCH_REFINE : BATCH_EXPLORE;
    if (t->budget >= 0 && t->budget - t->used < want)
        want = (int)(t->budget - t->used);
    int64_t since = clock_mono_ns();
    int nr = t->class->propose(t->strategy, want, p);
    t->c->search_ns += clock_mono_ns() - since;
    f->nr = nr < 0 ? 0 : nr < want ? nr : want;
    for (int i = 0; i < f->nr; i++)
        f->item[i].p = p[i];
    return f->nr;
}

/* Gives fresh proposals their trials, up to what the session has left; the rest is dropped, as the
 * session ends here and the strategy is not asked again. */
static int launch(struct flight *f, struct err *e)
{
    struct course *t = f->t;
    struct conductor *c = t->c;
    for (int i = 0; i < f->nr; i++) {
        struct item *it = &f->item[i];
        it->at = trial_find(t, &it->p.c);
        if (it->at >= 0)
            continue;
        if (c->o.trials > 0 && c->next_trial > c->o.trials) {
            f->nr = i;
            break;
        }
        int rc = trial_begin(f, it, e);
        if (rc < 0)
            return rc;
    }
    return 0;
}

/* The centre of the ladder, where the strategy did not report a move to it: what it steps from. */
static void note_centre(struct course *t, const struct flight *f)
{
    for (int i = 0; i < f->nr && t->phase == PHASE_REFINE; i++)
        if (f->item[i].p.origin == ORIGIN_NEIGHBOUR && f->item[i].p.compare) {
            set_centre(t, trial_by_number(t, f->item[i].p.parent));
            return;
        }
}

/* Reasons to end a course in any phase. */
static bool course_is_over(const struct course *t, char *why, size_t size)
{
    if (t->skipped)
        snprintf(why, size, "skipped by a person");
    else if (t->nr_ok == 0 && t->nr_trials >= HOPELESS_TRIALS)
        snprintf(why, size, "given up after %d trials", t->nr_trials);
    else if (t->device_errors >= DEAD_DEVICE_TASK)
        snprintf(why, size, "the device failed %d times in a row", t->device_errors);
    else
        return false;
    return true;
}

/* The next batch of the phase; NULL and why where there is none. */
static struct flight *next_batch(struct course *t, const char **why)
{
    struct flight *f = flight_new(t);
    if (t->phase == PHASE_DEFAULT) {
        default_proposals(t, f);
    } else if (strategy_proposals(t, f) == 0) {
        const char *text = t->class->why ? t->class->why(t->strategy) : NULL;
        *why = text ? text : "converged";
        flight_free(f);
        return NULL;
    }
    note_centre(t, f);
    return f;
}

/* Makes the phase's strategy where it has none yet. */
static bool has_strategy(struct course *t)
{
    const struct conductor *c = t->c;
    struct err why = ERR_INIT;
    if (t->phase == PHASE_DEFAULT || t->strategy)
        return true;
    if (begin_strategy(t, t->phase == PHASE_REFINE ? c->refine : c->explore, &why) == 0)
        return true;
    if (!is_replaying(c))
        emit_note(t->c, t->number, 2, "task \"%s\": %s cannot start: %s", t->task->name,
                  phase_name(t->phase), why.msg);
    return false;
}

struct flight *course_fly(struct course *t, int *rc, struct err *e)
{
    *rc = 0;
    char over[128];
    if (t->phase == PHASE_WAITING)
        enter(t, PHASE_DEFAULT, "default", t->space.nr_sketches);
    while (t->phase < PHASE_FINAL) {
        if (course_is_over(t, over, sizeof over)) {
            course_finish(t, over);
            return NULL;
        }
        const char *why = phase_is_over(t);
        if (!why && !has_strategy(t))
            why = "its strategy cannot start";
        struct flight *f = why ? NULL : next_batch(t, &why);
        if (!f) {
            next_phase(t, why);
            continue;
        }
        *rc = launch(f, e);
        if (*rc < 0) {
            flight_free(f);
            return NULL;
        }
        if (f->nr_fresh > 0) {
            t->barren = 0;
            return f;
        }
        t->barren++;
        course_observe(f);
        flight_free(f);
    }
    return NULL;
}

/* ---- observation */

/* A duplicate is answered with the stored trial, in the terms of the new proposal; samples of a
 * comparison with another parent than the one asked for would be read as what they are not. */
static struct observation answer(const struct course *t, const struct item *it)
{
    struct observation o = t->trial[it->at].o;
    if (it->fresh)
        return o;
    if (o.parent != it->p.parent)
        o.nr_ref = 0;
    o.origin = it->p.origin;
    o.parent = it->p.parent;
    o.knob = it->p.knob;
    o.dir = it->p.dir;
    return o;
}

void course_observe(struct flight *f)
{
    struct course *t = f->t;
    for (int i = 0; i < f->nr; i++) {
        struct item *it = &f->item[i];
        if (it->fresh)
            trial_account(f, it);
        struct observation o = answer(t, it);
        if (f->phase == PHASE_REFINE && o.origin == ORIGIN_START && o.status == TRIAL_OK)
            set_centre(t, it->at);
        if (!t->strategy)
            continue;
        int64_t since = clock_mono_ns();
        t->class->observe(t->strategy, &o);
        t->c->search_ns += clock_mono_ns() - since;
    }
}
