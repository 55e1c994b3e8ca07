/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Device: where candidates are built and measured, as the conductor sees it.
 *
 * engine/ knows no backend; backends/ implements this for hardware (build in this process, measure in
 * a runner process) and for recorded spaces (answers from a file in virtual time).
 */
#ifndef ENGINE_TUNE_DEVICE_H
#define ENGINE_TUNE_DEVICE_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/base/clock.h"
#include "engine/base/err.h"
#include "engine/model/task.h"
#include "engine/search/space.h"
#include "engine/search/strategy.h"

struct device_info {
    char target[128];   /* "llvm:cpu=znver4": results belong to it */
    char hardware[128]; /* "AMD EPYC ..., 2 cores" */
    char compiler[64];  /* "LLVM 19.1.7" */
    char needs[96];     /* features of the processor its code uses, as gcc names them: "avx2 fma" */
    int lanes;          /* float32 lanes of a vector register */
    int registers;      /* vector registers */
    int cores;
    int threads;        /* threads a kernel uses */
    double peak_gflops; /* of one core as measured, times `threads`; 0 where unknown */
};

enum { DEVICE_MAX_KERNELS = 4, DEVICE_REASON = 256 };

struct build_result {
    enum trial_status status; /* TRIAL_OK or TRIAL_BUILD_ERROR, TRIAL_INVALID */
    char reason[DEVICE_REASON];
    void *artifact;           /* freed by device->artifact_free */
    int64_t build_ns;
    int64_t code_bytes;
};

struct measure_request {
    void *operands;
    int nr;                                /* kernels, measured in turn, slice by slice */
    const void *artifact[DEVICE_MAX_KERNELS];
    int64_t fill_ns;                       /* time to fill with slices for each kernel: 3-5 ms */
    double cut_ns;                         /* stop kernel 0 after its first slice if slower; 0 never */
    bool cold;                             /* constants are out of the caches at every call */
    bool check;                            /* compare the output of kernel 0 with the reference */
    int64_t timeout_ns;
};

struct measure_result {
    enum trial_status status; /* of kernel 0 */
    char reason[DEVICE_REASON];
    int nr_samples;           /* the same number for every kernel, taken at the same moments */
    double sample_ns[DEVICE_MAX_KERNELS][TRIAL_MAX_SAMPLES]; /* time of one call */
    bool checked;
    double error;             /* of the output, in tolerances (task_error) */
    /* Time of a piece of work that is always the same, right before and after the samples were
     * taken; 0 where there is none. What it says of the machine: conductor_drift.c. */
    double canary_ns[2];
    int64_t measure_ns;       /* wall time it took */
};

struct device;

struct device_class {
    const char *name;
    const struct device_info *(*info)(const struct device *d);
    /* The sketches of a task on this device; any thread. */
    int (*space)(struct device *d, const struct task *t, struct space *out, struct err *e);
    /* Operands of a task in shared memory, filled, with the expected output; any thread, slow. */
    void *(*operands)(struct device *d, const struct task *t, struct err *e);
    void (*operands_free)(struct device *d, void *operands);
    /* Builds a candidate; builder threads, `builder` is the number of the thread (0 ..). */
    void (*build)(struct device *d, int builder, const struct task *t, const struct space *s,
                  const struct candidate *c, struct build_result *r);
    void (*artifact_free)(struct device *d, void *artifact);
    /* Measures; one thread at a time. Never fails: what goes wrong is a status. */
    void (*measure)(struct device *d, const struct measure_request *q, struct measure_result *r);
    /* Makes a measurement in progress end soon with TRIAL_DEVICE_ERROR "interrupted"; any thread. */
    void (*interrupt)(struct device *d);
    void (*close)(struct device *d);
    /* NULL: time is real. Else the device's own clock, in nanoseconds from 0: the session's active
     * time and its budget of seconds follow it. Never goes back; any thread. */
    int64_t (*now)(const struct device *d);
};

struct device {
    const struct device_class *class;
};

static inline int64_t device_now(const struct device *d)
{
    return d->class->now ? d->class->now(d) : clock_mono_ns();
}

#endif
