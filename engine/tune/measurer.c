/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Measurer: the thread that talks to the device's runner.
 *
 * THE GATE. Where a kernel uses every core, a build beside it would be measured too: the measurer
 * asks for quiet, builders begin nothing new, and it goes once those that build are done. It keeps
 * the quiet while there is something ready, so that builds and measurements come in turns of
 * several instead of one by one. A builder that hangs keeps it waiting until the watchdog gives it
 * up, but not longer.
 */
#include "engine/tune/pipeline_private.h"

#include "engine/base/clock.h"

static void request_of(struct pipeline *p, const struct work *w, struct measure_request *q,
                       int index[DEVICE_MAX_KERNELS])
{
    *q = (struct measure_request){
        .operands = p->operands[w->task].data,
        .fill_ns = p->fill_ns,
        .cold = p->cold,
        .cut_ns = w->cut_ns,
        .check = w->check,
        .timeout_ns = p->run_timeout_ns,
    };
    for (int i = 0; i < w->nr; i++) {
        index[i] = -1;
        if (w->kernel[i]->state != KERNEL_BUILT)
            continue;
        index[i] = q->nr;
        q->artifact[q->nr++] = w->kernel[i]->built.artifact;
    }
}

/* Gives the samples back in the order of the work's kernels. */
static void take_result(struct work *w, const struct measure_result *r, const int *index)
{
    w->result = *r;
    if (w->result.nr_samples > TRIAL_MAX_SAMPLES)
        w->result.nr_samples = TRIAL_MAX_SAMPLES;
    for (int i = 0; i < w->nr; i++) {
        w->has[i] = index[i] >= 0;
        if (index[i] < 0)
            continue;
        for (int s = 0; s < w->result.nr_samples; s++)
            w->result.sample_ns[i][s] = r->sample_ns[index[i]][s];
    }
}

/* Lock held; dropped while the device measures. */
static void measure_one(struct pipeline *p, struct work *w)
{
    struct measure_request q;
    struct measure_result r = {0};
    int index[DEVICE_MAX_KERNELS];
    request_of(p, w, &q, index);
    p->measuring = true;
    w->began_ns = device_now(p->device);
    pipeline_notice(p, NOTICE_MEASURING, w);
    pthread_mutex_unlock(&p->lock);

    p->device->class->measure(p->device, &q, &r);

    pthread_mutex_lock(&p->lock);
    w->ended_ns = device_now(p->device);
    take_result(w, &r, index);
    if (w->result.measure_ns <= 0)
        w->result.measure_ns = w->ended_ns - w->began_ns;
    p->usage.measure_ns += w->ended_ns - w->began_ns;
    p->measuring = false;
    pipeline_done(p, w);
    pthread_cond_broadcast(&p->idle_cond);
}

/* Lock held. Time in which the measurer could have measured is counted, unless it is held. */
static void wait_on(struct pipeline *p, pthread_cond_t *cond)
{
    bool idle = !p->held;
    int64_t since = clock_mono_ns();
    pthread_cond_wait(cond, &p->lock);
    if (idle)
        p->usage.wait_ns += clock_mono_ns() - since;
}

/* Lock held. False when the pipeline stops. */
static bool wait_for_work(struct pipeline *p)
{
    while (!p->stopping && (p->held || !p->ready)) {
        if (p->wants_gate) {
            p->wants_gate = false;
            pthread_cond_broadcast(&p->jobs_cond);
        }
        wait_on(p, &p->ready_cond);
    }
    p->wants_gate = p->gate;
    while (!p->stopping && p->gate && p->nr_running > 0)
        wait_on(p, &p->idle_cond);
    return !p->stopping;
}

static void *measurer_main(void *arg)
{
    struct pipeline *p = arg;
    pthread_mutex_lock(&p->lock);
    while (wait_for_work(p)) {
        if (p->held)
            continue; /* held while it waited for quiet */
        struct work *w = p->ready;
        p->ready = w->next;
        w->next = NULL;
        measure_one(p, w);
    }
    pthread_mutex_unlock(&p->lock);
    return NULL;
}

int measurer_start(struct pipeline *p, struct err *e)
{
    return thread_start(&p->measurer, measurer_main, p, e);
}

void measurer_join(struct pipeline *p)
{
    pthread_join(p->measurer, NULL);
}
