/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Trials of a course: numbered when they are proposed, answered by the history or the pipeline, and
 * accounted for when their flight is observed. A trial's result is what it is from the moment it
 * ended; what follows from it (incumbents, counts, the end of a hopeless task) waits for its turn.
 */
#include "engine/tune/conductor_private.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/arena.h"
#include "engine/search/stats.h"

/* How much slower than the best a trial's first sample may be before it is cut. */
static const double CUT_EXPLORE = 3, CUT_REFINE = 1.5;

/* ---- the table */

static void index_trial(struct course *t, int at)
{
    size_t mask = (size_t)t->nr_slots - 1;
    size_t i = (size_t)candidate_hash(&t->trial[at].o.c) & mask;
    while (t->slot[i])
        i = (i + 1) & mask;
    t->slot[i] = at + 1;
}

static int add_trial(struct course *t, const struct proposal *p, int64_t number)
{
    GROW(t->trial, t->nr_trials, t->cap_trials);
    struct trial *k = &t->trial[t->nr_trials];
    memset(k, 0, sizeof *k);
    k->median_ns = INFINITY;
    k->phase = t->phase;
    k->o = (struct observation){
        .trial = number,
        .c = p->c,
        .origin = p->origin,
        .parent = p->parent,
        .knob = p->knob,
        .dir = p->dir,
        .status = TRIAL_PENDING,
        .cost_ns = INFINITY,
    };
    int at = t->nr_trials++;
    if (2 * t->nr_trials > t->nr_slots) {
        free(t->slot);
        t->nr_slots = t->nr_slots ? 2 * t->nr_slots : 64;
        t->slot = xcalloc((size_t)t->nr_slots, sizeof *t->slot);
        for (int i = 0; i < at; i++)
            index_trial(t, i);
    }
    index_trial(t, at);
    return at;
}

int trial_find(const struct course *t, const struct candidate *c)
{
    if (!t->nr_slots)
        return -1;
    size_t mask = (size_t)t->nr_slots - 1;
    for (size_t i = (size_t)candidate_hash(c) & mask; t->slot[i]; i = (i + 1) & mask)
        if (candidate_equal(&t->trial[t->slot[i] - 1].o.c, c))
            return t->slot[i] - 1;
    return -1;
}

