/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Events to rows: the log, and what the views are made of. Runs in the writer's transaction.
 *
 * A resumed session may tell once more of a trial that had not ended; its row is updated. A trial
 * that has ended is never touched again: a second end of it is dropped, from the log too.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/arena.h"
#include "sessions/private.h"

/* name, SQL */
#define STATEMENT_LIST(X)                                                                          \
    X(ST_EVENT, "INSERT INTO events(seq, kind, wall_ns, t_ns, task, trial, body)"                  \
                " VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7)")                                             \
    X(ST_META, "INSERT OR REPLACE INTO meta(key, value) VALUES(?1, ?2)")                           \
    X(ST_TASK, "INSERT INTO task(id, name, workload, where_, kind, weight, flops, bytes, space)"   \
               " VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)"                                       \
               " ON CONFLICT(id) DO UPDATE SET name = ?2, workload = ?3, where_ = ?4, kind = ?5,"  \
               " weight = ?6, flops = ?7, bytes = ?8, space = ?9")                                 \
    X(ST_PHASE, "UPDATE task SET phase = ?2, strategy = ?3,"                                       \
                " explored_trial = CASE WHEN phase = 'explore' AND ?2 IN ('refine', 'final',"      \
                "  'done') THEN coalesce(explored_trial, best_trial) ELSE explored_trial END,"     \
                " refined_trial = CASE WHEN phase = 'refine' AND ?2 IN ('final', 'done')"          \
                "  THEN coalesce(refined_trial, best_trial) ELSE refined_trial END,"               \
                " default_ns = CASE WHEN ?2 IN ('final', 'done') THEN default_ns END,"             \
                " explored_ns = CASE WHEN ?2 IN ('final', 'done') THEN explored_ns END,"           \
                " refined_ns = CASE WHEN ?2 IN ('final', 'done') THEN refined_ns END"              \
                " WHERE id = ?1")                                                                  \
    X(ST_PROPOSED,                                                                                 \
      "INSERT INTO trial(id, task, strategy, phase, sketch, knobs, code, origin,"                  \
      " parent, knob, dir, step) VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10,"                  \
      " ?11, ?12) ON CONFLICT(id) DO UPDATE SET task = ?2, strategy = ?3, phase = ?4,"             \
      " sketch = ?5, knobs = ?6, code = ?7, origin = ?8, parent = ?9, knob = ?10,"                 \
      " dir = ?11, step = ?12, measuring = 0 WHERE ended_seq IS NULL")                             \
    X(ST_MEASURING, "INSERT INTO trial(id, task, measuring) VALUES(?1, ?2, 1)"                     \
                    " ON CONFLICT(id) DO UPDATE SET measuring = 1 WHERE ended_seq IS NULL")        \
    X(ST_TRIAL,                                                                                    \
      "INSERT INTO trial(id, task, status, reason, cost_ns, median_ns, samples, checked,"          \
      " error, build_ns, measure_ns, code_bytes, started_ns, ended_ns, ended_wall_ns,"             \
      " ended_seq) VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14,"            \
      " ?15, ?16) ON CONFLICT(id) DO UPDATE SET status = ?3, reason = ?4, cost_ns = ?5,"           \
      " median_ns = ?6, samples = ?7, checked = ?8, error = ?9, build_ns = ?10,"                   \
      " measure_ns = ?11, code_bytes = ?12, started_ns = ?13, ended_ns = ?14,"                     \
      " ended_wall_ns = ?15, ended_seq = ?16, measuring = 0 WHERE ended_seq IS NULL")              \
    X(ST_DEFAULT, "UPDATE task SET default_trial = ?2, best_trial = coalesce(best_trial, ?2),"     \
                  " best_cost_ns = coalesce(best_cost_ns, ?3) WHERE id = ?1 AND"                   \
                  " (SELECT origin FROM trial WHERE id = ?2) = 'default'")                         \
    X(ST_INCUMBENT, "UPDATE task SET best_trial = ?2, best_cost_ns = ?3,"                          \
                    " explored_trial = CASE WHEN ?4 = 'explore' THEN ?2 ELSE explored_trial END,"  \
                    " refined_trial = CASE WHEN ?4 = 'refine' THEN ?2 ELSE refined_trial END"      \
                    " WHERE id = ?1 AND (NOT ?5 OR best_cost_ns IS NULL OR ?3 < best_cost_ns)")    \
    X(ST_DECISION, "UPDATE trial SET against = ?2, p_value = ?3, gain = ?4, verdict = ?5,"         \
                   " decision = ?6 WHERE id = ?1")                                                 \
    X(ST_RESULT, "UPDATE task SET default_ns = ?2, explored_ns = ?3, refined_ns = ?4,"             \
                 " default_trial = coalesce(?5, default_trial),"                                   \
                 " explored_trial = coalesce(?6, explored_trial),"                                 \
                 " refined_trial = coalesce(?7, refined_trial),"                                   \
                 " best_trial = coalesce(?8, best_trial), best_cost_ns = coalesce("                \
                 "  (SELECT cost_ns FROM trial WHERE id = ?8), best_cost_ns),"                     \
                 " result_after = (SELECT id FROM trial WHERE task = ?1 AND ended_seq IS NOT NULL" \
                 "  ORDER BY id DESC LIMIT 1) WHERE id = ?1")

