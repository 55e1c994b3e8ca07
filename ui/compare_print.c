/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The spaces, the scores as a table (a row a space, a column a strategy; as many tables as the
 * width asks for), and P(t) of every strategy in one plot, over all spaces at the same share of
 * their budgets.
 */
#include "ui/compare.h"

#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/utf8.h"
#include "ui/format.h"
#include "ui/table.h"

enum { CELL_COLUMNS = 17, PLOT_ROWS = 17, PLOT_COLUMNS = 72, PLOT_LEFT = 6, CURVE_STEPS = 50 };

/* The plot ends here below: a curve can fall without limit. */
static const double PLOT_LEAST = -1;

static char letter(int strategy)
{
    return (char)(strategy < 26 ? 'a' + strategy : 'A' + strategy - 26);
}

/* The file's name without its folders. */
static const char *name_of(const struct compare_space *s)
{
    const char *slash = strrchr(s->file, '/');
    return slash && slash[1] ? slash + 1 : s->file;
}

static void cellf(struct table *t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

static void cellf(struct table *t, const char *fmt, ...)
{
    struct strbuf text = {0};
    va_list ap;
    va_start(ap, fmt);
    strbuf_vaddf(&text, fmt, ap);
    va_end(ap);
    table_cell(t, strbuf_text(&text));
    strbuf_release(&text);
}

static void print_spaces(const struct compare *c, int cols, struct strbuf *out)
{
    static const struct table_column columns[] = {
        {"space", false, 12, 0},     {"configurations", true, 0, 1}, {"fail", true, 0, 2},
        {"best", true, 0, 4},        {"median", true, 0, 5},         {"budget", true, 0, 0},
        {"evaluations", true, 0, 3},
    };
    struct table t;
    table_init(&t, columns, sizeof columns / sizeof *columns);
    for (int i = 0; i < c->nr_spaces; i++) {
        const struct compare_space *s = &c->space[i];
        const struct score_space *x = &s->replay.score;
        table_cell(&t, name_of(s));
        cellf(&t, "%d", x->nr);
        cellf(&t, "%d", x->nr - x->nr_valid);
        cellf(&t, "%.5g", recorded_shown(s->recorded, x->sorted[0]));
        cellf(&t, "%.5g", recorded_shown(s->recorded, x->median));
        cellf(&t, "%.5g s", x->to_s);
        cellf(&t, "%" PRId64, x->to.evaluations);
    }
    table_print(&t, cols, out);
    table_release(&t);
    for (int i = 0; i < c->nr_spaces; i++) {
        const struct compare_space *s = &c->space[i];
        if (s->no_cost || !s->recorded->closed) {
            print_text(out, name_of(s));
            strbuf_adds(out, s->no_cost
                                 ? ": has no costs, each evaluation counts one second\n"
                                 : ": is not complete, the best in it may not be the optimum\n");
        }
    }
}

static void score_cell(struct table *t, double score, double error)
{
    cellf(t, "%+.3f +-%.3f", score, error);
}

/* The strategies first .. first + nr - 1. */
static void print_scores(const struct compare *c, int first, int nr, int cols, struct strbuf *out)
{
    struct table_column columns[TABLE_MAX_COLUMNS] = {{"score", false, 12, 0}};
    char title[TABLE_MAX_COLUMNS][32];
    for (int i = 0; i < nr; i++) {
        snprintf(title[i], sizeof title[i], "%c %s", letter(first + i),
                 c->strategy[first + i].class->name);
        columns[i + 1] = (struct table_column){title[i], true, 0, 0};
    }
    struct table t;
    table_init(&t, columns, nr + 1);
    for (int s = 0; s < c->nr_spaces; s++) {
        table_cell(&t, name_of(&c->space[s]));
        for (int i = first; i < first + nr; i++)
            score_cell(&t, c->strategy[i].cell[s].score, c->strategy[i].cell[s].error);
    }
    table_cell(&t, "mean");
    for (int i = first; i < first + nr; i++)
        score_cell(&t, c->strategy[i].score, c->strategy[i].error);
    table_cell(&t, "found the optimum");
    for (int i = first; i < first + nr; i++) {
        double share = 0;
        char buf[FORMAT_MAX];
        for (int s = 0; s < c->nr_spaces; s++)
            share += c->strategy[i].cell[s].optimum / c->nr_spaces;
        table_cell(&t, format_share(buf, share));
    }
    if (c->times)
        table_cell(&t, "own time a trial");
    for (int i = first; c->times && i < first + nr; i++) {
        char buf[FORMAT_MAX];
        table_cell(&t, format_time(buf, c->strategy[i].propose_ns));
    }
    table_print(&t, cols, out);
    table_release(&t);
}

static void print_tables(const struct compare *c, int cols, struct strbuf *out)
{
    int label = 18; /* the last rows' */
    for (int i = 0; i < c->nr_spaces; i++) {
        int w = print_width(name_of(&c->space[i]));
        label = w > label ? w : label;
    }
    int fit = (cols - (label < cols / 3 ? label : cols / 3)) / CELL_COLUMNS;
    fit = fit < 1 ? 1 : fit > TABLE_MAX_COLUMNS - 1 ? TABLE_MAX_COLUMNS - 1 : fit;
    for (int first = 0; first < c->nr_strategies; first += fit) {
        int left = c->nr_strategies - first;
        strbuf_addc(out, '\n');
        print_scores(c, first, left < fit ? left : fit, cols, out);
    }
}

struct plot {
    int cols;
    double lo;
    char cell[PLOT_ROWS][PLOT_COLUMNS + 1];
};

static int row_of(const struct plot *p, double y)
{
    double t = (y - p->lo) / (1 - p->lo);
    return (int)lround((1 - fmin(1, fmax(0, t))) * (PLOT_ROWS - 1));
}

/* Where curves meet the first strategy's letter stands. */
static void draw_curve(struct plot *p, const double y[SCORE_GRID], char with)
{
    for (int x = 0; x < p->cols; x++) {
        char *cell = &p->cell[row_of(p, y[x * (SCORE_GRID - 1) / (p->cols - 1)])][x];
        if (*cell == ' ' || *cell == '-')
            *cell = with;
    }
}

static void print_row(const struct plot *p, int row, bool ascii, struct strbuf *out)
{
    int zero = row_of(p, 0);
    if (row == 0)
        strbuf_addf(out, "%*s", PLOT_LEFT, "1");
    else if (row == zero)
        strbuf_addf(out, "%*s", PLOT_LEFT, "0");
    else if (row == PLOT_ROWS - 1)
        strbuf_addf(out, "%*.2g", PLOT_LEFT, p->lo);
    else
        strbuf_addf(out, "%*s", PLOT_LEFT, "");
    bool tick = row == 0 || row == zero || row == PLOT_ROWS - 1;
    strbuf_adds(out, ascii ? (tick ? " +" : " |") : tick ? " ┤" : " │");
    for (int x = 0; x < p->cols; x++) {
        char ch = p->cell[row][x];
        if (ch == '-' && !ascii)
            strbuf_adds(out, "╌");
        else
            strbuf_addc(out, ch);
    }
    while (out->buf[out->len - 1] == ' ')
        out->buf[--out->len] = '\0';
    strbuf_addc(out, '\n');
}

static void print_plot(const struct compare *c, int cols, struct strbuf *out)
{
    bool ascii = c->glyphs == GLYPHS_ASCII;
    struct plot p = {.cols = cols - PLOT_LEFT - 3, .lo = -0.25};
    p.cols = p.cols > PLOT_COLUMNS ? PLOT_COLUMNS : p.cols;
    if (p.cols < 20)
        return;
    for (int i = 0; i < c->nr_strategies; i++) {
        for (int j = 0; j < SCORE_GRID; j++)
            p.lo = fmin(p.lo, fmax(PLOT_LEAST, c->strategy[i].p[j]));
    }
    memset(p.cell, ' ', sizeof p.cell);
    memset(p.cell[row_of(&p, 0)], '-', (size_t)p.cols);
    for (int i = 0; i < c->nr_strategies; i++)
        draw_curve(&p, c->strategy[i].p, letter(i));
    strbuf_addf(out, "\nP(t), mean of the spaces: 1 the optimum, 0 %s\n",
                c->baseline ? c->baseline->name : "random search");
    for (int row = 0; row < PLOT_ROWS; row++)
        print_row(&p, row, ascii, out);
    strbuf_addf(out, "%*s%s", PLOT_LEFT, "", ascii ? " +" : " └");
    for (int x = 0; x < p.cols; x++)
        strbuf_adds(out, ascii ? "-" : "─");
    strbuf_addf(out, "\n%*s  start%*s\n", PLOT_LEFT, "", p.cols - 5, "end of the budget");
    for (int i = 0, at = 0; i < c->nr_strategies; i++) {
        const char *name = c->strategy[i].class->name;
        int width = (int)strlen(name) + 5;
        if (i > 0 && at + width > p.cols) {
            strbuf_addc(out, '\n');
            at = 0;
        }
        strbuf_addf(out, "%*s%c %s", at ? 3 : PLOT_LEFT + 2, "", letter(i), name);
        at += width;
    }
    strbuf_addc(out, '\n');
}

void compare_print(const struct compare *c, int cols, struct strbuf *out)
{
    print_spaces(c, cols, out);
    print_tables(c, cols, out);
    print_plot(c, cols, out);
    strbuf_addf(out,
                "\n%d run%s of each, seed %" PRIu64
                "; +- is the standard error; %s search is 0, the optimum at once 1\n",
                c->runs, c->runs == 1 ? "" : "s", c->seed,
                c->baseline ? c->baseline->name : "random");
}

static void set_real(json_t *o, const char *key, double x)
{
    json_object_set_new(o, key, isfinite(x) ? json_real(x) : json_null());
}

/* Names of files need not be UTF-8. */
static void set_of_file(json_t *o, const struct compare_space *s, json_t *value)
{
    struct strbuf key = {0};
    utf8_clean(s->file, strlen(s->file), &key);
    json_object_set_new(o, strbuf_text(&key), value);
    strbuf_release(&key);
}

static json_t *strategy_json(const struct compare *c, const struct compare_strategy *s)
{
    json_t *o = json_object(), *score = json_object(), *error = json_object();
    json_t *optimum = json_object(), *curve = json_array();
    for (int i = 0; i < c->nr_spaces; i++) {
        set_of_file(score, &c->space[i], json_real(s->cell[i].score));
        set_of_file(error, &c->space[i], json_real(s->cell[i].error));
        set_of_file(optimum, &c->space[i], json_real(s->cell[i].optimum));
    }
    for (int i = 0; i <= CURVE_STEPS; i++)
        json_array_append_new(curve, json_real(s->p[i * (SCORE_GRID - 1) / CURVE_STEPS]));
    set_real(o, "score", s->score);
    json_object_set_new(o, "spaces", score);
    json_object_set_new(o, "runs", json_integer(c->runs));
    set_real(o, "error", s->error);
    json_object_set_new(o, "errors", error);
    json_object_set_new(o, "found_optimum", optimum);
    json_object_set_new(o, "curve", curve);
    if (c->times)
        set_real(o, "propose_ns", s->propose_ns);
    return o;
}

static json_t *space_json(const struct compare_space *s)
{
    const struct score_space *x = &s->replay.score;
    json_t *o = json_object();
    json_object_set_new(o, "configurations", json_integer(x->nr));
    json_object_set_new(o, "valid", json_integer(x->nr_valid));
    set_real(o, "best", recorded_shown(s->recorded, x->sorted[0]));
    set_real(o, "median", recorded_shown(s->recorded, x->median));
    set_real(o, "cutoff", recorded_shown(s->recorded, x->to.value));
    json_object_set_new(o, "evaluations", json_integer(x->to.evaluations));
    set_real(o, "median_cost_s", x->median_cost_s);
    set_real(o, "tau_s", x->tau_s);
    set_real(o, "from_s", x->from_s);
    set_real(o, "budget_s", x->to_s);
    json_object_set_new(o, "complete", json_boolean(s->recorded->closed));
    json_object_set_new(o, "has_cost", json_boolean(!s->no_cost));
    return o;
}

void compare_json(const struct compare *c, struct strbuf *out)
{
    json_t *all = json_object(), *strategies = json_object(), *spaces = json_object();
    for (int i = 0; i < c->nr_strategies; i++)
        json_object_set_new(strategies, c->strategy[i].class->name,
                            strategy_json(c, &c->strategy[i]));
    for (int i = 0; i < c->nr_spaces; i++)
        set_of_file(spaces, &c->space[i], space_json(&c->space[i]));
    json_object_set_new(all, "strategies", strategies);
    json_object_set_new(all, "spaces", spaces);
    json_object_set_new(all, "baseline",
                        json_string(c->baseline ? c->baseline->name : "random search, calculated"));
    json_object_set_new(all, "seed", json_integer((json_int_t)c->seed));
    char *text = json_dumps(all, JSON_INDENT(2) | JSON_REAL_PRECISION(17));
    strbuf_adds(out, text ? text : "{}");
    strbuf_addc(out, '\n');
    free(text);
    json_decref(all);
}
