/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What earlier runs of a session left, for the conductor to answer proposals from. It reads through
 * a connection of its own, so that it does not meet the writer.
 */
#include <math.h>
#include <string.h>

#include "engine/base/utf8.h"
#include "sessions/private.h"

static enum origin origin_parse(const char *text)
{
    for (int i = 0; i <= ORIGIN_FINAL; i++)
        if (!strcmp(text, origin_name((enum origin)i)))
            return (enum origin)i;
    return ORIGIN_SAMPLE;
}

static const char *column_text(sqlite3_stmt *st, int i)
{
    const char *text = (const char *)sqlite3_column_text(st, i);
    return text ? text : "";
}

static int column_event(sqlite3_stmt *st, int i, struct event *ev)
{
    const char *body = column_text(st, i);
    return event_from_json(body, strlen(body), ev, NULL);
}

static void fill_observation(const struct event *ev, sqlite3_stmt *st, struct observation *o)
{
    *o = (struct observation){
        .trial = ev->trial,
        .origin = origin_parse(column_text(st, 2)),
        .parent = sqlite3_column_int64(st, 3),
        .knob = sqlite3_column_int(st, 4),
        .dir = sqlite3_column_int(st, 5),
        .status = ev->u.trial.status,
        .cost_ns = ev->u.trial.cost_ns,
        .drift = ev->u.trial.drift,
        .nr_samples = ev->u.trial.nr_samples,
        .nr_ref = ev->u.trial.nr_ref,
    };
    /* Infinity is what a strategy saw of a trial without a time. */
    if (isnan(o->cost_ns))
        o->cost_ns = INFINITY;
    memcpy(o->sample_ns, ev->u.trial.sample_ns, sizeof o->sample_ns);
    memcpy(o->ref_ns, ev->u.trial.ref_ns, sizeof o->ref_ns);
}

static bool find(void *ctx, int64_t id, struct observation *o, char code[EVENT_CODE])
{
    struct session *s = ctx;
    struct event ev;
    sqlite3_bind_int64(s->find, 1, id);
    bool found = sqlite3_step(s->find) == SQLITE_ROW && !column_event(s->find, 0, &ev) &&
                 ev.kind == EV_TRIAL;
    if (found) {
        fill_observation(&ev, s->find, o);
        utf8_copy(code, EVENT_CODE, column_text(s->find, 1));
    }
    sqlite3_reset(s->find);
    return found;
}

static bool command(void *ctx, int i, struct event *out)
{
    struct session *s = ctx;
    sqlite3_bind_int(s->command, 1, i);
    bool found = sqlite3_step(s->command) == SQLITE_ROW && !column_event(s->command, 0, out);
    sqlite3_reset(s->command);
    return found;
}

static int64_t resulted(void *ctx, int task)
{
    struct session *s = ctx;
    sqlite3_bind_int(s->resulted, 1, task);
    int64_t trial =
        sqlite3_step(s->resulted) == SQLITE_ROW ? sqlite3_column_int64(s->resulted, 0) : 0;
    sqlite3_reset(s->resulted);
    return trial;
}

/* Where the earlier runs stopped: the active time, and what the last EV_USAGE said. */
static int read_end(struct session *s, struct history *out, struct err *e)
{
    static const char *const sql[] = {
        "SELECT t_ns FROM events ORDER BY seq DESC LIMIT 1",
        "SELECT body FROM events WHERE kind = 'usage' ORDER BY seq DESC LIMIT 1",
    };
    for (int i = 0; i < 2; i++) {
        sqlite3_stmt *st;
        int rc = db_prepare(s->path, s->past, sql[i], &st, e);
        if (rc)
            return rc;
        bool found = sqlite3_step(st) == SQLITE_ROW;
        if (found && i == 0)
            out->active_seconds = (double)sqlite3_column_int64(st, 0) / 1e9;
        if (found && i == 1 && !column_event(st, 0, &s->usage))
            out->usage = &s->usage;
        sqlite3_finalize(st);
    }
    return 0;
}

static int prepare(struct session *s, struct err *e)
{
    int rc = db_prepare(s->path, s->past,
                        "SELECT e.body, t.code, t.origin, t.parent, t.knob, t.dir FROM trial t"
                        " JOIN events e ON e.seq = t.ended_seq WHERE t.id = ?1",
                        &s->find, e);
    if (!rc)
        rc = db_prepare(s->path, s->past,
                        "SELECT body FROM events WHERE kind = 'command' ORDER BY seq"
                        " LIMIT 1 OFFSET ?1",
                        &s->command, e);
    if (!rc)
        rc = db_prepare(s->path, s->past, "SELECT result_after FROM task WHERE id = ?1",
                        &s->resulted, e);
    if (!rc)
        rc = trees_prepare(s, e);
    return rc;
}

int session_history(struct session *s, struct history *out, struct err *e)
{
    /* Asked before session_start(): the writer's connection is still this thread's. */
    struct session_info info;
    int rc = session_info(s, &info, e);
    if (!rc)
        rc = db_open(s->path, SQLITE_OPEN_READONLY, &s->past, e);
    if (!rc)
        rc = prepare(s, e);
    if (rc)
        return rc;
    *out = (struct history){.last_trial = info.last_trial,
                            .resumed = info.resumed,
                            .find = find,
                            .command = command,
                            .resulted = resulted,
                            .learned = trees_learned,
                            .ctx = s};
    return read_end(s, out, e);
}
