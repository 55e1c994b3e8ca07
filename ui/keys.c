/* SPDX-License-Identifier: Apache-2.0 */
#include "ui/keys.h"

#include <stdio.h>
#include <string.h>

#define F(n) (UK_F0 + (n))
#define IN(pane) (1u << (pane))

/* Panes with something to the left and right, where h is a direction and not the help. */
#define IN_WIDE (IN(PANE_LADDER) | IN(PANE_LEADERS))
#define IN_LISTS (IN_PANES & ~IN(PANE_CURVE))

static const struct binding table[] = {
    {{UK_LEFT, 'h'}, CMD_LEFT, IN_WIDE, "cell to the left, or scroll left", NULL},
    {{UK_RIGHT, 'l'}, CMD_RIGHT, IN_WIDE, "cell to the right, or scroll right", NULL},
    {{'?', 'h', F(1)}, CMD_HELP, IN_ALL, "this help", "help"},
    {{UK_ENTER}, CMD_DETAIL, IN_LISTS, "details of the task, trial or failure under the cursor",
     "details"},
    {{UK_ESC}, CMD_BACK, IN_ALL, "back out one level; never leaves", "back"},

    {{'p', F(7)}, CMD_PAUSE, IN_ALL, "pause the search after what is in flight; go on", "pause"},
    {{'s', F(8)}, CMD_SKIP, IN_PANES, "skip the selected task: it ends with what it has (asks)",
     "skip"},
    {{']'}, CMD_MORE, IN_PANES, "16 more trials of refinement for the selected task", NULL},
    {{'['}, CMD_LESS, IN_PANES, "16 fewer", NULL},
    {{'b'}, CMD_BUDGET, IN_PANES, "change a budget: refine, explore (each task), trials, time", "budget"},
    {{'q', F(10)}, CMD_QUIT, IN_ALL,
     "close this view; leave (asks while a search runs)", "quit"},
    {{'Q'}, CMD_ABANDON, IN_ALL, "leave without waiting for the running measurement (asks)", NULL},
    {{UK_CTRL('c')}, CMD_INTERRUPT, IN_ALL,
     "stop after the running measurement and leave; twice: at once", NULL},

    {{UK_UP, 'k'}, CMD_UP, IN_ALL, "up", NULL},
    {{UK_DOWN, 'j'}, CMD_DOWN, IN_ALL, "down", NULL},
    {{UK_PGUP}, CMD_PGUP, IN_ALL, "a page up", NULL},
    {{UK_PGDN, ' '}, CMD_PGDN, IN_ALL, "a page down", NULL},
    {{UK_CTRL('u')}, CMD_HALF_UP, IN_ALL, "half a page up", NULL},
    {{UK_CTRL('d')}, CMD_HALF_DOWN, IN_ALL, "half a page down", NULL},
    {{'g', UK_HOME}, CMD_TOP, IN_ALL, "the first line", NULL},
    {{'G', UK_END}, CMD_BOTTOM, IN_ALL, "the last line", NULL},
    {{UK_TAB}, CMD_PANE_NEXT, IN_PANES, "next pane", NULL},
    {{UK_BTAB}, CMD_PANE_PREV, IN_PANES, "previous pane", NULL},
    {{'1'}, CMD_PANE_1, IN_PANES, "tasks; the digit of the active pane zooms it", NULL},
    {{'2'}, CMD_PANE_1 + 1, IN_PANES, "best so far", NULL},
    {{'3'}, CMD_PANE_1 + 2, IN_PANES, "leaderboard", NULL},
    {{'4'}, CMD_PANE_1 + 3, IN_PANES, "ladder: the neighbours of the incumbent", NULL},
    {{'5'}, CMD_PANE_1 + 4, IN_PANES, "failures and notes", NULL},
    {{'+', F(2)}, CMD_ZOOM, IN_PANES, "zoom the active pane", "zoom"},
    {{'_'}, CMD_UNZOOM, IN_PANES, "all panes again", NULL},

    {{'/', F(3)}, CMD_FILTER, IN_PANES, "show the tasks whose name has a text; empty: all", "filter"},
    {{'n'}, CMD_NEXT, IN_PANES, "next task", NULL},
    {{'N'}, CMD_PREV, IN_PANES, "previous task", NULL},
    {{'F', F(5)}, CMD_FOLLOW, IN_PANES, "follow the task that is being tuned", "follow"},
    {{'>', F(6)}, CMD_SORT_NEXT, IN(PANE_TASKS), "sort the tasks by the next column", "sort"},
    {{'<'}, CMD_SORT_PREV, IN(PANE_TASKS), "sort the tasks by the column before", NULL},
    {{'I'}, CMD_REVERSE, IN(PANE_TASKS), "reverse the order", NULL},
    {{'t', F(4)}, CMD_AXIS, IN_PANES, "x axis of the curve: trials or time", "axis"},

    {{'Z', F(9)}, CMD_FREEZE, IN_ALL, "freeze the view, the search goes on; thaw", "freeze"},
    {{'P'}, CMD_WRITE, IN_ALL, "write the screen to a text file", NULL},
    {{UK_CTRL('l')}, CMD_REPAINT, IN_ALL, "draw everything again", NULL},
    {{UK_CTRL('z')}, CMD_SUSPEND, IN_ALL, "suspend the program", NULL},
};

enum { NR_BINDINGS = sizeof table / sizeof table[0] };

const struct binding *keys_table(size_t *nr)
{
    *nr = NR_BINDINGS;
    return table;
}

enum command keys_lookup(int key, unsigned in)
{
    if (!key)
        return CMD_NONE;
    for (size_t i = 0; i < NR_BINDINGS; i++)
        for (int k = 0; k < 4 && table[i].key[k]; k++)
            if (table[i].key[k] == key && (table[i].in & in))
                return table[i].cmd;
    return CMD_NONE;
}

const struct binding *keys_binding(enum command cmd, unsigned in)
{
    for (size_t i = 0; i < NR_BINDINGS; i++)
        if (table[i].cmd == cmd && (table[i].in & in))
            return &table[i];
    return NULL;
}

char *keys_name(int key, char buf[KEY_NAME])
{
    static const struct {
        int key;
        const char *name;
    } names[] = {
        {UK_TAB, "Tab"},   {UK_ENTER, "Enter"}, {UK_ESC, "Esc"},   {UK_UP, "Up"},
        {UK_DOWN, "Down"}, {UK_LEFT, "Left"},   {UK_RIGHT, "Right"}, {UK_PGUP, "PgUp"},
        {UK_PGDN, "PgDn"}, {UK_HOME, "Home"},   {UK_END, "End"},   {UK_BTAB, "S-Tab"},
        {' ', "Space"},
    };
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (names[i].key == key)
            return strcpy(buf, names[i].name);
    if (key > UK_F0 && key <= UK_F12)
        snprintf(buf, KEY_NAME, "F%d", key - UK_F0);
    else if (key < 32)
        snprintf(buf, KEY_NAME, "^%c", key + 64);
    else
        snprintf(buf, KEY_NAME, "%c", key < 127 ? key : '?');
    return buf;
}
