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
 * Budgets may change (conductor.h). A course at its end keeps its trials and its strategy, so that
 * it goes on as if it had never stopped. From refining it can go back to exploring; then both
 * phases begin with new strategies, which know all trials so far.
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
    t->explore = c->o.explore;
    t->refine = c->o.refine;
    const struct history *h = c->history;
    /* Where an earlier run measured its final, its events left it done. */
    t->told = !h || !h->resulted || h->resulted(h->ctx, number) == 0;
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

/* In trials; negative: none. */
static int64_t budget_of(const struct course *t)
{
    return t->phase == PHASE_EXPLORE  ? t->explore
           : t->phase == PHASE_REFINE ? t->refine
                                      : t->space.nr_sketches;
}

static int begin_strategy(struct course *t, const struct strategy_class *class, struct err *e)
{
    /* A stream for each phase of each task: what one of them draws does not shift the others. */
    uint64_t seed = rng_mix(rng_mix(t->c->o.seed, (uint64_t)t->number), (uint64_t)t->phase);
    if (t->nr_returns > 0) /* another one each time, or it would draw what it drew before */
        seed = rng_mix(seed, (uint64_t)t->nr_returns);
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
        .may_rest = t->phase == PHASE_REFINE,
    };
    int64_t budget = budget_of(t);
    if (budget >= 0)
        env.budget = budget < INT_MAX ? (int)budget : INT_MAX;
    int64_t since = clock_thread_cpu_ns();
    t->class = class;
    t->strategy = class->create(&env, e);
    t->rests_at = t->refine;
    t->c->search_ns += clock_thread_cpu_ns() - since;
    if (t->strategy)
        return 0;
    free(t->known);
    t->known = NULL;
    t->class = NULL;
    return err_set(e, ERR_INPUT, "it gave no reason"); /* unless it did */
}

/* ---- phases */

static void enter(struct course *t, enum phase phase, const char *strategy)
{
    t->phase = phase;
    t->barren = 0;
    t->stale_ns = course_best_ns(t);
    t->used = phase == PHASE_EXPLORE ? t->explored : 0; /* the default trials count as explored */
    t->stale_used = t->used;
    sched_phase(&t->c->sched[t->number]);
    if (!is_replaying(t->c))
        emit_phase(t, strategy, budget_of(t), t->used);
}

void course_tell(struct course *t)
{
    if (t->told)
        return;
    snprintf(t->why, sizeof t->why, "goes on");
    emit_phase(t, t->class ? t->class->name : "default", budget_of(t), t->used);
}

static void leave(struct course *t, const char *why)
{
    snprintf(t->why, sizeof t->why, "%s", why);
    end_strategy(t);
}

/* It comes to its end, where everything is kept that it needs to go on. */
static void stop(struct course *t, const char *why)
{
    if (t->phase < PHASE_FINAL)
        t->going = t->phase;
    snprintf(t->why, sizeof t->why, "%s", why);
    t->c->sched[t->number].live = false;
}

void course_done(struct course *t, const char *why)
{
    stop(t, why);
    t->phase = PHASE_DONE;
    emit_phase(t, "", 0, 0);
    kernels_release(t);
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
    if (t->nr_ok == 0) {
        give_up(t, why);
        return;
    }
    stop(t, why);
    t->phase = PHASE_FINAL;
    if (!is_replaying(t->c))
        emit_phase(t, "", 0, 0);
    final_begin(t);
}

/* A budget that a person raised lets it explore on. */
static bool explores_on(const struct course *t)
{
    return t->c->explore && !t->explored_out && t->explored < t->explore;
}

bool course_refines(const struct course *t)
{
    return t->c->refine && (t->refine != 0 || t->role[ROLE_REFINED].at >= 0);
}

static const char *budget_is_used(const struct course *t)
{
    int64_t budget = budget_of(t);
    if (t->phase == PHASE_DEFAULT)
        return t->used > 0 ? "measured" : NULL;
    if (t->phase == PHASE_REFINE && explores_on(t))
        return "more exploration was asked for";
    if (budget >= 0 && t->used >= budget)
        return "budget used";
    if (budget < 0 && t->used - t->stale_used >= STALE_TRIALS)
        return "stagnated";
    return NULL;
}

