/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/tune/pipeline.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "engine/base/arena.h"
#include "engine/base/clock.h"
#include "engine/tune/pipeline_private.h"

/* ---- kernels */

struct kernel *kernel_new(struct pipeline *p, int task, const struct space *space,
                          const struct candidate *c)
{
    struct kernel *k = xcalloc(1, sizeof *k);
    k->p = p;
    k->task = task;
    k->space = space;
    k->c = *c;
    k->refs = 1;
    return k;
}

struct kernel *kernel_ref(struct kernel *k)
{
    pthread_mutex_lock(&k->p->lock);
    k->refs++;
    pthread_mutex_unlock(&k->p->lock);
    return k;
}

void *kernel_unref_locked(struct kernel *k)
{
    assert(k->refs > 0);
    if (--k->refs > 0)
        return NULL;
    void *artifact = k->built.artifact;
    free(k);
    return artifact;
}

void kernel_unref(struct kernel *k)
{
    if (!k)
        return;
    struct pipeline *p = k->p;
    pthread_mutex_lock(&p->lock);
    void *artifact = kernel_unref_locked(k);
    pthread_mutex_unlock(&p->lock);
    if (artifact)
        p->device->class->artifact_free(p->device, artifact);
}

/* ---- notices */

void pipeline_notice(struct pipeline *p, enum notice_kind kind, struct work *w)
{
    struct notice_link *l = xcalloc(1, sizeof *l);
    l->n = (struct notice){kind, w, device_now(p->device)};
    *p->notices_end = l;
    p->notices_end = &l->next;
    pthread_cond_signal(&p->notice_cond);
}

static struct timespec deadline_after(int64_t ns)
{
    int64_t at = clock_mono_ns() + ns;
    return (struct timespec){.tv_sec = at / 1000000000, .tv_nsec = at % 1000000000};
}

bool pipeline_next(struct pipeline *p, int64_t timeout_ns, struct notice *out)
{
    struct timespec until = deadline_after(timeout_ns);
    pthread_mutex_lock(&p->lock);
    while (!p->notices && !p->kicked && timeout_ns > 0)
        if (pthread_cond_timedwait(&p->notice_cond, &p->lock, &until) == ETIMEDOUT)
            break;
    p->kicked = false;
    struct notice_link *l = p->notices;
    if (l) {
        p->notices = l->next;
        if (!p->notices)
            p->notices_end = &p->notices;
        *out = l->n;
    }
    pthread_mutex_unlock(&p->lock);
    free(l);
    return l != NULL;
}

void pipeline_kick(struct pipeline *p)
{
    pthread_mutex_lock(&p->lock);
    p->kicked = true;
    pthread_cond_signal(&p->notice_cond);
    pthread_mutex_unlock(&p->lock);
}

/* ---- works */

void pipeline_done(struct pipeline *p, struct work *w)
{
    struct operands_slot *s = &p->operands[w->task];
    s->users--;
    w->build_ns = w->kernel[0]->built.build_ns;
    w->code_bytes = w->kernel[0]->built.code_bytes;
    pipeline_notice(p, NOTICE_DONE, w);
}

static void fail_work(struct pipeline *p, struct work *w, enum trial_status status,
                      const char *reason)
{
    w->result.status = status;
    snprintf(w->result.reason, sizeof w->result.reason, "%s", reason);
    w->began_ns = w->ended_ns = device_now(p->device);
    pipeline_done(p, w);
}

enum ripeness { UNRIPE, RIPE, ROTTEN };

/* A work fails with its first kernel; the others only lose their part of it. */
static enum ripeness work_ripeness(const struct pipeline *p, const struct work *w)
{
    if (w->kernel[0]->state == KERNEL_FAILED)
        return ROTTEN;
    for (int i = 0; i < w->nr; i++)
        if (w->kernel[i]->state != KERNEL_BUILT && w->kernel[i]->state != KERNEL_FAILED)
            return UNRIPE;
    enum operands_state s = p->operands[w->task].state;
    return s == OPERANDS_FAILED ? ROTTEN : s == OPERANDS_READY ? RIPE : UNRIPE;
}

static void insert_work(struct work **list, struct work *w)
{
    while (*list && (*list)->order < w->order)
        list = &(*list)->next;
    w->next = *list;
    *list = w;
}

