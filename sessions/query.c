/* SPDX-License-Identifier: Apache-2.0 */
#include "sessions/query.h"

#include "sessions/private.h"

enum { MAX_COLUMNS = 64 };

static void read_row(sqlite3_stmt *st, int nr, const char **name, struct session_cell *cell)
{
    for (int i = 0; i < nr; i++) {
        name[i] = sqlite3_column_name(st, i);
        cell[i] = (struct session_cell){.type = CELL_TEXT,
                                        .integer = sqlite3_column_int64(st, i),
                                        .real = sqlite3_column_double(st, i),
                                        .text = ""};
        switch (sqlite3_column_type(st, i)) {
        case SQLITE_NULL:
            cell[i].type = CELL_NULL;
            continue;
        case SQLITE_INTEGER:
            cell[i].type = CELL_INTEGER;
            break;
        case SQLITE_FLOAT:
            cell[i].type = CELL_REAL;
            break;
        }
        const char *text = (const char *)sqlite3_column_text(st, i);
        cell[i].text = text ? text : "";
    }
}

int session_rows(struct session *s, enum session_view view, int64_t n,
                 bool (*row)(void *ctx, const struct session_row *r), void *ctx, struct err *e)
{
    static const char *const sql[] = {
        [VIEW_LEADERBOARD] = "SELECT * FROM leaderboard WHERE rank <= ?1",
        [VIEW_FAILURES] = "SELECT * FROM failures",
        [VIEW_TRIAL] = "SELECT * FROM trials WHERE id = ?1",
        [VIEW_TRIALS] = "SELECT * FROM trials WHERE id > ?1 ORDER BY id",
        [VIEW_IN_FLIGHT] = "SELECT * FROM in_flight WHERE id = ?1",
    };
    const char *name[MAX_COLUMNS];
    struct session_cell cell[MAX_COLUMNS];
    sqlite3_stmt *st;
    int rc = db_prepare(s->path, s->db, sql[view], &st, e);
    if (rc)
        return rc;
    if (sqlite3_bind_parameter_count(st))
        sqlite3_bind_int64(st, 1, n);
    int nr = sqlite3_column_count(st), step;
    nr = nr < MAX_COLUMNS ? nr : MAX_COLUMNS;
    while ((step = sqlite3_step(st)) == SQLITE_ROW) {
        read_row(st, nr, name, cell);
        rc++;
        if (!row(ctx, &(struct session_row){nr, name, cell}))
            break;
    }
    if (step != SQLITE_ROW && step != SQLITE_DONE)
        rc = sql_error(s->path, s->db, step, e);
    sqlite3_finalize(st);
    return rc;
}
