/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pipeline: from candidates to samples.
 *
 * A *kernel* is a candidate on its way to code: counted references, built at most once, on demand.
 * A *work* is one measurement of one or more kernels of a task. The conductor submits works;
 * builder threads (builders.c) build their kernels and prepare the task's operands; the measurer
 * thread (measurer.c) measures works in the order of submission, skipping those that are not ready.
 * Kernels are handed from builders to measurer without the conductor, which may be busy searching.
 *
 * What happened comes back as notices. Nothing here decides anything, so nothing here can make a
 * session depend on time: the order of notices is not the order in which results are observed.
 *
 * A work belongs to its submitter and must stay where it is until its NOTICE_DONE, or until
 * pipeline_close(). All functions are for the conductor's thread unless marked "any thread".
 */
#ifndef ENGINE_TUNE_PIPELINE_H
#define ENGINE_TUNE_PIPELINE_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/base/err.h"
#include "engine/model/task.h"
#include "engine/search/space.h"
#include "engine/tune/device.h"

struct pipeline;
struct kernel;

struct pipeline_options {
    struct device *device;
    const struct task_list *tasks;
    int jobs; /* builder threads; 0: one a core, but for the measurer's where that is apart */
    int64_t fill_ns, build_timeout_ns, run_timeout_ns;
    bool cold;
};

struct work {
    /* set by the submitter */
    int task;
    int nr;
    struct kernel *kernel[DEVICE_MAX_KERNELS]; /* the work holds a reference to each */
    double cut_ns;
    bool check;
    bool final; /* the submitter's: a final measurement, not a trial */
    void *user;

    /* valid in NOTICE_DONE */
    struct measure_result result; /* status and reason also where a build failed; samples are in
                                     the order of kernel[], see has[] */
    bool has[DEVICE_MAX_KERNELS]; /* false: that kernel could not be built */
    bool operands_failed;         /* the task's operands could not be prepared */
    int64_t build_ns, code_bytes; /* of kernel[0] */
    int64_t began_ns, ended_ns;   /* CLOCK_MONOTONIC: measuring, or the end of the build */

    /* the pipeline's own */
    struct work *next;
    int64_t order;
};

enum notice_kind { NOTICE_MEASURING, NOTICE_DONE };

struct notice {
    enum notice_kind kind;
    struct work *work;
    int64_t mono_ns;
};

struct pipeline_usage {
    int64_t build_ns, prepare_ns, measure_ns, wait_ns; /* wait: measurer idle and not held */
};

struct pipeline *pipeline_start(const struct pipeline_options *o, struct err *e);

/* Stops, waits for the running measurement and for builds (these a bounded time). Works are the
 * submitter's again; kernels live on until their references are gone. */
void pipeline_close(struct pipeline *p);

/* After pipeline_close() and when the last kernel reference is gone. */
void pipeline_free(struct pipeline *p);

/* Held, nothing new is built or measured; what runs goes on. Any thread. */
void pipeline_hold(struct pipeline *p, bool held);

/* Nothing new begins from now on, for good. Any thread. */
void pipeline_stop(struct pipeline *p);

/* After pipeline_stop(): waits until no measurement runs. */
void pipeline_settle(struct pipeline *p);

void pipeline_submit(struct pipeline *p, struct work *w);

/* The next notice; false after `timeout_ns` without one, or when kicked. */
bool pipeline_next(struct pipeline *p, int64_t timeout_ns, struct notice *out);

/* Makes a waiting pipeline_next() return. Any thread. */
void pipeline_kick(struct pipeline *p);

/*
 * Watchdog, to be called a few times a second. A build past its limit becomes TRIAL_BUILD_TIMEOUT;
 * its thread is left to itself and replaced, its late result dropped. ERR_BACKEND when too many
 * threads hang at the same time or none can be started.
 */
int pipeline_watch(struct pipeline *p, struct err *e);

/* Builder threads that were asked for. */
int pipeline_jobs(const struct pipeline *p);

/* Builder threads that are stuck in the device right now. Any thread. */
int pipeline_stuck(struct pipeline *p);

/* Prepares the operands of a task when builders have nothing better to do. */
void pipeline_prefetch(struct pipeline *p, int task);
void pipeline_drop_operands(struct pipeline *p, int task);

void pipeline_usage(struct pipeline *p, struct pipeline_usage *out);

/* A kernel with one reference. `space` outlives it. */
struct kernel *kernel_new(struct pipeline *p, int task, const struct space *space,
                          const struct candidate *c);
struct kernel *kernel_ref(struct kernel *k);
void kernel_unref(struct kernel *k); /* NULL is fine */

#endif
