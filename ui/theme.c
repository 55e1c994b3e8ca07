/* SPDX-License-Identifier: Apache-2.0 */
#include "ui/theme.h"

#include <string.h>
#include <strings.h>

#include <curses.h>

static const struct glyphs ascii = {
    .arrow = "->", .ellipsis = "~", .cursor = ">", .divider = "|", .rule = "-",
    .up = "^", .down = "v",
    .waiting = ".", .running = "*", .done = "=", .failed = "!", .better = "^", .moved = "@",
    .worse = "v", .noise = "~", .speculate = "?", .best = "*", .pause = "#", .stop = "!",
    .explore = "o", .refine = "*", .tie = "~", .replay = ">",
};

/* Only characters that the usual fixed fonts have, each one column wide. */
static const struct glyphs unicode = {
    .arrow = "→", .ellipsis = "…", .cursor = "▸", .divider = "│", .rule = "─",
    .up = "↑", .down = "↓",
    .waiting = "·", .running = "▶", .done = "✓", .failed = "✗", .better = "▲", .moved = "◆",
    .worse = "▼", .noise = "≈", .speculate = "»", .best = "★", .pause = "‖", .stop = "■",
    .explore = "○", .refine = "●", .tie = "≈", .replay = "»",
};

const struct glyphs *glyphs_get(enum glyph_set set)
{
    return set == GLYPHS_ASCII ? &ascii : &unicode;
}

bool theme_wants_colour(enum colour_mode mode, const char *no_color)
{
    if (mode != COLOUR_AUTO)
        return mode == COLOUR_ALWAYS;
    return !(no_color && *no_color);
}

enum glyph_set theme_glyph_set(enum glyph_set wanted, const char *codeset)
{
    bool utf8 = codeset && (!strcasecmp(codeset, "UTF-8") || !strcasecmp(codeset, "utf8"));
    return utf8 ? wanted : GLYPHS_ASCII;
}

/* Attributes alone must tell the roles apart that no glyph does: title, cursor, key. */
static void monochrome(struct theme *t)
{
    static const attr_t attr[ROLE_NR] = {
        [ROLE_NORMAL] = A_NORMAL,    [ROLE_DIM] = A_DIM,
        [ROLE_STRONG] = A_BOLD,      [ROLE_TITLE] = A_UNDERLINE,
        [ROLE_ACTIVE] = A_UNDERLINE | A_BOLD, [ROLE_CURSOR] = A_REVERSE,
        [ROLE_SELECT] = A_BOLD,      [ROLE_GOOD] = A_BOLD,
        [ROLE_BAD] = A_BOLD,         [ROLE_WARN] = A_BOLD,
        [ROLE_RUNNING] = A_BOLD,     [ROLE_EXPLORE] = A_NORMAL,
        [ROLE_REFINE] = A_BOLD,      [ROLE_EXPLORE_FILL] = A_DIM,
        [ROLE_REFINE_FILL] = A_NORMAL, [ROLE_KEY] = A_REVERSE,
        [ROLE_PROMPT] = A_REVERSE,
    };
    for (int r = 0; r < ROLE_NR; r++)
        t->attr[r] = (unsigned)attr[r];
}

static void coloured(struct theme *t, bool light)
{
    enum { GREEN = 1, RED, ACCENT, WARM };
    init_pair(GREEN, COLOR_GREEN, -1);
    init_pair(RED, COLOR_RED, -1);
    init_pair(ACCENT, light ? COLOR_BLUE : COLOR_CYAN, -1);
    init_pair(WARM, light ? COLOR_MAGENTA : COLOR_YELLOW, -1);
    t->attr[ROLE_TITLE] = (unsigned)(A_UNDERLINE | COLOR_PAIR(ACCENT));
    t->attr[ROLE_ACTIVE] = (unsigned)(A_UNDERLINE | A_BOLD | COLOR_PAIR(ACCENT));
    t->attr[ROLE_GOOD] = (unsigned)COLOR_PAIR(GREEN);
    t->attr[ROLE_BAD] = (unsigned)COLOR_PAIR(RED);
    t->attr[ROLE_WARN] = (unsigned)COLOR_PAIR(WARM);
    t->attr[ROLE_RUNNING] = (unsigned)(A_BOLD | COLOR_PAIR(GREEN));
    t->attr[ROLE_EXPLORE] = (unsigned)COLOR_PAIR(ACCENT);
    t->attr[ROLE_REFINE] = (unsigned)COLOR_PAIR(GREEN);
    t->attr[ROLE_EXPLORE_FILL] = (unsigned)(A_DIM | COLOR_PAIR(ACCENT));
    t->attr[ROLE_REFINE_FILL] = (unsigned)(A_DIM | COLOR_PAIR(GREEN));
    t->attr[ROLE_KEY] = (unsigned)(A_REVERSE | COLOR_PAIR(ACCENT));
    t->attr[ROLE_PROMPT] = (unsigned)(A_REVERSE | COLOR_PAIR(WARM));
}

void theme_init(struct theme *t, bool colour, bool light, enum glyph_set set)
{
    memset(t, 0, sizeof *t);
    t->set = set;
    t->g = glyphs_get(set);
    monochrome(t);
    t->colour = colour && has_colors() && start_color() == OK && use_default_colors() == OK;
    if (t->colour)
        coloured(t, light);
}
