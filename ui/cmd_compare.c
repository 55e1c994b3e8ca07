/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `compare`: strategies on recorded spaces, by the performance-over-time score (score.h).
 *
 * A job is one run: a strategy on a space from one seed. Threads take jobs from a counter and write
 * each result to its own place, and a seed depends on nothing but the options, the file and the
 * number of the run; so results do not depend on how many threads there are.
 */
#include <errno.h>
#include <getopt.h>
#include <langinfo.h>
#include <math.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine/base/hash.h"
#include "ui/cli.h"
#include "ui/compare.h"
#include "ui/table.h"

enum { DEFAULT_RUNS = 25, MAX_RUNS = 100000, MAX_THREADS = 256 };

static const char help_text[] =
    "Each strategy searches each recorded space in virtual time, which only recorded evaluations "
    "spend,\n"
    "one at a time. 0 is as good as random search, 1 the optimum at once; below 0 is worse than "
    "random.\n"
    "\n"
    "  --strategies A,B  of these (all); see below\n"
    "  --runs N          runs of a strategy on a space (25)\n"
    "  --seed N          of all random choices (0)\n"
    "  --baseline NAME   0 is this strategy instead of random search\n"
    "  --jobs N          runs at a time (one a core); results do not depend on it\n"
    "  --times           tell what time the strategies take for themselves, too\n"
    "  --json            an object instead of tables\n"
    "  --ascii           no line graphics\n"
    "\n"
    "Files are Kernel Tuner cachefiles, T4, KTT or TVM records, plain or gzip-compressed.\n"
    "\n"
    "Strategies:\n";

static int print_help(void)
{
    const struct command *c = command_find("compare");
    printf("usage: squall %s [options] %s\n\n%s\n\n%s", c->name, c->arguments, c->summary,
           help_text);
    for (int i = 0; strategy_at(i); i++)
        printf("  %-14s %s\n", strategy_at(i)->name, strategy_at(i)->summary);
    return EXIT_DONE;
}

