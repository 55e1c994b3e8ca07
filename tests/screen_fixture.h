/* SPDX-License-Identifier: Apache-2.0 */
/* Boards of made-up sessions at moments worth looking at, for tests of the screen. */
#ifndef TESTS_SCREEN_FIXTURE_H
#define TESTS_SCREEN_FIXTURE_H

#include "engine/tune/board.h"

enum moment {
    MOMENT_EMPTY,     /* before the first event */
    MOMENT_OPENED,    /* tasks are known, nothing was measured */
    MOMENT_EXPLORING, /* the third task */
    MOMENT_REFINING,  /* the second, its neighbourhood half measured */
    MOMENT_FAILING,   /* nothing but the default works */
    MOMENT_FINISHED,
};

/* The caller releases the board. */
void fixture_board(struct board *b, enum moment m);

#endif
