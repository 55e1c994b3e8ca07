/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Recorded device: answers from recorded spaces in place of hardware; implements engine/tune/device.h.
 *
 * VIRTUAL TIME. A configuration asked for the first time moves the device's clock on by what making
 * and measuring it cost when it was recorded; asking again costs nothing. Where a row has no cost,
 * the time of its samples is taken. The session's active time and its budget of seconds are of that
 * clock. What the file does not have is answered as invalid, and costs what the median row does.
 *
 * NANOSECONDS. The engine minimises times. A time in ms is one; of a rate (GFLOP/s) it is the time of
 * 1e9 units; of anything else a unit counts as a millisecond, moved where values are not above zero.
 * recorded_device_says() tells which. Samples are the recorded ones, scaled so that their median is
 * the recorded value; a row without samples has its value once, and nothing is tested then.
 */
#ifndef BACKENDS_RECORDED_DEVICE_H
#define BACKENDS_RECORDED_DEVICE_H

#include "backends/recorded/recorded.h"
#include "backends/recorded/rules.h"
#include "engine/model/task.h"
#include "engine/tune/device.h"

struct recorded_device_options {
    struct recorded_options load; /* workload: ignored, all of a file become tasks */
    const struct recorded_rules *rules; /* NULL or empty: what a file holds is the space */
    double speed; /* times as fast as it was recorded; 0: at once */
};

/*
 * Opens the files and adds a task for each space in them. The tasks point into the device: while it
 * is open they may be used, afterwards only be freed.
 */
int recorded_device_open(int nr, const char *const *path, const struct recorded_device_options *o,
                         struct task_list *tasks, struct device **out, struct err *e);

/* One recorded space for the task, for whoever wants to say more of it. */
const struct recorded *recorded_of_task(const struct task *t);

/* How a value becomes nanoseconds. */
struct recorded_scale {
    enum { SCALE_TIME, SCALE_RATE, SCALE_UNITS, SCALE_MOVED } kind;
    double offset, factor;
};

struct recorded_scale recorded_scale_of(const struct recorded *r);
double recorded_ns(const struct recorded_scale *s, double value);

/* Operations that a time stands for, so that what is shown as GFLOP/s is the recorded rate; 0 unless
 * the objective is one. */
double recorded_flops(const struct recorded *r);

/* Samples that stand for row `i`, which is ok: at most `max`. Returns how many, 1 or more. */
int recorded_samples_ns(const struct recorded *r, int i, const struct recorded_scale *s, int max,
                        double *out);
enum trial_status recorded_trial_status(enum recorded_status s);
/* What a row costs on the virtual clock. */
double recorded_row_cost_s(const struct recorded_row *row);

/* What the nanoseconds of a space stand for: "GFLOP/s, shown as the time of one GFLOP"; "" for
 * plain times. */
void recorded_device_says(const struct recorded *r, struct strbuf *out);

#endif
