/* SPDX-License-Identifier: Apache-2.0 */
/* Keys and commands of the view. */
#include "ui/screen_view.h"

#include <stdio.h>
#include <string.h>

static unsigned place(const struct view *v)
{
    return v->overlay != OVERLAY_NONE ? IN_OVERLAY : 1u << v->active;
}

static bool can_skip(const struct view *v, const struct board *b)
{
    const struct board_task *t = view_task(v, b);
    return view_is_live(v, b) && !v->stopping && t && t->phase != PHASE_DONE;
}

static int64_t row_trial(const struct view *v, const struct board *b)
{
    const struct board_task *t = view_task(v, b);
    int row = view_cursor(v, b, v->active);
    if (row < 0)
        return 0;
    struct note_row n;
    switch (v->active) {
    case PANE_LEADERS:
        return t->leader[row];
    case PANE_LADDER:
        return view_rung_trial(v);
    case PANE_NOTES:
        n = view_note(v, b, row);
        return n.group ? n.group->last : n.event ? n.event->trial : 0;
    default:
        return 0;
    }
}

bool view_can(const struct view *v, const struct board *b, enum command cmd)
{
    switch (cmd) {
    case CMD_PAUSE:
        return view_is_live(v, b) && !v->stopping;
    case CMD_SKIP:
        return can_skip(v, b);
    case CMD_MORE:
    case CMD_LESS:
    case CMD_BUDGET:
        return view_is_live(v, b) && !v->stopping;
    case CMD_FILTER:
    case CMD_SORT_NEXT:
    case CMD_SORT_PREV:
    case CMD_REVERSE:
        return b->nr_tasks > 1;
    case CMD_NEXT:
    case CMD_PREV:
        return v->nr_order > 1;
    case CMD_FOLLOW:
        return b->nr_tasks > 1 && !b->ended && !v->follow;
    case CMD_AXIS:
        return rect_shown(&v->layout.pane[PANE_CURVE]);
    case CMD_ZOOM:
        return !v->zoom;
    case CMD_UNZOOM:
        return v->zoom;
    case CMD_DETAIL:
        return view_cursor(v, b, v->active) >= 0;
    case CMD_FREEZE:
        return v->frozen || !b->ended;
    case CMD_BACK:
        return v->prompt || v->overlay || v->zoom || v->filter[0];
    default:
        return true;
    }
}

static void move_to(struct view *v, const struct board *b, enum pane p, int row)
{
    int nr = view_nr_rows(v, b, p);
    if (!nr)
        return;
    row = row < 0 ? 0 : row >= nr ? nr - 1 : row;
    switch (p) {
    case PANE_TASKS:
        v->task = v->order[row];
        v->follow = false;
        v->trial = 0;
        break;
    case PANE_LEADERS:
        /* The first row means the best, whichever trial that becomes. */
        v->follow = false;
        v->trial = row ? view_task(v, b)->leader[row] : 0;
        break;
    case PANE_LADDER:
        v->follow = false;
        v->rung = v->ladder.rung[row].knob;
        break;
    case PANE_NOTES:
        v->note = row ? view_note(v, b, row).id : (struct note_id){NOTE_NONE, 0};
        break;
    default:
        break;
    }
    v->sort_hold_ns = v->now_ns + 3000000000;
}

static int page_rows(const struct view *v)
{
    int rows = v->overlay ? v->layout.overlay.rows : v->layout.pane[v->active].rows;
    return rows > 2 ? rows - 2 : 1;
}

/* `by` rows; INT32_MIN and INT32_MAX go to the ends. */
static void move_by(struct view *v, const struct board *b, int32_t by)
{
    if (v->overlay) {
        int64_t top = (int64_t)v->overlay_top + by;
        v->overlay_top = top < 0 ? 0 : top > v->page.nr ? v->page.nr : (int)top;
        return;
    }
    /* The curve has no rows: there the keys go from task to task. */
    enum pane p = v->active == PANE_CURVE ? PANE_TASKS : v->active;
    int64_t row = view_cursor(v, b, p);
    row += row < 0 && by < 0 ? view_nr_rows(v, b, p) + 1 + (int64_t)by : by;
    move_to(v, b, p, row < 0 ? 0 : row > INT32_MAX ? INT32_MAX : (int)row);
}

