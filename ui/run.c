/* SPDX-License-Identifier: Apache-2.0 */
#include "ui/run.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine/search/cost_model.h"
#include "engine/tune/board.h"
#include "sessions/feed.h"
#include "ui/batch.h"
#include "ui/pump.h"
#include "ui/screen.h"
#include "ui/watch.h"

static struct screen_options screen_options_of(const struct cli_options *o, bool replay,
                                               int fail_fd)
{
    struct screen_options s = {.glyphs = GLYPHS_BLOCK, .colour = COLOUR_AUTO, .replay = replay,
                               .fail_fd = fail_fd};
    if (o->ascii)
        s.glyphs = GLYPHS_ASCII;
    else if (o->braille)
        s.glyphs = GLYPHS_BRAILLE;
    if (strcmp(o->color, "always") == 0)
        s.colour = COLOUR_ALWAYS;
    else if (strcmp(o->color, "never") == 0)
        s.colour = COLOUR_NEVER;
    return s;
}

/* The screen takes the numbers with it; these stay. */
static void print_model(const struct board *b)
{
    struct strbuf text = {0};
    if (isfinite(board_model(b).default_ns)) {
        batch_model(b, &text);
        fputs(strbuf_text(&text), stdout);
        fflush(stdout);
    }
    strbuf_release(&text);
}

int show_events(const struct cli_options *o, enum show_mode mode, struct feed *f,
                struct conductor *c, int64_t seen, int fail_fd, struct err *e)
{
    bool screen = cli_wants_screen(o);
    if (!screen && !o->batch && !o->json && isatty(STDIN_FILENO) && isatty(STDOUT_FILENO))
        fprintf(stderr, "squall: TERM is \"%s\", which has no screen: a line an event instead\n",
                getenv("TERM") ? getenv("TERM") : "");
    /* Lines of the past come at once, unless a speed was asked for. */
    double speed = mode == SHOW_REPLAY && (screen || o->given_speed) ? o->speed : 0;
    struct pump *p = pump_start(f, speed, mode != SHOW_REPLAY, e);
    if (!p)
        return e->code;
    struct board b;
    board_init(&b);
    int rc;
    if (screen) {
        struct screen_options so = screen_options_of(o, mode == SHOW_REPLAY, fail_fd);
        rc = screen_run(&so, pump_queue(p), c, &b, e);
        rc = rc < 0 ? rc : 0;
        if (mode == SHOW_LIVE)
            print_model(&b);
    } else {
        rc = watch_run(o, pump_queue(p), c, seen, fail_fd, &b, e);
    }
    pump_free(p);
    board_release(&b);
    return rc;
}

/* After the screen is gone: where the result is, and how to go on. */
static void say_goodbye(const struct cli_options *o, const struct session *s, int rc)
{
    if (o->json)
        return;
    const char *path = session_path(s);
    if (rc == 0)
        fprintf(stderr, "session kept in %s; squall show %s\n", path, path);
    else if (rc == ERR_INTERRUPTED)
        fprintf(stderr, "interrupted; go on with: squall resume %s\n", path);
}

static int finish(const struct cli_options *o, struct session *s, int rc, struct err *e)
{
    struct err close_error = ERR_INIT;
    say_goodbye(o, s, rc);
    if (session_close(s, &close_error) && rc != ERR_INTERRUPTED && !rc) {
        rc = close_error.code;
        *e = close_error;
    }
    if (rc && rc != ERR_INTERRUPTED)
        cli_error(e);
    return rc == 0 ? EXIT_DONE : rc == ERR_INTERRUPTED ? EXIT_INTERRUPTED : EXIT_FAILED;
}

int run_session(const struct cli_options *o, struct session *s, struct device *device,
                const struct task_list *tasks, bool resuming)
{
    struct err e = ERR_INIT;
    struct history history;
    struct session_info info = {0};
    struct lessons lessons = {0};
    struct tune_options tune = o->tune;
    int rc = resuming ? session_history(s, &history, &e) : 0;
    if (!rc && resuming) {
        history.budget = o->change;
        history.nr_budgets = o->nr_changes;
    }
    if (!rc)
        rc = session_info(s, &info, &e);
    if (!rc)
        rc = session_lessons(s, &lessons, &e);
    if (lessons.nr)
        tune.lessons = &lessons;
    if (!rc)
        rc = session_start(s, &e);
    struct feed *f = NULL;
    /* A resumed session's board is computed from its first event on. */
    if (!rc)
        rc = feed_live(s, 0, &f, &e);
    if (rc) {
        lessons_release(&lessons);
        return finish(o, s, rc, &e);
    }
    struct event_sink sink = session_sink(s);
    struct conductor *c =
        conductor_start(&tune, tasks, device, &sink, resuming ? &history : NULL, &e);
    if (!c) {
        feed_free(f);
        lessons_release(&lessons);
        return finish(o, s, e.code, &e);
    }
    struct err shown = ERR_INIT;
    int shown_rc = show_events(o, SHOW_LIVE, f, c, info.last_seq, session_fd(s), &shown);
    if (shown_rc)
        conductor_command(c, TUNE_STOP, -1);
    rc = conductor_join(c, &e);
    lessons_release(&lessons);
    bool stuck = conductor_stuck(c) > 0;
    struct err store = ERR_INIT;
    if (session_failed(s, &store)) {
        rc = store.code;
        e = store;
    } else if (shown_rc && (rc == 0 || rc == ERR_INTERRUPTED)) {
        rc = shown_rc;
        e = shown;
    }
    if (!stuck)
        conductor_free(c);
    int code = finish(o, s, rc, &e);
    if (stuck) {
        /* A builder hangs in the compiler: nothing that it uses may be freed under it. */
        fflush(NULL);
        _exit(code);
    }
    return code;
}
