/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lessons in a session: the table `lesson`, a row a trial of another session, its features as they
 * lie in memory. Only sessions that have some have the table.
 */
#include <math.h>
#include <string.h>

#include "engine/search/cost_model.h"
#include "sessions/private.h"

static const char create[] = "CREATE TABLE IF NOT EXISTS lesson(id INTEGER PRIMARY KEY, task "
                             "INTEGER NOT NULL, cost_ns REAL,\n"
                             "  features INTEGER NOT NULL, rows BLOB NOT NULL);";

static int insert(struct session *s, sqlite3_stmt *st, const struct lesson *l, struct err *e)
{
    sqlite3_bind_int(st, 1, l->task);
    if (isfinite(l->cost_ns))
        sqlite3_bind_double(st, 2, l->cost_ns);
    else
        sqlite3_bind_null(st, 2);
    sqlite3_bind_int(st, 3, FEATURES);
    sqlite3_bind_blob(st, 4, l->row, l->nr_rows * (int)sizeof *l->row, SQLITE_STATIC);
    int rc = sqlite3_step(st);
    sqlite3_reset(st);
    return rc == SQLITE_DONE ? 0 : sql_error(s->path, s->db, rc, e);
}

int session_add_lessons(struct session *s, const struct lessons *l, struct err *e)
{
    sqlite3_stmt *st = NULL;
    int rc = db_exec(s->path, s->db, create, e);
    rc = rc ? rc : db_exec(s->path, s->db, "BEGIN", e);
    if (rc)
        return rc;
    rc = db_prepare(s->path, s->db,
                    "INSERT INTO lesson(task, cost_ns, features, rows) VALUES(?1, ?2, ?3, ?4)", &st,
                    e);
    for (int i = 0; i < l->nr && !rc; i++)
        rc = insert(s, st, &l->v[i], e);
    sqlite3_finalize(st);
    if (!rc)
        return db_exec(s->path, s->db, "COMMIT", e);
    struct err undone = ERR_INIT;
    db_exec(s->path, s->db, "ROLLBACK", &undone);
    return rc;
}

static int take(const struct session *s, sqlite3_stmt *st, struct lessons *out, struct err *e)
{
    int bytes = sqlite3_column_bytes(st, 3), task = sqlite3_column_int(st, 0);
    const void *blob = sqlite3_column_blob(st, 3);
    float row[FEATURE_ROWS][FEATURES];
    int nr = bytes / (int)sizeof *row;
    if (sqlite3_column_int(st, 2) != FEATURES || !blob || nr < 1 || nr > FEATURE_ROWS ||
        bytes % (int)sizeof *row || task < 0 || task > 100000)
        return err_set(
            e, ERR_SESSION,
            "session \"%s\" began with what another version of squall had learned, or is "
            "damaged; start a new one",
            s->path);
    memcpy(row, blob, (size_t)bytes);
    for (int i = 0; i < nr * FEATURES; i++) /* from a stranger's file, perhaps */
        if (!isfinite(row[i / FEATURES][i % FEATURES]))
            row[i / FEATURES][i % FEATURES] = 0;
    double cost = sqlite3_column_double(st, 1);
    bool failed = sqlite3_column_type(st, 1) == SQLITE_NULL || !(cost > 0);
    lessons_add(out, task, (const float(*)[FEATURES])row, nr, failed ? INFINITY : cost);
    return 0;
}

int session_lessons(struct session *s, struct lessons *out, struct err *e)
{
    sqlite3_stmt *st = NULL;
    *out = (struct lessons){0};
    int rc = db_has_table(s->path, s->db, "lesson", e);
    if (rc <= 0)
        return rc;
    rc = db_prepare(s->path, s->db, "SELECT task, cost_ns, features, rows FROM lesson ORDER BY id",
                    &st, e);
    int step = SQLITE_DONE;
    while (!rc && (step = sqlite3_step(st)) == SQLITE_ROW)
        rc = take(s, st, out, e);
    if (!rc && step != SQLITE_DONE)
        rc = sql_error(s->path, s->db, step, e);
    sqlite3_finalize(st);
    if (rc)
        lessons_release(out);
    return rc;
}