static void sideways(struct view *v, int by)
{
    if (v->active == PANE_LEADERS) {
        v->skip += 8 * by;
        v->skip = v->skip < 0 ? 0 : v->skip > 400 ? 400 : v->skip;
    } else {
        v->follow = false;
        v->rung_side += by;
        v->rung_side = v->rung_side < -1 ? -1 : v->rung_side > 1 ? 1 : v->rung_side;
    }
}

static void next_task(struct view *v, const struct board *b, int by)
{
    int row = view_cursor(v, b, PANE_TASKS) + by;
    if (v->nr_order)
        move_to(v, b, PANE_TASKS, (row + v->nr_order) % v->nr_order);
}

/* Columns that are shown, and the order of the model even where its number is not. */
static void sort_by(struct view *v, int by)
{
    do {
        v->sort = (enum task_column)(((int)v->sort + by + TC_NR) % TC_NR);
    } while (v->sort != TC_NUMBER && !v->task_at[v->sort].width);
    /* Large numbers are what one looks for, except in the columns of names and times. */
    v->reverse = v->sort >= TC_WEIGHT && v->sort != TC_BEST;
    v->sort_hold_ns = 0;
    view_say(v, "tasks sorted by %s%s",
             v->sort == TC_NAME     ? "name"
             : v->sort == TC_NUMBER ? "their order in the model"
                                    : task_columns[v->sort].head,
             v->reverse ? ", highest first" : "");
}

static void open_detail(struct view *v, const struct board *b)
{
    int64_t trial = row_trial(v, b);
    v->overlay_top = 0;
    if (v->active == PANE_TASKS && view_cursor(v, b, PANE_TASKS) >= 0) {
        v->overlay = OVERLAY_TASK;
        v->overlay_task = v->task;
    } else if (trial) {
        v->overlay = OVERLAY_TRIAL;
        v->overlay_trial = trial;
    } else if (v->active == PANE_NOTES && view_cursor(v, b, PANE_NOTES) >= 0) {
        struct note_row n = view_note(v, b, view_cursor(v, b, PANE_NOTES));
        v->overlay = OVERLAY_TEXT;
        snprintf(v->overlay_text, sizeof v->overlay_text, "%s",
                 n.log ? n.log->text : n.event ? n.event->u.note.text : "");
    } else {
        view_say(v, v->active == PANE_LADDER ? "no trial in this cell" : "nothing to open here");
    }
}

static void open_help(struct view *v)
{
    if (v->overlay == OVERLAY_HELP) {
        v->overlay = v->below_help;
        return;
    }
    v->below_help = v->overlay;
    v->overlay = OVERLAY_HELP;
    v->overlay_top = 0;
}

static void close_overlay(struct view *v)
{
    v->overlay = v->overlay == OVERLAY_HELP ? v->below_help : OVERLAY_NONE;
    v->overlay_top = 0;
}

static void back(struct view *v)
{
    if (v->overlay) {
        close_overlay(v);
    } else if (v->zoom) {
        v->zoom = false;
    } else if (v->filter[0]) {
        v->filter[0] = '\0';
        v->sort_hold_ns = 0;
        view_say(v, "all tasks are shown");
    }
    v->skip = 0;
}

static void choose_pane(struct view *v, enum pane p)
{
    if (p == v->active)
        v->zoom = !v->zoom;
    v->active = p;
}

/* Panes that have a place on the screen, in order; all of them while one is zoomed. */
static void cycle_pane(struct view *v, int by)
{
    int p = v->active;
    for (int i = 0; i < PANE_NR; i++) {
        p = (p + by + PANE_NR) % PANE_NR;
        if (v->zoom || rect_shown(&v->layout.pane[p]))
            break;
    }
    v->active = (enum pane)p;
}

static enum action quit(struct view *v, const struct board *b)
{
    if (v->overlay) {
        close_overlay(v);
        return ACT_NONE;
    }
    if (!view_is_live(v, b))
        return ACT_LEAVE;
    if (v->stopping)
        view_say(v, "stopping after the running measurement; Q does not wait for it");
    else
        v->prompt = PROMPT_STOP;
    return ACT_NONE;
}

static enum action stop(struct view *v, bool abandon)
{
    v->stopping = true;
    v->abandoning = abandon;
    v->leave_at_end = true;
    v->frozen = false;
    return abandon ? ACT_ABANDON : ACT_STOP;
}

