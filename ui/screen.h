/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Screen: the workbench on a terminal.
 *
 *     events -> board (reducer) -> view (selection, scroll) -> layout (rectangles) -> draw (curses)
 *
 * Each arrow is one file or two: engine/tune/board.h, screen_view.h, layout.h, screen_draw.h. Only the
 * last knows curses; loop.c turns the crank, screen_term.c opens the terminal and gives it back
 * however the program ends.
 */
#ifndef UI_SCREEN_H
#define UI_SCREEN_H

#include <stdbool.h>

#include "engine/base/err.h"
#include "engine/base/strbuf.h"
#include "engine/tune/board.h"
#include "engine/tune/conductor.h"
#include "engine/tune/queue.h"
#include "ui/theme.h"

struct view;

struct screen_options {
    enum glyph_set glyphs;   /* GLYPHS_BLOCK is the default; ASCII where the locale is not UTF-8 */
    enum colour_mode colour; /* COLOUR_AUTO heeds NO_COLOR */
    bool light;              /* colours for a light background */
    bool replay;             /* the events come from a finished session, not from a running one */
    int fail_fd;             /* > 0: readable when the session cannot be stored any more; the search
                                is stopped then */
};

/* How the screen ended; the terminal is as it was before. */
enum screen_end {
    SCREEN_LEFT,   /* the person left; a search that was running has stopped */
    SCREEN_HANGUP, /* the terminal is gone; a running search was told to stop */
};

/*
 * Main thread, after setlocale(). Shows `b` as the events (struct event) of the queue change it, until
 * the person leaves. `c` may be NULL: nothing can be steered then (a replay, or another's session).
 * When the session has ended the screen stays with its result until the person leaves, unless
 * leaving was what stopped it. Returns enum screen_end, or a negative code where the terminal
 * cannot be opened.
 *
 * Events that were not read yet are left in the queue: close it before joining the conductor, which
 * may be waiting for room.
 */
int screen_run(const struct screen_options *o, struct queue *events, struct conductor *c,
               struct board *b, struct err *e);

/*
 * One frame of a given size as text, without a terminal: for tests and pictures. The view's clock is
 * the caller's; nothing else of the surroundings enters, so equal boards and views give equal text.
 */
int screen_shot(struct view *v, const struct board *b, int rows, int cols, struct strbuf *out,
                struct err *e);

#endif
