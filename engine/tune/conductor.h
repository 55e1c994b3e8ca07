/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Conductor: runs a session.
 *
 * THREADS (the whole program)
 *   main        curses or a batch printer; reads events; nothing else touches the terminal
 *   conductor   strategies, task scheduler, decisions; the only caller of a strategy
 *   builder x N build candidates (device->build) and prepare operands; one LLVM context each
 *   measurer    one a device: device->measure; talks to the runner process
 *   writer      commits events to the session (sessions/)
 *
 * DETERMINISM. Decisions depend on the seed and on the results only, never on when a result came:
 * work is done in batches; results are observed in the order of the trial numbers; the next batch is
 * proposed when the oldest batch in flight is complete, so that up to two batches are in flight and
 * the builders stay busy while the runner measures. A stored session is resumed by doing all this
 * again with the stored results: a proposed trial whose number is in the history is answered from
 * it. A result is the samples and the drift of the machine that its cost is compensated for
 * (conductor_drift.c); both are stored. What the cost model learned is a function of the results,
 * too; it is stored only to spare the time of learning it again. A person's command takes effect
 * after a numbered trial, and is stored with that number.
 *
 * BUDGETS of tasks are such commands: what is stored is decided again under the budgets in force
 * then. A task explores while it has explored fewer trials than its budget says, and refines while
 * it has refined fewer since. So one that was done goes on from where it stood when its refine
 * budget grows; when its explore budget grows it explores on, whatever it was doing, and then
 * refines anew. The limits of the whole session decide nothing but when it ends: the last of them
 * holds, and never cuts off what is stored.
 *
 * FLOW of a task: default (the untuned schedule) -> explore -> refine (from the best explored) ->
 * final (default, best explored, best refined measured once more, interleaved) -> done. Which task
 * goes next is the task scheduler's choice (scheduler.h): weight x expected gain.
 */
#ifndef ENGINE_TUNE_CONDUCTOR_H
#define ENGINE_TUNE_CONDUCTOR_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/base/err.h"
#include "engine/model/task.h"
#include "engine/tune/device.h"
#include "engine/tune/event.h"

struct tune_options {
    char input[256];
    char explore_strategy[32]; /* "evolutionary"; "none" skips the phase */
    char refine_strategy[32];  /* "droplet"; "none" skips the phase */
    int64_t trials;            /* whole session, 0 no limit */
    int64_t explore, refine;   /* per task; 0 skips the phase, negative: until it stagnates */
    double seconds;            /* whole session, 0 no limit */
    uint64_t seed;
    int jobs;                  /* builder threads, 0 for one a core, the measurer's apart */
    const struct lessons *lessons; /* cost_model.h: what it begins with; NULL for nothing. Outlives the
                                      conductor; part of the session, not of its stored options */
    int64_t fill_ns;           /* measuring time of a trial */
    bool cold;                 /* constants come from memory at every measured call: what they do in
                                  a network whose weights do not fit the caches */
    bool cost_model;           /* a learned model ranks candidates, where they have features */
    int64_t build_timeout_ns, run_timeout_ns;
};

/* What a person can ask for; thread-safe, from main. */
enum tune_verb {
    TUNE_PAUSE,      /* finish what is in flight, then hold */
    TUNE_GO,         /* go on after a pause */
    TUNE_SKIP_TASK,  /* `task` goes to its end with what it has (an event, replayed on resume) */
    TUNE_EXPLORE,    /* budget in trials of `task`, of every task where it is -1 (replayed, too) */
    TUNE_REFINE,     /* the same */
    TUNE_TRIALS,     /* limits of the session; 0 for none */
    TUNE_SECONDS,
    TUNE_STOP,       /* stop after the running measurement; the session stays resumable */
    TUNE_ABANDON,    /* the same, without waiting for the running measurement */
};

struct tune_command {
    enum tune_verb verb;
    int task;     /* -1 for the session or all tasks */
    double value; /* of budgets: trials or seconds in all, not how many more */
};

/* Stored trials of an earlier run, by number. */
struct history {
    int64_t last_trial;        /* 0 for a new session */
    double active_seconds;     /* spent so far */
    int resumed;               /* how often the session was resumed, this time included */
    /* True when trial `id` ended; fills o and its code, to be compared with what is proposed now. */
    bool (*find)(void *ctx, int64_t id, struct observation *o, char code[EVENT_CODE]);
    /* Stored commands in order; false past the last. */
    bool (*command)(void *ctx, int i, struct event *out);
    void *ctx;
    /* May be NULL: final measurements are then made again. The highest number of a trial of the
     * task that ended before the task's last EV_RESULT; 0 where it has none. */
    int64_t (*resulted)(void *ctx, int task);
    /* May be NULL: everything is then learned again. True where what the sink was to keep as `data`
     * was found and appended to `out`; whoever takes it trusts nothing of it. */
    bool (*learned)(void *ctx, uint64_t data, struct strbuf *out);
    const struct event *usage; /* the last EV_USAGE, to count on from, and with the reference of
                                  the canary; NULL for none */
    /* Budgets changed by whoever resumes: those of tasks after the last stored trial. */
    const struct tune_command *budget;
    int nr_budgets;
};

struct conductor;

/*
 * Starts the threads. `tasks`, `device`, `sink` and `history` (may be NULL) outlive the conductor.
 * Events of trials answered from the history are not emitted again. All of the session's opening
 * events (EV_SESSION, EV_TASK, EV_KNOB) are emitted only for a new session; a resumed one emits
 * EV_SESSION with resumed > 0.
 */
struct conductor *conductor_start(const struct tune_options *o, const struct task_list *tasks,
                                  struct device *device, const struct event_sink *sink,
                                  const struct history *history, struct err *e);

void conductor_command(struct conductor *c, enum tune_verb verb, int task);

/* Changes a budget: `m` has one of the verbs for budgets. A limit that has been reached, so that the
 * session is ending, is not taken back; the new one counts when it is resumed. */
void conductor_budget(struct conductor *c, const struct tune_command *m);

/* Readable (eventfd) when the session has ended. */
int conductor_fd(struct conductor *c);

/* Waits for the end. 0 finished; ERR_INTERRUPTED stopped by a person or a signal, resumable;
 * another code with a sentence when it could not go on. */
int conductor_join(struct conductor *c, struct err *e);
void conductor_free(struct conductor *c);

/*
 * Builder threads that still hang in the device (builders.c). While there are any after
 * conductor_join(), tasks and device must stay as they are, and the process is to leave by _exit():
 * destructors would run under the feet of these threads.
 */
int conductor_stuck(struct conductor *c);

#endif
