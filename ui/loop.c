/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The loop: waits for keys, events and signals, and draws.
 *
 * Events change the board and make the frame due within 100 ms, so that a burst costs ten frames a
 * second; a key makes it due at once. Where nothing changes nothing is drawn and nothing wakes up,
 * but for the clock of a running session, once a second.
 */
#include "ui/loop.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <curses.h>

#include "engine/base/arena.h"
#include "engine/base/clock.h"
#include "ui/screen.h"
#include "ui/screen_draw.h"
#include "ui/screen_term.h"
#include "ui/screen_view.h"

#define MS INT64_C(1000000)

enum {
    FRAME_MS = 100,     /* between frames that events ask for */
    KEY_FRAME_MS = 16,  /* between frames that keys ask for: a held key scrolls smoothly */
    DRAIN_MS = 20,      /* applying events for longer would keep a key waiting */
    SPOOL_MAX = 64 << 20,
    DEAD_READS = 8,     /* readable without a key so often in a row: the terminal is gone */
};

void spool_release(struct spool *s)
{
    free(s->buf);
    memset(s, 0, sizeof *s);
}

/* Bytes of an event that its kind uses. */
static size_t event_bytes(const struct event *ev)
{
    static const struct event *e;
    size_t u;
    switch (ev->kind) {
    case EV_SESSION:
        u = sizeof e->u.session;
        break;
    case EV_TASK:
        u = sizeof e->u.task;
        break;
    case EV_KNOB:
        u = sizeof e->u.knob;
        break;
    case EV_PHASE:
        u = sizeof e->u.phase;
        break;
    case EV_PROPOSED:
        u = sizeof e->u.proposed;
        break;
    case EV_MEASURING:
        u = 0;
        break;
    case EV_TRIAL:
        u = sizeof e->u.trial;
        break;
    case EV_INCUMBENT:
        u = sizeof e->u.incumbent;
        break;
    case EV_DECISION:
        u = sizeof e->u.decision;
        break;
    case EV_RESULT:
        u = sizeof e->u.result;
        break;
    default:
        u = sizeof e->u;
        break;
    }
    return offsetof(struct event, u) + u;
}

bool spool_push(struct spool *s, const struct event *ev)
{
    size_t n = event_bytes(ev), need = s->len + sizeof n + n;
    if (need > SPOOL_MAX)
        return false;
    if (need > s->cap) {
        s->cap = need < 65536 ? 65536 : 2 * need;
        s->buf = xrealloc(s->buf, s->cap);
    }
    memcpy(s->buf + s->len, &n, sizeof n);
    memcpy(s->buf + s->len + sizeof n, ev, n);
    s->len = need;
    s->nr++;
    return true;
}

bool spool_pop(struct spool *s, struct event *ev)
{
    size_t n;
    if (s->head == s->len) {
        spool_release(s);
        return false;
    }
    memcpy(&n, s->buf + s->head, sizeof n);
    memset(ev, 0, sizeof *ev);
    memcpy(ev, s->buf + s->head + sizeof n, n);
    s->head += sizeof n + n;
    s->nr--;
    return true;
}

struct loop {
    struct queue *events;
    struct conductor *c;
    struct board *b;
    struct view v;
    struct theme t;
    struct spool spool;
    bool more;             /* events are left that the eventfd will not tell of */
    int fail_fd;           /* -1 for none, and once it was heard */
    bool c_ended;          /* the conductor's threads are done */
    bool leave;
    enum screen_end end;
    int dead_reads;
    int64_t due_ns;        /* when the next frame is to be drawn; INT64_MAX for never */
    int64_t drawn_ns;
    char log[VIEW_LOG_TEXT]; /* a line of the error stream, still without its end */
    size_t log_len;
};

static void ask_frame(struct loop *l, int after_ms)
{
    int64_t at = l->drawn_ns + after_ms * MS;
    if (at < l->due_ns)
        l->due_ns = at;
}

static void apply(struct loop *l, const struct event *ev)
{
    board_apply(l->b, ev);
    l->v.event_ns = clock_mono_ns();
    ask_frame(l, FRAME_MS);
}

static void take_event(struct loop *l, const struct event *ev)
{
    if (!l->v.frozen) {
        apply(l, ev);
        return;
    }
    if (!spool_push(&l->spool, ev)) {
        l->v.frozen = false;
        view_say(&l->v, "the view goes on: too many events waited");
        struct event held;
        while (spool_pop(&l->spool, &held))
            apply(l, &held);
        apply(l, ev);
    }
    l->v.nr_held = l->spool.nr;
    ask_frame(l, 1000);
}

