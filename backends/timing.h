/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Timing: how long a call of each of a few kernels takes, measured in turn.
 *
 * A slice is some calls of one kernel, timed together; its sample is the mean time of one. A round
 * takes one slice of each kernel, forwards and backwards by turns (ABBA), so that a slow drift of
 * clock or load falls on all of them alike. Slices are at least ~50 us or one call: the clock's
 * own cost does not show, and an interruption spoils one sample, not the measurement.
 */
#ifndef BACKENDS_TIMING_H
#define BACKENDS_TIMING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "backends/artifact.h"
#include "engine/tune/device.h"

struct cold_range {
    const void *data;
    size_t bytes;
};

struct timed_kernel {
    void (*call)(void *const *buf);
    void *const *buf;
    /* Is called once more, untimed, before every slice, and where none challenges another until it
     * is settled: kernels that take turns find each other's data in a cache that holds the data of
     * one alone. */
    bool settles;
    /* Taken out of the caches before every call, which is then timed by itself. */
    int nr_cold;
    struct cold_range cold[ARTIFACT_MAX_BUFFERS];
};

struct timing_limits {
    int64_t fill_ns;   /* time to fill with slices of each kernel */
    /* End at once where a call of kernel 0 takes longer. 0: never, and of two kernels none is the
     * challenger of the other: the plan is not shortened or prolonged by what comes out. */
    double cut_ns;
    int64_t budget_ns; /* begin no round that would end later, but the first */
};

struct timing {
    int nr_samples;
    bool cut;
    double sample_ns[DEVICE_MAX_KERNELS][TRIAL_MAX_SAMPLES];
};

struct timing_plan {
    int rounds;
    int64_t calls[DEVICE_MAX_KERNELS]; /* in a slice of each */
};

/* The plan for kernels whose calls take `call_ns`. */
struct timing_plan timing_plan(const double *call_ns, int nr, int64_t fill_ns);

/* Is a kernel's data in the caches as it will stay, so that a sample is worth taking? By the last two
 * calls and the time spent on calls so far; `before_ns` is INFINITY where there was only one. */
bool timing_settled(double before_ns, double call_ns, double spent_ns);

/*
 * Is another pair worth its time, where kernel 0 challenges kernel 1 and `planned` pairs were
 * planned? More are taken while it looks faster, and less where it looks slower. Ending early only
 * where it does not look better cannot make a false acceptance more likely.
 */
bool timing_compares_on(const struct timing *t, int planned);

/* Each kernel has been called before. */
void timing_run(const struct timed_kernel *k, int nr, const struct timing_limits *limits,
                struct timing *out);

/* Time of a run of the canary in ns: the faster of two, since nothing but an interruption makes one
 * of them slower. */
double timing_canary(void (*canary)(void));

#endif
