/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Builders: the threads that build kernels and prepare operands, and their watchdog.
 *
 * A build cannot be cancelled: a compiler that loops is left to itself. Its thread is abandoned,
 * that is, detached, replaced by a new one under another number (the device keeps state by number,
 * and the old one still uses its own), and when it comes back at last it drops what it made and
 * leaves. Until then it holds a reference to the pipeline. What the device, the tasks and the
 * spaces own must outlive it: pipeline_stuck() says whether there is such a thread.
 */
#include "engine/tune/pipeline_private.h"

#include <assert.h>
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "engine/base/arena.h"
#include "engine/base/clock.h"

/* How long the end of a session waits for builds that are under way. */
#define JOIN_GRACE_NS INT64_C(3000000000)

int thread_start(pthread_t *t, void *(*run)(void *), void *arg, struct err *e)
{
    /* What a thread raises by its own fault stays deliverable: it ends the process with a trace. */
    static const int faults[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP, SIGSYS};
    sigset_t all, before;
    sigfillset(&all);
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++)
        sigdelset(&all, faults[i]);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int rc = pthread_create(t, NULL, run, arg);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (rc != 0)
        return err_set(e, ERR_LIMIT, "cannot start a thread: %s; try fewer --jobs", strerror(rc));
    return 0;
}

void thread_avoid_core(int core)
{
    cpu_set_t set;
    if (core < 0 || core >= CPU_SETSIZE || sched_getaffinity(0, sizeof set, &set) != 0)
        return;
    CPU_CLR(core, &set);
    /* Best effort: a thread that may run anywhere only measures less quietly. */
    if (CPU_COUNT(&set) > 0)
        (void)sched_setaffinity(0, sizeof set, &set);
}

/* ---- jobs */

/* Operands of tasks out of use, longest unused first, until the rest and `task` fit. Lock held;
 * returns what is to be freed without it. */
static void *evict_one(struct pipeline *p, int task)
{
    int64_t bytes = workload_bytes(&p->tasks->task[task]->wl);
    int oldest = -1;
    for (int i = 0; i < p->tasks->nr; i++) {
        const struct operands_slot *s = &p->operands[i];
        if (s->state != OPERANDS_READY)
            continue;
        bytes += workload_bytes(&p->tasks->task[i]->wl);
        if (s->users == 0 && (oldest < 0 || s->last_use < p->operands[oldest].last_use))
            oldest = i;
    }
    if (bytes <= OPERANDS_KEEP_BYTES || oldest < 0)
        return NULL;
    void *data = p->operands[oldest].data;
    p->operands[oldest].data = NULL;
    p->operands[oldest].state = OPERANDS_NONE;
    return data;
}

/* Lock held at the call and at the return, not while the device works. */
static void prepare(struct builder *b, int task)
{
    struct pipeline *p = b->p;
    struct operands_slot *s = &p->operands[task];
    struct device *d = p->device;
    s->state = OPERANDS_PREPARING;
    for (void *old; (old = evict_one(p, task));) {
        pthread_mutex_unlock(&p->lock);
        d->class->operands_free(d, old);
        pthread_mutex_lock(&p->lock);
    }
    pthread_mutex_unlock(&p->lock);

    struct err e = ERR_INIT;
    void *data = d->class->operands(d, p->tasks->task[task], &e);

    pthread_mutex_lock(&p->lock);
    bool drop = b->abandoned || s->unwanted;
    if (!b->abandoned) {
        p->usage.prepare_ns += clock_mono_ns() - b->began_ns;
        s->state = drop ? OPERANDS_NONE : data ? OPERANDS_READY : OPERANDS_FAILED;
        s->data = drop ? NULL : data;
        s->unwanted = false;
        if (!data)
            snprintf(s->reason, sizeof s->reason, "operands: %.*s", DEVICE_REASON - 16,
                     e.msg[0] ? e.msg : "cannot be prepared");
        pipeline_ripen(p);
    }
    if (drop && data) {
        pthread_mutex_unlock(&p->lock);
        d->class->operands_free(d, data);
        pthread_mutex_lock(&p->lock);
    }
}

/* The same for a kernel. */
static void build(struct builder *b, struct kernel *k)
{
    struct pipeline *p = b->p;
    k->state = KERNEL_BUILDING;
    pthread_mutex_unlock(&p->lock);

    struct build_result r = {0};
    p->device->class->build(p->device, b->number, p->tasks->task[k->task], k->space, &k->c, &r);

    pthread_mutex_lock(&p->lock);
    void *late = NULL;
    if (b->abandoned) {
        late = r.artifact;
    } else {
        int64_t ns = clock_mono_ns() - b->began_ns;
        if (r.build_ns <= 0)
            r.build_ns = ns;
        p->usage.build_ns += ns;
        k->built = r;
        k->state = r.status == TRIAL_OK ? KERNEL_BUILT : KERNEL_FAILED;
        pipeline_ripen(p);
    }
    void *unwanted = kernel_unref_locked(k); /* the job's */
    if (late || unwanted) {
        pthread_mutex_unlock(&p->lock);
        if (late)
            p->device->class->artifact_free(p->device, late);
        if (unwanted)
            p->device->class->artifact_free(p->device, unwanted);
        pthread_mutex_lock(&p->lock);
    }
}

/* Lock held. NULL when the pipeline stops. */
static struct job *wait_for_job(struct pipeline *p)
{
    for (;;) {
        if (p->stopping)
            return NULL;
        struct job *j = p->held || p->wants_gate ? NULL : pipeline_take_job(p);
        if (j)
            return j;
        pthread_cond_wait(&p->jobs_cond, &p->lock);
    }
}