int trial_by_number(const struct course *t, int64_t number)
{
    int lo = 0, hi = t->nr_trials;
    while (lo < hi) {
        int mid = lo + (hi - lo) / 2;
        if (t->trial[mid].o.trial < number)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo < t->nr_trials && t->trial[lo].o.trial == number ? lo : -1;
}

void kernels_release(struct course *t)
{
    for (int r = 0; r < NR_ROLES; r++)
        role_set(t, (enum role)r, t->role[r].at, NULL);
}

void trials_release(struct course *t)
{
    for (int r = 0; r < NR_ROLES; r++)
        role_set(t, (enum role)r, -1, NULL);
    free(t->trial);
    free(t->slot);
    t->trial = NULL;
    t->slot = NULL;
    t->nr_trials = t->cap_trials = t->nr_slots = 0;
}

void trials_failures(const struct course *t, char *out, int size)
{
    int by[TRIAL_NR_STATUS] = {0}, most = -1;
    for (int i = 0; i < t->nr_trials; i++)
        by[t->trial[i].o.status]++;
    for (int s = 0; s < TRIAL_NR_STATUS; s++)
        if (s != TRIAL_OK && s != TRIAL_PENDING && by[s] > 0 && (most < 0 || by[s] > by[most]))
            most = s;
    if (most < 0)
        snprintf(out, (size_t)size, "nothing was tried");
    else
        snprintf(out, (size_t)size, "%d of %d ended as %s", by[most], t->nr_trials,
                 trial_status_name((enum trial_status)most));
}

/* ---- roles */

void role_set(struct course *t, enum role r, int at, struct kernel *k)
{
    struct holder *h = &t->role[r];
    struct kernel *old = h->kernel;
    h->at = at;
    h->kernel = k ? kernel_ref(k) : NULL;
    kernel_unref(old);
}

struct kernel *role_kernel(struct course *t, int at)
{
    struct holder *empty = NULL;
    for (int r = 0; r < NR_ROLES; r++) {
        struct holder *h = &t->role[r];
        if (h->at == at && h->kernel)
            return kernel_ref(h->kernel);
        if (h->at == at)
            empty = h;
    }
    struct kernel *k = kernel_new(t->c->pipeline, t->number, &t->space, &t->trial[at].o.c);
    if (empty)
        empty->kernel = kernel_ref(k);
    return k;
}

double course_best_ns(const struct course *t)
{
    double best = INFINITY;
    static const enum role roles[] = {ROLE_EXPLORED, ROLE_REFINED};
    for (int i = 0; i < 2; i++) {
        int at = t->role[roles[i]].at;
        if (at >= 0 && t->trial[at].o.cost_ns < best)
            best = t->trial[at].o.cost_ns;
    }
    return best;
}

/* ---- the beginning of a trial */

/* From what is known when the flight is proposed, and not when the trial's turn comes: the same
 * results must be cut whatever the order in which builds end. */
static double cut_of(const struct course *t, const struct proposal *p)
{
    int explored = t->role[ROLE_EXPLORED].at, refined = t->role[ROLE_REFINED].at;
    int centre = t->role[ROLE_CENTRE].at;
    if (p->origin == ORIGIN_DEFAULT)
        return 0;
    if (t->phase == PHASE_REFINE && p->origin != ORIGIN_START && centre >= 0)
        return CUT_REFINE * t->trial[centre].median_ns;
    double best = INFINITY;
    if (explored >= 0)
        best = t->trial[explored].median_ns;
    if (refined >= 0 && t->trial[refined].median_ns < best)
        best = t->trial[refined].median_ns;
    return isfinite(best) ? CUT_EXPLORE * best : 0;
}

static int stored_differs(const struct course *t, int64_t number, struct err *e)
{
    return err_set(e, ERR_SESSION,
                   "trial %" PRId64
                   " of task \"%s\" is another one than the stored one; the session "
                   "was made by another version or input and cannot be resumed; start a new one",
                   number, t->task->name);
}

/* From samples and drift, live or stored: the same numbers on both ways. */
static void take_cost(struct trial *k)
{
    if (k->o.status != TRIAL_OK)
        return;
    double drift = k->o.drift > 0 ? k->o.drift : 1;
    k->median_ns = stats_median(k->o.sample_ns, k->o.nr_samples) / drift;
    k->o.cost_ns = stats_quantile(k->o.sample_ns, k->o.nr_samples, 0.25) / drift;
}

/* A trial that is stored as ok without a sample is damage; a device error is what can be said. */
static enum trial_status status_of(const struct observation *o)
{
    return o->status == TRIAL_OK && o->nr_samples <= 0 ? TRIAL_DEVICE_ERROR : o->status;
}

/* 1 when the history had it. */
static int answer_from_history(struct course *t, int at, struct err *e)
{
    const struct history *h = t->c->history;
    struct trial *k = &t->trial[at];
    if (!h || k->o.trial > t->c->last_stored)
        return 0;
    struct observation o = {0};
    char stored[EVENT_CODE] = "", code[EVENT_CODE];
    if (!h->find(h->ctx, k->o.trial, &o, stored))
        return 0;
    struct strbuf sb = {0};
    candidate_code(&t->space, &k->o.c, &sb);
    snprintf(code, sizeof code, "%s", strbuf_text(&sb)); /* as long as an event keeps it */
    strbuf_release(&sb);
    if (strcmp(code, stored) != 0)
        return stored_differs(t, k->o.trial, e);
    int nr = o.nr_samples < 0 ? 0 : o.nr_samples;
    k->o.status = status_of(&o);
    k->o.nr_samples = nr < TRIAL_MAX_SAMPLES ? nr : TRIAL_MAX_SAMPLES;
    k->o.nr_ref = o.nr_ref == o.nr_samples ? k->o.nr_samples : 0;
    memcpy(k->o.sample_ns, o.sample_ns, sizeof o.sample_ns);
    memcpy(k->o.ref_ns, o.ref_ns, sizeof o.ref_ns);
    k->o.drift = o.drift;
    take_cost(k);
    k->ended = true;
    return 1;
}

static void submit(struct flight *f, struct item *it)
{
    struct course *t = f->t;
    struct work *w = &it->work;
    it->kernel = kernel_new(t->c->pipeline, t->number, &t->space, &it->p.c);
    *w = (struct work){
        .task = t->number,
        .nr = 1,
        .cut_ns = cut_of(t, &it->p) * drift_cut(t),
        .check = true,
        .user = it,
    };
    w->kernel[0] = kernel_ref(it->kernel);
    int parent = it->p.compare ? trial_by_number(t, it->p.parent) : -1;
    if (parent >= 0 && t->trial[parent].o.status == TRIAL_OK)
        w->kernel[w->nr++] = role_kernel(t, parent);
    t->live = true;
    f->open++;
    pipeline_submit(t->c->pipeline, w);
}

int trial_begin(struct flight *f, struct item *it, struct err *e)
{
    struct course *t = f->t;
    struct conductor *c = t->c;
    it->fresh = true;
    it->flight = f;
    it->at = add_trial(t, &it->p, c->next_trial);
    f->nr_fresh++;
    int rc = answer_from_history(t, it->at, e);
    c->next_trial++;
    if (rc != 0)
        return rc < 0 ? rc : 0;
    struct trial *k = &t->trial[it->at];
    course_tell(t);
    emit_proposed(t, &it->p, k->o.trial);
    const char *why = NULL;
    if (candidate_valid(&t->space, &it->p.c, &why)) {
        submit(f, it);
        return 0;
    }
    k->o.status = TRIAL_INVALID;
    k->ended = true;
    char reason[DEVICE_REASON];
    snprintf(reason, sizeof reason, "breaks \"%s\"", why ? why : "a knob's domain");
    emit_trial(t, k, reason, NULL);
    c->nr_ended++;
    return 0;
}

/* ---- its end */

static void take_samples(struct observation *o, const struct work *w)
{
    const struct measure_result *r = &w->result;
    o->nr_samples = r->nr_samples < 0 ? 0 : r->nr_samples;
    memcpy(o->sample_ns, r->sample_ns[0], (size_t)o->nr_samples * sizeof *o->sample_ns);
    if (w->nr > 1 && w->has[1]) {
        o->nr_ref = o->nr_samples;
        memcpy(o->ref_ns, r->sample_ns[1], (size_t)o->nr_ref * sizeof *o->ref_ns);
    }
}

static bool restarts_runner(enum trial_status s)
{
    return s == TRIAL_CRASHED || s == TRIAL_RUN_TIMEOUT || s == TRIAL_DEVICE_ERROR;
}

static void release_work(struct work *w)
{
    for (int i = 0; i < w->nr; i++)
        kernel_unref(w->kernel[i]);
    w->nr = 0;
}

bool trial_end(struct conductor *c, struct item *it)
{
    struct course *t = it->flight->t;
    struct work *w = &it->work;
    struct trial *k = &t->trial[it->at];
    struct measure_result *r = &w->result;
    c->restarts += restarts_runner(r->status) && !w->operands_failed;
    if (r->status == TRIAL_DEVICE_ERROR && c->stopping)
        return false; /* interrupted: no result at all; measured anew when resumed */
    if (r->status == TRIAL_DEVICE_ERROR && !w->operands_failed && it->tries++ == 0) {
        pipeline_submit(c->pipeline, w); /* the runner may have been on its way out */
        return false;
    }
    if (r->status == TRIAL_OK && r->nr_samples <= 0) {
        r->status = TRIAL_DEVICE_ERROR;
        snprintf(r->reason, sizeof r->reason, "the device gave no samples");
    }
    k->o.status = r->status;
    take_samples(&k->o, w);
    k->o.drift = drift_take(t, r);
    take_cost(k);
    k->ended = true;
    bool dead = r->status == TRIAL_DEVICE_ERROR && !w->operands_failed;
    c->device_errors = dead ? c->device_errors + 1 : 0;
    emit_trial(t, k, r->reason, w);
    c->nr_ended++;
    if (c->device_errors >= DEAD_DEVICE)
        err_set(&c->err, ERR_BACKEND,
                "\"%s\" failed %d times in a row: %s; look at the device, then resume",
                c->info->target, c->device_errors, r->reason);
    release_work(w);
    it->flight->open--;
    return true;
}

/* ---- observation */

static void lead(struct flight *f, struct item *it, enum role r)
{
    struct course *t = f->t;
    const struct observation *o = &t->trial[it->at].o;
    double before = course_best_ns(t);
    int at = t->role[r].at;
    if (at >= 0 && o->cost_ns >= t->trial[at].o.cost_ns)
        return;
    role_set(t, r, it->at, it->kernel);
    if (o->cost_ns < before && !is_replaying(t->c))
        emit_incumbent(t, it->at, f->phase, false);
}

void trial_account(struct flight *f, struct item *it)
{
    struct course *t = f->t;
    const struct observation *o = &t->trial[it->at].o;
    assert(t->trial[it->at].ended);
    t->used++;
    t->explored += f->phase != PHASE_REFINE;
    t->device_errors = o->status == TRIAL_DEVICE_ERROR ? t->device_errors + 1 : 0;
    if (o->status != TRIAL_OK)
        return;
    t->nr_ok++;
    if (f->phase == PHASE_DEFAULT && t->role[ROLE_DEFAULT].at < 0)
        role_set(t, ROLE_DEFAULT, it->at, it->kernel);
    lead(f, it, f->phase == PHASE_REFINE ? ROLE_REFINED : ROLE_EXPLORED);
    if (o->cost_ns < 0.99 * t->stale_ns) {
        t->stale_ns = o->cost_ns;
        t->stale_used = t->used;
    }
}
