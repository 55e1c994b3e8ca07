/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A small session as a list of events, told by hand: what the tests of board, session, printers and
 * `show` have in common. Two tasks, nine trials, one of each way a trial can go that matters there;
 * interrupted before the second task was refined.
 */
#ifndef TESTS_STORY_H
#define TESTS_STORY_H

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "engine/tune/event.h"

enum { STORY_MAX = 64, STORY_TRIALS = 9 };

struct story {
    int nr;
    struct event ev[STORY_MAX];
};

static inline struct event *story_add(struct story *s, enum event_kind kind, int task,
                                      int64_t trial)
{
    struct event *ev = &s->ev[s->nr++];
    memset(ev, 0, sizeof *ev);
    ev->kind = kind;
    ev->seq = s->nr;
    ev->t_ns = s->nr * INT64_C(100000000);
    ev->wall_ns = INT64_C(1750000000000000000) + ev->t_ns;
    ev->task = task;
    ev->trial = trial;
    return ev;
}

#define STORY_TEXT(place, text) snprintf((place), sizeof(place), "%s", (text))

static inline void story_task(struct story *s, int task, const char *name, double weight,
                              double flops)
{
    struct event *ev = story_add(s, EV_TASK, task, 0);
    STORY_TEXT(ev->u.task.name, name);
    snprintf(ev->u.task.workload, sizeof ev->u.task.workload, "%016x", 0xabc0 + task);
    STORY_TEXT(ev->u.task.where, "node");
    STORY_TEXT(ev->u.task.kind, "conv2d");
    ev->u.task.weight = weight;
    ev->u.task.flops = flops;
    ev->u.task.bytes = 1e6;
    ev->u.task.space = 12345;
    ev->u.task.nr_sketches = 1;
}

static inline void story_knob(struct story *s, int task, int knob, const char *name)
{
    struct event *ev = story_add(s, EV_KNOB, task, 0);
    ev->u.knob.knob = knob;
    ev->u.knob.kind = knob ? KNOB_ORDINAL : KNOB_SPLIT;
    ev->u.knob.extent = 64;
    STORY_TEXT(ev->u.knob.sketch_name, "tiled");
    STORY_TEXT(ev->u.knob.name, name);
    STORY_TEXT(ev->u.knob.values, "1,2,4,8");
}

static inline void story_phase(struct story *s, int task, enum phase phase, const char *strategy)
{
    struct event *ev = story_add(s, EV_PHASE, task, 0);
    ev->u.phase.phase = phase;
    STORY_TEXT(ev->u.phase.strategy, strategy);
    ev->u.phase.budget = phase == PHASE_EXPLORE || phase == PHASE_REFINE ? 8 : 0;
}

static inline void story_proposed(struct story *s, int task, int64_t trial, enum phase phase,
                                  enum origin origin, int64_t parent)
{
    static const char *const strategies[] = {"", "default", "evolutionary", "droplet", "", ""};
    struct event *ev = story_add(s, EV_PROPOSED, task, trial);
    snprintf(ev->u.proposed.code, sizeof ev->u.proposed.code, "0:%d.%d/1", (int)trial,
             64 - (int)trial);
    STORY_TEXT(ev->u.proposed.sketch, "tiled");
    snprintf(ev->u.proposed.knobs, sizeof ev->u.proposed.knobs, "{\"tile\":[%d,%d],\"unroll\":1}",
             (int)trial, 64 - (int)trial);
    STORY_TEXT(ev->u.proposed.strategy, strategies[phase]);
    ev->u.proposed.phase = phase;
    ev->u.proposed.origin = origin;
    ev->u.proposed.parent = parent;
    ev->u.proposed.knob = origin == ORIGIN_NEIGHBOUR ? 0 : -1;
    ev->u.proposed.dir = origin == ORIGIN_NEIGHBOUR ? 1 : 0;
    ev->u.proposed.compare = origin == ORIGIN_NEIGHBOUR;
    STORY_TEXT(ev->u.proposed.note, origin == ORIGIN_NEIGHBOUR ? "tile: 2 from level 0 to 1" : "");
}

