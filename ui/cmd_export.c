/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `export`: a session, or a recorded space, in a format that other tools read.
 *
 * A session's trials of one task become the rows: knobs with several numbers ("4,8,2,16") become a
 * text, times become milliseconds, and what building and measuring took becomes the costs. A session
 * that was imported holds what it was imported from, and gives it back whole.
 */
#include <errno.h>
#include <fnmatch.h>
#include <getopt.h>
#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/recorded/write.h"
#include "sessions/query.h"
#include "sessions/store.h"
#include "ui/cli.h"

struct export {
    const char *path, *out, *format, *task_glob;
    /* of a session */
    struct strbuf task; /* the one that is exported */
    json_t *results;
    bool failed; /* out of memory */
    bool several;
};

static const char *cell_text(const struct session_row *r, const char *name)
{
    for (int i = 0; i < r->nr; i++) {
        if (strcmp(r->name[i], name) == 0)
            return r->cell[i].type == CELL_NULL ? NULL : r->cell[i].text;
    }
    return NULL;
}

static double cell_real(const struct session_row *r, const char *name)
{
    for (int i = 0; i < r->nr; i++) {
        if (strcmp(r->name[i], name) == 0)
            return r->cell[i].type == CELL_NULL ? NAN : r->cell[i].real;
    }
    return NAN;
}

/* Lists become "4x8x2": other tools know values only. */
static json_t *configuration(const struct session_row *r, bool *several)
{
    const char *key, *sketch = cell_text(r, "sketch"), *text = cell_text(r, "knobs");
    json_t *value, *knobs = json_loads(text ? text : "{}", JSON_DECODE_ANY, NULL);
    json_t *out = json_object();
    if (*several)
        json_object_set_new(out, "sketch", json_string(sketch ? sketch : ""));
    json_object_foreach(knobs, key, value) {
        if (!json_is_array(value)) {
            json_object_set(out, key, value);
            continue;
        }
        struct strbuf list = {0};
        for (size_t i = 0; i < json_array_size(value); i++)
            strbuf_addf(&list, "%s%" JSON_INTEGER_FORMAT, i ? "x" : "",
                        json_integer_value(json_array_get(value, i)));
        json_object_set_new(out, key, json_string(strbuf_text(&list)));
        strbuf_release(&list);
    }
    json_decref(knobs);
    return out;
}

static const char *invalidity(const char *status)
{
    static const struct {
        const char *status, *name;
    } names[] = {
        {"ok", "correct"},           {"cut", "timeout"},
        {"invalid", "constraints"},  {"build_error", "compile"},
        {"build_timeout", "compile"}, {"wrong_result", "correctness"},
        {"run_timeout", "timeout"},
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (strcmp(status, names[i].status) == 0)
            return names[i].name;
    }
    return "runtime";
}

static void set_ms(json_t *o, const char *key, double ns)
{
    if (isfinite(ns))
        json_object_set_new(o, key, json_real(ns / 1e6));
}

static json_t *times(const struct session_row *r)
{
    const char *samples = cell_text(r, "sample_ns");
    json_t *out = json_object(), *list = json_loads(samples ? samples : "[]", 0, NULL);
    json_t *runs = json_array(), *ns;
    size_t i;
    set_ms(out, "compilation", cell_real(r, "build_ns"));
    set_ms(out, "benchmark", cell_real(r, "measure_ns"));
    json_array_foreach(list, i, ns)
        json_array_append_new(runs, json_real(json_number_value(ns) / 1e6));
    if (json_array_size(runs))
        json_object_set_new(out, "runtimes", runs);
    else
        json_decref(runs);
    json_decref(list);
    return out;
}

static json_t *measurement(const char *name, json_t *value, const char *unit)
{
    return json_pack("{s:s, s:o, s:s}", "name", name, "value", value, "unit", unit);
}

static bool take_trial(void *ctx, const struct session_row *r)
{
    struct export *x = ctx;
    const char *task = cell_text(r, "task"), *status = cell_text(r, "status");
    const char *when = cell_text(r, "ended_at"), *reason = cell_text(r, "reason");
    if (!task || !status || (x->task_glob && fnmatch(x->task_glob, task, 0) != 0))
        return true;
    if (!x->task.len)
        strbuf_adds(&x->task, task);
    if (strcmp(strbuf_text(&x->task), task) != 0) {
        x->several = true;
        return false;
    }
    const char *why = invalidity(status);
    double ns = cell_real(r, "median_ns");
    bool ok = strcmp(why, "correct") == 0 && isfinite(ns), sketch = true;
    json_t *m = json_array(), *row = json_object();
    json_array_append_new(m, measurement("time", ok ? json_real(ns / 1e6) : json_string(
                                             reason && *reason ? reason : status), ok ? "ms" : ""));
    json_array_append_new(m, measurement("trial", json_integer((json_int_t)cell_real(r, "id")), ""));
    json_object_set_new(row, "timestamp", json_string(when ? when : ""));
    json_object_set_new(row, "configuration", configuration(r, &sketch));
    json_object_set_new(row, "times", times(r));
    json_object_set_new(row, "invalidity", json_string(why));
    json_object_set_new(row, "correctness", json_integer(ok));
    json_object_set_new(row, "measurements", m);
    json_object_set_new(row, "objectives", json_pack("[s]", "time"));
    if (json_array_append_new(x->results, row) < 0)
        x->failed = true;
    return !x->failed;
}