static void drain_events(struct loop *l)
{
    int64_t until = clock_mono_ns() + DRAIN_MS * MS;
    struct event ev;
    uint64_t count;
    int fd = queue_fd(l->events);
    /* First the eventfd, then the items: what comes in between wakes the loop once more. */
    if (fd >= 0 && read(fd, &count, sizeof count) < 0 && errno != EAGAIN)
        return;
    l->more = true;
    for (int i = 0; ; i++) {
        if (i % 64 == 63 && clock_mono_ns() > until)
            return;
        bool got = !l->v.frozen && l->spool.nr ? spool_pop(&l->spool, &ev)
                                               : queue_try_pop(l->events, &ev);
        if (!got)
            break;
        if (l->v.frozen)
            take_event(l, &ev);
        else
            apply(l, &ev);
    }
    l->more = false;
    l->v.nr_held = l->spool.nr;
}

/* Writes the screen to squall-screen-N.txt, the first N that is free. */
static void write_screen(struct loop *l)
{
    char name[64];
    int fd = -1;
    for (int i = 1; i < 10000 && fd < 0; i++) {
        snprintf(name, sizeof name, "squall-screen-%d.txt", i);
        fd = open(name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
        if (fd < 0 && errno != EEXIST)
            break;
    }
    if (fd < 0) {
        view_say(&l->v, "cannot write \"%s\": %s", name, strerror(errno));
        return;
    }
    struct strbuf text = {0};
    draw_to_text(&text);
    bool ok = write(fd, strbuf_text(&text), text.len) == (ssize_t)text.len;
    ok = close(fd) == 0 && ok;
    strbuf_release(&text);
    if (ok)
        view_say(&l->v, "the screen is in %s", name);
    else
        view_say(&l->v, "cannot write \"%s\"", name);
}

static void change_budget(struct loop *l, const struct tune_command *m)
{
    const char *task = m->task >= 0 ? l->b->task[m->task].name : "each task";
    conductor_budget(l->c, m);
    if (m->verb == TUNE_REFINE || m->verb == TUNE_EXPLORE)
        view_say(&l->v, "%.0f trials of %s for %s", m->value,
                 m->verb == TUNE_REFINE ? "refinement" : "exploration", task);
    else if (m->value > 0)
        view_say(&l->v, "the session ends after %.6g %s", m->value,
                 m->verb == TUNE_TRIALS ? "trials" : "seconds");
    else
        view_say(&l->v, "the session has no limit of %s",
                 m->verb == TUNE_TRIALS ? "trials" : "time");
}

static void act(struct loop *l, enum action a)
{
    switch (a) {
    case ACT_NONE:
        break;
    case ACT_PAUSE:
        conductor_command(l->c, TUNE_PAUSE, -1);
        view_say(&l->v, "pausing after what is in flight");
        break;
    case ACT_GO:
        conductor_command(l->c, TUNE_GO, -1);
        break;
    case ACT_SKIP:
        conductor_command(l->c, TUNE_SKIP_TASK, l->v.action_task);
        view_say(&l->v, "skipping %s", l->b->task[l->v.action_task].name);
        break;
    case ACT_BUDGET:
        change_budget(l, &l->v.action_budget);
        break;
    case ACT_STOP:
        conductor_command(l->c, TUNE_STOP, -1);
        view_say(&l->v, "stopping after the running measurement; once more leaves at once");
        break;
    case ACT_ABANDON:
        conductor_command(l->c, TUNE_ABANDON, -1);
        view_say(&l->v, "leaving without the running measurement");
        break;
    case ACT_LEAVE:
        l->leave = true;
        break;
    case ACT_WRITE:
        write_screen(l);
        break;
    case ACT_REPAINT:
        term_repaint();
        break;
    case ACT_SUSPEND:
        term_suspend(true);
        break;
    }
}

static void hang_up(struct loop *l)
{
    if (view_is_live(&l->v, l->b))
        conductor_command(l->c, TUNE_STOP, -1);
    l->end = SCREEN_HANGUP;
    l->leave = true;
}

static void read_keys(struct loop *l, bool readable)
{
    int key, nr = 0;
    while (!l->leave && (key = term_key()) != UK_NONE) {
        nr++;
        l->v.now_ns = clock_mono_ns();
        if (key == 0)
            continue;
        if (key != UK_RESIZE)
            act(l, view_key(&l->v, l->b, key));
        ask_frame(l, KEY_FRAME_MS);
    }
    l->dead_reads = readable && !nr ? l->dead_reads + 1 : 0;
    if (l->dead_reads > DEAD_READS)
        hang_up(l);
}

static void signals(struct loop *l, unsigned got)
{
    if (got & TERM_HANGUP)
        hang_up(l);
    if (got & TERM_STOP)
        act(l, view_command(&l->v, l->b, CMD_INTERRUPT));
    if (got & TERM_SUSPEND)
        term_suspend(false);
    if (got & TERM_CONTINUED) {
        reset_prog_mode();
        term_repaint();
    }
    if (got)
        ask_frame(l, 0);
}

/* What something wrote to the error stream, line by line. */
static void read_log(struct loop *l)
{
    char buf[512];
    ssize_t n = read(term_log_fd(), buf, sizeof buf);
    for (ssize_t i = 0; i < n; i++) {
        if (buf[i] != '\n' && l->log_len + 1 < sizeof l->log) {
            l->log[l->log_len++] = buf[i];
            continue;
        }
        l->log[l->log_len] = '\0';
        if (l->log_len)
            view_log(&l->v, l->log);
        l->log_len = 0;
    }
    ask_frame(l, FRAME_MS);
}

/* A search runs, in this process or in the one whose session is watched. */
static bool is_running(const struct loop *l)
{
    return !l->v.replay && !l->c_ended && !l->b->ended;
}

/* The active time of the session now: that of the last event, and the time since while it runs. */
static int64_t elapsed(const struct loop *l, int64_t now)
{
    const struct board *b = l->b;
    bool ticks = is_running(l) && !b->paused && l->v.event_ns && !l->v.frozen;
    return b->t_ns + (ticks ? now - l->v.event_ns : 0);
}

static void draw(struct loop *l, int64_t now)
{
    int rows, cols;
    getmaxyx(stdscr, rows, cols);
    l->v.now_ns = now;
    l->v.elapsed_ns = elapsed(l, now);
    view_arrange(&l->v, l->b, rows, cols);
    draw_frame(&(struct draw){l->b, &l->v, &l->t});
    wnoutrefresh(stdscr);
    doupdate();
    l->drawn_ns = now;
    l->due_ns = INT64_MAX;
    /* The clock of a running session, and the end of a message. */
    if (is_running(l))
        ask_frame(l, 1000);
    if (l->v.message_until_ns > now && l->v.message_until_ns < l->due_ns)
        l->due_ns = l->v.message_until_ns;
    if (l->v.sort_hold_ns > now && l->v.sort_hold_ns < l->due_ns)
        l->due_ns = l->v.sort_hold_ns;
}

static void store_failed(struct loop *l)
{
    l->fail_fd = -1;
    if (view_is_live(&l->v, l->b))
        conductor_command(l->c, TUNE_STOP, -1);
    l->v.stopping = l->v.leave_at_end = true;
    view_say(&l->v, "the session cannot be stored: the search is stopping");
    ask_frame(l, 0);
}

static void wait_and_read(struct loop *l)
{
    int64_t now = clock_mono_ns();
    int64_t timeout = l->more                   ? 0
                      : l->due_ns == INT64_MAX ? -1
                      : l->due_ns > now        ? l->due_ns - now
                                               : 0;
    struct pollfd fds[5] = {
        {.fd = STDIN_FILENO, .events = POLLIN},
        {.fd = queue_fd(l->events), .events = POLLIN},
        {.fd = term_log_fd(), .events = POLLIN},
        {.fd = l->c && !l->c_ended ? conductor_fd(l->c) : -1, .events = POLLIN},
        {.fd = l->fail_fd, .events = POLLIN},
    };
    unsigned got = term_wait(fds, 5, timeout);
    l->v.now_ns = clock_mono_ns();
    signals(l, got);
    if (l->end == SCREEN_HANGUP)
        return;
    read_keys(l, fds[0].revents != 0);
    if (fds[1].revents || l->more || (!l->v.frozen && l->spool.nr))
        drain_events(l);
    if (fds[2].revents)
        read_log(l);
    if (fds[3].revents)
        l->c_ended = true;
    if (fds[4].revents)
        store_failed(l);
}

/* After the conductor's end there is nothing to steer, with or without a last event. */
static void notice_end(struct loop *l)
{
    if (l->c_ended && !l->more && l->v.can_steer) {
        drain_events(l);
        l->v.can_steer = false;
        l->v.gone = !l->b->ended;
        ask_frame(l, 0);
    }
    if (l->v.leave_at_end && (l->b->ended || (l->c_ended && !l->more)))
        l->leave = true;
}

int screen_run(const struct screen_options *o, struct queue *events, struct conductor *c,
               struct board *b, struct err *e)
{
    struct loop l = {.events = events, .c = c, .b = b, .end = SCREEN_LEFT};
    l.fail_fd = o->fail_fd > 0 ? o->fail_fd : -1;
    int rc = term_open(o, &l.t, e);
    if (rc < 0)
        return rc;
    view_init(&l.v, l.t.set);
    l.v.can_steer = c != NULL;
    l.v.replay = o->replay;
    l.v.now_ns = clock_mono_ns();
    l.due_ns = 0;
    l.more = true; /* what came before the screen was up */
    while (!l.leave) {
        int64_t now = clock_mono_ns();
        if (now >= l.due_ns)
            draw(&l, now);
        wait_and_read(&l);
        notice_end(&l);
    }
    if (l.v.frozen || l.spool.nr) {
        struct event ev;
        while (spool_pop(&l.spool, &ev))
            board_apply(b, &ev);
    }
    term_close();
    spool_release(&l.spool);
    view_release(&l.v);
    return l.end;
}