/* Enters the phase that follows, or ends the course. */
static void next_phase(struct course *t, const char *why)
{
    const struct conductor *c = t->c;
    enum phase from = t->phase;
    if (from == PHASE_DEFAULT ? c->explore && t->explore != 0 : explores_on(t)) {
        leave(t, why);
        t->nr_returns += from == PHASE_REFINE;
        enter(t, PHASE_EXPLORE, c->explore->name);
    } else if (from <= PHASE_EXPLORE && c->refine && t->refine != 0 && t->nr_ok > 0) {
        leave(t, why);
        t->refined_out = false;
        enter(t, PHASE_REFINE, c->refine->name);
    } else {
        course_finish(t, why);
    }
}

/* Do the budgets leave something to a course that is at its end? */
static bool has_more(const struct course *t)
{
    if (t->dead || t->skipped)
        return false;
    if (t->going <= PHASE_DEFAULT || explores_on(t))
        return true;
    if (t->going == PHASE_EXPLORE)
        return t->c->refine && t->refine != 0 && t->nr_ok > 0;
    return !t->refined_out && (t->refine < 0 || t->used < t->refine);
}

/* Lets a strategy that rests go on, once, if the budget is larger than when it could rest last: the
 * same whether the budget grew before it rested or after. */
static bool wake(struct course *t)
{
    bool rests = t->strategy && t->class->rests && t->class->rests(t->strategy);
    bool more = t->rests_at >= 0 && (t->refine < 0 || t->refine > t->rests_at);
    if (rests && more)
        t->rests_at = t->refine;
    return rests && more;
}

void course_set_budget(struct course *t, enum phase phase, int64_t trials)
{
    struct conductor *c = t->c;
    if (phase == PHASE_EXPLORE) {
        t->explore = trials;
    } else {
        /* Who gives more wants it used, although the strategy had seen enough. */
        t->refine = trials;
        if (t->refined_out && wake(t))
            t->refined_out = false;
    }
    t->told &= t->phase != phase;
    if (t->phase < PHASE_FINAL || c->draining || !has_more(t))
        return;
    wait_for_final(c, t); /* it decides nothing, but what it measures is the course's */
    if (is_ending(c))
        return;
    t->phase = t->going;
    t->told = false;
    c->sched[t->number].live = true;
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
    if (t->c->explore && t->explore > 0 && nr > t->explore)
        nr = (int)t->explore;
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
    int64_t budget = budget_of(t);
    if (budget >= 0 && budget - t->used < want)
        want = (int)(budget - t->used);
    int64_t since = clock_thread_cpu_ns();
    int nr = t->class->propose(t->strategy, want, p);
    t->c->search_ns += clock_thread_cpu_ns() - since;
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
        if (c->next_trial > trials_limit(c)) {
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

/* The next flight of a phase with budget left; NULL and why where its strategy has no more for it.
 */
static struct flight *next_flight(struct course *t, const char **why)
{
    struct flight *f = NULL;
    if (t->barren >= BARREN_ROUNDS)
        *why = "space exhausted";
    else if (!has_strategy(t))
        *why = "its strategy cannot start";
    else
        f = next_batch(t, why);
    if (!f && t->phase == PHASE_EXPLORE)
        t->explored_out = true;
    else if (!f && wake(t))
        return next_flight(t, why);
    else if (!f)
        t->refined_out = true;
    return f;
}

struct flight *course_fly(struct course *t, int *rc, struct err *e)
{
    *rc = 0;
    char over[128];
    if (t->phase == PHASE_WAITING)
        enter(t, PHASE_DEFAULT, "default");
    while (t->phase < PHASE_FINAL) {
        if (course_is_over(t, over, sizeof over)) {
            course_finish(t, over);
            return NULL;
        }
        const char *why = budget_is_used(t);
        struct flight *f = why ? NULL : next_flight(t, &why);
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
        int64_t since = clock_thread_cpu_ns();
        t->class->observe(t->strategy, &o);
        t->c->search_ns += clock_thread_cpu_ns() - since;
    }
}
