/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The inside of the conductor.
 *
 *   conductor.c         the door: start, commands, join
 *   conductor_run.c     the session: decision points, batches in flight, limits, the end
 *   conductor_orders.c  commands that decide: skips and budgets, and when they take effect
 *   conductor_course.c  a task's way through its phases; the only caller of strategies
 *   conductor_trial.c   trials: numbers, answers from the history, results, incumbents
 *   conductor_final.c   the final, interleaved measurement of a task
 *   conductor_drift.c   the canary: drift of the machine, and its compensation
 *   conductor_model.c   the cost model
 *   conductor_emit.c    events
 *
 * A *course* is a task under way. A *flight* is a batch of trials of one course from its proposal
 * to its observation. A *decision point* is the moment after a flight was observed: only there are
 * commands applied, budgets checked and new flights begun, in an order that depends on results and
 * not on time. conductor.h has the law; conductor_run.c keeps it.
 */
#ifndef ENGINE_TUNE_CONDUCTOR_PRIVATE_H
#define ENGINE_TUNE_CONDUCTOR_PRIVATE_H

#include "engine/tune/conductor.h"

#include <pthread.h>

#include "engine/search/cost_model.h"
#include "engine/tune/pipeline.h"
#include "engine/tune/scheduler.h"

enum {
    BATCH_EXPLORE = 16,
    BATCH_DESCENT = 8,     /* after so many a descent may decide: few, so that it moves early */
    BATCH_REFINE = 64,     /* a whole ring of neighbours, where the strategy has one */
    MAX_FLIGHTS = 2,       /* one is measured while the next is built */
    BARREN_ROUNDS = 20,    /* rounds of nothing but duplicates that end a strategy */
    HOPELESS_TRIALS = 64,  /* without a valid one: no more budget is spent */
    DEAD_DEVICE_TASK = 16, /* device errors in a row that end a task ... */
    DEAD_DEVICE = 8,       /* ... and, unless the task's own operands are the cause, the session */
    STALE_TRIALS = 64,     /* without a gain of 1 %: the end of an unlimited phase */
    UNLIMITED_PLAN = 1000, /* what a strategy plans with in an unlimited phase */
    FINAL_ROUNDS = 3,      /* at least ... */
    FINAL_MAX_ROUNDS = 8,  /* ... and at most */
    MAX_FINALS = 2,        /* at the same time */
    DRIFT_WINDOW = 9,      /* canaries of the reference, and of what is told */
    FINAL_SAMPLES = FINAL_MAX_ROUNDS * TRIAL_MAX_SAMPLES,
};

#define TICK_NS INT64_C(100000000)
#define USAGE_EVERY_NS INT64_C(2000000000)

/* The trials of a task whose code is kept: what the next comparisons and the final need. */
enum role {
    ROLE_DEFAULT,  /* the untuned schedule of the first sketch that runs */
    ROLE_EXPLORED, /* lowest cost of default and explore */
    ROLE_REFINED,  /* lowest cost of refine */
    ROLE_MOVED,    /* lowest cost of the refine trials that passed the strategy's test */
    ROLE_CENTRE,   /* where the refining strategy stands */
    NR_ROLES
};

struct holder {
    int at;                /* index of the trial, -1 for none */
    struct kernel *kernel; /* NULL: built on demand (answered from the history) */
};

struct trial {
    struct observation o;
    double median_ns; /* INFINITY unless ok */
    enum phase phase;
    bool ended;
};

struct conductor;
struct final;

struct course {
    struct conductor *c;
    int number;
    const struct task *task;
    struct space space;
    enum phase phase;
    enum phase going; /* at its end: the phase that it goes on with if its budgets grow */
    char why[128];    /* why the last phase ended */
    bool skipped;     /* a person's wish; waits for the flight to end */
    bool dead;        /* it cannot be tuned */

    int64_t explore, refine;        /* budgets of the phases, in trials; negative: none */
    int64_t explored;               /* trials that were no refinement */
    bool explored_out, refined_out; /* the strategy has no more to propose */
    int64_t rests_at;               /* budget of refining when its strategy began or was woken */
    int nr_returns;                 /* from refining to exploring */

