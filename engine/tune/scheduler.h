/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Task scheduler: which task gets the next batch.
 *
 * The gradient scheduler of MetaSchedule (reference: src/meta_schedule/task_scheduler/
 * gradient_based.cc), counted in trials instead of rounds, because batches differ in size. Of the
 * tasks that can be given one: first those with fewer than SCHED_WARM_ROUNDS batches, in turn; then
 * those without a valid trial yet (their number of tries is limited by the conductor); then the
 * largest of
 *
 *     weight x (alpha x g1 + (1 - alpha) x g2)
 *     g1 = (best before the last SCHED_WINDOW batches - best) / their trials
 *     g2 = best / trials in its phase
 *
 * g1 is what it gained lately, g2 what it gains if it halves at every doubling. Where the session
 * has a limit this shares it among the tasks, up to the budget of each. Of SqueezeNet's 24 tasks,
 * with 100 trials of refinement each on record and 600 to share, at most 75 for one, it found in
 * three sessions 2.0, 0.3 and 0.4 % of the model's time more than 25 for each; the gain of the last
 * 8 trials alone 2.0, 0.4 and 0.4, of the last 24 trials 1.7, -0.1 and -1.2; the best order there
 * is 2.4, 1.2 and 1.7.
 *
 * A new phase begins to count anew: a task that starts to refine is promising again. Everything is
 * a function of the observations; ties go to the first.
 */
#ifndef ENGINE_TUNE_SCHEDULER_H
#define ENGINE_TUNE_SCHEDULER_H

#include <stdbool.h>
#include <stdint.h>

enum { SCHED_WINDOW = 3, SCHED_WARM_ROUNDS = 2 };

struct sched_task {
    double weight;
    bool live;      /* not at its end */
    bool busy;      /* a batch of it is in flight */
    int64_t rounds; /* batches observed or in flight, in all */
    int64_t trials; /* observed in this phase */
    double best_ns; /* INFINITY where there is none */
    /* Of the last batches in this phase, oldest first: the best before it and its trials. */
    int nr_past;
    double past_ns[SCHED_WINDOW];
    int64_t past_trials[SCHED_WINDOW];
};

void sched_task_init(struct sched_task *t, double weight);

/* A batch was proposed; observed, with the best afterwards; a phase begins. */
void sched_begin(struct sched_task *t);
void sched_end(struct sched_task *t, int64_t trials, double best_ns);
void sched_phase(struct sched_task *t);

/* What the next trial of the task promises, in weighted nanoseconds. */
double sched_gradient(const struct sched_task *t);

/* The number of the task to give a batch; -1 where there is none. */
int scheduler_pick(const struct sched_task *t, int nr);

#endif
