/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A session on a device that is a formula.
 *
 * The fake device "builds" any candidate and "measures" it by an analytic cost with noise. The
 * noise is a function of the kernels of a request and the number of the sample, so that a trial has
 * the same samples whenever and after whatever it is measured. Some candidates fail, each in its
 * own way. It counts what must be given back and what must not happen at the same time.
 */
#ifndef TESTS_TUNE_FIXTURE_H
#define TESTS_TUNE_FIXTURE_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "engine/tune/conductor.h"

struct fake {
    struct device device;
    struct device_info info;
    /* settings */
    bool tiny;             /* a space of twelve candidates */
    bool flat;             /* nothing fails */
    bool features;         /* candidates of the large space have features and an estimate */
    bool shuffle;          /* builds take a random short time */
    int64_t measure_us;    /* a measurement takes so long */
    int broken_task;       /* number of a task none of whose candidates build; -1 */
    int without_operands;  /* number of a task whose operands fail; -1 */
    int without_space;     /* number of a task without a space; -1 */
    const char *slow;      /* tasks with this in their names take slow_times as long; or NULL */
    double slow_times;
    bool dead;             /* every measurement is a device error */
    int64_t flaky_measure; /* the measurement with this number is a device error; 0 none */
    int64_t hang_build;    /* builds with these numbers of calls hang until released; 0 none */
    int64_t hang_builds;   /* so many from hang_build on */
    int64_t block_measure; /* the measurement with this number waits for an interrupt; 0 none */
    /* Finals, where final_noise is not 0: the kernel of rank i among those measured together takes
     * 10 us x (1 + final_gap x i), with so much noise, and never the same twice. */
    double final_gap, final_noise;
    uint64_t final_seed; /* of that */
    bool final_bursts;   /* all take twice as long half of the time, the best a bit oftener */
    bool wrong_final; /* the best kernel of the first such final gives a wrong result */
    double canary_ns;   /* of the canary; 0: there is none */
    double drift;       /* from measurement `drift_from` on, everything takes so many times longer */
    int64_t drift_from; /* 0: never */
    bool unsteady;      /* from there on the canary after a measurement takes 10 % longer still */

    pthread_mutex_t lock; /* all below */
    pthread_cond_t cond;
    bool released, interrupted;
    int64_t builds, measures, hanging;
    int64_t artifacts, operands, most_operands; /* alive; the last at once */
    int building, measuring;
    uint64_t wrong;  /* of wrong_final */
    int64_t finals;  /* measurements for finals */
    int final_nr[64]; /* kernels of each of them */
    bool overlap;      /* a build ran beside a measurement, or two measurements */
    bool number_clash; /* two builds at once under one builder number */
    bool number_busy[1024];
    const struct task_list *tasks;
};

/* `tasks` NULL: any; then none of the settings that number them. */
void fake_init(struct fake *f, const struct task_list *tasks);
void fake_release_hung(struct fake *f); /* lets hung builds go on */
void fake_free(struct fake *f);

/* Tasks "task0" ... with weights 1, 2, ... */
void tasks_make(struct task_list *l, int nr);

enum { AT_FINAL = -1 };

/* What the cost model learned, as the sink is given it. */
struct kept {
    uint64_t data;
    int before; /* index of the event that followed */
    char *bytes;
    size_t len;
};

struct recorder {
    pthread_mutex_t lock;
    pthread_cond_t cond;
    struct conductor *conductor;
    int nr, cap;
    struct event *ev;
    int nr_kept, cap_kept;
    struct kept *kept;
    int64_t ended_trials;
    /* Commands by themselves: when so many trials have ended, in the conductor's own thread. */
    int64_t at_trial; /* 0 for none; AT_FINAL: when the first task enters its final */
    enum tune_verb verb;
    int verb_task;
    double verb_value; /* of a budget */
};

struct run {
    struct tune_options o;
    struct fake *fake;
    struct task_list *tasks;
    const struct event *past; /* events of earlier runs */
    int nr_past, resumed;
    const struct kept *kept; /* and what was kept of them */
    int nr_kept;
    bool knows_results;                /* history->resulted is given */
    const struct tune_command *budget; /* given with the resumption */
    int nr_budgets;
    struct recorder rec;
    struct event_sink sink;
    struct history history;
    struct err err;
    int rc;
};

void options_init(struct tune_options *o);
void run_init(struct run *r, struct fake *f, struct task_list *tasks);
void run_start(struct run *r);
void run_join(struct run *r);
void run_all(struct run *r); /* start and join */
void run_release(struct run *r);
void kept_free(struct kept *kept, int nr);

/* Waits until `nr` trials have ended in this run. */
void run_wait_trials(struct run *r, int64_t nr);

/* The i-th event of a kind (and of a task unless it is -1), NULL past the last. */
const struct event *run_event(const struct run *r, enum event_kind k, int task, int i);
int run_count(const struct run *r, enum event_kind k, int task);
/* Trials proposed in a phase. */
int run_count_phase(const struct run *r, enum phase p, int task);

/* Proposals, decisions, incumbents and phases as text, in order. The caller frees. */
char *sequence(const struct event *ev, int nr);

/* The same, and what ended with which result, sorted, what repeats once: equal for an uninterrupted
 * session and for all runs of a resumed one together. The caller frees. */
char *essence(const struct event *ev, int nr);

#endif