static enum action pause_or_go(struct view *v, const struct board *b)
{
    if (v->replay || !v->can_steer) {
        view_say(v, "%s: there is no search to pause", v->replay ? "a replay" : "read only");
        return ACT_NONE;
    }
    if (b->ended || v->stopping) {
        view_say(v, b->ended ? "the session has ended" : "the session is stopping");
        return ACT_NONE;
    }
    return b->paused ? ACT_GO : ACT_PAUSE;
}

static enum action ask_skip(struct view *v, const struct board *b)
{
    if (can_skip(v, b)) {
        v->prompt = PROMPT_SKIP;
        v->prompt_task = v->task;
    } else {
        view_say(v, view_is_live(v, b) ? "this task is done already"
                                       : "no search is running: nothing to skip");
    }
    return ACT_NONE;
}

static void ask_budget(struct view *v, const struct board *b)
{
    if (view_can(v, b, CMD_BUDGET)) {
        v->entry[0] = '\0';
        v->prompt = PROMPT_BUDGET;
    } else {
        view_say(v, v->stopping ? "the session is stopping" : "no search is running: no budget to change");
    }
}

static enum action steer(struct view *v, const struct board *b, enum command cmd)
{
    switch (cmd) {
    case CMD_QUIT:
        return quit(v, b);
    case CMD_ABANDON:
        if (!view_is_live(v, b))
            return ACT_LEAVE;
        v->prompt = PROMPT_ABANDON;
        return ACT_NONE;
    case CMD_INTERRUPT:
        return view_is_live(v, b) ? stop(v, v->stopping) : ACT_LEAVE;
    case CMD_PAUSE:
        return pause_or_go(v, b);
    case CMD_SKIP:
        return ask_skip(v, b);
    case CMD_MORE:
    case CMD_LESS:
        return view_step_budget(v, b, cmd == CMD_MORE ? 1 : -1);
    case CMD_BUDGET:
        ask_budget(v, b);
        return ACT_NONE;
    case CMD_WRITE:
        return ACT_WRITE;
    case CMD_REPAINT:
        return ACT_REPAINT;
    case CMD_SUSPEND:
        return ACT_SUSPEND;
    default:
        return ACT_NONE;
    }
}

static void toggle(struct view *v, const struct board *b, enum command cmd)
{
    switch (cmd) {
    case CMD_FOLLOW:
        v->follow = !v->follow;
        v->trial = 0;
        view_say(v, v->follow ? "the selection follows the task being tuned"
                              : "the selection stays");
        break;
    case CMD_AXIS:
        v->plot_time = !v->plot_time;
        break;
    case CMD_FREEZE:
        v->frozen = !v->frozen && view_can(v, b, CMD_FREEZE);
        break;
    case CMD_FILTER:
        memcpy(v->prompt_old, v->filter, sizeof v->filter);
        v->prompt = PROMPT_FILTER;
        break;
    case CMD_HELP:
        open_help(v);
        break;
    case CMD_DETAIL:
        open_detail(v, b);
        break;
    case CMD_BACK:
        back(v);
        break;
    case CMD_ZOOM:
        v->zoom = !v->zoom;
        break;
    case CMD_UNZOOM:
        v->zoom = false;
        break;
    default:
        break;
    }
}

/* True when the command moved something. */
static bool move(struct view *v, const struct board *b, enum command cmd)
{
    int page = page_rows(v);
    switch (cmd) {
    case CMD_UP:
        move_by(v, b, -1);
        return true;
    case CMD_DOWN:
        move_by(v, b, 1);
        return true;
    case CMD_PGUP:
        move_by(v, b, -page);
        return true;
    case CMD_PGDN:
        move_by(v, b, page);
        return true;
    case CMD_HALF_UP:
        move_by(v, b, -(page + 1) / 2);
        return true;
    case CMD_HALF_DOWN:
        move_by(v, b, (page + 1) / 2);
        return true;
    case CMD_TOP:
        move_by(v, b, INT32_MIN);
        return true;
    case CMD_BOTTOM:
        move_by(v, b, INT32_MAX);
        return true;
    case CMD_LEFT:
        sideways(v, -1);
        return true;
    case CMD_RIGHT:
        sideways(v, 1);
        return true;
    case CMD_NEXT:
        next_task(v, b, 1);
        return true;
    case CMD_PREV:
        next_task(v, b, -1);
        return true;
    case CMD_SORT_NEXT:
        sort_by(v, 1);
        return true;
    case CMD_SORT_PREV:
        sort_by(v, -1);
        return true;
    case CMD_REVERSE:
        v->reverse = !v->reverse;
        v->sort_hold_ns = 0;
        return true;
    case CMD_PANE_NEXT:
        cycle_pane(v, 1);
        return true;
    case CMD_PANE_PREV:
        cycle_pane(v, -1);
        return true;
    default:
        return false;
    }
}