static int usage(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

static int usage(const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    fputs("squall compare: ", stderr);
    vfprintf(stderr, fmt, ap);
    fputs("; see squall compare --help\n", stderr);
    va_end(ap);
    return EXIT_USAGE;
}

/* ---- options ---- */

static bool read_number(const char *text, long long least, long long most, long long *out)
{
    char *end;
    errno = 0;
    *out = strtoll(text, &end, 10);
    return end != text && !*end && !errno && *out >= least && *out <= most;
}

/* -1 to go on, or the exit code. */
static int add_strategy(struct compare *c, const char *name)
{
    const struct strategy_class *class = strategy_find(name);
    if (!class)
        return usage("there is no strategy \"%s\"", name);
    for (int i = 0; i < c->nr_strategies; i++) {
        if (c->strategy[i].class == class)
            return usage("strategy \"%s\" is named twice", name);
    }
    if (c->nr_strategies == COMPARE_MAX_STRATEGIES)
        return usage("--strategies takes %d at most", COMPARE_MAX_STRATEGIES);
    c->strategy[c->nr_strategies++].class = class;
    return -1;
}

static int add_strategies(struct compare *c, const char *list)
{
    char *copy = xstrdup(list);
    int code = -1;
    for (char *at = copy; at && code < 0;) {
        char *comma = strchr(at, ',');
        if (comma)
            *comma = '\0';
        code = add_strategy(c, at);
        at = comma ? comma + 1 : NULL;
    }
    free(copy);
    return code;
}

struct options {
    bool json;
    const char *strategies, *baseline;
};

static int set_option(int id, const char *arg, struct compare *c, struct options *o)
{
    long long n = 0;
    switch (id) {
    case 'S':
        o->strategies = arg;
        return -1;
    case 'b':
        o->baseline = arg;
        return -1;
    case 'r':
        if (!read_number(arg, 1, MAX_RUNS, &n))
            return usage("--runs wants a number from 1 to %d, not \"%s\"", MAX_RUNS, arg);
        c->runs = (int)n;
        return -1;
    case 's':
        if (!read_number(arg, 0, INT64_MAX, &n))
            return usage("--seed wants a whole number from 0, not \"%s\"", arg);
        c->seed = (uint64_t)n;
        return -1;
    case 'J':
        if (!read_number(arg, 1, MAX_THREADS, &n))
            return usage("--jobs wants a number from 1 to %d, not \"%s\"", MAX_THREADS, arg);
        c->threads = (int)n;
        return -1;
    case 't':
        c->times = true;
        return -1;
    case 'j':
        o->json = true;
        return -1;
    case 'a':
        c->glyphs = GLYPHS_ASCII;
        return -1;
    default:
        return print_help();
    }
}

static int parse(int argc, char **argv, struct compare *c, struct options *o)
{
    static const struct option options[] = {
        {"strategies", required_argument, NULL, 'S'},
        {"runs", required_argument, NULL, 'r'},
        {"seed", required_argument, NULL, 's'},
        {"baseline", required_argument, NULL, 'b'},
        {"jobs", required_argument, NULL, 'J'},
        {"json", no_argument, NULL, 'j'},
        {"ascii", no_argument, NULL, 'a'},
        {"times", no_argument, NULL, 't'},
        {"help", no_argument, NULL, 'h'},
        {NULL, 0, NULL, 0},
    };
    int id, code = -1;
    optind = 0;
    opterr = 0;
    while (code < 0 && (id = getopt_long(argc, argv, ":h", options, NULL)) != -1) {
        if (id == ':')
            return usage("option %s wants a value", argv[optind - 1]);
        if (id == '?')
            return usage("there is no option %s", argv[optind - 1]);
        code = set_option(id, optarg, c, o);
    }
    if (code >= 0)
        return code;
    if (o->strategies)
        code = add_strategies(c, o->strategies);
    for (int i = 0; !o->strategies && strategy_at(i) && code < 0; i++) {
        if (strcmp(strategy_at(i)->name, "auto") != 0) /* another name of one in the list */
            code = add_strategy(c, strategy_at(i)->name);
    }
    if (code < 0 && o->baseline && !(c->baseline = strategy_find(o->baseline)))
        return usage("there is no strategy \"%s\"", o->baseline);
    return code >= 0 || optind < argc ? code : usage("wants a recorded space");
}

/* ---- spaces ---- */

/* Is it an evaluation? What a rule of the recording forbade beforehand is none. */
static bool is_allowed(const void *ctx, const struct candidate *cand)
{
    const struct recorded *r = ctx;
    int row = recorded_row_of(r, cand);
    return row >= 0 && r->row[row].status != RECORDED_CONSTRAINTS;
}

static int load_space(struct compare_space *s, struct err *e)
{
    space_init(&s->space);
    int rc = recorded_load(s->file, NULL, &s->recorded, e);
    if (!rc)
        rc = recorded_space(s->recorded, &s->space, e);
    if (rc)
        return rc;
    const struct recorded *r = s->recorded;
    replay_init(&s->replay, &s->space);
    s->no_cost = !r->has_cost;
    for (int i = 0; i < r->nr_rows; i++) {
        struct candidate cand;
        recorded_candidate(r, i, &cand);
        const struct recorded_row *row = &r->row[i];
        if (row->status == RECORDED_CONSTRAINTS)
            s->forbids = true;
        else
            replay_add(&s->replay, &cand, row->status == RECORDED_OK ? row->value : NAN,
                       s->no_cost ? 1 : row->cost_s);
    }
    if (s->forbids)
        sketch_constraint(&s->space, s->space.sketch[0], "is allowed by the recording", 0,
                          is_allowed, r);
    rc = replay_ready(&s->replay, e);
    return rc ? err_prefix(e, "\"%s\"", s->file) : 0;
}

static int load_spaces(struct compare *c, int nr, char **file, struct err *e)
{
    c->space = xcalloc((size_t)nr, sizeof *c->space);
    for (int i = 0; i < nr; i++) {
        for (int j = 0; j < i; j++) {
            if (!strcmp(file[i], file[j]))
                return err_set(e, ERR_INPUT, "\"%s\" is named twice", file[i]);
        }
        c->space[c->nr_spaces++].file = file[i];
        int rc = load_space(&c->space[i], e);
        if (rc)
            return rc;
    }
    return 0;
}

static void release(struct compare *c)
{
    for (int i = 0; i < c->nr_spaces; i++) {
        replay_release(&c->space[i].replay);
        space_release(&c->space[i].space);
        recorded_free(c->space[i].recorded);
    }
    free(c->space);
    for (int i = 0; i < c->nr_strategies; i++)
        free(c->strategy[i].cell);
}

/* ---- runs ---- */

struct jobs {
    const struct compare *c;
    const struct strategy_class *
        *class; /* the strategies, and the baseline if it is none of them */
    int nr_classes, nr;
    struct replay_result *result; /* of job (class * spaces + space) * runs + run */
    atomic_int next;
    atomic_bool failed;
    pthread_mutex_t lock; /* of `e` */
    struct err e;
};

static uint64_t seed_of(const struct compare *c, int space, int run)
{
    const char *name = c->space[space].recorded->name;
    return rng_mix(rng_mix(c->seed, hash64(HASH64_INIT, name, strlen(name))), (uint64_t)run);
}

static void *work(void *arg)
{
    struct jobs *j = arg;
    for (int i; !j->failed && (i = atomic_fetch_add(&j->next, 1)) < j->nr;) {
        int run = i % j->c->runs, pair = i / j->c->runs, space = pair % j->c->nr_spaces;
        struct err e = ERR_INIT;
        if (replay_run(&j->c->space[space].replay, j->class[pair / j->c->nr_spaces],
                       seed_of(j->c, space, run), &j -> result[i], &e)) {
            j->failed = true;
            pthread_mutex_lock(&j->lock);
            err_set(&j->e, e.code, "%s", e.msg);
            pthread_mutex_unlock(&j->lock);
        }
    }
    return NULL;
}

static void show_progress(const struct jobs *j)
{
    int done = j->next < j->nr ? j->next : j->nr;
    fprintf(stderr, "\r%d of %d runs", done, j->nr);
    fflush(stderr);
}

static int run_jobs(struct jobs *j, struct err *e)
{
    pthread_t thread[MAX_THREADS];
    int nr = 0, rc = 0;
    while (nr < j->c->threads && nr < j->nr && !pthread_create(&thread[nr], NULL, work, j))
        nr++;
    if (nr == 0)
        work(j); /* where no thread is to be had, this one has time */
    bool tell = isatty(STDERR_FILENO);
    while (tell && j->next < j->nr && !j->failed) {
        show_progress(j);
        usleep(100000);
    }
    for (int i = 0; i < nr; i++)
        pthread_join(thread[i], NULL);
    if (tell)
        fputs("\r                         \r", stderr);
    if (j->failed)
        rc = err_set(e, j->e.code, "%s", j->e.msg);
    return rc;
}

/* ---- scores ---- */

static const struct replay_result *results(const struct jobs *j, int class, int space)
{
    return j->result +
           ((size_t) class * (size_t)j->c->nr_spaces + (size_t)space) * (size_t)j->c->runs;
}

static void sum_ranks(const struct jobs *j, int class, int space, double sum[SCORE_GRID])
{
    const struct replay_result *r = results(j, class, space);
    memset(sum, 0, SCORE_GRID * sizeof *sum);
    for (int i = 0; i < j->c->runs; i++)
        score_add_ranks(&j->c->space[space].replay.score, &r[i].run, sum);
}

static void fill_cell(const struct jobs *j, int class, int space, struct compare_cell *cell)
{
    const struct replay_result *r = results(j, class, space);
    const struct score_space *s = &j->c->space[space].replay.score;
    int runs = j->c->runs;
    double sum[SCORE_GRID];
    struct score_run *run = xcalloc((size_t)runs, sizeof *run);
    for (int i = 0; i < runs; i++) {
        run[i] = r[i].run;
        cell->evaluations += (double)r[i].evaluations / runs;
        bool found = run[i].nr && run[i].step[run[i].nr - 1].value == s->sorted[0];
        cell->optimum += (double)found / runs;
    }
    sum_ranks(j, class, space, sum);
    cell->score = score_curve(s, sum, runs, cell->p);
    cell->error = score_error(s, run, runs);
    free(run);
}

static void fill_strategy(const struct jobs *j, int class, struct compare_strategy *s)
{
    int spaces = j->c->nr_spaces;
    double ns = 0, evaluations = 0, squares = 0;
    s->cell = xcalloc((size_t)spaces, sizeof *s->cell);
    for (int i = 0; i < spaces; i++) {
        struct compare_cell *cell = &s->cell[i];
        fill_cell(j, class, i, cell);
        s->score += cell->score / spaces;
        squares += cell->error * cell->error;
        for (int k = 0; k < SCORE_GRID; k++)
            s->p[k] += cell->p[k] / spaces;
        for (int k = 0; k < j->c->runs; k++) {
            ns += (double)results(j, class, i)[k].strategy_ns;
            evaluations += results(j, class, i)[k].evaluations;
        }
    }
    s->error = sqrt(squares) / spaces;
    s->propose_ns = evaluations > 0 ? ns / evaluations : 0;
}

/* The curve of the strategy asked for takes the place of random search's. */
static void set_baseline(struct jobs *j, int class)
{
    for (int i = 0; i < j->c->nr_spaces; i++) {
        double sum[SCORE_GRID];
        sum_ranks(j, class, i, sum);
        score_values(&j->c->space[i].replay.score, sum, j->c->runs,
                     j->c->space[i].replay.score.baseline);
    }
}

static int compare(struct compare *c, struct err *e)
{
    const struct strategy_class *class[COMPARE_MAX_STRATEGIES + 1];
    struct jobs j = {.c = c, .class = class, .lock = PTHREAD_MUTEX_INITIALIZER};
    int baseline = -1;
    for (int i = 0; i < c->nr_strategies; i++) {
        class[i] = c->strategy[i].class;
        if (class[i] == c->baseline)
            baseline = i;
    }
    j.nr_classes = c->nr_strategies;
    if (c->baseline && baseline < 0)
        class[baseline = j.nr_classes++] = c->baseline;
    int64_t nr = (int64_t)j.nr_classes * c->nr_spaces * c->runs;
    if (nr > INT32_MAX - MAX_THREADS)
        return err_set(e, ERR_LIMIT, "%lld runs are too many; name fewer strategies or --runs",
                       (long long)nr);
    j.nr = (int)nr;
    j.result = xcalloc((size_t)j.nr, sizeof *j.result);
    int rc = run_jobs(&j, e);
    if (!rc && baseline >= 0)
        set_baseline(&j, baseline);
    for (int i = 0; !rc && i < c->nr_strategies; i++)
        fill_strategy(&j, i, &c->strategy[i]);
    for (int i = 0; i < j.nr; i++)
        score_run_release(&j.result[i].run);
    free(j.result);
    pthread_mutex_destroy(&j.lock);
    return rc;
}

int cmd_compare(int argc, char **argv)
{
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    struct compare c = {.runs = DEFAULT_RUNS, .glyphs = GLYPHS_BLOCK};
    c.threads = cores < 1 ? 1 : cores > MAX_THREADS ? MAX_THREADS : (int)cores;
    struct options o = {0};
    int code = parse(argc, argv, &c, &o);
    if (code >= 0)
        return code;
    c.glyphs = theme_glyph_set(c.glyphs, nl_langinfo(CODESET));
    struct err e = ERR_INIT;
    int rc = load_spaces(&c, argc - optind, argv + optind, &e);
    if (!rc)
        rc = compare(&c, &e);
    if (rc) {
        cli_error(&e);
    } else {
        struct strbuf out = {0};
        if (o.json)
            compare_json(&c, &out);
        else
            compare_print(&c, print_columns(STDOUT_FILENO), &out);
        fwrite(strbuf_text(&out), 1, out.len, stdout);
        strbuf_release(&out);
    }
    release(&c);
    return rc ? EXIT_FAILED : EXIT_DONE;
}
