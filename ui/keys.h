/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Keys: one table of bindings that dispatches keys, prints the help and fills the key bar.
 *
 * A key is a code point, or one of UK_* for what has none. A binding holds in some panes; of two that
 * match, the first in the table wins, so that a pane can give a key a meaning of its own.
 */
#ifndef UI_KEYS_H
#define UI_KEYS_H

#include <stddef.h>

#include "ui/layout.h"

enum ui_key {
    UK_TAB = 9,
    UK_ENTER = 10,
    UK_ESC = 27,
    UK_UP = 0x110000, /* past the last code point */
    UK_DOWN,
    UK_LEFT,
    UK_RIGHT,
    UK_PGUP,
    UK_PGDN,
    UK_HOME,
    UK_END,
    UK_BTAB,
    UK_BACKSPACE,
    UK_RESIZE,
    UK_F0, /* UK_F0 + n is Fn */
    UK_F12 = UK_F0 + 12,
    UK_NONE,
};

#define UK_CTRL(letter) ((letter) & 0x1f)

enum command {
    CMD_NONE,
    CMD_HELP,
    CMD_BACK,
    CMD_DETAIL,
    CMD_QUIT,
    CMD_ABANDON,
    CMD_INTERRUPT,
    CMD_PAUSE,
    CMD_SKIP,
    CMD_LESS,
    CMD_MORE,
    CMD_BUDGET,
    CMD_UP,
    CMD_DOWN,
    CMD_LEFT,
    CMD_RIGHT,
    CMD_PGUP,
    CMD_PGDN,
    CMD_HALF_UP,
    CMD_HALF_DOWN,
    CMD_TOP,
    CMD_BOTTOM,
    CMD_PANE_NEXT,
    CMD_PANE_PREV,
    CMD_PANE_1, /* five in a row */
    CMD_PANE_5 = CMD_PANE_1 + PANE_NR - 1,
    CMD_ZOOM,
    CMD_UNZOOM,
    CMD_FOLLOW,
    CMD_AXIS,
    CMD_FILTER,
    CMD_NEXT,
    CMD_PREV,
    CMD_SORT_PREV,
    CMD_SORT_NEXT,
    CMD_REVERSE,
    CMD_FREEZE,
    CMD_WRITE,
    CMD_REPAINT,
    CMD_SUSPEND,
    CMD_NR,
};

/* Where a binding holds: bits of panes, and one for help and details. */
enum { IN_OVERLAY = 1 << PANE_NR, IN_PANES = (1 << PANE_NR) - 1, IN_ALL = IN_PANES | IN_OVERLAY };

struct binding {
    int key[4];         /* 0 ends */
    enum command cmd;
    unsigned in;
    const char *help;   /* a line of the help; NULL: said by the line before */
    const char *bar;    /* word in the key bar; NULL: not there */
};

/* CMD_NONE where the key means nothing. */
enum command keys_lookup(int key, unsigned in);

/* The table, up to nr. */
const struct binding *keys_table(size_t *nr);

/* The command's first binding in the place; NULL for none. */
const struct binding *keys_binding(enum command cmd, unsigned in);

enum { KEY_NAME = 12 };
/* "F1", "^D", "PgUp", "a". */
char *keys_name(int key, char buf[KEY_NAME]);

#endif
