/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Columns of a table: which fit, and where. Pure. One column is flexible and takes what is left; the
 * others are dropped by priority, the highest number first, until it has its least width. Those from
 * COLUMN_LUXURY on are dropped already where it has not the width it would like.
 */
#ifndef UI_SCREEN_COLUMNS_H
#define UI_SCREEN_COLUMNS_H

#include <stdbool.h>

enum { COLUMN_LUXURY = 5 };

struct column {
    const char *head;
    int width;    /* of a flexible column its least */
    int priority; /* 0 is never dropped */
    bool left;    /* aligned left; numbers are not */
    bool flex;
};

struct column_place {
    int x, width; /* width 0: not shown */
};

void columns_fit(const struct column *c, int nr, int cols, int wanted, struct column_place *out);

/* The columns of the task table, in order; also what the tasks can be sorted by. */
enum task_column {
    TC_NUMBER,
    TC_NAME,
    TC_STATE,
    TC_PHASE,
    TC_WEIGHT,
    TC_DEFAULT,
    TC_BEST,
    TC_SPEEDUP,
    TC_GFLOPS,
    TC_PEAK,
    TC_SHARE,
    TC_TRIALS,
    TC_NR,
};
extern const struct column task_columns[TC_NR];

#endif
