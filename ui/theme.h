/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theme: roles and glyphs.
 *
 * What is drawn names a role ("bad"), never a colour. Colours stand on the terminal's own background
 * and use the eight that every terminal has; meaning is never by colour alone, each state has a glyph
 * and a word. Glyph sets are plain data, so that the view and the plot can use them without curses.
 */
#ifndef UI_THEME_H
#define UI_THEME_H

#include <stdbool.h>
#include <stdint.h>

enum role {
    ROLE_NORMAL,
    ROLE_DIM,     /* what may be overlooked: headings, units, the past */
    ROLE_STRONG,
    ROLE_TITLE,   /* title line of a pane */
    ROLE_ACTIVE,  /* of the active one */
    ROLE_CURSOR,  /* the row the keys act on */
    ROLE_SELECT,  /* the selected row of a pane that is not active */
    ROLE_GOOD,
    ROLE_BAD,
    ROLE_WARN,
    ROLE_RUNNING,
    ROLE_EXPLORE,
    ROLE_REFINE,
    ROLE_EXPLORE_FILL, /* below the edge of a curve */
    ROLE_REFINE_FILL,
    ROLE_KEY,     /* a key in the bar */
    ROLE_PROMPT,  /* a question */
    ROLE_NR,
};

enum glyph_set { GLYPHS_ASCII, GLYPHS_BLOCK, GLYPHS_BRAILLE };

struct glyphs {
    const char *arrow;    /* from -> to */
    const char *ellipsis; /* of a text that was cut; one column */
    const char *cursor;   /* in front of the selected row */
    const char *divider, *rule;
    const char *up, *down; /* sort direction, more above and below */
    const char *waiting, *running, *done, *failed, *better, *moved, *worse, *noise, *speculate,
        *best, *pause, *stop, *explore, *refine, *tie, *replay;
};

const struct glyphs *glyphs_get(enum glyph_set set);

enum colour_mode { COLOUR_AUTO, COLOUR_ALWAYS, COLOUR_NEVER };

/* NO_COLOR (https://no-color.org: set and not empty) decides where the mode does not. */
bool theme_wants_colour(enum colour_mode mode, const char *no_color);

/* ASCII where the codeset of the locale is not UTF-8, else `wanted`. */
enum glyph_set theme_glyph_set(enum glyph_set wanted, const char *codeset);

struct theme {
    enum glyph_set set;
    const struct glyphs *g;
    bool colour;
    unsigned attr[ROLE_NR]; /* attr_t of curses, colour pair included */
};

/* After initscr/newterm. `light` chooses colours that can be read on a light background. */
void theme_init(struct theme *t, bool colour, bool light, enum glyph_set set);

#endif
