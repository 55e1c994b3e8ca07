/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `show`: what a session found, of a finished, an interrupted or a running one.
 *
 * The tasks come from the board, as everywhere; lists that may be longer than what the board keeps
 * come from the session's views. --json gives the same as JSON: an object for the session and for a
 * trial, an array of the view's rows else.
 */
#include <errno.h>
#include <fnmatch.h>
#include <getopt.h>
#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine/base/utf8.h"
#include "engine/tune/board.h"
#include "sessions/feed.h"
#include "sessions/query.h"
#include "ui/batch.h"
#include "ui/cli.h"
#include "ui/format.h"
#include "ui/table.h"

enum { DEFAULT_RANKS = 10, DEFAULT_ROWS = 50 };

struct show {
    const char *path, *what;
    const char *task_glob; /* NULL: all */
    int64_t trial, limit;  /* limit 0: not given */
    bool json;
    struct session *s;
    struct session_info info;
    struct strbuf out;
};

static const char help_text[] =
    "usage: squall show [options] SESSION [tasks|leaderboard|trial N|failures]\n\n"
    "Tells what a session found; a running one as far as it is.\n\n"
    "  tasks            the tasks, the model, failures, and where the time went (default)\n"
    "  leaderboard      the fastest trials of each task\n"
    "  trial N          all that is known of a trial\n"
    "  failures         failed trials by task, status and reason\n\n"
    "  --task GLOB      only the tasks with such a name\n"
    "  --limit N        rows of each task's leaderboard (10), rows of failures (50)\n"
    "  --json           as JSON\n\n"
    "For other questions: sqlite3 SESSION, views trials, leaderboard, progress, failures, tasks.\n";