static inline void story_ended(struct story *s, int task, int64_t trial, enum trial_status status,
                               double ns, const char *reason)
{
    story_add(s, EV_MEASURING, task, trial);
    struct event *ev = story_add(s, EV_TRIAL, task, trial);
    ev->u.trial.status = status;
    STORY_TEXT(ev->u.trial.reason, reason);
    ev->u.trial.cost_ns = ns;
    ev->u.trial.median_ns = ns;
    ev->u.trial.error = NAN;
    if (!isnan(ns)) {
        ev->u.trial.nr_samples = 3;
        for (int i = 0; i < 3; i++)
            ev->u.trial.sample_ns[i] = ns + i - 1;
        ev->u.trial.checked = true;
        ev->u.trial.error = 0.25;
    }
    ev->u.trial.build_ns = 12000000;
    ev->u.trial.measure_ns = 15000000;
    ev->u.trial.code_bytes = 4096;
    ev->u.trial.started_ns = ev->t_ns - 50000000;
    ev->u.trial.ended_ns = ev->t_ns;
}

static inline void story_incumbent(struct story *s, int task, int64_t trial, enum phase phase,
                                   double ns, bool centre)
{
    struct event *ev = story_add(s, EV_INCUMBENT, task, trial);
    ev->u.incumbent.phase = phase;
    ev->u.incumbent.cost_ns = ns;
    ev->u.incumbent.centre = centre;
}

static inline void story_decision(struct story *s, int task, int64_t trial, int64_t incumbent,
                                  enum verdict verdict, double p, double gain)
{
    struct event *ev = story_add(s, EV_DECISION, task, trial);
    ev->u.decision.incumbent = incumbent;
    ev->u.decision.verdict = verdict;
    ev->u.decision.p_value = p;
    ev->u.decision.gain = gain;
    STORY_TEXT(ev->u.decision.text, "a step of the tile");
}

static inline void story_first_task(struct story *s)
{
    story_phase(s, 0, PHASE_DEFAULT, "default");
    story_proposed(s, 0, 1, PHASE_DEFAULT, ORIGIN_DEFAULT, 0);
    story_ended(s, 0, 1, TRIAL_OK, 4e6, "");
    story_incumbent(s, 0, 1, PHASE_DEFAULT, 4e6, false);
    story_phase(s, 0, PHASE_EXPLORE, "evolutionary");
    story_proposed(s, 0, 2, PHASE_EXPLORE, ORIGIN_SAMPLE, 0);
    story_proposed(s, 0, 3, PHASE_EXPLORE, ORIGIN_SAMPLE, 0);
    story_proposed(s, 0, 4, PHASE_EXPLORE, ORIGIN_MUTATE, 2);
    story_ended(s, 0, 2, TRIAL_OK, 2e6, "");
    story_incumbent(s, 0, 2, PHASE_EXPLORE, 2e6, false);
    story_ended(s, 0, 3, TRIAL_BUILD_ERROR, NAN, "out of registers:\n\x1b[31m\"ymm\" 17 of 16");
    story_ended(s, 0, 4, TRIAL_CUT, 9e6, "first sample 4.5x the incumbent's");
    story_phase(s, 0, PHASE_REFINE, "droplet");
    story_incumbent(s, 0, 2, PHASE_REFINE, 2e6, true);
    story_proposed(s, 0, 5, PHASE_REFINE, ORIGIN_NEIGHBOUR, 2);
    story_ended(s, 0, 5, TRIAL_OK, 1.5e6, "");
    story_decision(s, 0, 5, 2, VERDICT_MOVED, 0.004, 0.25);
    story_incumbent(s, 0, 5, PHASE_REFINE, 1.5e6, false);
    story_incumbent(s, 0, 5, PHASE_REFINE, 1.5e6, true);
    story_proposed(s, 0, 6, PHASE_REFINE, ORIGIN_NEIGHBOUR, 5);
    story_ended(s, 0, 6, TRIAL_OK, 1.49e6, "");
    story_decision(s, 0, 6, 5, VERDICT_NOISE, 0.31, 0.006);
    story_phase(s, 0, PHASE_FINAL, "");
    struct event *ev = story_add(s, EV_RESULT, 0, 0);
    ev->u.result.default_ns = 4.1e6;
    ev->u.result.default_lo = 4.0e6;
    ev->u.result.default_hi = 4.2e6;
    ev->u.result.explored_ns = 2.05e6;
    ev->u.result.explored_lo = 2.0e6;
    ev->u.result.explored_hi = 2.1e6;
    ev->u.result.refined_ns = 1.52e6;
    ev->u.result.refined_lo = 1.5e6;
    ev->u.result.refined_hi = 1.54e6;
    ev->u.result.default_trial = 1;
    ev->u.result.explored_trial = 2;
    ev->u.result.refined_trial = 5;
    ev->u.result.error = 0.125;
    ev->u.result.verdict = FINAL_SEPARATED;
    ev->u.result.rounds = 3;
    ev->u.result.pairs = 36;
    ev->u.result.p_value = 0.0001220703125;
    ev->u.result.gain = 0.25;
    ev->u.result.gain_lo = 0.24;
    ev->u.result.gain_hi = 0.26;
    story_phase(s, 0, PHASE_DONE, "");
}

