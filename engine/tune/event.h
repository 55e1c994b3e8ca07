/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Events: everything that happens in a session, in order.
 *
 * The conductor emits events; the session commits them; screens and printers are computed from them
 * by one reducer (board.h). Live, attach and replay differ only in where the events come from.
 * An event is a plain struct without pointers, so that it can be queued and kept by value; longer
 * texts are cut. event_to_json() / event_from_json() are the stored form: an object with the fields
 * that matter to its kind. Adding a field keeps old sessions readable; renaming one does not.
 */
#ifndef ENGINE_TUNE_EVENT_H
#define ENGINE_TUNE_EVENT_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/base/err.h"
#include "engine/base/strbuf.h"
#include "engine/search/strategy.h"

#define EVENT_LIST(X)                                                                              \
    X(EV_SESSION, "session")       /* began or resumed: inputs, target, options */                 \
    X(EV_TASK, "task")             /* a task and its space */                                      \
    X(EV_KNOB, "knob")             /* a knob of a sketch of a task: what the ladder shows */       \
    X(EV_PHASE, "phase")           /* a task enters a phase */                                     \
    X(EV_PROPOSED, "proposed")     /* a trial exists: candidate, origin, parent */                 \
    X(EV_MEASURING, "measuring")   /* the runner has it */                                         \
    X(EV_TRIAL, "trial")           /* a trial ended: status, samples */                            \
    X(EV_INCUMBENT, "incumbent")   /* the best of a task (or the centre of its ladder) changed */  \
    X(EV_DECISION, "decision")     /* a strategy judged a trial: p-value, gain, verdict */         \
    X(EV_RESULT, "result")         /* final, interleaved measurement of a task */                  \
    X(EV_COMMAND, "command")       /* a person steered */                                          \
    X(EV_NOTE, "note")             /* something to know: a runner restarted, a reason to stop */   \
    X(EV_USAGE, "usage")           /* where the time went so far */                                \
    X(EV_ENDED, "ended")           /* finished or interrupted, and why */

enum event_kind {
#define EVENT_ENUM(name, text) name,
    EVENT_LIST(EVENT_ENUM) EV_NR_KINDS
#undef EVENT_ENUM
};

enum phase { PHASE_WAITING, PHASE_DEFAULT, PHASE_EXPLORE, PHASE_REFINE, PHASE_FINAL, PHASE_DONE };
const char *phase_name(enum phase p);

/* What the final says of the order of best refined and best explored (conductor_final.c). */
enum final_verdict { FINAL_NONE, FINAL_SEPARATED, FINAL_TIED, FINAL_OPEN };
const char *final_verdict_name(enum final_verdict v);

/* Counting a space may have to enumerate it, at some 10 million candidates a second, before the
 * first event of the task. */
#define EVENT_SPACE_CAP INT64_C(100000)

enum { EVENT_CODE = 480, EVENT_TEXT = 480, EVENT_NAME = 96 };

