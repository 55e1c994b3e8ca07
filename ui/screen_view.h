/* SPDX-License-Identifier: Apache-2.0 */
/*
 * View: what the person looks at, as plain data. No curses.
 *
 * A key becomes a command (keys.h), a command changes the view or asks the loop for an action; then
 * view_arrange() makes selection, order, layout and scroll positions fit the board and the size of the
 * terminal, and the frame is drawn from board and view without changing either.
 *
 * Selections are identities (a task, a trial, a knob), never rows: rows move, what is selected stays.
 * A question keeps the identity of what it asks about.
 */
#ifndef UI_SCREEN_VIEW_H
#define UI_SCREEN_VIEW_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/tune/board.h"
#include "engine/tune/conductor.h"
#include "ui/keys.h"
#include "ui/layout.h"
#include "ui/screen_columns.h"
#include "ui/screen_index.h"
#include "ui/screen_ladder.h"
#include "ui/screen_page.h"
#include "ui/theme.h"

enum overlay { OVERLAY_NONE, OVERLAY_HELP, OVERLAY_TASK, OVERLAY_TRIAL, OVERLAY_TEXT };

enum prompt { PROMPT_NONE, PROMPT_FILTER, PROMPT_BUDGET, PROMPT_SKIP, PROMPT_STOP, PROMPT_ABANDON };

/* What a key asks the loop to do. */
enum action {
    ACT_NONE,
    ACT_PAUSE,
    ACT_GO,
    ACT_SKIP,    /* view.action_task */
    ACT_BUDGET,  /* view.action_budget */
    ACT_STOP,    /* and leave when it has stopped */
    ACT_ABANDON,
    ACT_LEAVE,
    ACT_WRITE,
    ACT_REPAINT,
    ACT_SUSPEND,
};

enum { VIEW_FILTER = 64, VIEW_MESSAGE = 256, VIEW_LOG = 64, VIEW_LOG_TEXT = 160 };

/* A line that a compiler, a driver or a script wrote to the error stream while the screen was up. */
struct log_line {
    char text[VIEW_LOG_TEXT];
};

struct view {
    /* Surroundings, set once. */
    bool can_steer;           /* there is a conductor */
    bool replay;
    const struct glyphs *g;
    enum glyph_set set;

    /* Clock of the frame, set before each. */
    int64_t now_ns;           /* CLOCK_MONOTONIC */
    int64_t elapsed_ns;       /* active time of the session */
    int64_t event_ns;         /* now_ns when the last event came; 0 before */

    /* Selection. */
    int32_t task;             /* -1 before there is one */
    bool follow;              /* the selection follows the task being tuned */
    int64_t trial;            /* of the leaderboard; 0: the first row, whichever trial that is */
    int rung, rung_side;      /* of the ladder: knob; -1, 0, 1: below, incumbent, beside */
    struct note_id {
        int kind;             /* enum note_kind; 0: the first row, whichever that is */
        int64_t nr;           /* number of the group, of the log line; seq of the note */
    } note;
    enum pane active;
    bool zoom;
    int top[PANE_NR];         /* first row shown */
    int skip;                 /* columns the knobs of the leaderboard are scrolled by */

    /* The task table. */
    int *order, nr_order, cap_order; /* tasks shown, in the order shown */
    enum task_column sort;
    bool reverse;
    struct column_place task_at[TC_NR]; /* the columns that fit */
    int64_t sort_hold_ns;     /* no new order until then: rows do not move under the finger */
    char filter[VIEW_FILTER];

    /* Help and details. */
    enum overlay overlay, below_help;
    int32_t overlay_task;
    int64_t overlay_trial;
    char overlay_text[EVENT_TEXT]; /* a note, whole */
    int overlay_top;
    struct page page;

    /* Questions and answers on the status line. */
    enum prompt prompt;
    int32_t prompt_task;
    char prompt_old[VIEW_FILTER]; /* the filter to go back to */
    int32_t action_task;
    char entry[VIEW_FILTER];  /* of a budget, as typed */
    struct tune_command action_budget, asked; /* asked: the last one of a single task */
    char message[VIEW_MESSAGE];
    int64_t message_until_ns;

    bool plot_time;
    bool frozen;
    int64_t nr_held;          /* events that wait while the view is frozen */
    bool stopping, abandoning;
    bool gone;                /* the search ended without saying how */
    bool leave_at_end;

    int64_t nr_log;           /* lines so far; the last VIEW_LOG of them are in the ring */
    struct log_line log[VIEW_LOG];

    /* Computed by view_arrange(). */
    struct index index;
    struct ladder ladder;
    struct screen_layout layout;
    int rows, cols;
};

void view_init(struct view *v, enum glyph_set set);
void view_release(struct view *v);

/* Fits the view to the board and the terminal. */
void view_arrange(struct view *v, const struct board *b, int rows, int cols);

enum action view_key(struct view *v, const struct board *b, int key);
enum action view_command(struct view *v, const struct board *b, enum command cmd);

/* Whether a command does something now; the key bar shows only those that do. */
bool view_can(const struct view *v, const struct board *b, enum command cmd);

/* A search of this process is running: leaving must be asked for. */
bool view_is_live(const struct view *v, const struct board *b);

/* Changes a typed text by a key: appends a code point, or takes the last one or all of it off. */
void view_edit(char *text, size_t size, int key);

/* "refine 96", "explore 200" (each task), "trials 5000", "time 60" (the session); false for none. */
bool view_parse_budget(const char *text, struct tune_command *out);
/* So many steps more refinement, or less, for the selected task. */
enum action view_step_budget(struct view *v, const struct board *b, int by);
/* A key while a budget is being typed. */
enum action view_budget_key(struct view *v, int key);

/* A message on the status line for a few seconds. */
void view_say(struct view *v, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void view_log(struct view *v, const char *text);

/* The selected task; NULL for none. */
const struct board_task *view_task(const struct view *v, const struct board *b);

/* Rows of a pane, and the one under its cursor (-1 for none). */
int view_nr_rows(const struct view *v, const struct board *b, enum pane p);
int view_cursor(const struct view *v, const struct board *b, enum pane p);

/* The rows of the notes: failure groups by count, then log lines and notes, newest first. */
enum note_kind { NOTE_NONE, NOTE_GROUP, NOTE_LOG, NOTE_EVENT };
struct note_row {
    struct note_id id;
    const struct failure_group *group; /* one of the three */
    const struct log_line *log;
    const struct event *event;
};
struct note_row view_note(const struct view *v, const struct board *b, int row);

/* The trial a rung's side shows first; 0 for none. */
int64_t view_rung_trial(const struct view *v);

#endif