static void *builder_main(void *arg)
{
    struct builder *b = arg;
    struct pipeline *p = b->p;
    thread_avoid_core(p->spare_core);
    pthread_mutex_lock(&p->lock);
    while (!b->abandoned && (b->job = wait_for_job(p)) != NULL) {
        struct job *j = b->job;
        p->nr_running++;
        b->began_ns = clock_mono_ns();
        if (j->kernel)
            build(b, j->kernel);
        else
            prepare(b, j->task);
        free(j);
        b->job = NULL;
        if (!b->abandoned)
            p->nr_running--;
        pthread_cond_broadcast(&p->idle_cond);
    }
    if (b->abandoned) {
        p->stuck--;
        p->number_used[b->number] = false;
        free(b);
        pipeline_unref_locked(p);
        return NULL;
    }
    b->done = true;
    pthread_cond_broadcast(&p->idle_cond);
    pthread_mutex_unlock(&p->lock);
    return NULL;
}

/* ---- threads */

/* Lock held. */
static int free_number(struct pipeline *p)
{
    int n = 0;
    while (p->number_used[n])
        n++;
    return n;
}

/* Lock held: the thread starts by taking it. */
static int start_one(struct pipeline *p, struct err *e)
{
    struct builder *b = xcalloc(1, sizeof *b);
    b->p = p;
    b->number = free_number(p);
    int rc = thread_start(&b->thread, builder_main, b, e);
    if (rc < 0) {
        free(b);
        return rc;
    }
    p->number_used[b->number] = true;
    GROW(p->builder, p->nr_builders, p->cap_builders);
    p->builder[p->nr_builders++] = b;
    return 0;
}

int builders_start(struct pipeline *p, int jobs, struct err *e)
{
    int rc = 0;
    pthread_mutex_lock(&p->lock);
    for (int i = 0; i < jobs && rc == 0; i++)
        rc = start_one(p, e);
    if (rc < 0 && p->nr_builders > 0) {
        /* Fewer than asked for still do the work. */
        err_clear(e);
        rc = 0;
    }
    pthread_mutex_unlock(&p->lock);
    return rc;
}

/* Lock held. From here on the builder belongs to its own thread. */
static void abandon(struct pipeline *p, int at)
{
    struct builder *b = p->builder[at];
    p->builder[at] = p->builder[--p->nr_builders];
    b->abandoned = true;
    p->stuck++;
    p->refs++;
    p->nr_running--;
    pthread_detach(b->thread);
    pthread_cond_broadcast(&p->idle_cond);
}

/* Lock held. Operands may take long on large tasks and are not limited. */
static bool overdue(const struct pipeline *p, const struct builder *b, int64_t now)
{
    return p->build_timeout_ns > 0 && b->job && b->job->kernel &&
           now - b->began_ns > p->build_timeout_ns;
}

static void time_out(struct pipeline *p, struct kernel *k, int64_t ns)
{
    k->state = KERNEL_FAILED;
    k->built.status = TRIAL_BUILD_TIMEOUT;
    k->built.build_ns = ns;
    snprintf(k->built.reason, sizeof k->built.reason, "the build took longer than %.3g s",
             (double)p->build_timeout_ns * 1e-9);
    p->usage.build_ns += ns;
    pipeline_ripen(p);
}

int pipeline_watch(struct pipeline *p, struct err *e)
{
    int rc = 0;
    int64_t now = clock_mono_ns();
    struct err unused = ERR_INIT; /* with fewer threads it still goes on */
    pthread_mutex_lock(&p->lock);
    for (int i = 0; i < p->nr_builders && rc == 0; i++) {
        struct builder *b = p->builder[i];
        if (!overdue(p, b, now))
            continue;
        time_out(p, b->job->kernel, now - b->began_ns);
        abandon(p, i--);
        if (p->stuck > BUILDERS_MAX_STUCK)
            rc = err_set(e, ERR_BACKEND,
                         "%d builds hang in \"%s\" at the same time; look at the last trials that "
                         "ended as build_timeout, then resume",
                         p->stuck, p->device->class->name);
        else if (!p->stopping && start_one(p, &unused) < 0 && p->nr_builders == 0)
            rc = err_set(e, ERR_BACKEND, "no builder is left: %s", unused.msg);
    }
    pthread_mutex_unlock(&p->lock);
    return rc;
}

void builders_join(struct pipeline *p)
{
    int64_t at = clock_mono_ns() + JOIN_GRACE_NS;
    struct timespec until = {.tv_sec = at / 1000000000, .tv_nsec = at % 1000000000};
    pthread_mutex_lock(&p->lock);
    assert(p->stopping);
    bool late = false;
    while (p->nr_builders > 0) {
        struct builder *b = p->builder[p->nr_builders - 1];
        if (b->done) {
            p->nr_builders--;
            pthread_mutex_unlock(&p->lock);
            pthread_join(b->thread, NULL);
            free(b);
            pthread_mutex_lock(&p->lock);
        } else if (late && b->job) {
            abandon(p, p->nr_builders - 1);
        } else if (late) {
            /* Between two jobs: it sees the end as soon as it gets the lock. */
            pthread_cond_wait(&p->idle_cond, &p->lock);
        } else if (pthread_cond_timedwait(&p->idle_cond, &p->lock, &until) == ETIMEDOUT) {
            late = true;
        }
    }
    pthread_mutex_unlock(&p->lock);
}
