/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Board: the state of a session, computed from its events by one reducer.
 *
 * Whatever a screen, a printer or `show` tells is read from here. board_apply() takes events in
 * order; equal events give equal boards, so a replay shows what was live. Memory is bounded: trials
 * are kept by number in compact form (no samples), the leaderboard is the top of each task.
 * Owned and used by one thread.
 */
#ifndef ENGINE_TUNE_BOARD_H
#define ENGINE_TUNE_BOARD_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/base/strbuf.h"
#include "engine/tune/event.h"

enum { BOARD_LEADERS = 64, BOARD_KNOBS = 48, BOARD_NOTES = 200 };

/* One finished or running trial. */
struct board_trial {
    int64_t id, parent;
    int32_t task;
    uint8_t phase, origin, status, verdict; /* verdict: 255 for none */
    bool measuring, checked;
    int16_t knob, dir;
    double cost_ns, median_ns, p_value, gain; /* NAN where unknown */
    int64_t started_ns, ended_ns;
    char *code, *knobs, *sketch, *reason, *note, *text, *strategy; /* owned by the board; "" for
                                                                      none */
};

/* A cell of the ladder: a value beside the incumbent's. */
struct board_knob {
    int32_t sketch, kind;
    int64_t extent;
    char name[32], values[128];
};

struct board_point { /* of the best-so-far curve of a task */
    int64_t trial, t_ns;
    double cost_ns;
};

struct board_task {
    char name[EVENT_NAME], workload[17], where[EVENT_NAME], kind[64];
    double weight, flops, bytes, space;
    int32_t nr_sketches;
    enum phase phase;
    char strategy[32], why[128];
    int64_t budget;              /* of the phase */
    int64_t refine;              /* budget of its refinement, whether it is in that phase or not */
    int64_t nr_trials;           /* ended */
    int64_t nr_phase;            /* ended in the running phase */
    int64_t by_status[TRIAL_NR_STATUS];
    int64_t best, best_explored, best_refined, default_trial, centre; /* trials, 0 for none */
    double best_ns, explored_ns, refined_ns, default_ns; /* medians; from the final measurement once
                                                            there is one; NAN for none */
    bool final;
    double lo[3], hi[3];         /* intervals of default, explored, refined after the final */
    double error;
    int nr_knobs, cap_knobs;
    struct board_knob *knob;     /* of all sketches, in order */
    int nr_points, cap_points;
    struct board_point *point;   /* improvements only */
    int nr_leaders;
    int64_t leader[BOARD_LEADERS]; /* ok trials, best median first; ties by number */
    int nr_ring, cap_ring;
    int64_t *ring;               /* trials whose parent is the centre, in order: the ladder */
    double final_ns[3];          /* default, explored, refined as the final measured them; NAN */
    enum final_verdict verdict;  /* of the final on the order of the best two; the numbers: event.h */
    double p_value, gain, gain_lo, gain_hi; /* NAN for none */
    char order[128];             /* the same in words */
};

struct board {
    struct event session;        /* the EV_SESSION event */
    bool has_session;
    int nr_tasks, cap_tasks;
    struct board_task *task;
    int64_t nr_trials, cap_trials; /* highest number; trial[i] is number i + 1 */
    struct board_trial *trial;
    int64_t nr_ended;
    int64_t by_status[TRIAL_NR_STATUS];
    int32_t current;             /* task of the last trial measured, -1 */
    int64_t measuring;           /* trial in the runner, 0 */
    int64_t seq, t_ns, wall_ns;  /* of the last event */
    bool paused, ended, finished;
    char why[128];
    struct event usage;          /* the last EV_USAGE */
    int nr_notes;                /* the last BOARD_NOTES of them, oldest first */
    struct event *note;
    struct board_texts *texts;   /* where the texts of the trials are */
};

void board_init(struct board *b);
void board_release(struct board *b);
void board_apply(struct board *b, const struct event *ev);

/* NULL where there is none. */
const struct board_trial *board_trial(const struct board *b, int64_t id);

/* Weighted sum over the tasks at each stage, NAN when a task has no value: a later stage that a task
 * lacks counts with the stage before. */
struct board_model {
    double default_ns, explored_ns, refined_ns;
};
struct board_model board_model(const struct board *b);

/* Trials built and measured a second of active time. */
double board_trials_per_s(const struct board *b);

/* GFLOP/s of a task at `ns`; 0 where it has no arithmetic. */
double board_gflops(const struct board_task *t, double ns);

/* The stable JSON of `squall show --json` (README). */
void board_json(const struct board *b, struct strbuf *out);

#endif
