/* SPDX-License-Identifier: Apache-2.0 */
/* The inside of the pipeline, shared by pipeline.c, builders.c and measurer.c. */
#ifndef ENGINE_TUNE_PIPELINE_PRIVATE_H
#define ENGINE_TUNE_PIPELINE_PRIVATE_H

#include "engine/tune/pipeline.h"

#include <pthread.h>

/* Threads hanging in the device at the same time before the session gives up: each may spin on a
 * core, so that more of them spoil every measurement. */
enum { BUILDERS_MAX = 256, BUILDERS_MAX_STUCK = 8 };

/* Memory for operands of tasks that are not being measured; past it the longest unused are freed.
 */
#define OPERANDS_KEEP_BYTES INT64_C(1073741824)

enum kernel_state { KERNEL_IDLE, KERNEL_QUEUED, KERNEL_BUILDING, KERNEL_BUILT, KERNEL_FAILED };

struct kernel {
    struct pipeline *p;
    int task;
    const struct space *space;
    struct candidate c;
    /* pipeline lock */
    int refs;
    enum kernel_state state;
    struct build_result built;
};

enum operands_state {
    OPERANDS_NONE,
    OPERANDS_QUEUED,
    OPERANDS_PREPARING,
    OPERANDS_READY,
    OPERANDS_FAILED
};

struct operands_slot {
    enum operands_state state;
    void *data;
    int users;     /* works submitted and not done */
    bool unwanted; /* dropped while being prepared */
    int64_t last_use;
    char reason[DEVICE_REASON];
};

/* kernel, or operands of `task` where it is NULL. Ordered by `order`: submission, prefetch last. */
struct job {
    struct job *next;
    int64_t order;
    struct kernel *kernel;
    int task;
};

struct builder {
    struct pipeline *p;
    int number; /* the device's name for the thread; never used by two at once */
    pthread_t thread;
    /* pipeline lock */
    struct job *job; /* NULL while idle */
    int64_t began_ns;
    bool abandoned; /* nobody waits for this thread any more */
    bool done;      /* left its loop: can be joined without waiting */
};

struct notice_link {
    struct notice_link *next;
    struct notice n;
};

/*
 * One lock guards all that threads share. It is a leaf, and it is never held while the device is
 * called. Builders wait on `jobs_cond`, the measurer on `ready_cond`, the conductor on
 * `notice_cond`; `idle_cond` tells of every builder or measurer that ended something.
 */
struct pipeline {
    struct device *device;
    const struct task_list *tasks;
    int64_t fill_ns, build_timeout_ns, run_timeout_ns;
    bool cold;
    int nr_jobs;    /* builder threads that were asked for */
    bool gate;      /* builders are parked while the measurer measures */
    int spare_core; /* left to the measurer by the builders; -1 for none */
    pthread_t measurer;

    pthread_mutex_t lock;
    pthread_cond_t jobs_cond, ready_cond, notice_cond, idle_cond;
    bool held, stopping, kicked;
    int refs; /* the owner and every stuck builder */
    int stuck;
    int64_t order;        /* of the last submission */
    struct job *jobs;     /* in order */
    struct work *waiting; /* submitted, not ready; in order */
    struct work *ready;   /* in order too */
    struct notice_link *notices, **notices_end;
    struct operands_slot *operands; /* one a task */
    int nr_builders, cap_builders;
    struct builder **builder;
    bool number_used[BUILDERS_MAX + BUILDERS_MAX_STUCK + 1];
    int nr_running; /* builders with a job, stuck ones not counted */
    bool measuring, wants_gate;
    struct pipeline_usage usage;
};

/* All of these: lock held. */
void pipeline_notice(struct pipeline *p, enum notice_kind kind, struct work *w);
void pipeline_ripen(struct pipeline *p); /* after a kernel or operands changed */
void pipeline_done(struct pipeline *p, struct work *w);
struct job *pipeline_take_job(struct pipeline *p);
/* Frees the kernel with its last reference; returns its artifact, to be freed without the lock. */
void *kernel_unref_locked(struct kernel *k);
void pipeline_unref_locked(struct pipeline *p); /* unlocks, and frees with the last reference */

int builders_start(struct pipeline *p, int jobs, struct err *e);
void builders_join(struct pipeline *p);
int measurer_start(struct pipeline *p, struct err *e);
void measurer_join(struct pipeline *p);

/* Creates a thread that blocks all signals but those that the thread itself raises. */
int thread_start(pthread_t *t, void *(*run)(void *), void *arg, struct err *e);

/* Keeps the calling thread off `core`, where that leaves it any. */
void thread_avoid_core(int core);

#endif