static inline void story_second_task(struct story *s)
{
    story_phase(s, 1, PHASE_DEFAULT, "default");
    story_proposed(s, 1, 7, PHASE_DEFAULT, ORIGIN_DEFAULT, 0);
    story_ended(s, 1, 7, TRIAL_OK, 800e3, "");
    story_incumbent(s, 1, 7, PHASE_DEFAULT, 800e3, false);
    story_phase(s, 1, PHASE_EXPLORE, "evolutionary");
    story_proposed(s, 1, 8, PHASE_EXPLORE, ORIGIN_SAMPLE, 0);
    story_proposed(s, 1, 9, PHASE_EXPLORE, ORIGIN_SAMPLE, 0);
    story_ended(s, 1, 8, TRIAL_OK, 400e3, "");
    story_incumbent(s, 1, 8, PHASE_EXPLORE, 400e3, false);
    story_ended(s, 1, 9, TRIAL_CRASHED, NAN, "signal 11 (Segmentation fault)");
}

static inline void story_tell(struct story *s)
{
    s->nr = 0;
    struct event *ev = story_add(s, EV_SESSION, -1, 0);
    STORY_TEXT(ev->u.session.input, "net.onnx");
    STORY_TEXT(ev->u.session.model, "net");
    STORY_TEXT(ev->u.session.target, "llvm:cpu=test");
    STORY_TEXT(ev->u.session.hardware, "test CPU, 2 cores");
    STORY_TEXT(ev->u.session.compiler, "LLVM 19.1.7");
    STORY_TEXT(ev->u.session.version, "0.1.0");
    STORY_TEXT(ev->u.session.strategy, "evolutionary, droplet");
    ev->u.session.explore = 8;
    ev->u.session.refine = 8;
    ev->u.session.peak_gflops = 153.5;
    ev->u.session.seed = UINT64_C(0xfedcba9876543210);
    ev->u.session.jobs = 1;
    ev->u.session.threads = 2;
    ev->u.session.nr_tasks = 2;
    story_task(s, 0, "conv2d_64x56x56_3x3_64_relu", 3, 231211008);
    story_task(s, 1, "matmul_512x512x512", 1, 268435456);
    story_knob(s, 0, 0, "tile");
    story_knob(s, 0, 1, "unroll");
    story_first_task(s);
    story_second_task(s);
    ev = story_add(s, EV_NOTE, -1, 0);
    ev->u.note.level = 1;
    STORY_TEXT(ev->u.note.text, "the runner was restarted after a crash");
    ev = story_add(s, EV_COMMAND, 1, 0);
    STORY_TEXT(ev->u.command.verb, "skip-task");
    ev->u.command.after = 9;
    ev = story_add(s, EV_USAGE, -1, 0);
    ev->u.usage.active_ns = 6000000000;
    ev->u.usage.build_ns = 1500000000;
    ev->u.usage.measure_ns = 3000000000;
    ev->u.usage.search_ns = 300000000;
    ev->u.usage.prepare_ns = 600000000;
    ev->u.usage.wait_ns = 600000000;
    ev->u.usage.trials = 9;
    ev->u.usage.restarts = 1;
    ev->u.usage.canary_ns = 30000;
    ev->u.usage.drift = 1.0625;
    ev = story_add(s, EV_ENDED, -1, 0);
    STORY_TEXT(ev->u.ended.why, "stopped by a person");
}

#endif
