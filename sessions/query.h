/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of the views of a session (store.h), for printers. */
#ifndef SESSIONS_QUERY_H
#define SESSIONS_QUERY_H

#include "sessions/store.h"

enum session_view {
    VIEW_LEADERBOARD, /* ranks up to `n` of each task */
    VIEW_FAILURES,
    VIEW_TRIAL,     /* trial `n`, that ended */
    VIEW_TRIALS,    /* all that ended with a number above `n`, in order */
    VIEW_IN_FLIGHT, /* trial `n`, that has not */
};

struct session_cell {
    enum { CELL_NULL, CELL_INTEGER, CELL_REAL, CELL_TEXT } type;
    int64_t integer;
    double real;
    const char *text; /* of every type, "" for NULL; valid during the call */
};

struct session_row {
    int nr;
    const char *const *name;
    const struct session_cell *cell;
};

/* Calls `row` for every row until it returns false. `s` is not started. Returns the number of rows,
 * or an error. */
int session_rows(struct session *s, enum session_view view, int64_t n,
                 bool (*row)(void *ctx, const struct session_row *r), void *ctx, struct err *e);

#endif
