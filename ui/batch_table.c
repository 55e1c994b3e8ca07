/* SPDX-License-Identifier: Apache-2.0 */
/* What a session found: a table of its tasks, the model as a whole, failures, and where time went.
 */
#include <fnmatch.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "ui/batch.h"
#include "ui/format.h"
#include "ui/table.h"

enum { REASONS = 64, REASONS_SHOWN = 8, COLUMNS_MAX = 120 };

static const struct table_column columns[] = {
    {"task", false, 18, 0},   {"weight", true, 0, 2},  {"untuned", true, 0, 0},
    {"explored", true, 0, 0}, {"refined", true, 0, 0}, {"speedup", true, 0, 0},
    {"GFLOP/s", true, 0, 0},  {"trials", true, 0, 3},  {"failed", true, 0, 1},
};

enum { NR_COLUMNS = sizeof columns / sizeof *columns };

static int64_t nr_failed(const int64_t *by_status, int64_t nr_trials)
{
    return nr_trials - by_status[TRIAL_OK] - by_status[TRIAL_CUT];
}

static double last_stage(double a, double b, double c)
{
    return !isnan(c) ? c : !isnan(b) ? b : a;
}

static void count_cell(struct table *t, int64_t n)
{
    char text[24];
    snprintf(text, sizeof text, "%" PRId64, n);
    table_cell(t, text);
}

static void task_row(struct table *table, const struct board_task *t)
{
    char a[FORMAT_MAX];
    double best = last_stage(t->default_ns, t->explored_ns, t->refined_ns);
    table_cell(table, t->name);
    snprintf(a, sizeof a, "%g", t->weight);
    table_cell(table, a);
    table_cell(table, format_time(a, t->default_ns));
    table_cell(table, format_time(a, t->explored_ns));
    table_cell(table, format_time(a, t->refined_ns));
    table_cell(table, format_speedup(a, t->default_ns, best));
    table_cell(table, format_gflops(a, board_gflops(t, best)));
    count_cell(table, t->nr_trials);
    count_cell(table, nr_failed(t->by_status, t->nr_trials));
}

/* GFLOP/s of the model: its arithmetic over its time. */
static double model_gflops(const struct board *b, double ns)
{
    double flops = 0;
    for (int i = 0; i < b->nr_tasks; i++)
        flops += b->task[i].weight * b->task[i].flops;
    return ns > 0 ? flops / ns : NAN;
}

static void model_row(struct table *table, const struct board *b)
{
    char a[FORMAT_MAX];
    struct board_model m = board_model(b);
    table_cell(table, "all, by weight");
    table_cell(table, "");
    table_cell(table, format_time(a, m.default_ns));
    table_cell(table, format_time(a, m.explored_ns));
    table_cell(table, format_time(a, m.refined_ns));
    table_cell(table, format_speedup(a, m.default_ns, m.refined_ns));
    table_cell(table, format_gflops(a, model_gflops(b, m.refined_ns)));
    count_cell(table, b->nr_ended);
    count_cell(table, nr_failed(b->by_status, b->nr_ended));
}

void batch_model(const struct board *b, struct strbuf *out)
{
    char a[FORMAT_MAX], c[FORMAT_MAX], d[FORMAT_MAX];
    struct board_model m = board_model(b);
    strbuf_addf(out, "model  untuned %s", format_time(a, m.default_ns));
    strbuf_addf(out, ", explored %s (%s)", format_time(a, m.explored_ns),
                format_speedup(c, m.default_ns, m.explored_ns));
    strbuf_addf(out, ", refined %s (%s)\n", format_time(a, m.refined_ns),
                format_speedup(d, m.default_ns, m.refined_ns));
}

/* Failed trials by status and reason; what is beyond the first REASONS kinds is counted together.
 */
struct reason {
    uint8_t status;
    const char *text;
    int64_t count, example;
};

static bool failed(const struct board_trial *t)
{
    return t && t->status != TRIAL_PENDING && t->status != TRIAL_OK && t->status != TRIAL_CUT;
}

static int collect(const struct board *b, struct reason *r, int64_t *others)
{
    int nr = 0;
    for (int64_t id = 1; id <= b->nr_trials; id++) {
        const struct board_trial *t = board_trial(b, id);
        if (!failed(t))
            continue;
        int i = 0;
        /* The board keeps a reason once, so that most comparisons end at the pointer. */
        while (i < nr && (r[i].status != t->status ||
                          (r[i].text != t->reason && strcmp(r[i].text, t->reason) != 0)))
            i++;
        if (i == nr && nr == REASONS) {
            ++*others;
            continue;
        }
        if (i == nr)
            r[nr++] = (struct reason){t->status, t->reason, 0, id};
        r[i].count++;
    }
    return nr;
}