    const struct strategy_class *class;
    struct strategy *strategy;
    struct observation *known; /* env.known: lives as long as the strategy */
    int64_t used;              /* of the phase's budget */
    int barren;

    int nr_trials, cap_trials;
    struct trial *trial; /* by number; a course's numbers rise */
    int nr_slots;
    int32_t *slot; /* hash of candidates: index + 1, open addressing */

    struct holder role[NR_ROLES];
    int64_t nr_ok;
    int device_errors;  /* in a row */
    double stale_ns;    /* best at the last gain of 1 % in this phase ... */
    int64_t stale_used; /* ... and `used` then */
    struct final *final;
    bool live; /* a trial of it was measured in this run */
    bool told; /* its last EV_PHASE says where it is */
};

struct item {
    struct proposal p;
    int at;     /* index of the trial that answers it */
    bool fresh; /* it is that trial; else a duplicate */
    int tries;
    struct work work;
    struct kernel *kernel; /* NULL where the history answered */
    struct flight *flight;
};

struct flight {
    struct course *t;
    enum phase phase;
    int nr, nr_fresh, open; /* open: submitted, not ended */
    struct item item[BATCH_REFINE];
};

struct order {
    struct tune_command m;
    int64_t after; /* as stored; -1 for one of this run */
};

struct drift {
    double reference_ns; /* NAN until it is known */
    int nr;
    unsigned next;
    double recent_ns[DRIFT_WINDOW]; /* a ring */
    double noted;                   /* the drift that was noted last */
};

struct conductor {
    /* immutable after conductor_start() */
    struct tune_options o;
    const struct task_list *tasks;
    struct device *device;
    const struct device_info *info;
    const struct event_sink *sink;
    const struct history *history;                 /* NULL for a new session */
    const struct strategy_class *explore, *refine; /* NULL: the phase is skipped */
    struct pipeline *pipeline;
    int done_fd;
    pthread_t thread;

    /* lock: main and the conductor; a leaf */
    pthread_mutex_t lock;
    int nr_inbox, cap_inbox;
    struct tune_command *inbox;
    bool stop, abandon;

    /* conductor thread only; read by conductor_join() after it ended */
    bool paused, stopping, abandoning, draining;
    char drain_why[128];
    struct err err;
    int64_t next_trial;  /* number of the next trial */
    int64_t observed;    /* highest number observed: where a command takes effect */
    int64_t last_stored; /* 0 for a new session */
    int nr_courses;
    struct course *course;
    struct sched_task *sched; /* one a course */
    int nr_flights;
    struct flight *flight[MAX_FLIGHTS]; /* oldest first */
    int nr_finals, nr_finals_running;   /* begun and not done; of these not waiting */
    int nr_orders, cap_orders, next_order;
    struct order *order;                                /* of the history, then of this run */
    int device_errors;                                  /* live, in a row */
    int64_t base_ns, start_ns, paused_ns, paused_since; /* of the session's clock */
    int64_t last_t_ns, usage_at;
    int64_t search_ns; /* of the processor: builders share the cores with the search */
    int64_t nr_ended, restarts;
    struct drift drift;
    struct cost_model *model;           /* NULL for none */
    int64_t flights_observed, model_due; /* when what it learns comes into use; 0: it learns nothing */
    bool model_relearns;                 /* and has said so: the history lacks what it learned */
    struct event ev; /* the one being made */
};

/* conductor_emit.c */
int64_t clock_session_ns(const struct conductor *c, int64_t mono_ns);
void clock_pause(struct conductor *c, bool paused);
/* Is everything that is decided now known to have been decided in an earlier run? */
bool is_replaying(const struct conductor *c);
void emit_opening(struct conductor *c);
void emit_phase(struct course *t, const char *strategy, int64_t budget, int64_t used);
void emit_proposed(struct course *t, const struct proposal *p, int64_t trial);
void emit_measuring(struct course *t, int64_t trial, int64_t mono_ns);
/* `w` NULL for a trial that was refused before it was built. */
void emit_trial(struct course *t, const struct trial *k, const char *reason, const struct work *w);
void emit_incumbent(struct course *t, int at, enum phase phase, bool centre);
void emit_decision(struct course *t, const struct decision *d);
void emit_command(struct conductor *c, const char *verb);
void emit_order(struct conductor *c, const struct tune_command *m, const char *verb,
                const char *text, int64_t after);
