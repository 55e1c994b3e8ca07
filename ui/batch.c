/* SPDX-License-Identifier: Apache-2.0 */
#include "ui/batch.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "ui/format.h"
#include "ui/table.h"

enum { NAME_COLUMNS = 48 };

static void begin(struct strbuf *out, const struct event *ev, const char *what)
{
    strbuf_addf(out, "[%7.1fs] %-7s ", (double)ev->t_ns / 1e9, what);
}

static const struct board_task *task_of(const struct board *b, const struct event *ev)
{
    return ev->task >= 0 && ev->task < b->nr_tasks ? &b->task[ev->task] : NULL;
}

static void name_cell(const struct board *b, const struct board_task *t, struct strbuf *out)
{
    int cols = 0;
    for (int i = 0; i < b->nr_tasks; i++) {
        int w = print_width(b->task[i].name);
        cols = w > cols ? w : cols;
    }
    print_cell(out, t->name, cols < NAME_COLUMNS ? cols : NAME_COLUMNS, false);
}

/* "1.234 ms (187.6 GFLOP/s)"; without the rate where there is no arithmetic. */
static void time_cell(const struct board_task *t, double ns, struct strbuf *out)
{
    char a[FORMAT_MAX], g[FORMAT_MAX];
    double gflops = board_gflops(t, ns);
    strbuf_addf(out, "%9s", format_time(a, ns));
    if (gflops > 0)
        strbuf_addf(out, " (%s GFLOP/s)", format_gflops(g, gflops));
}

static void session_line(const struct event *ev, struct strbuf *out)
{
    begin(out, ev, "session");
    strbuf_adds(out, ev->u.session.resumed ? "resumed " : "");
    print_text(out, ev->u.session.input);
    strbuf_adds(out, " on ");
    print_text(out, ev->u.session.target);
    strbuf_adds(out, ", ");
    print_text(out, ev->u.session.hardware);
    strbuf_adds(out, ", ");
    print_text(out, ev->u.session.compiler);
    strbuf_addf(out, ", %d task%s, seed %" PRIu64, (int)ev->u.session.nr_tasks,
                ev->u.session.nr_tasks == 1 ? "" : "s", ev->u.session.seed);
    if (ev->u.session.cold)
        strbuf_adds(out, ", weights cold");
}

static void task_line(const struct event *ev, struct strbuf *out)
{
    char a[FORMAT_MAX];
    begin(out, ev, "task");
    print_text(out, ev->u.task.name);
    strbuf_adds(out, "  ");
    print_text(out, ev->u.task.workload);
    strbuf_addf(out, "  weight %g  %s candidates", ev->u.task.weight,
                format_space(a, ev->u.task.space));
}

static void phase_line(const struct board *b, const struct board_task *t, const struct event *ev,
                       struct strbuf *out)
{
    begin(out, ev, "phase");
    name_cell(b, t, out);
    strbuf_addf(out, "  %-7s", phase_name(ev->u.phase.phase));
    if (ev->u.phase.strategy[0]) {
        strbuf_adds(out, "  ");
        print_text(out, ev->u.phase.strategy);
    }
    if (ev->u.phase.budget > 0)
        strbuf_addf(out, "  budget %" PRId64, ev->u.phase.budget);
    if (ev->u.phase.why[0]) {
        strbuf_adds(out, "  ");
        print_text(out, ev->u.phase.why);
    }
}

static void trial_line(const struct board *b, const struct board_task *t, const struct event *ev,
                       struct strbuf *out)
{
    char a[FORMAT_MAX];
    const struct board_trial *k = board_trial(b, ev->trial);
    begin(out, ev, "trial");
    strbuf_addf(out, "%6" PRId64 "  ", ev->trial);
    name_cell(b, t, out);
    strbuf_addf(out, "  %-7s  ", phase_name(k ? (enum phase)k->phase : t->phase));
    print_cell(out, k ? k->strategy : "", 12, false);
    strbuf_addf(out, "  %-13s  ", trial_status_name(ev->u.trial.status));
    if (ev->u.trial.status == TRIAL_OK) {
        time_cell(t, ev->u.trial.median_ns, out);
        strbuf_addf(out, "  best %s", format_time(a, t->best_ns));
    } else {
        print_text(out, ev->u.trial.reason);
    }
}

static void best_line(const struct board *b, const struct board_task *t, const struct event *ev,
                      struct strbuf *out)
{
    char a[FORMAT_MAX];
    begin(out, ev, "best");
    strbuf_addf(out, "%6" PRId64 "  ", ev->trial);
    name_cell(b, t, out);
    strbuf_addf(out, "  %-7s  ", phase_name(ev->u.incumbent.phase));
    time_cell(t, t->best_ns, out);
    strbuf_addf(out, "  %s", format_speedup(a, t->default_ns, t->best_ns));
}

static void result_line(const struct board *b, const struct board_task *t, const struct event *ev,
                        struct strbuf *out)
{
    static const char *const names[] = {"default", "explored", "refined"};
    const double ns[] = {t->default_ns, t->explored_ns, t->refined_ns};
    char a[FORMAT_MAX];
    begin(out, ev, "result");
    name_cell(b, t, out);
    for (int i = 0; i < 3; i++)
        strbuf_addf(out, "  %s %s", names[i], format_time(a, ns[i]));
    strbuf_addf(out, "  %s", format_speedup(a, t->default_ns, t->best_ns));
    if (ev->u.result.why[0]) {
        strbuf_adds(out, "  ");
        print_text(out, ev->u.result.why);
    }
}

static void text_line(const struct event *ev, const char *what, const char *first,
                      const char *second, struct strbuf *out)
{
    begin(out, ev, what);
    print_text(out, first);
    print_text(out, second);
}

static void line_of(const struct board *b, const struct event *ev, struct strbuf *out)
{
    static const char *const levels[] = {"", "warning: ", "error: "};
    const struct board_task *t = task_of(b, ev);
    switch (ev->kind) {
    case EV_SESSION:
        session_line(ev, out);
        break;
    case EV_TASK:
        task_line(ev, out);
        break;
    case EV_PHASE:
        if (t)
            phase_line(b, t, ev, out);
        break;
    case EV_TRIAL:
        if (t)
            trial_line(b, t, ev, out);
        break;
    case EV_INCUMBENT:
        if (t && !ev->u.incumbent.centre)
            best_line(b, t, ev, out);
        break;
    case EV_RESULT:
        if (t)
            result_line(b, t, ev, out);
        break;
    case EV_NOTE:
        text_line(ev, "note",
                  levels[ev->u.note.level == 1 || ev->u.note.level == 2 ? ev->u.note.level : 0],
                  ev->u.note.text, out);
        break;
    case EV_COMMAND:
        text_line(ev, "command", ev->u.command.verb, ev->u.command.text[0] ? "  " : "", out);
        print_text(out, ev->u.command.text);
        break;
    case EV_ENDED:
        text_line(ev, "ended",
                  ev->u.ended.finished ? "finished: " : "interrupted: ", ev->u.ended.why, out);
        break;
    default:
        break;
    }
}

void batch_line(const struct board *b, const struct event *ev, struct strbuf *out)
{
    size_t start = out->len;
    line_of(b, ev, out);
    while (out->len > start && out->buf[out->len - 1] == ' ')
        out->buf[--out->len] = '\0';
    if (out->len > start)
        strbuf_addc(out, '\n');
}
