/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `import`: a recorded space as a finished session, to be shown, replayed and queried like one.
 *
 * Every row becomes a trial, in the order of the file, at the moment that the costs of the rows before
 * it add up to. What a session has no place for (measurements, further samples, single costs) is kept
 * as T4 text under KEY_RECORD, from which `export` gives all of it back.
 */
#include <getopt.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "backends/recorded/device.h"
#include "backends/recorded/write.h"
#include "engine/base/clock.h"
#include "engine/base/utf8.h"
#include "engine/search/stats.h"
#include "sessions/store.h"
#include "ui/cli.h"

struct import {
    const char *path, *out;
    const struct recorded *r;
    struct recorded_scale scale;
    struct space space;
    struct event_sink sink;
    struct event ev;
    double t_s;     /* of the session's clock */
    double best_ns;
    int64_t best;   /* trial */
};

static struct event *begin(struct import *m, enum event_kind kind, int task, int64_t trial)
{
    memset(&m->ev, 0, sizeof m->ev);
    m->ev.kind = kind;
    m->ev.task = task;
    m->ev.trial = trial;
    m->ev.t_ns = (int64_t)fmin(m->t_s * 1e9, 9e18);
    m->ev.wall_ns = clock_wall_ns();
    return &m->ev;
}

static void emit(struct import *m)
{
    m->sink.emit(m->sink.ctx, &m->ev);
}

#define PUT(field, text) utf8_copy(field, sizeof(field), text)

static void emit_opening(struct import *m)
{
    const struct recorded *r = m->r;
    const struct sketch *s = m->space.sketch[0];
    struct event *ev = begin(m, EV_SESSION, -1, 0);
    struct strbuf text = {0};
    PUT(ev->u.session.input, m->path);
    PUT(ev->u.session.model, r->name);
    strbuf_addf(&text, "recorded:%s", *r->device ? r->device : r->name);
    PUT(ev->u.session.target, strbuf_text(&text));
    PUT(ev->u.session.hardware, r->device);
    PUT(ev->u.session.compiler, r->format);
    PUT(ev->u.session.version, SQUALL_VERSION);
    PUT(ev->u.session.strategy, "import");
    ev->u.session.nr_tasks = 1;
    ev->u.session.threads = 1;
    emit(m);
    ev = begin(m, EV_TASK, 0, 0);
    PUT(ev->u.task.name, r->name);
    PUT(ev->u.task.workload, "");
    PUT(ev->u.task.kind, *r->kernel ? r->kernel : "recorded");
    ev->u.task.weight = 1;
    ev->u.task.flops = recorded_flops(r);
    ev->u.task.space = r->nr_rows;
    ev->u.task.nr_sketches = 1;
    emit(m);
    for (int k = 0; k < s->nr_knobs; k++) {
        strbuf_reset(&text);
        for (int i = 0; i < s->knob[k].nr_values; i++) {
            struct candidate c = s->start;
            c.v[s->knob[k].slot] = i;
            strbuf_adds(&text, i ? "," : "");
            knob_format(&s->knob[k], &c, &text);
        }
        ev = begin(m, EV_KNOB, 0, 0);
        ev->u.knob.knob = k;
        ev->u.knob.kind = (int32_t)s->knob[k].kind;
        PUT(ev->u.knob.sketch_name, s->name);
        PUT(ev->u.knob.name, s->knob[k].name);
        PUT(ev->u.knob.values, strbuf_text(&text));
        emit(m);
    }
    strbuf_release(&text);
}

static void emit_phase(struct import *m, enum phase phase, const char *why)
{
    struct event *ev = begin(m, EV_PHASE, 0, 0);
    ev->u.phase.phase = phase;
    PUT(ev->u.phase.strategy, "import");
    PUT(ev->u.phase.why, why);
    ev->u.phase.budget = m->r->nr_rows;
    emit(m);
}

static void emit_proposed(struct import *m, int row)
{
    struct candidate c;
    struct strbuf text = {0};
    recorded_candidate(m->r, row, &c);
    struct event *ev = begin(m, EV_PROPOSED, 0, row + 1);
    candidate_code(&m->space, &c, &text);
    PUT(ev->u.proposed.code, strbuf_text(&text));
    strbuf_reset(&text);
    candidate_json(&m->space, &c, &text);
    PUT(ev->u.proposed.knobs, strbuf_text(&text));
    strbuf_release(&text);
    PUT(ev->u.proposed.sketch, m->space.sketch[0]->name);
    PUT(ev->u.proposed.strategy, "import");
    ev->u.proposed.phase = PHASE_EXPLORE;
    ev->u.proposed.origin = ORIGIN_ENUMERATE;
    ev->u.proposed.knob = -1;
    emit(m);
}

/* "2023-12-22 13:17:14.751935+00:00", in UTC whatever it says; now where it is no time. */
static int64_t wall_of(const char *stamp)
{
    struct tm tm = {0};
    const char *rest = stamp ? strptime(stamp, "%Y-%m-%d", &tm) : NULL;
    rest = rest && (*rest == ' ' || *rest == 'T') ? strptime(rest + 1, "%H:%M:%S", &tm) : NULL;
    if (!rest)
        return clock_wall_ns();
    return (int64_t)timegm(&tm) * 1000000000;
}