enum statement {
#define STATEMENT_ENUM(name, sql) name,
    STATEMENT_LIST(STATEMENT_ENUM) NR_STATEMENTS
#undef STATEMENT_ENUM
};

struct rows {
    sqlite3_stmt *st[NR_STATEMENTS];
    struct strbuf body;
};

int rows_open(struct session *s, struct err *e)
{
    static const char *const sql[] = {
#define STATEMENT_SQL(name, text) text,
        STATEMENT_LIST(STATEMENT_SQL)
#undef STATEMENT_SQL
    };
    s->rows = xcalloc(1, sizeof *s->rows);
    int rc = 0;
    for (int i = 0; !rc && i < NR_STATEMENTS; i++)
        rc = db_prepare(s->path, s->db, sql[i], &s->rows->st[i], e);
    return rc;
}

void rows_close(struct session *s)
{
    if (!s->rows)
        return;
    for (int i = 0; i < NR_STATEMENTS; i++)
        sqlite3_finalize(s->rows->st[i]);
    strbuf_release(&s->rows->body);
    free(s->rows);
    s->rows = NULL;
}

/* A statement being filled: parameters in order. Texts live until run(), so nothing is copied. */
struct fill {
    sqlite3_stmt *st;
    int nr;
};

static struct fill fill(struct session *s, enum statement which)
{
    return (struct fill){s->rows->st[which], 0};
}

static void text(struct fill *f, const char *value)
{
    sqlite3_bind_text(f->st, ++f->nr, value, -1, SQLITE_STATIC);
}

/* "" is NULL: there is none. */
static void text_or_null(struct fill *f, const char *value)
{
    if (*value)
        text(f, value);
    else
        sqlite3_bind_null(f->st, ++f->nr);
}

static void integer(struct fill *f, int64_t value)
{
    sqlite3_bind_int64(f->st, ++f->nr, value);
}

/* 0 is NULL: trials are numbered from 1. */
static void number_or_null(struct fill *f, int64_t value)
{
    if (value)
        integer(f, value);
    else
        sqlite3_bind_null(f->st, ++f->nr);
}

/* NAN is NULL to SQLite already. */
static void real(struct fill *f, double value)
{
    sqlite3_bind_double(f->st, ++f->nr, value);
}

/* What was not measured is unknown to people, infinity too. */
static void time_or_null(struct fill *f, double ns)
{
    real(f, isfinite(ns) ? ns : NAN);
}

static int run(struct fill *f)
{
    int rc = sqlite3_step(f->st);
    sqlite3_reset(f->st);
    sqlite3_clear_bindings(f->st);
    return rc == SQLITE_DONE || rc == SQLITE_ROW ? SQLITE_OK : rc;
}

static int set_meta(struct session *s, const char *key, const char *value)
{
    struct fill f = fill(s, ST_META);
    text(&f, key);
    text(&f, value);
    return run(&f);
}

static int store_session(struct session *s, const struct event *ev)
{
    const struct {
        const char *key, *value;
    } pairs[] = {{"input", ev->u.session.input},       {"model", ev->u.session.model},
                 {"target", ev->u.session.target},     {"hardware", ev->u.session.hardware},
                 {"compiler", ev->u.session.compiler}, {"strategy", ev->u.session.strategy}};
    int rc = SQLITE_OK;
    for (size_t i = 0; rc == SQLITE_OK && i < sizeof pairs / sizeof *pairs; i++)
        rc = set_meta(s, pairs[i].key, pairs[i].value);
    return rc;
}

static int store_task(struct session *s, const struct event *ev)
{
    struct fill f = fill(s, ST_TASK);
    integer(&f, ev->task);
    text(&f, ev->u.task.name);
    text(&f, ev->u.task.workload);
    text_or_null(&f, ev->u.task.where);
    text_or_null(&f, ev->u.task.kind);
    real(&f, ev->u.task.weight);
    real(&f, ev->u.task.flops);
    real(&f, ev->u.task.bytes);
    real(&f, ev->u.task.space);
    return run(&f);
}

static int store_phase(struct session *s, const struct event *ev)
{
    struct fill f = fill(s, ST_PHASE);
    integer(&f, ev->task);
    text(&f, phase_name(ev->u.phase.phase));
    text_or_null(&f, ev->u.phase.strategy);
    return run(&f);
}

static int store_proposed(struct session *s, const struct event *ev)
{
    struct fill f = fill(s, ST_PROPOSED);
    integer(&f, ev->trial);
    integer(&f, ev->task);
    text(&f, ev->u.proposed.strategy);
    text(&f, phase_name(ev->u.proposed.phase));
    text(&f, ev->u.proposed.sketch);
    text(&f, ev->u.proposed.knobs);
    text(&f, ev->u.proposed.code);
    text(&f, origin_name(ev->u.proposed.origin));
    number_or_null(&f, ev->u.proposed.parent);
    integer(&f, ev->u.proposed.knob);
    integer(&f, ev->u.proposed.dir);
    text_or_null(&f, ev->u.proposed.note);
    return run(&f);
}