void pipeline_ripen(struct pipeline *p)
{
    for (struct work **at = &p->waiting; *at;) {
        struct work *w = *at;
        enum ripeness r = work_ripeness(p, w);
        if (r == UNRIPE) {
            at = &w->next;
            continue;
        }
        *at = w->next;
        const struct kernel *k = w->kernel[0];
        if (r == RIPE) {
            insert_work(&p->ready, w);
            pthread_cond_signal(&p->ready_cond);
        } else if (k->state == KERNEL_FAILED) {
            fail_work(p, w, k->built.status, k->built.reason);
        } else {
            w->operands_failed = true;
            fail_work(p, w, TRIAL_DEVICE_ERROR, p->operands[w->task].reason);
        }
    }
}

/* ---- jobs */

static void insert_job(struct pipeline *p, struct job *j)
{
    struct job **at = &p->jobs;
    while (*at && (*at)->order <= j->order)
        at = &(*at)->next;
    j->next = *at;
    *at = j;
    pthread_cond_signal(&p->jobs_cond);
}

static void want_kernel(struct pipeline *p, struct kernel *k, int64_t order)
{
    if (k->state != KERNEL_IDLE)
        return;
    k->state = KERNEL_QUEUED;
    k->refs++; /* the job's */
    struct job *j = xcalloc(1, sizeof *j);
    *j = (struct job){.order = order, .kernel = k, .task = k->task};
    insert_job(p, j);
}

/* Operands asked for ahead of need move forward once they are needed. */
static void want_operands(struct pipeline *p, int task, int64_t order)
{
    struct operands_slot *s = &p->operands[task];
    s->unwanted = false;
    struct job *j = NULL;
    if (s->state == OPERANDS_QUEUED) {
        struct job **at = &p->jobs;
        while ((*at)->kernel || (*at)->task != task)
            at = &(*at)->next;
        j = *at;
        *at = j->next;
        if (order < j->order)
            j->order = order;
    } else if (s->state == OPERANDS_NONE) {
        s->state = OPERANDS_QUEUED;
        j = xcalloc(1, sizeof *j);
        *j = (struct job){.order = order, .task = task};
    }
    if (j)
        insert_job(p, j);
}

/* A build that nobody wants any more is not done. */
struct job *pipeline_take_job(struct pipeline *p)
{
    while (p->jobs) {
        struct job *j = p->jobs;
        p->jobs = j->next;
        j->next = NULL;
        if (!j->kernel || j->kernel->refs > 1)
            return j;
        kernel_unref_locked(j->kernel); /* never built: it has no artifact */
        free(j);
    }
    return NULL;
}

void pipeline_submit(struct pipeline *p, struct work *w)
{
    assert(w->nr >= 1 && w->nr <= DEVICE_MAX_KERNELS);
    memset(&w->result, 0, sizeof w->result);
    memset(w->has, 0, sizeof w->has);
    w->operands_failed = false;
    pthread_mutex_lock(&p->lock);
    w->order = ++p->order;
    struct operands_slot *s = &p->operands[w->task];
    s->users++;
    s->last_use = w->order;
    if (s->state == OPERANDS_FAILED)
        s->state = OPERANDS_NONE; /* memory may be there by now */
    want_operands(p, w->task, w->order);
    for (int i = 0; i < w->nr; i++)
        want_kernel(p, w->kernel[i], w->order);
    insert_work(&p->waiting, w);
    pipeline_ripen(p);
    pthread_mutex_unlock(&p->lock);
}

void pipeline_prefetch(struct pipeline *p, int task)
{
    pthread_mutex_lock(&p->lock);
    if (p->operands[task].state == OPERANDS_NONE)
        want_operands(p, task, INT64_MAX);
    pthread_mutex_unlock(&p->lock);
}

void pipeline_drop_operands(struct pipeline *p, int task)
{
    pthread_mutex_lock(&p->lock);
    struct operands_slot *s = &p->operands[task];
    void *data = NULL;
    assert(s->users == 0);
    if (s->state == OPERANDS_READY) {
        data = s->data;
        s->data = NULL;
        s->state = OPERANDS_NONE;
    } else {
        s->unwanted = true;
    }
    pthread_mutex_unlock(&p->lock);
    if (data)
        p->device->class->operands_free(p->device, data);
}

/* ---- life */

void pipeline_hold(struct pipeline *p, bool held)
{
    pthread_mutex_lock(&p->lock);
    p->held = held;
    pthread_cond_broadcast(&p->jobs_cond);
    pthread_cond_broadcast(&p->ready_cond);
    pthread_mutex_unlock(&p->lock);
}

