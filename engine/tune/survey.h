/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Survey: what kernels cost, roughly, before a session is begun that depends on it.
 *
 * A conductor without a session: a few explored trials of each wanted task, and their final;
 * nothing is stored. It ends by itself, after SURVEY_SECONDS at the latest with what was measured
 * by then.
 */
#ifndef ENGINE_TUNE_SURVEY_H
#define ENGINE_TUNE_SURVEY_H

#include "engine/tune/conductor.h"

/* Eight explored candidates are within some percent of what more would find, on both sides of a
 * comparison alike; the seconds are for models whose kernels take long. */
enum { SURVEY_TRIALS = 8, SURVEY_SECONDS = 30 };

struct survey;

/*
 * Starts to measure the tasks with wanted[], as `o` says but for its budgets; there must be one.
 * All but `o` and `wanted` outlive the survey. NULL and a sentence on failure.
 */
struct survey *survey_start(const struct tune_options *o, const struct task_list *tasks,
                            const bool *wanted, struct device *device, struct err *e);

/* To wait for its end, and to stop it. */
struct conductor *survey_conductor(struct survey *s);

/*
 * Waits for the end. cost_ns[] of each task gets the median of its best kernel, NAN where there is
 * none. 0, ERR_INTERRUPTED where it was stopped, or another code and a sentence.
 */
int survey_join(struct survey *s, double *cost_ns, struct err *e);

/* After the join. While builders hang (conductor_stuck) nothing is freed. */
void survey_free(struct survey *s);

#endif