static int usage(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

static int usage(const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    fputs("squall show: ", stderr);
    vfprintf(stderr, fmt, ap);
    fputs("; see squall show --help\n", stderr);
    va_end(ap);
    return EXIT_USAGE;
}

static bool positive(const char *text, int64_t *out)
{
    char *end;
    errno = 0;
    *out = strtoll(text, &end, 10);
    return end != text && !*end && !errno && *out > 0;
}

/* -1 to go on, or the exit code. */
static int parse_words(int nr, char **word, struct show *a)
{
    static const char *const whats[] = {"tasks", "leaderboard", "trial", "failures"};
    if (nr < 1)
        return usage("wants a session");
    a->path = word[0];
    a->what = nr > 1 ? word[1] : "tasks";
    bool known = false;
    for (size_t i = 0; i < sizeof whats / sizeof *whats; i++)
        known = known || !strcmp(a->what, whats[i]);
    if (!known)
        return usage("there is no \"%s\" to show", a->what);
    bool trial = !strcmp(a->what, "trial");
    if (nr > (trial ? 3 : 2))
        return usage("\"%s\" is one argument too many", word[trial ? 3 : 2]);
    if (trial && nr < 3)
        return usage("trial wants a number");
    if (trial && !positive(word[2], &a->trial))
        return usage("\"%s\" is no number of a trial", word[2]);
    return -1;
}

static int parse(int argc, char **argv, struct show *a)
{
    static const struct option options[] = {
        {"task", required_argument, NULL, 't'},
        {"limit", required_argument, NULL, 'n'},
        {"json", no_argument, NULL, 'j'},
        {"help", no_argument, NULL, 'h'},
        {NULL, 0, NULL, 0},
    };
    int c;
    optind = 0; /* glibc: begin anew, whatever was parsed before */
    opterr = 0;
    while ((c = getopt_long(argc, argv, ":h", options, NULL)) != -1) {
        switch (c) {
        case 't':
            a->task_glob = optarg;
            break;
        case 'n':
            if (!positive(optarg, &a->limit))
                return usage("--limit wants a number above 0, not \"%s\"", optarg);
            break;
        case 'j':
            a->json = true;
            break;
        case 'h':
            fputs(help_text, stdout);
            return EXIT_DONE;
        case ':':
            return usage("%s wants a value", argv[optind - 1]);
        default:
            return usage("there is no option %s", argv[optind - 1]);
        }
    }
    return parse_words(argc - optind, argv + optind, a);
}

static bool wanted(const struct show *a, const char *task)
{
    return !a->task_glob || fnmatch(a->task_glob, task, 0) == 0;
}

/* Tasks. */

static int read_board(struct show *a, struct board *b, struct err *e)
{
    struct feed *f;
    struct event ev;
    int rc = feed_open(a->path, 0, &f, e);
    if (rc)
        return rc;
    while ((rc = feed_next(f, &ev, e)) == 1)
        board_apply(b, &ev);
    feed_free(f);
    /* A killed process has not told its end. */
    if (!rc && !b->ended && a->info.state != SESSION_RUNNING) {
        b->ended = true;
        utf8_copy(b->why, sizeof b->why, a->info.why);
    }
    return rc;
}

static void dump(struct show *a, json_t *j)
{
    char *text = json_dumps(j, JSON_INDENT(2) | JSON_REAL_PRECISION(17) | JSON_ENCODE_ANY);
    strbuf_addf(&a->out, "%s\n", text ? text : "null");
    free(text);
    json_decref(j);
}

/* With a glob, the object has fewer tasks; the model stays the whole one. */
static void tasks_json(struct show *a, const struct board *b)
{
    struct strbuf all = {0};
    board_json(b, &all);
    json_t *j = json_loads(strbuf_text(&all), 0, NULL);
    json_t *tasks = json_object_get(j, "tasks");
    for (size_t i = json_array_size(tasks); i-- > 0;)
        if (!wanted(a, json_string_value(json_object_get(json_array_get(tasks, i), "name"))))
            json_array_remove(tasks, i);
    dump(a, j);
    strbuf_release(&all);
}

/* What the canary said last; nothing where there is none. */
static void drift_text(struct show *a, const struct board *b)
{
    char at_first[FORMAT_MAX];
    double drift = b->usage.u.usage.drift;
    if (!(b->usage.u.usage.canary_ns > 0) || !isfinite(drift))
        return;
    strbuf_addf(&a->out, "canary %s at the start, lately %.1f %% %s\n",
                format_time(at_first, b->usage.u.usage.canary_ns), 100 * fabs(drift - 1),
                drift < 1 ? "faster" : "slower");
}

static bool any_wanted(const struct show *a, const struct board *b)
{
    for (int i = 0; i < b->nr_tasks; i++)
        if (wanted(a, b->task[i].name))
            return true;
    return false;
}

static void tasks_text(struct show *a, const struct board *b)
{
    char span[FORMAT_MAX];
    int cols = print_columns(STDOUT_FILENO);
    print_text(&a->out, b->session.u.session.input);
    strbuf_adds(&a->out, " on ");
    print_text(&a->out, b->session.u.session.target);
    strbuf_addf(&a->out, ": %s", session_state_name(a->info.state));
    if (a->info.state == SESSION_RUNNING)
        strbuf_addf(&a->out, " (process %" PRId64 ")", a->info.pid);
    else if (a->info.why[0]) {
        strbuf_adds(&a->out, ", ");
        print_text(&a->out, a->info.why);
    }
    strbuf_addf(&a->out, ", after %s\n\n", format_elapsed(span, b->t_ns));
    if (!b->nr_tasks)
        strbuf_adds(&a->out, "no task yet\n");
    else if (a->task_glob && !any_wanted(a, b))
        strbuf_addf(&a->out, "no task is named like \"%s\"\n", a->task_glob);
    else if (a->task_glob)
        batch_tasks(b, a->task_glob, cols, &a->out);
    else
        batch_table(b, cols, &a->out);
    drift_text(a, b);
}

static int show_tasks(struct show *a, struct err *e)
{
    struct board b;
    board_init(&b);
    int rc = read_board(a, &b, e);
    if (!rc && a->json)
        tasks_json(a, &b);
    else if (!rc)
        tasks_text(a, &b);
    board_release(&b);
    return rc;
}

/* Rows of views. */

static json_t *cell_json(const char *name, const struct session_cell *c)
{
    switch (c->type) {
    case CELL_NULL:
        return json_null();
    case CELL_INTEGER:
        return json_integer(c->integer);
    case CELL_REAL:
        return json_real(c->real);
    case CELL_TEXT:
        break;
    }
    /* JSON in a column stays JSON; text that is none, also where it should be, stays text. */
    json_t *j = NULL;
    if (!strcmp(name, "knobs") || !strcmp(name, "sample_ns"))
        j = json_loads(c->text, 0, NULL);
    if (!j)
        j = json_string(c->text);
    return j ? j : json_null();
}

static json_t *row_json(const struct session_row *r)
{
    json_t *o = json_object();
    for (int i = 0; i < r->nr; i++)
        json_object_set_new(o, r->name[i], cell_json(r->name[i], &r->cell[i]));
    return o;
}

struct rows {
    struct show *a;
    json_t *list;
    struct table *table;
    int64_t nr, left; /* rows taken, rows that may still be */
    void (*cells)(struct table *t, const struct session_row *r);
};

static bool take_row(void *ctx, const struct session_row *r)
{
    struct rows *l = ctx;
    if (!wanted(l->a, r->cell[0].text)) /* the task comes first in these views */
        return true;
    if (l->list)
        json_array_append_new(l->list, row_json(r));
    else
        l->cells(l->table, r);
    l->nr++;
    return --l->left > 0;
}

static void real_cell(struct table *t, const struct session_cell *c,
                      char *(*format)(char buf[FORMAT_MAX], double x))
{
    char a[FORMAT_MAX];
    table_cell(t, c->type == CELL_NULL ? "-" : format(a, c->real));
}

static char *format_times(char buf[FORMAT_MAX], double x)
{
    return format_speedup(buf, x, 1);
}

static void leader_cells(struct table *t, const struct session_row *r)
{
    struct strbuf knobs = {0};
    for (int i = 0; i < 3; i++)
        table_cell(t, r->cell[i].text);
    real_cell(t, &r->cell[3], format_time);
    real_cell(t, &r->cell[4], format_gflops);
    real_cell(t, &r->cell[5], format_times);
    table_cell(t, r->cell[6].text);
    format_knobs(&knobs, r->cell[7].text, NULL);
    table_cell(t, strbuf_text(&knobs));
    strbuf_release(&knobs);
}

static void failure_cells(struct table *t, const struct session_row *r)
{
    static const int order[] = {0, 3, 1, 4, 2};
    for (int i = 0; i < 5; i++)
        table_cell(t, r->cell[order[i]].text);
}

static int show_rows(struct show *a, enum session_view view, int64_t ranks, int64_t limit,
                     const struct table_column *columns, int nr,
                     void (*cells)(struct table *, const struct session_row *), const char *none,
                     struct err *e)
{
    struct table table;
    struct rows l = {.a = a, .table = &table, .left = limit, .cells = cells};
    table_init(&table, columns, nr);
    l.list = a->json ? json_array() : NULL;
    int rc = session_rows(a->s, view, ranks, take_row, &l, e);
    if (rc < 0)
        json_decref(l.list);
    else if (a->json)
        dump(a, l.list);
    else if (l.nr)
        table_print(&table, print_columns(STDOUT_FILENO), &a->out);
    else
        strbuf_addf(&a->out, "%s\n", none);
    table_release(&table);
    return rc < 0 ? rc : 0;
}

static int show_leaderboard(struct show *a, struct err *e)
{
    static const struct table_column columns[] = {
        {"task", false, 18, 0},  {"rank", true, 0, 0},    {"trial", true, 0, 0},
        {"time", true, 0, 0},    {"GFLOP/s", true, 0, 3}, {"speedup", true, 0, 0},
        {"sketch", false, 0, 2}, {"knobs", false, 16, 1},
    };
    return show_rows(
        a, VIEW_LEADERBOARD, a->limit ? a->limit : DEFAULT_RANKS, INT64_MAX, columns,
        sizeof columns / sizeof *columns, leader_cells,
        a->task_glob ? "no trial of such a task has a time" : "no trial has a time yet", e);
}

static int show_failures(struct show *a, struct err *e)
{
    static const struct table_column columns[] = {
        {"task", false, 18, 0},  {"count", true, 0, 0},    {"status", false, 0, 0},
        {"example", true, 0, 0}, {"reason", false, 20, 0},
    };
    return show_rows(a, VIEW_FAILURES, 0, a->limit ? a->limit : DEFAULT_ROWS, columns,
                     sizeof columns / sizeof *columns, failure_cells,
                     a->task_glob ? "no trial of such a task failed" : "no trial failed", e);
}

/* One trial. */

static bool is_time(const char *name)
{
    size_t len = strlen(name);
    return len > 3 && !strcmp(name + len - 3, "_ns") && strcmp(name, "sample_ns") != 0;
}

static void trial_line(struct strbuf *out, const char *name, const struct session_cell *c)
{
    char a[FORMAT_MAX];
    if (c->type == CELL_NULL)
        return;
    int len = (int)strlen(name) - (is_time(name) ? 3 : 0);
    strbuf_addf(out, "%-12.*s  ", len, name);
    if (is_time(name)) {
        strbuf_adds(out, format_time(a, c->real));
    } else if (!strcmp(name, "started") || !strcmp(name, "ended")) {
        strbuf_addf(out, "%.3f s", c->real);
    } else if (!strcmp(name, "knobs")) {
        struct strbuf knobs = {0};
        format_knobs(&knobs, c->text, NULL);
        print_text(out, strbuf_text(&knobs));
        strbuf_release(&knobs);
    } else if (c->type == CELL_REAL) {
        strbuf_addf(out, "%.4g", c->real);
    } else {
        print_text(out, c->text);
    }
    strbuf_addc(out, '\n');
}

static bool take_trial(void *ctx, const struct session_row *r)
{
    struct show *a = ctx;
    if (a->json)
        dump(a, row_json(r));
    for (int i = 0; !a->json && i < r->nr; i++)
        trial_line(&a->out, r->name[i], &r->cell[i]);
    return false;
}

static int show_trial(struct show *a, struct err *e)
{
    int rc = session_rows(a->s, VIEW_TRIAL, a->trial, take_trial, a, e);
    if (!rc)
        rc = session_rows(a->s, VIEW_IN_FLIGHT, a->trial, take_trial, a, e);
    if (!rc)
        return err_set(e, ERR_INPUT,
                       "session \"%s\" has no trial %" PRId64 ": the last is %" PRId64, a->path,
                       a->trial, a->info.last_trial);
    return rc < 0 ? rc : 0;
}

static int show(struct show *a, struct err *e)
{
    int rc = session_open(a->path, SESSION_READ, &a->s, e);
    if (!rc)
        rc = session_info(a->s, &a->info, e);
    if (rc)
        return rc;
    if (!strcmp(a->what, "leaderboard"))
        return show_leaderboard(a, e);
    if (!strcmp(a->what, "failures"))
        return show_failures(a, e);
    if (!strcmp(a->what, "trial"))
        return show_trial(a, e);
    return show_tasks(a, e);
}

int cmd_show(int argc, char **argv)
{
    struct show a = {0};
    struct err e = ERR_INIT;
    int code = parse(argc, argv, &a);
    if (code >= 0)
        return code;
    int rc = show(&a, &e);
    if (!rc && (fwrite(strbuf_text(&a.out), 1, a.out.len, stdout) != a.out.len || fflush(stdout)))
        rc = err_set(&e, ERR_IO, "cannot write the output: %s", strerror(errno));
    if (rc)
        fprintf(stderr, "squall: %s\n", e.msg);
    session_close(a.s, NULL);
    strbuf_release(&a.out);
    return rc ? EXIT_FAILED : EXIT_DONE;
}
