/* SPDX-License-Identifier: Apache-2.0 */
/*
 * demo_screen: the workbench on a made-up session, for looking at it.
 *
 *     demo_screen [--speed X] [--tasks N] [--explore N] [--ascii|--braille] [--upto SHARE] [--text ROWSxCOLS]
 *
 * Plays the session with the times of its events, X times as fast. --upto stops after a share of the
 * events; --text prints one frame and leaves.
 */
#include <errno.h>
#include <locale.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tests/demo_events.h"
#include "ui/screen.h"
#include "ui/screen_view.h"

struct player {
    const struct demo *demo;
    struct queue *q;
    double speed;
    int nr;
};

static void *play(void *arg)
{
    const struct player *p = arg;
    int64_t t = 0;
    for (int i = 0; i < p->nr; i++) {
        const struct event *ev = &p->demo->event[i];
        double wait = p->speed > 0 ? (double)(ev->t_ns - t) / p->speed : 0;
        struct timespec ts = {(time_t)(wait / 1e9), (long)((int64_t)wait % 1000000000)};
        if (wait > 0)
            nanosleep(&ts, NULL);
        t = ev->t_ns;
        if (!queue_push(p->q, ev))
            break;
    }
    return NULL;
}

static int print_frame(const struct player *p, enum glyph_set set, int rows, int cols)
{
    struct board b;
    struct view v;
    struct strbuf out = {0};
    struct err e = ERR_INIT;
    board_init(&b);
    view_init(&v, set);
    for (int i = 0; i < p->nr; i++)
        board_apply(&b, &p->demo->event[i]);
    v.elapsed_ns = b.t_ns;
    int rc = screen_shot(&v, &b, rows, cols, &out, &e);
    fputs(rc < 0 ? e.msg : strbuf_text(&out), rc < 0 ? stderr : stdout);
    strbuf_release(&out);
    view_release(&v);
    board_release(&b);
    return rc < 0;
}

static int run_screen(struct player *p, enum glyph_set set)
{
    struct screen_options o = {.glyphs = set, .replay = true};
    struct board b;
    struct err e = ERR_INIT;
    pthread_t thread;
    p->q = queue_new(sizeof(struct event), 256);
    board_init(&b);
    if (pthread_create(&thread, NULL, play, p))
        return 1;
    int rc = screen_run(&o, p->q, NULL, &b, &e);
    queue_close(p->q);
    pthread_join(thread, NULL);
    queue_free(p->q);
    board_release(&b);
    if (rc < 0)
        fprintf(stderr, "demo_screen: %s\n", e.msg);
    return rc < 0;
}

int main(int argc, char **argv)
{
    struct demo_options o = {.seed = 42, .nr_tasks = 8, .explore = 48, .refine = 60,
                             .failing = 0.06};
    enum glyph_set set = GLYPHS_BLOCK;
    struct player p = {.speed = 1};
    double upto = 1;
    int rows = 0, cols = 0;
    setlocale(LC_ALL, "");
    for (int i = 1; i < argc; i++) {
        const char *value = i + 1 < argc ? argv[i + 1] : "";
        if (!strcmp(argv[i], "--ascii"))
            set = GLYPHS_ASCII;
        else if (!strcmp(argv[i], "--braille"))
            set = GLYPHS_BRAILLE;
        else if (!strcmp(argv[i], "--speed"))
            p.speed = atof(value), i++;
        else if (!strcmp(argv[i], "--tasks"))
            o.nr_tasks = atoi(value), i++;
        else if (!strcmp(argv[i], "--explore"))
            o.explore = atoi(value), i++;
        else if (!strcmp(argv[i], "--upto"))
            upto = atof(value), i++;
        else if (!strcmp(argv[i], "--text") && sscanf(value, "%dx%d", &rows, &cols) == 2)
            i++;
        else
            return fprintf(stderr, "demo_screen: unknown argument '%s'\n", argv[i]), 2;
    }
    struct demo d;
    demo_init(&d, &o);
    p.demo = &d;
    p.nr = (int)(upto * d.nr);
    int rc = rows ? print_frame(&p, set, rows, cols) : run_screen(&p, set);
    demo_release(&d);
    return rc;
}