static void emit_trial(struct import *m, int row)
{
    const struct recorded_row *q = &m->r->row[row];
    double cost_s = recorded_row_cost_s(q), compile_ms = q->part_ms[PART_COMPILE];
    int64_t began_ns = (int64_t)fmin(m->t_s * 1e9, 9e18);
    m->t_s += cost_s;
    struct event *ev = begin(m, EV_TRIAL, 0, row + 1);
    ev->wall_ns = wall_of(q->timestamp);
    ev->u.trial.status = recorded_trial_status(q->status);
    ev->u.trial.cost_ns = ev->u.trial.median_ns = NAN;
    ev->u.trial.error = NAN;
    ev->u.trial.build_ns = isfinite(compile_ms) ? (int64_t)(compile_ms * 1e6) : 0;
    ev->u.trial.measure_ns = (int64_t)(cost_s * 1e9) - ev->u.trial.build_ns;
    ev->u.trial.started_ns = began_ns;
    ev->u.trial.ended_ns = ev->t_ns;
    if (q->status == RECORDED_OK) {
        int nr = recorded_samples_ns(m->r, row, &m->scale, TRIAL_MAX_SAMPLES,
                                     ev->u.trial.sample_ns);
        ev->u.trial.nr_samples = nr;
        ev->u.trial.cost_ns = stats_quantile(ev->u.trial.sample_ns, nr, 0.25);
        ev->u.trial.median_ns = stats_median(ev->u.trial.sample_ns, nr);
    } else {
        PUT(ev->u.trial.reason, q->reason ? q->reason : recorded_status_name(q->status));
    }
    double cost_ns = ev->u.trial.cost_ns;
    emit(m);
    if (!(cost_ns < m->best_ns))
        return;
    m->best_ns = cost_ns;
    m->best = row + 1;
    ev = begin(m, EV_INCUMBENT, 0, row + 1);
    ev->u.incumbent.phase = PHASE_EXPLORE;
    ev->u.incumbent.cost_ns = cost_ns;
    emit(m);
}

static void emit_all(struct import *m)
{
    emit_opening(m);
    emit_phase(m, PHASE_EXPLORE, "");
    for (int i = 0; i < m->r->nr_rows; i++) {
        emit_proposed(m, i);
        emit_trial(m, i);
    }
    emit_phase(m, PHASE_DONE, "imported");
    struct event *ev = begin(m, EV_ENDED, -1, 0);
    ev->u.ended.finished = true;
    PUT(ev->u.ended.why, "imported");
    emit(m);
}

static int store(struct import *m, struct err *e)
{
    struct tune_options o = {.explore = m->r->nr_rows};
    struct session *s = NULL;
    struct strbuf text = {0};
    utf8_copy(o.input, sizeof o.input, m->path);
    strcpy(o.explore_strategy, "none");
    strcpy(o.refine_strategy, "none");
    int rc = session_create(m->out, &o, &s, e);
    if (rc)
        return rc;
    recorded_write_t4(m->r, &text);
    rc = session_set(s, KEY_RECORD, strbuf_text(&text), e);
    rc = rc ? rc : session_set(s, KEY_INPUTS, m->path, e);
    rc = rc ? rc : session_start(s, e);
    strbuf_release(&text);
    if (!rc) {
        m->sink = session_sink(s);
        emit_all(m);
    }
    int closed = session_close(s, rc ? NULL : e);
    if (rc)
        unlink(m->out);
    return rc ? rc : closed;
}

static int import(struct import *m, const char *workload, struct err *e)
{
    struct recorded *r = NULL;
    int rc = recorded_load(m->path, &(struct recorded_options){.workload = workload}, &r, e);
    if (rc)
        return rc;
    m->r = r;
    m->scale = recorded_scale_of(r);
    m->best_ns = INFINITY;
    space_init(&m->space);
    rc = recorded_space(r, &m->space, e);
    rc = rc ? rc : store(m, e);
    if (!rc)
        fprintf(stderr, "%d trials of \"%s\" kept in %s; squall show %s\n", r->nr_rows, r->name,
                m->out, m->out);
    space_release(&m->space);
    recorded_free(r);
    return rc;
}

int cmd_import(int argc, char **argv)
{
    static const struct option options[] = {
        {"output", required_argument, NULL, 'o'}, {"session", required_argument, NULL, 'o'},
        {"task", required_argument, NULL, 't'},   {"help", no_argument, NULL, 'h'},
        {NULL, 0, NULL, 0},
    };
    const struct command *k = command_find("import");
    const char *workload = NULL;
    struct import m = {0};
    struct err e = ERR_INIT;
    int c;
    optind = 0;
    opterr = 0;
    while ((c = getopt_long(argc, argv, ":o:h", options, NULL)) != -1) {
        if (c == 'h') {
            printf("usage: squall import [options] %s\n\n%s\n\n%s", k->arguments, k->summary,
                   k->help);
            return EXIT_DONE;
        }
        if (c == 'o')
            m.out = optarg;
        else if (c == 't')
            workload = optarg;
        else
            break;
    }
    if (c != -1 || argc - optind != 1 || !m.out) {
        fprintf(stderr, "squall import: wants a file and -o SESSION; see squall import --help\n");
        return EXIT_USAGE;
    }
    m.path = argv[optind];
    int rc = import(&m, workload, &e);
    if (rc)
        cli_error(&e);
    return rc ? EXIT_FAILED : EXIT_DONE;
}