/* The session's trials as T4 text, which is read like any other file. */
static int session_text(struct export *x, struct session *s, struct strbuf *text, struct err *e)
{
    if (session_get(s, KEY_RECORD, text, e) == 1)
        return 0;
    x->results = json_array();
    int rc = session_rows(s, VIEW_TRIALS, 0, take_trial, x, e);
    if (rc >= 0 && x->several)
        rc = err_set(e, ERR_USAGE, "\"%s\" has several tasks; name one: --task NAME", x->path);
    else if (rc >= 0 && !json_array_size(x->results))
        rc = err_set(e, ERR_INPUT, x->task_glob ? "\"%s\" has no trials of such a task"
                                                : "\"%s\" has no trials", x->path);
    json_t *doc = json_pack("{s:s, s:{s:s}, s:O}", "schema_version", "1.0.0", "metadata",
                            "timeunit", "milliseconds", "results", x->results);
    char *dump = rc >= 0 && !x->failed && doc ? json_dumps(doc, JSON_REAL_PRECISION(17)) : NULL;
    if (rc >= 0 && !dump)
        rc = err_set(e, ERR_NOMEM, "cannot write the trials of \"%s\"", x->path);
    if (dump)
        strbuf_adds(text, dump);
    free(dump);
    json_decref(doc);
    json_decref(x->results);
    return rc < 0 ? rc : 0;
}

static int load_session(struct export *x, struct recorded_list *l, struct err *e)
{
    struct session *s = NULL;
    struct strbuf text = {0};
    int rc = session_open(x->path, SESSION_READ, &s, e);
    if (!rc)
        rc = session_text(x, s, &text, e);
    session_close(s, NULL);
    if (!rc)
        rc = recorded_parse(x->path, strbuf_text(&text), text.len, NULL, l, e);
    strbuf_release(&text);
    return rc;
}

static int choose(const struct export *x, const struct recorded_list *l, struct err *e)
{
    int chosen = -1, nr = 0;
    for (int i = 0; i < l->nr; i++) {
        if (!x->task_glob || l->nr == 1 || fnmatch(x->task_glob, l->v[i]->name, 0) == 0) {
            chosen = i;
            nr++;
        }
    }
    if (nr == 1)
        return chosen;
    return err_set(e, ERR_USAGE, nr ? "\"%s\" has several workloads; name one: --task NAME (squall "
                   "space lists them)" : "\"%s\" has no such workload", x->path);
}

static int write_out(const struct export *x, const struct strbuf *text, struct err *e)
{
    FILE *f = x->out ? fopen(x->out, "w") : stdout;
    if (!f)
        return err_set(e, ERR_IO, "cannot write \"%s\": %s", x->out, strerror(errno));
    bool ok = fwrite(strbuf_text(text), 1, text->len, f) == text->len;
    ok = (x->out ? fclose(f) : fflush(f)) == 0 && ok;
    return ok ? 0 : err_set(e, ERR_IO, "cannot write \"%s\": %s", x->out ? x->out : "the output",
                            strerror(errno));
}

static int run(struct export *x, struct err *e)
{
    struct recorded_list l = {0};
    struct strbuf text = {0};
    int rc = input_is_session(x->path) ? load_session(x, &l, e)
                                       : recorded_load_all(x->path, NULL, &l, e);
    int i = rc ? rc : choose(x, &l, e);
    if (i >= 0) {
        recorded_writer_of(x->format)(l.v[i], &text);
        rc = write_out(x, &text, e);
    }
    strbuf_release(&text);
    strbuf_release(&x->task);
    recorded_list_release(&l);
    return i < 0 ? i : rc;
}

static int usage(const char *what)
{
    fprintf(stderr, "squall export: %s; see squall export --help\n", what);
    return EXIT_USAGE;
}

static int parse(int argc, char **argv, struct export *x)
{
    static const struct option options[] = {
        {"format", required_argument, NULL, 'f'}, {"output", required_argument, NULL, 'o'},
        {"task", required_argument, NULL, 't'},   {"help", no_argument, NULL, 'h'},
        {NULL, 0, NULL, 0},
    };
    int c;
    optind = 0;
    opterr = 0;
    while ((c = getopt_long(argc, argv, ":f:o:h", options, NULL)) != -1) {
        if (c == 'h') {
            const struct command *k = command_find("export");
            printf("usage: squall export [options] %s\n\n%s\n\n%s", k->arguments, k->summary,
                   k->help);
            return EXIT_DONE;
        }
        if (c == 'f')
            x->format = optarg;
        else if (c == 'o')
            x->out = optarg;
        else if (c == 't')
            x->task_glob = optarg;
        else
            return usage(c == ':' ? "an option wants a value" : "there is no such option");
    }
    if (argc - optind != 1)
        return usage("wants one session or file");
    x->path = argv[optind];
    return recorded_writer_of(x->format) ? -1 : usage("--format is t4, kt, csv or json");
}

int cmd_export(int argc, char **argv)
{
    struct export x = {.format = "t4"};
    struct err e = ERR_INIT;
    int code = parse(argc, argv, &x);
    if (code >= 0)
        return code;
    int rc = run(&x, &e);
    if (rc)
        cli_error(&e);
    return rc == 0 ? EXIT_DONE : rc == ERR_USAGE ? EXIT_USAGE : EXIT_FAILED;
}
