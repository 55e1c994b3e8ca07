/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Draw: board and view to the curses screen. The only files of the screen that draw are this one and
 * screen_pane_*.c; they change nothing but stdscr. draw_frame() prepares a whole frame; the caller
 * sends it with one doupdate().
 */
#ifndef UI_SCREEN_DRAW_H
#define UI_SCREEN_DRAW_H

#include "engine/base/strbuf.h"
#include "ui/screen_view.h"
#include "ui/theme.h"

struct draw {
    const struct board *b;
    const struct view *v;
    const struct theme *t;
};

void draw_frame(const struct draw *d);

/* The screen as text, a line each, trailing blanks cut. */
void draw_to_text(struct strbuf *out);

/* Text at a place, cut to `cols` with an ellipsis; returns the columns used. */
int draw_text(const struct draw *d, int y, int x, int cols, enum role role, const char *text);
int draw_skip(const struct draw *d, int y, int x, int cols, int skip, enum role role,
              const char *text);
int draw_right(const struct draw *d, int y, int x, int cols, enum role role, const char *text);
/* Gives a stretch of a row the attributes of a role. */
void draw_paint(const struct draw *d, int y, int x, int cols, enum role role);
/* The title row of a pane, empty. */
void draw_title(const struct draw *d, const struct rect *r, enum pane p);
/* Marks the row under the cursor of a pane, after the row was drawn. */
void draw_cursor(const struct draw *d, const struct rect *r, enum pane p, int y);
/* A sentence in the middle of nothing: why a pane is empty. Broken to fit. */
void draw_empty(const struct draw *d, const struct rect *r, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* The panes; each draws its rectangle. */
void draw_header(const struct draw *d, const struct rect *r);
void draw_tasks(const struct draw *d, const struct rect *r);
void draw_curve(const struct draw *d, const struct rect *r);
void draw_leaders(const struct draw *d, const struct rect *r);
void draw_ladder(const struct draw *d, const struct rect *r);
void draw_notes(const struct draw *d, const struct rect *r);
void draw_overlay(const struct draw *d, const struct rect *r);
void draw_status(const struct draw *d, const struct rect *r);
void draw_keys(const struct draw *d, const struct rect *r);
void draw_tiny(const struct draw *d, const struct rect *r);

#endif
