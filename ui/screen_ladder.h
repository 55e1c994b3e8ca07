/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ladder: the neighbourhood of the incumbent, one rung a knob. Pure.
 *
 * A rung is a knob of the incumbent's sketch: its value, the trials one step below it and one step
 * beside it (above, or elsewhere where values have no order). The last rung gathers what is no single
 * step: pairs and starts.
 */
#ifndef UI_SCREEN_LADDER_H
#define UI_SCREEN_LADDER_H

#include "engine/tune/board.h"

enum { LADDER_CELLS = 3, LADDER_OTHER = -1 };

struct rung_side {
    int nr;                       /* trials of this knob in this direction */
    int nr_cells;
    int64_t cell[LADDER_CELLS];   /* the best of them first, then what runs, waits, failed */
};

struct rung {
    int knob;                     /* number in the sketch; LADDER_OTHER */
    const struct board_knob *info; /* NULL for LADDER_OTHER; the board's */
    char value[64];               /* of the incumbent */
    struct rung_side side[2];     /* dir < 0, others */
};

struct ladder {
    int64_t centre;               /* trial, 0: there is no ladder */
    double centre_ns;
    int nr_trials, nr_ended, nr_better;
    int nr;
    struct rung rung[BOARD_KNOBS + 1];
};

/* `t` may be NULL. */
void ladder_build(struct ladder *l, const struct board *b, const struct board_task *t);

enum rung_state {
    RUNG_QUEUED,
    RUNG_SPECULATIVE, /* queued, as the repetition of a winning step */
    RUNG_MEASURING,
    RUNG_BETTER,
    RUNG_MOVED,
    RUNG_WORSE,
    RUNG_NOISE,
    RUNG_CUT,
    RUNG_FAILED,
    RUNG_MEASURED,    /* ended, not judged yet */
};
enum rung_state rung_state(const struct board_trial *t);

/* Change of time against the incumbent as a fraction: negative is faster. NAN where unknown. */
double rung_change(const struct ladder *l, const struct board_trial *t);

#endif
