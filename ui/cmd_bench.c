/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `bench`: the latency of a compiled model, and its outputs against the interpreter's.
 *
 * The model runs in a child process, pinned to a core where it has one thread: what it does there
 * is an answer or a reason. Inputs are reproducible, or read from files. The child writes times and
 * outputs into memory shared with this process, which then computes what should have come out.
 */
#include <errno.h>
#include <getopt.h>
#include <jansson.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "engine/base/clock.h"
#include "engine/model/evaluate.h"
#include "engine/search/stats.h"
#include "ui/bench_child.h"
#include "ui/cli.h"
#include "ui/format.h"
#include "ui/product.h"

/* Of the largest value of an output: far above rounding, far below what a wrong kernel does. */
static const double TOLERANCE = 1e-3;

enum { MAX_FILES = 16 };

struct bench {
    const char *path; /* folder or session */
    int threads;      /* 0: all it was compiled for */
    int runs;         /* 0: as many as fill two seconds */
    bool json, no_check;
    int nr_inputs, nr_expected;
    const char *input[MAX_FILES], *expected[MAX_FILES];
    struct product_options compile; /* of a session */

    char *folder, *own_folder; /* the second is removed at the end */
    struct product p;
    struct product_model model;
    float **in, **out;   /* as the library takes and gives them, stored; out is shared memory */
    float **want, **got; /* logical */
    struct bench_result *result;
    double error[2], largest[2]; /* against the interpreter, against files; NAN: not compared */
};

static const char help_text[] =
    "  --threads N        at most those the session was tuned with (all)\n"
    "  --runs N           timed runs (what fills two seconds, 10 to 1000)\n"
    "  --input FILE       float32 numbers of the first, second ... input (reproducible ones)\n"
    "  --expect FILE      float32 numbers that the first, second ... output is compared with\n"
    "  --no-check         does not run the interpreter, which takes seconds for large models\n"
    "  --json             as JSON\n"
    "  --seed-weights, --logits, --target T   of a session: as for compile\n"
    "\n"
    "Runs a compiled model, or compiles a session into a temporary folder and runs that. The "
    "error\n"
    "is the largest of all elements, in parts of the output's largest value; above 1e-3 the "
    "command\n"
    "fails. Reproducible inputs are uniform in [-1, 1), by the rule of engine/model/evaluate.h "
    "under\n"
    "the name \"input\", the second one \"input1\" and so on.\n";

