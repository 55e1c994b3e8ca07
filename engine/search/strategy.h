/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Strategy: proposes candidates, observes trials.
 *
 * One instance works on one task and one phase. The conductor calls it from its own thread only:
 *
 *     propose(want)  ->  up to `want` proposals: a batch
 *     observe()      once for every trial of the batch, in the order of the proposals
 *     propose() ...  until it returns 0: exhausted, converged, or `rests`; `why` says which
 *
 * The engine owns budget and duplicates: before a proposal is run it is looked up in env->known, and
 * a strategy is expected to ask that itself (strategy_is_new) to use its batch well. A proposal
 * that is a duplicate all the same is answered at once with the stored trial.
 *
 * Everything must be a function of the seed and of what was observed: a session is resumed by
 * proposing again and answering from the stored trials. No clocks, no addresses, no other random
 * source.
 *
 * A new strategy is one file with one `const struct strategy_class`, listed in strategies.c.
 */
#ifndef ENGINE_SEARCH_STRATEGY_H
#define ENGINE_SEARCH_STRATEGY_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/base/err.h"
#include "engine/search/space.h"

/* status of a trial: name, text */
#define TRIAL_STATUS_LIST(X)                                                                       \
    X(TRIAL_PENDING, "pending")                                                                    \
    X(TRIAL_OK, "ok")                                                                              \
    X(TRIAL_INVALID, "invalid")                                                                    \
    X(TRIAL_BUILD_ERROR, "build_error")                                                            \
    X(TRIAL_BUILD_TIMEOUT, "build_timeout")                                                        \
    X(TRIAL_WRONG_RESULT, "wrong_result")                                                          \
    X(TRIAL_CRASHED, "crashed")                                                                    \
    X(TRIAL_RUN_TIMEOUT, "run_timeout")                                                            \
    X(TRIAL_CUT, "cut")                                                                            \
    X(TRIAL_DEVICE_ERROR, "device_error")

enum trial_status {
#define TRIAL_STATUS_ENUM(name, text) name,
    TRIAL_STATUS_LIST(TRIAL_STATUS_ENUM) TRIAL_NR_STATUS
#undef TRIAL_STATUS_ENUM
};

const char *trial_status_name(enum trial_status s);
/* -1 where the text is none. */
int trial_status_parse(const char *text);

/* How a proposal came about; shown in the ladder and in "why this trial". */
enum origin {
    ORIGIN_DEFAULT,   /* the untuned schedule */
    ORIGIN_SAMPLE,    /* drawn at random */
    ORIGIN_MUTATE,    /* a mutation of `parent` */
    ORIGIN_NEIGHBOUR, /* one step from `parent`, the incumbent */
    ORIGIN_SPECULATE, /* a winning step repeated */
    ORIGIN_PAIR,      /* two steps at once */
    ORIGIN_START,     /* a start point of a descent */
    ORIGIN_ENUMERATE, /* the next of a full enumeration */
    ORIGIN_FINAL,     /* measured once more for the result */
};
const char *origin_name(enum origin o);

struct proposal {
    struct candidate c;
    enum origin origin;
    int64_t parent; /* trial it derives from, 0 for none */
    int knob, dir;  /* the step for NEIGHBOUR and SPECULATE; -1, 0 otherwise */
    bool compare;   /* measure interleaved with the trial `parent`, for a test */
    char note[64];  /* the step in words */
};

enum { TRIAL_MAX_SAMPLES = 32 };

/* What is known of a finished trial. */
struct observation {
    int64_t trial;
    struct candidate c;
    enum origin origin;
    int64_t parent;
    int knob, dir;
    enum trial_status status;
    double cost_ns;       /* lower quartile of the samples over `drift`: the search's estimator;
                             INFINITY if not ok */
    double drift;         /* how much slower the machine was than at the session's start, where that
                             is compensated; 1 where not, and anything that is not above 0 counts so */
    int nr_samples;
    double sample_ns[TRIAL_MAX_SAMPLES];
    /* Where the trial was measured interleaved with its parent: the parent's samples of the same
     * moments, pairwise. nr_ref == nr_samples then, else 0. */
    int nr_ref;
    double ref_ns[TRIAL_MAX_SAMPLES];
};

/* A decision a strategy made about a trial, for the event log. */
enum verdict { VERDICT_BETTER, VERDICT_WORSE, VERDICT_NOISE, VERDICT_FAILED, VERDICT_MOVED };
const char *verdict_name(enum verdict v);

struct decision {
    int64_t trial, incumbent;
    enum verdict verdict;
    double p_value; /* one-sided, of "not faster than the incumbent"; NAN where nothing was tested */
    double gain;    /* (incumbent - trial) / incumbent, from the paired samples */
    char text[128];
};

struct strategy_env {
    const struct space *space;
    uint64_t seed;
    /* Trials known before the phase began, best first (the explored ones, when refining). */
    const struct observation *known;
    int nr_known;
    /* Is this candidate already a trial of the task? */
    bool (*seen)(void *ctx, const struct candidate *c);
    /* Reports a decision; becomes an event. */
    void (*decided)(void *ctx, const struct decision *d);
    /*
     * Predicted speed of candidates, higher is better, in [0, 1]: the learned cost model's
     * (cost_model.h), which begins with an estimate. Speeds compare within one call. False where
     * there is neither; the strategy then ranks by measured neighbours of its own, as it does where
     * this is NULL.
     */
    bool (*score)(void *ctx, const struct candidate *c, int nr, double *out);
    void *ctx;
    int batch;     /* how many trials are built at the same time: a good batch */
    int budget;    /* trials this phase may use in all; a strategy plans with it. A person may change
                      it meanwhile: it is then asked for more than that, or no more before */
    bool may_rest; /* may it end before, where more is not worth it (strategy_class.rests)? */
};

struct strategy;

struct strategy_class {
    const char *name, *summary;
    struct strategy *(*create)(const struct strategy_env *env, struct err *e);
    int (*propose)(struct strategy *s, int want, struct proposal *out);
    void (*observe)(struct strategy *s, const struct observation *o);
    /* Why propose() returned 0: "converged", "space exhausted", "stagnated"; static text. */
    const char *(*why)(const struct strategy *s);
    void (*destroy)(struct strategy *s);
    /* Did it return 0 because more is not worth its budget, so that it goes on where it is asked
     * again? NULL: never. */
    bool (*rests)(const struct strategy *s);
};

/* NULL where there is none of that name. `i` walks the list until NULL. */
const struct strategy_class *strategy_find(const char *name);
const struct strategy_class *strategy_at(int i);

#endif
