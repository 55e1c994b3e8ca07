/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Session: one SQLite file.
 *
 * The log `events` is what everything is derived from; `task` and `trial` are brought up to date in
 * the transaction that stores an event, for views and lookups. For people with the sqlite3 shell:
 *
 *   trials       one row a trial that ended: id, task, strategy, phase, sketch, knobs (JSON),
 *                status, reason, median_ns, samples (their number), parent, started, ended, then
 *                cost_ns, code, origin, p_value, gain, verdict, decision, error, build_ns,
 *                measure_ns, code_bytes, step, ended_at, sample_ns
 *   in_flight    trials proposed that have not ended: id, task, strategy, phase, sketch, knobs,
 *                state
 *   leaderboard  task, rank, trial, median_ns, gflops, speedup (over the untuned default), sketch,
 *                knobs
 *   progress     task, trial, trials (of the task so far), time, median_ns, best_ns
 *   failures     task, status, reason, count, example (a trial); a cut trial is no failure
 *   tasks        name, workload, weight, phase, default_ns, explored_ns, refined_ns, gflops,
 *                trials, speedup, where_, kind
 *
 * `task` is the task's name. `started`, `ended` and `time` are seconds of the session's active
 * time, which stands still between the runs of a resumed session; `ended_at` is UTC, ISO 8601.
 * median_ns and cost_ns of a trial are compensated for the drift of the machine, sample_ns is as
 * taken (engine/tune/conductor_drift.c). What is not known is NULL.
 *
 * Two tables are there only where they are needed, so that a session without them is one of the same
 * format, and an older squall passes them by: `lesson`, what the cost model began with (lessons.c);
 * and `trees`, what it learned, a row for all that came into use (trees.c): data (a hash of what it
 * was learned from), trials (their number), body (engine/search/trees.h, which has its own version).
 *
 * DURABILITY. WAL with synchronous=NORMAL: a committed transaction is with the operating system, so
 * kill -9 loses only what the writer's queue held, milliseconds of it. A loss of power can take the
 * last commits but never the file's consistency; FULL would force the disk at every commit and
 * disturb what is being measured.
 *
 * ONE WRITER. The state `running` is stored with host, boot, process and its start time. A second
 * squall refuses a session whose process lives; after kill -9 it finds the process gone. A session
 * of another host cannot be checked, and is only taken over when told so.
 *
 * THREADS. The opening thread has the struct to itself until session_start(); from then on the
 * connection belongs to the writer thread, and session_sink(), _watch(), _failed(), _committed(),
 * _flush() and the history are what others may use. Nothing is held across SQLite but the
 * connection itself.
 */
#ifndef SESSIONS_STORE_H
#define SESSIONS_STORE_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/base/err.h"
#include "engine/base/strbuf.h"
#include "engine/tune/conductor.h"
#include "engine/tune/event.h"
#include "engine/tune/queue.h"

enum session_mode {
    SESSION_READ,      /* also while another squall writes, and on read-only media */
    SESSION_RESUME,    /* to go on with it: claims it for this process */
    SESSION_TAKE_OVER, /* the same, of a session that another host seems to be running */
};

struct session;

/* A new file; refuses one that exists. The session is claimed. */
int session_create(const char *path, const struct tune_options *o, struct session **out,
                   struct err *e);
int session_open(const char *path, enum session_mode mode, struct session **out, struct err *e);

/*
 * Commits what is queued, stops the writer, and closes; a session without an EV_ENDED of this run
 * is marked interrupted. Returns the writer's failure where there was one. `s` may be NULL.
 */
int session_close(struct session *s, struct err *e);

const char *session_path(const struct session *s);

/* What was stored about it. */
enum session_state { SESSION_RUNNING, SESSION_INTERRUPTED, SESSION_FINISHED };
const char *session_state_name(enum session_state s);

struct session_info {
    enum session_state state; /* a session whose process is gone is interrupted; of a claimed one,
                                 the state before it was claimed */
    char why[128];
    int64_t pid;              /* of the running process, 0 for none */
    char host[64];
    char version[16];         /* of the squall that created it */
    int64_t created_ns;       /* CLOCK_REALTIME */
    int resumed;              /* how often */
    int64_t last_seq, last_trial;
};
int session_info(struct session *s, struct session_info *out, struct err *e);

/* The options it was created with. Budgets that changed since are commands of its history. */
int session_options(struct session *s, struct tune_options *out, struct err *e);

/*
 * Inputs: session_add_input() stores a file's full path and the hash of its contents;
 * session_check_inputs() refuses when one is gone or changed. session_input() gives the path of
 * input `i`; 1, or 0 past the last.
 */
int session_add_input(struct session *s, const char *path, struct err *e);
int session_check_inputs(struct session *s, struct err *e);
int session_input(struct session *s, int i, struct strbuf *path, struct err *e);

/* Further values by key ("target", "task-glob"), for whoever starts the session. session_get():
 * 1 found, 0 not there. Not after session_start(). */
int session_set(struct session *s, const char *key, const char *value, struct err *e);
int session_get(struct session *s, const char *key, struct strbuf *value, struct err *e);

struct lessons;

/* What the cost model of this session begins with, from other sessions (engine/search/cost_model.h): a
 * copy of its own, so that it can be resumed whatever becomes of them. Not after session_start(). The
 * caller releases what session_lessons() fills. */
int session_add_lessons(struct session *s, const struct lessons *l, struct err *e);
int session_lessons(struct session *s, struct lessons *out, struct err *e);

/* The writer. */

/* Starts its thread. */
int session_start(struct session *s, struct err *e);

/* Blocks only while a thousand events wait to be committed; after a failure they are dropped. */
struct event_sink session_sink(struct session *s);

/*
 * Committed events are handed on to `q` (of struct event) from now on, or no more (NULL). A full
 * queue is passed by, so the writer never waits for a watcher: the watcher sees a gap in seq and
 * reads it from the file. feed.h does all of that.
 */
void session_watch(struct session *s, struct queue *q);

/* The seq of the last event committed. */
int64_t session_committed(struct session *s);

/* Waits until all that was emitted before is committed. */
int session_flush(struct session *s, struct err *e);

/* The code of the first failed commit (disk full), with its sentence; 0 while all is well.
 * session_fd() becomes readable then. */
int session_failed(struct session *s, struct err *e);
int session_fd(struct session *s);

/* The trials and commands stored before this run; lives as long as the session. Used by one thread,
 * which need not be the writer. The candidate of an observation is left to the caller: the code
 * says it. */
int session_history(struct session *s, struct history *out, struct err *e);

#endif