static int usage(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

static int usage(const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    fputs("squall bench: ", stderr);
    vfprintf(stderr, fmt, ap);
    fputs("; see squall bench --help\n", stderr);
    va_end(ap);
    return EXIT_USAGE;
}

static bool positive(const char *text, long max, int *out)
{
    char *end;
    errno = 0;
    long v = strtol(text, &end, 10);
    *out = (int)v;
    return end != text && !*end && !errno && v > 0 && v <= max;
}

static int set_option(struct bench *b, int c)
{
    switch (c) {
    case 'n':
        return positive(optarg, 1024, &b->threads)
                   ? -1
                   : usage("--threads wants a number from 1 to 1024, not \"%s\"", optarg);
    case 'r':
        return positive(optarg, BENCH_MAX_RUNS, &b->runs)
                   ? -1
                   : usage("--runs wants a number from 1 to %d, not \"%s\"", BENCH_MAX_RUNS,
                           optarg);
    case 'i':
        if (b->nr_inputs == MAX_FILES)
            return usage("more than %d inputs", MAX_FILES);
        b->input[b->nr_inputs++] = optarg;
        return -1;
    case 'e':
        if (b->nr_expected == MAX_FILES)
            return usage("more than %d outputs", MAX_FILES);
        b->expected[b->nr_expected++] = optarg;
        return -1;
    case 'c':
        b->no_check = true;
        return -1;
    case 'j':
        b->json = true;
        return -1;
    case 's':
        b->compile.seed_weights = true;
        return -1;
    case 'l':
        b->compile.logits = true;
        return -1;
    default:
        b->compile.target = optarg;
        return -1;
    }
}

/* -1 to go on, or the exit code. */
static int parse(int argc, char **argv, struct bench *b)
{
    static const struct option options[] = {
        {"threads", required_argument, NULL, 'n'},
        {"runs", required_argument, NULL, 'r'},
        {"input", required_argument, NULL, 'i'},
        {"expect", required_argument, NULL, 'e'},
        {"no-check", no_argument, NULL, 'c'},
        {"json", no_argument, NULL, 'j'},
        {"seed-weights", no_argument, NULL, 's'},
        {"logits", no_argument, NULL, 'l'},
        {"target", required_argument, NULL, 't'},
        {"help", no_argument, NULL, 'h'},
        {NULL, 0, NULL, 0},
    };
    int c, rc = -1;
    optind = 0;
    opterr = 0;
    while (rc < 0 && (c = getopt_long(argc, argv, ":h", options, NULL)) != -1) {
        if (c == 'h') {
            printf("usage: squall bench [options] DIR|SESSION [INPUT]\n\n%s\n\n%s",
                   command_find("bench")->summary, help_text);
            return EXIT_DONE;
        }
        if (c == ':')
            return usage("%s wants a value", argv[optind - 1]);
        if (c == '?')
            return usage("there is no option %s", argv[optind - 1]);
        rc = set_option(b, c);
    }
    if (rc >= 0)
        return rc;
    if (argc - optind < 1)
        return usage("wants the folder of a compiled model, or a session");
    if (argc - optind > 2)
        return usage("\"%s\" is one argument too many", argv[optind + 2]);
    b->path = argv[optind];
    b->compile.input = argc - optind > 1 ? argv[optind + 1] : NULL;
    return -1;
}

/* ---- preparing ---- */

static bool is_folder(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

static int open_folder(struct bench *b, struct err *e)
{
    if (is_folder(b->path)) {
        if (b->compile.seed_weights || b->compile.logits || b->compile.target || b->compile.input)
            return err_set(e, ERR_USAGE,
                           "\"%s\" is compiled already: --seed-weights, --logits, "
                           "--target and INPUT are for sessions",
                           b->path);
        b->folder = xstrdup(b->path);
        return product_read(b->folder, &b->p, e);
    }
    const char *tmp = getenv("TMPDIR");
    struct strbuf path = {0};
    strbuf_addf(&path, "%s/squall-bench-XXXXXX", tmp && *tmp ? tmp : "/tmp");
    if (!mkdtemp(path.buf)) {
        err_set(e, ERR_IO, "cannot make a temporary folder \"%s\": %s", path.buf, strerror(errno));
        strbuf_release(&path);
        return ERR_IO;
    }
    b->folder = strbuf_detach(&path);
    b->own_folder = b->folder;
    b->compile.session = b->path;
    b->compile.folder = b->folder;
    return product_compile(&b->compile, &b->p, e);
}

static void remove_folder(struct bench *b)
{
    static const char *const kind[] = {LIBRARY_SHARED, LIBRARY_OBJECT,  LIBRARY_HEADER,
                                       LIBRARY_SOURCE, LIBRARY_WEIGHTS, "%s.json"};
    for (size_t i = 0; b->p.name && i < sizeof kind / sizeof *kind; i++) {
        char *path = library_path(b->own_folder, kind[i], b->p.name);
        unlink(path);
        free(path);
    }
    rmdir(b->own_folder);
}

static int read_floats(const char *path, const char *what, int64_t n, float *out, struct err *e)
{
    FILE *f = fopen(path, "rb");
    if (!f)
        return err_set(e, ERR_IO, "cannot open \"%s\": %s", path, strerror(errno));
    char more;
    bool fits = fread(out, sizeof *out, (size_t)n, f) == (size_t)n && fread(&more, 1, 1, f) == 0;
    fclose(f);
    return fits ? 0
                : err_set(e, ERR_INPUT, "\"%s\" does not hold the %lld float32 numbers of %s", path,
                          (long long)n, what);
}

static int64_t value_size(const struct bench *b, int value)
{
    return shape_size(&b->model.graph->value[value]->shape);
}

static float *new_floats(int64_t n)
{
    return xcalloc((size_t)n, sizeof(float));
}

/* Logical inputs go to want[] for the moment: the interpreter reads them from there. */
static int fill_inputs(struct bench *b, float **logical, struct err *e)
{
    const struct graph *g = b->model.graph;
    int rc = 0;
    for (int k = 0; k < g->nr_inputs && !rc; k++) {
        int64_t n = value_size(b, g->input[k]);
        struct layout l = plan_outside(&b->model.plan, false, k);
        char name[32];
        snprintf(name, sizeof name, k ? "input%d" : "input", k);
        logical[k] = new_floats(n);
        if (k < b->nr_inputs)
            rc = read_floats(b->input[k], g->value[g->input[k]]->name, n, logical[k], e);
        else
            seed_floats(name, -1, 1, n, logical[k]);
        b->in[k] = bench_shared(layout_stored_size(&l) * (int64_t)sizeof(float));
        if (!b->in[k])
            rc = err_set(e, ERR_NOMEM, "not enough memory for the inputs");
        else
            layout_pack(&l, logical[k], b->in[k]);
    }
    return rc;
}

static int make_outputs(struct bench *b, struct err *e)
{
    const struct graph *g = b->model.graph;
    for (int k = 0; k < g->nr_outputs; k++) {
        struct layout l = plan_outside(&b->model.plan, true, k);
        b->out[k] = bench_shared(layout_stored_size(&l) * (int64_t)sizeof(float));
        b->got[k] = new_floats(value_size(b, g->output[k]));
        b->want[k] = new_floats(value_size(b, g->output[k]));
        if (!b->out[k])
            return err_set(e, ERR_NOMEM, "not enough memory for the outputs");
    }
    b->result = bench_shared(sizeof *b->result);
    return b->result ? 0 : err_set(e, ERR_NOMEM, "not enough memory for the times");
}

/* ---- comparing ---- */

/* Keeps the output with the largest error in parts of its largest value. */
static void compare(struct bench *b, int what, int k)
{
    int64_t n = value_size(b, b->model.graph->output[k]);
    double error = 0, largest = 0;
    for (int64_t i = 0; i < n; i++) {
        double d = fabs((double)b->got[k][i] - (double)b->want[k][i]);
        error = d <= error ? error : d; /* NAN stays */
        largest = fmax(largest, fabs((double)b->want[k][i]));
    }
    double part = largest > 0 ? error / largest : error;
    if (isnan(b->error[what]) || !(part <= b->error[what])) {
        b->error[what] = isnan(part) ? INFINITY : part;
        b->largest[what] = largest;
    }
}

static int check(struct bench *b, float *const *logical, struct err *e)
{
    struct graph *g = b->model.graph;
    int rc = 0;
    for (int k = 0; k < g->nr_outputs; k++) {
        struct layout l = plan_outside(&b->model.plan, true, k);
        layout_unpack(&l, b->out[k], b->got[k]);
    }
    for (int k = 0; k < b->nr_expected && k < g->nr_outputs && !rc; k++) {
        rc = read_floats(b->expected[k], g->value[g->output[k]]->name, value_size(b, g->output[k]),
                         b->want[k], e);
        if (!rc)
            compare(b, 1, k);
    }
    if (rc || b->no_check)
        return rc;
    rc = graph_evaluate(g, (const float *const *)logical, b->want, e);
    for (int k = 0; k < g->nr_outputs && !rc; k++)
        compare(b, 0, k);
    return rc;
}

static int verdict(const struct bench *b, struct err *e)
{
    static const char *const with[] = {"the interpreter's", "the expected ones"};
    for (int i = 0; i < 2; i++)
        if (b->error[i] > TOLERANCE)
            return err_set(e, ERR_BACKEND,
                           "the outputs of \"%s\" are not %s: they differ by %.2g "
                           "of the largest value",
                           b->p.name, with[i], b->error[i]);
    return 0;
}

/* ---- telling ---- */

struct times {
    double median, min, lo, hi, p95;
};

static struct times times_of(const struct bench_result *r)
{
    struct times t = {.median = stats_median(r->ns, r->nr),
                      .min = stats_quantile(r->ns, r->nr, 0),
                      .p95 = stats_quantile(r->ns, r->nr, 0.95)};
    stats_median_interval(r->ns, r->nr, 0.95, &t.lo, &t.hi);
    return t;
}

static void print_text(const struct bench *b)
{
    static const char *const with[] = {"the interpreter of the operators", "the expected outputs"};
    struct times t = times_of(b->result);
    char s[5][FORMAT_MAX];
    printf("%s for %s, %d thread%s: %s\n", b->p.name, b->p.target, b->result->threads,
           b->result->threads == 1 ? "" : "s", format_time(s[0], t.median));
    printf("  latency      median of %d runs, 95%% interval %s to %s; fastest %s, 95th percentile "
           "%s\n",
           b->result->nr, format_time(s[1], t.lo), format_time(s[2], t.hi),
           format_time(s[3], t.min), format_time(s[4], t.p95));
    printf("  created in   %s\n", format_time(s[0], b->result->create_ns));
    printf("  memory       weights %s, activations %s\n",
           format_bytes(s[0], (double)b->p.report.weights_bytes),
           format_bytes(s[1], (double)b->p.report.arena_bytes));
    for (int i = 0; i < 2; i++)
        if (!isnan(b->error[i]))
            printf("  error        %.2g of the largest value, %.4g, against %s\n", b->error[i],
                   b->largest[i], with[i]);
}

static json_t *real(double v)
{
    return isfinite(v) ? json_real(v) : json_null();
}

static void print_json(const struct bench *b)
{
    struct times t = times_of(b->result);
    json_t *j = json_pack(
        "{s:s, s:s, s:i, s:i, s:o, s:o, s:[o, o], s:o, s:o, s:o, s:o, s:I, s:I, s:b, s:b}", "name",
        b->p.name, "target", b->p.target, "threads", b->result->threads, "runs", b->result->nr,
        "median_ns", real(t.median), "min_ns", real(t.min), "interval_ns", real(t.lo), real(t.hi),
        "p95_ns", real(t.p95), "create_ns", real(b->result->create_ns), "error", real(b->error[0]),
        "expected_error", real(b->error[1]), "arena_bytes", (json_int_t)b->p.report.arena_bytes,
        "weights_bytes", (json_int_t)b->p.report.weights_bytes, "seed_weights", b->p.seed_weights,
        "logits", b->p.logits);
    char *text = json_dumps(j, JSON_INDENT(2));
    puts(text ? text : "{}");
    free(text);
    json_decref(j);
}

/* ---- */

static int measure(struct bench *b, struct err *e)
{
    char *path = library_path(b->folder, LIBRARY_SHARED, b->p.name);
    char *full = realpath(path, NULL);
    int threads = b->threads ? b->threads : b->p.threads;
    struct bench_call call = {.library = full ? full : path,
                              .name = b->p.name,
                              .in = (const float *const *)b->in,
                              .out = b->out,
                              .threads = threads,
                              .runs = b->runs};
    int rc = threads > b->p.threads
                 ? err_set(e, ERR_INPUT,
                           "\"%s\" was tuned and compiled for %d thread%s, not for "
                           "%d: tune with --threads %d",
                           b->p.name, b->p.threads, b->p.threads == 1 ? "" : "s", threads, threads)
                 : bench_in_child(&call, b->result, e);
    free(full);
    free(path);
    return rc;
}

static int run(struct bench *b, struct err *e)
{
    int rc = open_folder(b, e);
    if (rc)
        return rc;
    struct product_source source = {b->p.input, b->p.shapes,       b->p.block,
                                    b->p.plain, b->p.seed_weights, b->p.logits};
    if ((rc = product_load(&source, &b->model, e)))
        return rc;
    int nr_in = b->model.graph->nr_inputs, nr_out = b->model.graph->nr_outputs;
    float **logical = xcalloc((size_t)nr_in, sizeof *logical);
    b->in = xcalloc((size_t)nr_in, sizeof *b->in);
    b->out = xcalloc((size_t)nr_out, sizeof *b->out);
    b->want = xcalloc((size_t)nr_out, sizeof *b->want);
    b->got = xcalloc((size_t)nr_out, sizeof *b->got);
    if (b->nr_inputs > nr_in || b->nr_expected > nr_out)
        rc = err_set(e, ERR_INPUT, "\"%s\" has %d input%s and %d output%s", b->p.name, nr_in,
                     nr_in == 1 ? "" : "s", nr_out, nr_out == 1 ? "" : "s");
    rc = rc ? rc : fill_inputs(b, logical, e);
    rc = rc ? rc : make_outputs(b, e);
    rc = rc ? rc : measure(b, e);
    rc = rc ? rc : check(b, logical, e);
    if (!rc) {
        if (b->json)
            print_json(b);
        else
            print_text(b);
        rc = verdict(b, e);
    }
    for (int k = 0; k < nr_in; k++)
        free(logical[k]);
    for (int k = 0; k < nr_out; k++) {
        free(b->want[k]);
        free(b->got[k]);
    }
    free(logical);
    free(b->in);
    free(b->out);
    free(b->want);
    free(b->got);
    product_release(&b->model);
    return rc;
}

int cmd_bench(int argc, char **argv)
{
    struct bench b = {.error = {NAN, NAN}};
    struct err e = ERR_INIT;
    int code = parse(argc, argv, &b);
    if (code >= 0)
        return code;
    int rc = run(&b, &e);
    if (b.own_folder)
        remove_folder(&b);
    product_clear(&b.p);
    free(b.folder);
    if (!rc && (fflush(stdout) || ferror(stdout)))
        rc = err_set(&e, ERR_IO, "cannot write the output: %s", strerror(errno));
    if (rc)
        cli_error(&e);
    return !rc ? EXIT_DONE : rc == ERR_USAGE ? EXIT_USAGE : EXIT_FAILED;
}