static int store_measuring(struct session *s, const struct event *ev)
{
    struct fill f = fill(s, ST_MEASURING);
    integer(&f, ev->trial);
    integer(&f, ev->task);
    return run(&f);
}

/* 1 when the trial had ended before; then nothing was changed. */
static int store_trial(struct session *s, const struct event *ev)
{
    struct fill f = fill(s, ST_TRIAL);
    integer(&f, ev->trial);
    integer(&f, ev->task);
    text(&f, trial_status_name(ev->u.trial.status));
    text_or_null(&f, ev->u.trial.reason);
    time_or_null(&f, ev->u.trial.cost_ns);
    time_or_null(&f, ev->u.trial.median_ns);
    integer(&f, ev->u.trial.nr_samples);
    integer(&f, ev->u.trial.checked);
    real(&f, ev->u.trial.error);
    integer(&f, ev->u.trial.build_ns);
    integer(&f, ev->u.trial.measure_ns);
    integer(&f, ev->u.trial.code_bytes);
    integer(&f, ev->u.trial.started_ns);
    integer(&f, ev->u.trial.ended_ns);
    integer(&f, ev->wall_ns);
    integer(&f, ev->seq);
    int rc = run(&f);
    if (rc != SQLITE_OK)
        return -rc;
    if (!sqlite3_changes(s->db))
        return 1;
    if (ev->u.trial.status != TRIAL_OK)
        return 0;
    f = fill(s, ST_DEFAULT);
    integer(&f, ev->task);
    integer(&f, ev->trial);
    time_or_null(&f, ev->u.trial.cost_ns);
    return -run(&f);
}

static int store_incumbent(struct session *s, const struct event *ev)
{
    struct fill f = fill(s, ST_INCUMBENT);
    integer(&f, ev->task);
    integer(&f, ev->trial);
    time_or_null(&f, ev->u.incumbent.cost_ns);
    text(&f, phase_name(ev->u.incumbent.phase));
    integer(&f, ev->u.incumbent.centre);
    return run(&f);
}

static int store_decision(struct session *s, const struct event *ev)
{
    struct fill f = fill(s, ST_DECISION);
    integer(&f, ev->trial);
    number_or_null(&f, ev->u.decision.incumbent);
    real(&f, ev->u.decision.p_value);
    real(&f, ev->u.decision.gain);
    text(&f, verdict_name(ev->u.decision.verdict));
    text_or_null(&f, ev->u.decision.text);
    return run(&f);
}

static int store_result(struct session *s, const struct event *ev)
{
    struct fill f = fill(s, ST_RESULT);
    integer(&f, ev->task);
    time_or_null(&f, ev->u.result.default_ns);
    time_or_null(&f, ev->u.result.explored_ns);
    time_or_null(&f, ev->u.result.refined_ns);
    number_or_null(&f, ev->u.result.default_trial);
    number_or_null(&f, ev->u.result.explored_trial);
    number_or_null(&f, ev->u.result.refined_trial);
    number_or_null(&f, ev->trial);
    return run(&f);
}

static int store_ended(struct session *s, const struct event *ev)
{
    int rc = set_meta(s, "state", ev->u.ended.finished ? "finished" : "interrupted");
    if (rc == SQLITE_OK)
        rc = set_meta(s, "why", ev->u.ended.why);
    s->ended = true;
    return rc;
}

static int store_event(struct session *s, const struct event *ev)
{
    strbuf_reset(&s->rows->body);
    event_to_json(ev, &s->rows->body);
    struct fill f = fill(s, ST_EVENT);
    integer(&f, ev->seq);
    text(&f, event_kind_name(ev->kind));
    integer(&f, ev->wall_ns);
    integer(&f, ev->t_ns);
    integer(&f, ev->task);
    integer(&f, ev->trial);
    text(&f, strbuf_text(&s->rows->body));
    return run(&f);
}

int rows_store(struct session *s, const struct event *ev)
{
    static int (*const store[EV_NR_KINDS])(struct session *, const struct event *) = {
        [EV_SESSION] = store_session,     [EV_TASK] = store_task,
        [EV_PHASE] = store_phase,         [EV_PROPOSED] = store_proposed,
        [EV_MEASURING] = store_measuring, [EV_INCUMBENT] = store_incumbent,
        [EV_DECISION] = store_decision,   [EV_RESULT] = store_result,
        [EV_ENDED] = store_ended,
    };
    int rc = SQLITE_OK;
    if (ev->kind == EV_TRIAL) {
        int again = store_trial(s, ev);
        if (again)
            return again > 0 ? 0 : again;
    } else if (store[ev->kind]) {
        rc = store[ev->kind](s, ev);
    }
    if (rc == SQLITE_OK)
        rc = store_event(s, ev);
    return rc == SQLITE_OK ? 1 : -rc;
}
