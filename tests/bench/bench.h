/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Kernels side by side.
 *
 * A *layer* is one named workload with its operands and its expected output, computed once. An
 * *entrant* is one implementation of it that already holds its operands in the layout it likes:
 * a peer library, squall's tuned kernel, or what the cores can do at most, their FMA peak and, of
 * layers that memory may bound, how fast they read it: these do no work of the layer but are timed at
 * the same moments. The entrants of a layer are timed in turn, slice by slice.
 *
 *   kernels.c   options, layers                   openblas.c  OpenBLAS, in processes of its own
 *   rounds.c    the timing                        onednn.c    oneDNN, in this process
 *   layers.c    a layer from its workload's name  tuned.c     squall's kernels, by their codes
 *   cores.c     the cores and the threads         round_trip.c  how near two cores are
 *   peak.c      the FMA peak, and memory          report.c    the tables, and JSON
 */
#ifndef TESTS_BENCH_BENCH_H
#define TESTS_BENCH_BENCH_H

#include <sched.h>
#include <stdbool.h>
#include <stdint.h>

#include "engine/base/err.h"
#include "engine/model/task.h"

enum { MAX_ENTRANTS = 10, MAX_LAYERS = 32, MAX_CODES = 4, MAX_ROUNDS = 200, MAX_CORES = 16 };

enum layer_kind { LAYER_MATMUL, LAYER_DENSE, LAYER_CONV, LAYER_DEPTHWISE, NR_LAYER_KINDS };

enum entrant_role { ENTRANT_PEAK, ENTRANT_MEMORY, ENTRANT_PEER, ENTRANT_SQUALL };

struct entrant {
    const char *name;  /* a column of the table */
    char detail[160];  /* which kernel the library chose; the candidate's code */
    enum entrant_role role;
    double flops;      /* of one call; ENTRANT_MEMORY: bytes */
    void (*call)(void *ctx);
    /* Set instead of `call` where the calls happen in another process; as bench_slice(), or < 0. */
    double (*slice)(void *ctx, int64_t calls);
    void (*free)(void *ctx);
    void *ctx;
    double error;      /* of the output, in tolerances (task_error) */

    int64_t calls;     /* in a slice */
    int nr_samples;
    double sample_ns[MAX_ROUNDS]; /* mean time of one call in a slice */
    double median_ns, spread;     /* spread: between the quartiles, as a part of the median */
};

struct layer {
    char name[128];    /* of the workload, as model_task_from_name() takes it */
    enum layer_kind kind;
    bool constant;     /* the second operand may be packed beforehand */
    /* LAYER_MATMUL: y[m][n] = x[m][k] w[k][n]; LAYER_DENSE: x[m][k] w[n][k], plus bias[n] */
    int64_t m, n, k;
    struct { /* the other kinds; w[k][c / groups][r][s] */
        int64_t n, c, h, w, k, r, s, oh, ow, stride, dilation, pad, groups;
    } conv;
    int block;         /* channel block of squall's activations */
    const struct cores *cores;
    struct task_list list;
    const struct task *task;
    float *x, *w, *bias, *want; /* logical arrays; bias only of LAYER_DENSE */

    char *code[MAX_CODES]; /* candidates; the best of a qualifying round is timed */
    int nr_codes;
    struct entrant entrant[MAX_ENTRANTS];
    int nr_entrants;
    double trip_ns[MAX_ROUNDS]; /* round trip between the cores, in each round of several threads */
    int nr_trips;
};

/*
 * cores.c. The last `nr` cores that may be used: the first one has the interrupts of many machines.
 * Every entrant runs on them, with a thread each.
 */
struct cores {
    int nr, cpu[MAX_CORES];
    cpu_set_t set;
};
/* Pins this process. `cpu` >= 0: the one core to take. For several cores the program is started
 * again, once: OpenMP's runtime reads its environment when it is loaded. */
int cores_take(struct cores *c, int nr, int cpu, char **argv, struct err *e);
/* Runs `call` on every core at the same time. */
void cores_call(const struct cores *c, void (*call)(void *ctx), void *ctx);

/* layers.c. ERR_UNSUPPORTED where the peers have no counterpart of the workload. */
int layer_init(struct layer *l, const char *name, int block, const struct cores *cores,
               struct err *e);
void layer_release(struct layer *l);
/* Of an output in logical order; <= 1 passes. */
double layer_error(const struct layer *l, const float *got);
/* A zeroed entrant of the layer, appended; `flops` is the layer's. */
struct entrant *layer_entrant(struct layer *l, const char *name, enum entrant_role role);

/* One call that warms the caches and is not counted, then `calls` that are: their mean time. */
double bench_slice(void (*call)(void *ctx), void *ctx, int64_t calls);
double entrant_slice(struct entrant *en, int64_t calls);
/* How many calls fill a slice of `slice_ns`. */
int64_t entrant_calls(struct entrant *en, double slice_ns);
/* Of at most MAX_ROUNDS values; part 0.5 is the median. */
double quantile(const double *v, int n, double part);

/* rounds.c: times the entrants of a layer, sets medians and spreads, and lets operands go. */
int layer_rounds(struct layer *l, int rounds, double slice_ns, struct err *e);

/* round_trip.c */
double round_trip_ns(int cpu_a, int cpu_b);

/* peak.c: nothing is added where the processor has no FMA. Memory is only added to layers that do few
 * operations for a byte. */
void peak_enter(struct layer *l);
void memory_enter(struct layer *l);
const char *peak_name(void);

/* openblas.c. Processes are started before any thread or library of this one is (they are forks),
 * and with the layers complete, which they serve by number. */
struct openblas;
struct openblas *openblas_start(const char *name, const char *coretype, const struct cores *cores,
                                struct layer *const *layer, int nr_layers, struct err *e);
void openblas_stop(struct openblas *o);
/* "0.3.21 SkylakeX"; valid once a layer was entered. */
const char *openblas_version(const struct openblas *o);
int openblas_enter(struct openblas *o, struct layer *l, int number, struct err *e);

/* onednn.c: adds an entrant for each way in which oneDNN can do the layer. */
int onednn_enter(struct layer *l, struct err *e);
const char *onednn_version(void);

/* tuned.c */
struct tuned;
int tuned_open(struct tuned **out, int threads, struct err *e);
void tuned_close(struct tuned *t);
int tuned_lanes(const struct tuned *t);
const char *tuned_target(const struct tuned *t);
const char *tuned_hardware(const struct tuned *t);
/* Adds the codes that a session holds for the layers: the first `top` of its leaderboard. Returns
 * how many layers it had any for, or an error. */
int tuned_read_session(const struct tuned *t, const char *path, int top, struct layer *const *layer,
                       int nr_layers, struct err *e);
/* Builds the layer's codes, checks their output, adds the fastest; nothing where it has no code. */
int tuned_enter(struct tuned *t, struct layer *l, double slice_ns, struct err *e);

/* report.c */
struct report {
    const char *hardware, *target, *peak, *onednn, *openblas;
    const struct cores *cores;
    int rounds;
    double slice_ms;
    struct layer *const *layer;
    int nr_layers;
};
void report_table(const struct report *r);
void report_json(const struct report *r);

#endif
