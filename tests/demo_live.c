/* SPDX-License-Identifier: Apache-2.0 */
/*
 * demo_live: the workbench on a real conductor whose device is a formula, so that pausing, skipping
 * and stopping can be tried without hardware.
 *
 *     demo_live [MICROSECONDS-A-MEASUREMENT]
 *
 * Prints how the session ended.
 */
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>

#include "tests/tune_fixture.h"
#include "ui/screen.h"

struct feed {
    struct queue *q;
    int64_t seq;
};

static void emit(void *ctx, const struct event *ev)
{
    struct feed *f = ctx;
    struct event copy = *ev;
    copy.seq = ++f->seq;
    queue_push(f->q, &copy);
}

int main(int argc, char **argv)
{
    struct task_list tasks;
    struct fake fake;
    struct tune_options o;
    struct board b;
    struct err e = ERR_INIT;
    struct screen_options so = {.glyphs = GLYPHS_BLOCK};
    setlocale(LC_ALL, "");
    tasks_make(&tasks, 4);
    fake_init(&fake, &tasks);
    fake.measure_us = argc > 1 ? atoi(argv[1]) : 20000;
    options_init(&o);
    o.explore = o.refine = 60;
    struct feed f = {.q = queue_new(sizeof(struct event), 64)};
    struct event_sink sink = {.emit = emit, .ctx = &f};
    board_init(&b);
    struct conductor *c = conductor_start(&o, &tasks, &fake.device, &sink, NULL, &e);
    if (!c)
        return fprintf(stderr, "demo_live: %s\n", e.msg), 1;
    int shown = screen_run(&so, f.q, c, &b, &e);
    if (shown < 0) {
        fprintf(stderr, "demo_live: %s\n", e.msg);
        conductor_command(c, TUNE_STOP, -1);
    }
    queue_close(f.q);
    int rc = conductor_join(c, &e);
    printf("session %s after %lld trials\n", rc == 0 ? "finished" : err_text(rc),
           (long long)b.nr_ended);
    conductor_free(c);
    queue_free(f.q);
    board_release(&b);
    fake_free(&fake);
    task_list_release(&tasks);
    return shown < 0;
}