struct event {
    enum event_kind kind;
    int64_t seq;     /* 1 .. in the order of emission; set by whoever commits */
    int64_t wall_ns; /* CLOCK_REALTIME when it happened */
    int64_t t_ns;    /* active time of the session: stands still between runs of a resumed one */
    int32_t task;    /* number, from 0; -1 for the session */
    int64_t trial;   /* number, from 1 over the whole session; 0 for none */
    union {
        struct {
            char input[256], target[128], hardware[128], compiler[64], version[16], strategy[64];
            int64_t trials, explore, refine; /* budgets; 0 is none */
            double seconds, peak_gflops;
            uint64_t seed;
            int32_t jobs, threads, nr_tasks, resumed; /* resumed: how often */
            int32_t cold; /* 1: measured with constants out of the caches */
            char model[128];
        } session;
        struct {
            char name[EVENT_NAME], workload[17], where[EVENT_NAME], kind[64];
            double weight, flops, bytes;
            double space;            /* number of candidates, counted up to EVENT_SPACE_CAP */
            int32_t nr_sketches;
        } task;
        struct {
            int32_t sketch, knob, kind; /* enum knob_kind */
            int64_t extent;
            char sketch_name[32], name[32], values[128]; /* "1,2,4,8" */
        } knob;
        struct {
            enum phase phase;
            char strategy[32], why[128];
            int64_t budget, used; /* trials; used: of it before this event */
        } phase;
        struct {
            char code[EVENT_CODE], sketch[32], knobs[EVENT_CODE * 2], strategy[32], note[64];
            enum phase phase;
            enum origin origin;
            int64_t parent;
            int32_t knob, dir;
            bool compare;
        } proposed;
        struct {
            enum trial_status status;
            char reason[256];
            double cost_ns, median_ns;
            int32_t nr_samples, nr_ref;
            double sample_ns[TRIAL_MAX_SAMPLES], ref_ns[TRIAL_MAX_SAMPLES];
            bool checked;
            double error;
            int64_t build_ns, measure_ns, code_bytes, started_ns, ended_ns; /* the last two t_ns */
            /* conductor_drift.c: the canary at its time; and what cost_ns and median_ns were divided
             * by, 1 where not compensated. NAN where there is no canary. Samples are as taken. */
            double canary_ns, drift;
        } trial;
        struct {
            enum phase phase;
            double cost_ns;
            bool centre; /* the centre of the ladder, not (only) the best of the task */
        } incumbent;
        struct {
            int64_t incumbent;
            enum verdict verdict;
            double p_value, gain;
            char text[128];
        } decision;
        struct {
            /* of the interleaved finalists, relative to the winner (conductor_final.c); NAN where
             * there is none. 95 % intervals. */
            double default_ns, explored_ns, refined_ns;
            double default_lo, default_hi, explored_lo, explored_hi, refined_lo, refined_hi;
            int64_t default_trial, explored_trial, refined_trial;
            double error; /* of the refined kernel's output, in tolerances */
            /* Refined against explored, or explored against default where nothing was refined;
             * verdict FINAL_NONE where there was one of them only. */
            enum final_verdict verdict;
            int32_t rounds, pairs;
            double p_value, gain, gain_lo, gain_hi; /* gain: 1 - the median ratio of the pairs */
            char why[128];
        } result;
        struct {
            char verb[32], text[EVENT_TEXT];
            int64_t after; /* applies after the trial of this number was observed; that of a trial
                              which did not exist then: when nothing was left to do */
            double value;  /* of a budget ("explore", "refine", "trials", "seconds") */
        } command;
        struct {
            int32_t level; /* 0 information, 1 warning, 2 error */
            char text[EVENT_TEXT];
        } note;
        struct {
            /* search_ns is time of the processor, which builders share with the search. */
            int64_t active_ns, build_ns, measure_ns, search_ns, prepare_ns, wait_ns;
            int64_t trials, restarts;
            double canary_ns; /* the reference of the session; NAN until known */
            double drift;     /* the machine now: 1.2 takes 20 % longer than the reference; NAN */
        } usage;
        struct {
            bool finished; /* else interrupted, and resumable */
            char why[128];
        } ended;
    } u;
};

const char *event_kind_name(enum event_kind k);

/* The payload as a JSON object (kind, seq, times, task and trial are columns of their own and also
 * part of it, as "event", "seq", "wall_ns", "t_ns", "task", "trial"). NAN is null. */
void event_to_json(const struct event *ev, struct strbuf *out);
int event_from_json(const char *text, size_t len, struct event *ev, struct err *e);

/* Takes events in order. Called from the conductor's thread; must not block for long. */
struct event_sink {
    void (*emit)(void *ctx, const struct event *ev);
    void *ctx;
    /* NULL, or takes what the cost model learned (cost_model.h): `bytes`, which the callee copies,
     * by the name `data` of the `nr_trials` trials it is from. In order with the events: where a
     * later one is found again, so is this. */
    void (*keep)(void *ctx, uint64_t data, int nr_trials, const void *bytes, size_t len);
};

#endif