void emit_note(struct conductor *c, int task, int level, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));
void emit_usage(struct conductor *c);
void emit_ended(struct conductor *c, bool finished, const char *why);
struct event *event_begin(struct conductor *c, enum event_kind kind, int task, int64_t trial);
void event_emit(struct conductor *c, int64_t mono_ns);

/* conductor_trial.c */
int trial_find(const struct course *t, const struct candidate *c);
int trial_by_number(const struct course *t, int64_t number);
/* Numbers a proposal, answers it from the history or submits it. */
int trial_begin(struct flight *f, struct item *it, struct err *e);
/* The pipeline is done with it. False: it was submitted again. */
bool trial_end(struct conductor *c, struct item *it);
/* Incumbents and counts; when the flight is observed. */
void trial_account(struct flight *f, struct item *it);
void role_set(struct course *t, enum role r, int at, struct kernel *k);
/* A new reference. */
struct kernel *role_kernel(struct course *t, int at);
double course_best_ns(const struct course *t);
/* Those that the roles hold; they are built again on demand. */
void kernels_release(struct course *t);
void trials_release(struct course *t);
/* "build_error: ..." of the failure that most trials ended with. */
void trials_failures(const struct course *t, char *out, int size);

/* conductor_course.c */
int course_init(struct conductor *c, struct course *t, int number, struct err *e);
void course_release(struct course *t);
/* The next flight of the course; NULL with *rc == 0: it came to its end. */
struct flight *course_fly(struct course *t, int *rc, struct err *e);
/* Observes a complete flight. */
void course_observe(struct flight *f);
/* Changes the budget of a phase. A course that is at its end, with its final measured, goes on where
 * that leaves it something to do. */
void course_set_budget(struct course *t, enum phase phase, int64_t trials);
/* Before a trial of this run: the phase, where the events so far say another one. */
void course_tell(struct course *t);
/* Is it, or will it be, refined? */
bool course_refines(const struct course *t);
/* The course goes to its end with what it has. */
void course_finish(struct course *t, const char *why);
void course_done(struct course *t, const char *why);
void flight_free(struct flight *f);

/* conductor_final.c */
void final_begin(struct course *t);
void final_step(struct course *t, struct work *w);
void final_free(struct final *f);

/* conductor_drift.c */
void drift_init(struct conductor *c);
/* Takes the canaries of a trial that was measured; what its costs are to be divided by, 1 where not
 * compensated, NAN where there is no canary. */
double drift_take(struct course *t, const struct measure_result *r);
/* Time of the canary beside a measurement; NAN where there is none. */
double drift_canary(const struct measure_result *r);
/* How much slower the machine is lately than the reference; NAN where that is not known. */
double drift_now(const struct conductor *c);
/* What a trial's cut is to be multiplied by. */
double drift_cut(const struct course *t);

/* conductor_model.c */
void model_open(struct conductor *c);
void model_close(struct conductor *c);
/* Takes in the trials of a flight that was observed. */
void model_observe(const struct flight *f);
/* After every flight: learns, or takes what was learned into use. */
void model_step(struct conductor *c);
/* strategy_env.score of a course */
bool model_score(void *ctx, const struct candidate *cand, int nr, double *out);

/* conductor_orders.c */
void orders_load(struct conductor *c);
void order_take(struct conductor *c, const struct tune_command *m);
/* Some are not applied yet. */
bool orders_wait(const struct conductor *c);
/* At a decision point: those that are due; where nothing is left to do (`idle`), the next one,
 * whatever its number. False: there was none. */
bool orders_apply(struct conductor *c, bool idle);
/* The budget of every task that is in force after the stored orders. */
int64_t orders_budget(const struct conductor *c, enum tune_verb v, int64_t otherwise);

/* conductor_run.c */
void *conductor_main(void *arg);
bool in_flight(const struct conductor *c, const struct course *t);
/* The session stops or has failed: nothing more is decided. */
bool is_ending(const struct conductor *c);
/* How many trials the session may have; those that are stored are never cut off. */
int64_t trials_limit(const struct conductor *c);
void wait_for_final(struct conductor *c, const struct course *t);

#endif