void pipeline_stop(struct pipeline *p)
{
    pthread_mutex_lock(&p->lock);
    p->stopping = true;
    pthread_cond_broadcast(&p->jobs_cond);
    pthread_cond_broadcast(&p->ready_cond);
    pthread_cond_broadcast(&p->idle_cond);
    pthread_mutex_unlock(&p->lock);
}

void pipeline_settle(struct pipeline *p)
{
    pthread_mutex_lock(&p->lock);
    while (p->measuring)
        pthread_cond_wait(&p->idle_cond, &p->lock);
    pthread_mutex_unlock(&p->lock);
}

int pipeline_jobs(const struct pipeline *p)
{
    return p->nr_jobs;
}

int pipeline_stuck(struct pipeline *p)
{
    pthread_mutex_lock(&p->lock);
    int n = p->stuck;
    pthread_mutex_unlock(&p->lock);
    return n;
}

void pipeline_usage(struct pipeline *p, struct pipeline_usage *out)
{
    pthread_mutex_lock(&p->lock);
    *out = p->usage;
    pthread_mutex_unlock(&p->lock);
}

static void init_conds(struct pipeline *p)
{
    pthread_condattr_t attr;
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&p->jobs_cond, &attr);
    pthread_cond_init(&p->ready_cond, &attr);
    pthread_cond_init(&p->notice_cond, &attr);
    pthread_cond_init(&p->idle_cond, &attr);
    pthread_condattr_destroy(&attr);
}

struct pipeline *pipeline_start(const struct pipeline_options *o, struct err *e)
{
    const struct device_info *info = o->device->class->info(o->device);
    struct pipeline *p = xcalloc(1, sizeof *p);
    p->device = o->device;
    p->tasks = o->tasks;
    p->fill_ns = o->fill_ns;
    p->cold = o->cold;
    p->build_timeout_ns = o->build_timeout_ns;
    p->run_timeout_ns = o->run_timeout_ns;
    p->gate = info->threads >= info->cores;
    p->spare_core = info->cores >= 2 && !p->gate ? info->cores - 1 : -1;
    p->refs = 1;
    p->notices_end = &p->notices;
    p->operands = xcalloc((size_t)o->tasks->nr + 1, sizeof *p->operands);
    pthread_mutex_init(&p->lock, NULL);
    init_conds(p);
    p->nr_jobs = o->jobs;
    if (p->nr_jobs <= 0) /* behind the gate they have all cores to themselves */
        p->nr_jobs = p->spare_core >= 0 ? info->cores - 1 : info->cores > 0 ? info->cores : 1;
    if (p->nr_jobs > BUILDERS_MAX)
        p->nr_jobs = BUILDERS_MAX;
    if (builders_start(p, p->nr_jobs, e) < 0)
        goto fail;
    if (measurer_start(p, e) < 0)
        goto fail;
    return p;
fail:
    pipeline_stop(p);
    builders_join(p);
    pipeline_free(p);
    return NULL;
}

/* What was never begun goes; works are the submitter's and are only forgotten. */
static void forget_all(struct pipeline *p)
{
    pthread_mutex_lock(&p->lock);
    for (struct job *j; (j = p->jobs);) {
        p->jobs = j->next;
        if (j->kernel)
            kernel_unref_locked(j->kernel);
        free(j);
    }
    p->waiting = p->ready = NULL;
    for (struct notice_link *l; (l = p->notices);) {
        p->notices = l->next;
        free(l);
    }
    p->notices_end = &p->notices;
    pthread_mutex_unlock(&p->lock);
}

void pipeline_close(struct pipeline *p)
{
    pipeline_stop(p);
    measurer_join(p);
    builders_join(p);
    forget_all(p);
    for (int i = 0; i < p->tasks->nr; i++) {
        pthread_mutex_lock(&p->lock);
        p->operands[i].users = 0;
        pthread_mutex_unlock(&p->lock);
        pipeline_drop_operands(p, i);
    }
}

void pipeline_unref_locked(struct pipeline *p)
{
    assert(p->refs > 0);
    bool last = --p->refs == 0;
    pthread_mutex_unlock(&p->lock);
    if (!last)
        return;
    pthread_cond_destroy(&p->jobs_cond);
    pthread_cond_destroy(&p->ready_cond);
    pthread_cond_destroy(&p->notice_cond);
    pthread_cond_destroy(&p->idle_cond);
    pthread_mutex_destroy(&p->lock);
    free(p->builder);
    free(p->operands);
    free(p);
}

void pipeline_free(struct pipeline *p)
{
    if (!p)
        return;
    pthread_mutex_lock(&p->lock);
    pipeline_unref_locked(p);
}
