/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runner: the child process in which candidates run.
 *
 * The parent's side starts `exe runner --fd N` by posix_spawn with one end of a socket pair, pins it
 * to a core, and talks to it in small messages; operand memory is a memfd mapped by both. A child
 * that dies, hangs past the limit or answers nonsense is killed and replaced; what happened becomes
 * the status of the trial. One thread uses a runner at a time; runner_interrupt() is for any thread.
 *
 * Timing (runner_child.c): one warm-up call, which also produces the output that is compared; then
 * slices of at least ~50 us or one call, the kernels of a request in turn, until each has filled
 * `fill_ns` (at least 5 slices where that costs below 4 x fill_ns, at most TRIAL_MAX_SAMPLES); a
 * sample is the mean time of one call in a slice.
 */
#ifndef BACKENDS_RUNNER_H
#define BACKENDS_RUNNER_H

#include <stdint.h>

#include "backends/artifact.h"
#include "engine/base/err.h"
#include "engine/model/task.h"
#include "engine/tune/device.h"

struct runner;
struct operands;

struct runner_options {
    const char *exe;     /* program to start; "/proc/self/exe" */
    const char *backend;
    int cpu;             /* core to pin to, -1 for none; only when threads == 1 */
    int threads;
};

int runner_start(const struct runner_options *o, struct runner **out, struct err *e);
void runner_free(struct runner *r);

/* How often the child was replaced. */
int runner_restarts(const struct runner *r);

/* Operands of a task: filled inputs and constants, expected output. Any thread; slow. The caller
 * frees with operands_free(). */
struct operands *operands_new(const struct task *t, struct err *e);
void operands_free(struct operands *o);

/* Measures artifacts (struct artifact) on operands; see device.h. Never fails. */
void runner_measure(struct runner *r, const struct measure_request *q, struct measure_result *res);

/* Ends a measurement in progress; any thread. */
void runner_interrupt(struct runner *r);

/* The child's main: serves requests on the socket until the parent goes away. Exit code. */
int runner_main(int argc, char **argv);

#endif