enum action view_command(struct view *v, const struct board *b, enum command cmd)
{
    v->message_until_ns = 0;
    if (cmd >= CMD_PANE_1 && cmd <= CMD_PANE_5) {
        choose_pane(v, (enum pane)(cmd - CMD_PANE_1));
        return ACT_NONE;
    }
    if (move(v, b, cmd))
        return ACT_NONE;
    toggle(v, b, cmd);
    return steer(v, b, cmd);
}

void view_edit(char *text, size_t size, int key)
{
    size_t n = strlen(text);
    if (key == UK_BACKSPACE || key == UK_CTRL('h') || key == 127) {
        while (n > 0 && ((unsigned char)text[--n] & 0xc0) == 0x80)
            ;
        text[n] = '\0';
    } else if (key == UK_CTRL('u')) {
        text[0] = '\0';
    } else if (key >= 32 && key < 0x80 && n + 1 < size) {
        text[n] = (char)key;
        text[n + 1] = '\0';
    } else if (key >= 0xa0 && key < 0x800 && n + 2 < size) {
        text[n] = (char)(0xc0 | key >> 6);
        text[n + 1] = (char)(0x80 | (key & 0x3f));
        text[n + 2] = '\0';
    }
}

static enum action filter_key(struct view *v, const struct board *b, int key)
{
    if (key == UK_ENTER) {
        v->prompt = PROMPT_NONE;
        /* Go on with a task that is to be seen. */
        if (v->nr_order && view_cursor(v, b, PANE_TASKS) < 0)
            move_to(v, b, PANE_TASKS, 0);
    } else if (key == UK_ESC) {
        v->prompt = PROMPT_NONE;
        memcpy(v->filter, v->prompt_old, sizeof v->filter);
    } else {
        view_edit(v->filter, sizeof v->filter, key);
        v->sort_hold_ns = 0;
    }
    return ACT_NONE;
}

static enum action question_key(struct view *v, int key)
{
    enum prompt asked = v->prompt;
    if (key == 'y' || key == 'Y') {
        v->prompt = PROMPT_NONE;
        if (asked == PROMPT_SKIP) {
            v->action_task = v->prompt_task;
            return ACT_SKIP;
        }
        return stop(v, asked == PROMPT_ABANDON);
    }
    /* Anything but y is no: a doubled key must not confirm. */
    if (key == 'n' || key == 'N' || key == UK_ESC || key == UK_ENTER || key < UK_UP) {
        v->prompt = PROMPT_NONE;
        view_say(v, asked == PROMPT_SKIP ? "the task is not skipped" : "the search goes on");
    }
    return ACT_NONE;
}

enum action view_key(struct view *v, const struct board *b, int key)
{
    if (key == UK_CTRL('c')) {
        v->prompt = PROMPT_NONE;
        return view_command(v, b, CMD_INTERRUPT);
    }
    if (key == UK_CTRL('l') || key == UK_CTRL('z'))
        return view_command(v, b, keys_lookup(key, IN_ALL));
    if (v->prompt == PROMPT_FILTER)
        return filter_key(v, b, key);
    if (v->prompt == PROMPT_BUDGET)
        return view_budget_key(v, key);
    if (v->prompt != PROMPT_NONE)
        return question_key(v, key);
    enum command cmd = keys_lookup(key, place(v));
    if (cmd == CMD_NONE) {
        char name[KEY_NAME];
        if (key != UK_RESIZE && key != UK_NONE)
            view_say(v, "no meaning for %s here; ? lists the keys", keys_name(key, name));
        return ACT_NONE;
    }
    return view_command(v, b, cmd);
}