static void failures(const struct board *b, int cols, struct strbuf *out)
{
    struct reason r[REASONS];
    int64_t others = 0;
    int nr = collect(b, r, &others);
    if (nr)
        strbuf_adds(out, "\nfailures\n");
    for (int shown = 0; shown < nr; shown++) {
        int most = shown;
        for (int i = shown + 1; i < nr; i++)
            if (r[i].count > r[most].count)
                most = i;
        struct reason top = r[most];
        r[most] = r[shown];
        r[shown] = top;
        if (shown >= REASONS_SHOWN) {
            others += top.count;
            continue;
        }
        char where[40];
        snprintf(where, sizeof where, "  (trial %" PRId64 ")", top.example);
        strbuf_addf(out, "%7" PRId64 "  %-13s  ", top.count,
                    trial_status_name((enum trial_status)top.status));
        int left = cols - 24 - (int)strlen(where), width = print_width(top.text);
        print_cell(out, top.text, width < left ? width : left, false);
        strbuf_addf(out, "%s\n", where);
    }
    if (others)
        strbuf_addf(out, "%7" PRId64 "  of other kinds\n", others);
}

/* "trials 570 ok, 198 cut, 0 wrong_result, ...": how they all ended. */
static void status_line(const struct board *b, struct strbuf *out)
{
    static const enum trial_status always[] = {TRIAL_OK, TRIAL_CUT, TRIAL_WRONG_RESULT,
                                               TRIAL_CRASHED};
    bool told[TRIAL_NR_STATUS] = {[TRIAL_PENDING] = true};
    if (!b->nr_ended)
        return;
    strbuf_adds(out, "trials ");
    for (size_t i = 0; i < sizeof always / sizeof always[0]; i++) {
        strbuf_addf(out, "%s%" PRId64 " %s", i ? ", " : "", b->by_status[always[i]],
                    trial_status_name(always[i]));
        told[always[i]] = true;
    }
    for (int s = 0; s < TRIAL_NR_STATUS; s++)
        if (!told[s] && b->by_status[s])
            strbuf_addf(out, ", %" PRId64 " %s", b->by_status[s],
                        trial_status_name((enum trial_status)s));
    strbuf_adds(out, "\n");
}

static void time_line(const struct board *b, struct strbuf *out)
{
    char a[FORMAT_MAX], c[FORMAT_MAX], d[FORMAT_MAX], s[FORMAT_MAX];
    strbuf_addf(out, "\n%" PRId64 " trial%s in %s, %.2f a second\n", b->nr_ended,
                b->nr_ended == 1 ? "" : "s", format_time(a, (double)b->t_ns),
                board_trials_per_s(b));
    double active = (double)b->usage.u.usage.active_ns;
    if (!(active > 0))
        return;
    int jobs = b->session.u.session.jobs > 1 ? b->session.u.session.jobs : 1;
    strbuf_addf(out, "time   building %s of %d builder%s, measuring %s, searching %s, waiting %s\n",
                format_share(a, (double)b->usage.u.usage.build_ns / active / jobs), jobs,
                jobs > 1 ? "s" : "", format_share(c, (double)b->usage.u.usage.measure_ns / active),
                format_share(d, (double)b->usage.u.usage.search_ns / active),
                format_share(s, (double)b->usage.u.usage.wait_ns / active));
}

void batch_tasks(const struct board *b, const char *glob, int cols, struct strbuf *out)
{
    struct table table;
    table_init(&table, columns, NR_COLUMNS);
    for (int i = 0; i < b->nr_tasks; i++)
        if (!glob || fnmatch(glob, b->task[i].name, 0) == 0)
            task_row(&table, &b->task[i]);
    if (!glob && b->nr_tasks > 1)
        model_row(&table, b);
    table_print(&table, cols, out);
    table_release(&table);
}

void batch_table(const struct board *b, int cols, struct strbuf *out)
{
    cols = cols < COLUMNS_MAX ? cols : COLUMNS_MAX;
    batch_tasks(b, NULL, cols, out);
    if (b->nr_tasks) {
        strbuf_addc(out, '\n');
        batch_model(b, out);
    }
    status_line(b, out);
    failures(b, cols, out);
    time_line(b, out);
}
