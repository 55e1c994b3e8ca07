/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/recorded/device.h"

#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "backends/recorded/private.h"
#include "engine/base/hash.h"
#include "engine/base/utf8.h"
#include "engine/search/stats.h"

struct place {
    struct recorded *r;
    struct recorded_scale scale;
    double median_cost_s; /* of all rows */
    bool *visited;        /* measurer only */
};

struct replayed {
    struct device device;
    struct device_info info;
    struct recorded_rules rules;
    double speed;
    int nr, cap;
    struct place *place;
    pthread_mutex_t lock;
    pthread_cond_t wake;
    /* lock */
    int64_t now_ns;
    bool interrupted;
};

/* What a build yields: the row to be looked up; -1: not in the file. */
struct found {
    struct place *place;
    int row;
};

static struct replayed *replayed_of(const struct device *d)
{
    return (struct replayed *)(uintptr_t)d;
}

/* ---- values as times */

struct recorded_scale recorded_scale_of(const struct recorded *r)
{
    double best = r->row[r->best].value, worst = best;
    for (int i = 0; i < r->nr_rows; i++) {
        if (r->row[i].status == RECORDED_OK)
            worst = fmax(worst, r->row[i].value);
    }
    if (!r->maximise && best > 0)
        return (struct recorded_scale){strcmp(r->unit, "ms") == 0 ? SCALE_TIME : SCALE_UNITS, 0, 1e6};
    if (r->maximise && worst < 0) /* negated: all rates are above zero */
        return (struct recorded_scale){SCALE_RATE, 0, 1e9};
    if (r->maximise && best > 0) /* scores below zero: their distance from it */
        return (struct recorded_scale){SCALE_UNITS, 0, 1e6};
    double span = worst > best ? worst - best : 1;
    return (struct recorded_scale){SCALE_MOVED, span - best, 1e6 / span};
}

double recorded_ns(const struct recorded_scale *s, double value)
{
    if (s->kind == SCALE_RATE)
        return s->factor / -value;
    return (value + s->offset) * s->factor;
}

void recorded_device_says(const struct recorded *r, struct strbuf *out)
{
    struct recorded_scale s = recorded_scale_of(r);
    const char *name = r->objective;
    size_t n = strlen(name);
    if (s.kind == SCALE_RATE && n > 3 && name[0] == 'G' && strcmp(name + n - 2, "/s") == 0)
        strbuf_addf(out, "%s is to be maximised: a time shown is of one %.*s", name, (int)n - 2,
                    name);
    else if (s.kind == SCALE_RATE)
        strbuf_addf(out, "%s is to be maximised: a time shown is 1e9 ns over it", name);
    else if (s.kind == SCALE_UNITS)
        strbuf_addf(out, "%s: a unit of %sit is shown as 1 ms", name, r->maximise ? "minus " : "");
    else if (s.kind == SCALE_MOVED)
        strbuf_addf(out, "%s: the best recorded is shown as 1 ms, the worst as 2 ms", name);
}

double recorded_flops(const struct recorded *r)
{
    return recorded_scale_of(r).kind == SCALE_RATE && !strcmp(r->objective, "GFLOP/s") ? 1e9 : 0;
}

/* ---- opening */

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

/* Where the file has no cost: the time that the samples took. */
double recorded_row_cost_s(const struct recorded_row *row)
{
    if (isfinite(row->cost_s))
        return fmax(row->cost_s, 0);
    double ms = 0;
    for (int i = 0; i < row->nr_samples; i++)
        ms += row->sample_ms[i];
    return ms > 0 && isfinite(ms) ? ms / 1000 : 0;
}

static double median_cost_s(const struct recorded *r)
{
    double *v = xmalloc((size_t)r->nr_rows * sizeof *v);
    for (int i = 0; i < r->nr_rows; i++)
        v[i] = recorded_row_cost_s(&r->row[i]);
    qsort(v, (size_t)r->nr_rows, sizeof *v, by_value);
    double m = v[r->nr_rows / 2];
    free(v);
    return m;
}

/* A task name has no blanks. */
static void task_name(const struct recorded *r, char *out, size_t size)
{
    utf8_copy(out, size, r->name);
    for (char *p = out; *p; p++)
        *p = *p == ' ' || *p == '\t' || *p == '\n' ? '_' : *p;
}

static void add_task(struct recorded *r, struct task_list *tasks)
{
    struct task *t = xcalloc(1, sizeof *t);
    struct strbuf text = {0};
    task_name(r, t->name, sizeof t->name);
    t->weight = 1;
    utf8_copy(t->where, sizeof t->where, r->kernel);
    workload_init(&t->wl, *r->kernel ? r->kernel : "recorded");
    /* Results belong to the knobs and to what was measured. */
    strbuf_addf(&text, "recorded %s %s %s %s %s\n", r->format, r->kernel, r->device,
                r->problem ? r->problem : "", r->objective);
    for (int k = 0; k < r->nr_knobs; k++) {
        strbuf_addf(&text, "%s", r->knob[k].name);
        for (int i = 0; i < r->knob[k].nr_values; i++) {
            strbuf_addc(&text, ' ');
            recorded_value_json(&r->knob[k].value[i], &text);
        }
        strbuf_addc(&text, '\n');
    }
    t->wl.flops = recorded_flops(r);
    snprintf(t->wl.id, sizeof t->wl.id, "%016llx",
             (unsigned long long)hash64(HASH64_INIT, text.buf, text.len));
    t->wl.text = strbuf_detach(&text);
    t->ctx = r; /* the device's; it may be closed before the task is freed */
    task_list_add(tasks, t);
}

const struct recorded *recorded_of_task(const struct task *t)
{
    return t->ctx;
}

static int open_file(struct replayed *d, const char *path, const struct recorded_options *o,
                     struct task_list *tasks, struct err *e)
{
    struct recorded_list l = {0};
    int rc = recorded_load_all(path, o, &l, e);
    for (int i = 0; i < l.nr && !rc; i++) {
        GROW(d->place, d->nr, d->cap);
        struct place *p = &d->place[d->nr++];
        *p = (struct place){.r = l.v[i], .scale = recorded_scale_of(l.v[i])};
        p->median_cost_s = median_cost_s(p->r);
        p->visited = xcalloc((size_t)p->r->nr_rows, sizeof *p->visited);
        add_task(p->r, tasks);
    }
    if (!rc && !*tasks->name)
        utf8_copy(tasks->name, sizeof tasks->name, l.v[0]->name);
    free(l.v);
    return rc;
}

/* That the rules have no mistake is said before anything begins. */
static int check_rules(const struct replayed *d, struct err *e)
{
    int rc = 0;
    for (int i = 0; i < d->nr && !rc && d->rules.nr; i++) {
        struct space s;
        space_init(&s);
        rc = recorded_ruled_space(d->place[i].r, &d->rules, &s, e);
        space_release(&s);
    }
    return rc;
}

static void describe(struct replayed *d)
{
    const struct recorded *r = d->place[0].r;
    struct device_info *i = &d->info;
    snprintf(i->target, sizeof i->target, "recorded:%s", *r->device ? r->device : r->name);
    struct strbuf says = {0};
    recorded_device_says(r, &says);
    snprintf(i->hardware, sizeof i->hardware, "%s%s%s", *r->device ? r->device : "a recorded space",
             says.len ? "; " : "", strbuf_text(&says));
    strbuf_release(&says);
    snprintf(i->compiler, sizeof i->compiler, "%s", r->format);
    i->threads = 1;
    i->cores = 2; /* one to look up beside the one that answers */
    i->lanes = i->registers = 1;
}

/* ---- the device */

static const struct device_info *replayed_info(const struct device *d)
{
    return &replayed_of(d)->info;
}

static int replayed_space(struct device *d, const struct task *t, struct space *out, struct err *e)
{
    const struct recorded_rules *rules = &replayed_of(d)->rules;
    const struct recorded *r = recorded_of_task(t);
    return rules->nr ? recorded_ruled_space(r, rules, out, e) : recorded_space(r, out, e);
}

static void *replayed_operands(struct device *d, const struct task *t, struct err *e)
{
    (void)d;
    (void)t;
    (void)e;
    return xcalloc(1, 1);
}

static void replayed_operands_free(struct device *d, void *operands)
{
    (void)d;
    free(operands);
}

static void replayed_build(struct device *d, int builder, const struct task *t,
                           const struct space *s, const struct candidate *c,
                           struct build_result *r)
{
    struct replayed *x = replayed_of(d);
    struct found *f = xcalloc(1, sizeof *f);
    (void)builder;
    (void)s;
    memset(r, 0, sizeof *r);
    for (int i = 0; i < x->nr; i++) {
        if (x->place[i].r == recorded_of_task(t))
            f->place = &x->place[i];
    }
    f->row = recorded_row_of(f->place->r, c);
    /* That it did not compile is told, and paid for, when its turn to be measured comes. */
    r->status = TRIAL_OK;
    r->artifact = f;
}

static void replayed_artifact_free(struct device *d, void *artifact)
{
    (void)d;
    free(artifact);
}

static int64_t replayed_now(const struct device *d)
{
    struct replayed *x = replayed_of(d);
    pthread_mutex_lock(&x->lock);
    int64_t now = x->now_ns;
    pthread_mutex_unlock(&x->lock);
    return now;
}

/* Lets the cost pass, paced where that was asked for. False when interrupted. */
static bool spend(struct replayed *x, double cost_s)
{
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    double wait = x->speed > 0 ? fmin(cost_s / x->speed, 1e6) : 0;
    until.tv_sec += (time_t)wait;
    until.tv_nsec += (long)((wait - floor(wait)) * 1e9);
    if (until.tv_nsec >= 1000000000) {
        until.tv_sec++;
        until.tv_nsec -= 1000000000;
    }
    pthread_mutex_lock(&x->lock);
    int rc = 0;
    while (wait > 0 && !x->interrupted && rc != ETIMEDOUT)
        rc = pthread_cond_timedwait(&x->wake, &x->lock, &until);
    bool whole = !x->interrupted;
    x->interrupted = false;
    if (whole)
        x->now_ns += (int64_t)fmin(cost_s * 1e9, 1e18);
    pthread_mutex_unlock(&x->lock);
    return whole;
}

enum trial_status recorded_trial_status(enum recorded_status s)
{
    static const enum trial_status to[RECORDED_NR_STATUS] = {
        [RECORDED_OK] = TRIAL_OK,
        [RECORDED_COMPILE] = TRIAL_BUILD_ERROR,
        [RECORDED_RUNTIME] = TRIAL_CRASHED,
        [RECORDED_CONSTRAINTS] = TRIAL_INVALID,
        [RECORDED_CORRECTNESS] = TRIAL_WRONG_RESULT,
        [RECORDED_TIMEOUT] = TRIAL_RUN_TIMEOUT,
        [RECORDED_UNKNOWN] = TRIAL_INVALID,
    };
    return to[s];
}

int recorded_samples_ns(const struct recorded *r, int i, const struct recorded_scale *s, int max,
                        double *out)
{
    const struct recorded_row *row = &r->row[i];
    double want = recorded_ns(s, row->value);
    int nr = row->nr_samples < max ? row->nr_samples : max;
    double median = nr > 0 ? stats_median(row->sample_ms, nr) : 0;
    if (!(median > 0) || !isfinite(median)) {
        out[0] = want;
        return 1;
    }
    for (int k = 0; k < nr; k++)
        out[k] = row->sample_ms[k] * (want / median);
    return nr;
}

static void take_samples(const struct measure_request *q, struct measure_result *r)
{
    r->nr_samples = TRIAL_MAX_SAMPLES;
    for (int k = 0; k < q->nr; k++) {
        const struct found *f = q->artifact[k];
        /* A row that is not ok cannot be beside kernel 0: only ok trials are compared with. */
        if (f->row < 0 || f->place->r->row[f->row].status != RECORDED_OK)
            continue;
        int nr = recorded_samples_ns(f->place->r, f->row, &f->place->scale,
                                     TRIAL_MAX_SAMPLES, r->sample_ns[k]);
        r->nr_samples = nr < r->nr_samples ? nr : r->nr_samples;
    }
}

static void replayed_measure(struct device *d, const struct measure_request *q,
                             struct measure_result *r)
{
    struct replayed *x = replayed_of(d);
    double cost_s = 0;
    memset(r, 0, sizeof *r);
    for (int k = 0; k < q->nr; k++) {
        const struct found *f = q->artifact[k];
        if (f->row < 0)
            cost_s += f->place->median_cost_s;
        else if (!f->place->visited[f->row])
            cost_s += recorded_row_cost_s(&f->place->r->row[f->row]);
    }
    if (!spend(x, cost_s)) {
        r->status = TRIAL_DEVICE_ERROR;
        snprintf(r->reason, sizeof r->reason, "interrupted");
        return;
    }
    for (int k = 0; k < q->nr; k++) {
        const struct found *f = q->artifact[k];
        if (f->row >= 0)
            f->place->visited[f->row] = true;
    }
    r->measure_ns = (int64_t)fmin(cost_s * 1e9, 1e18);
    const struct found *f = q->artifact[0];
    if (f->row < 0) {
        r->status = TRIAL_INVALID;
        snprintf(r->reason, sizeof r->reason, "unknown: the recorded file does not have it");
        return;
    }
    const struct recorded_row *row = &f->place->r->row[f->row];
    r->status = recorded_trial_status(row->status);
    if (r->status == TRIAL_OK)
        take_samples(q, r);
    else
        snprintf(r->reason, sizeof r->reason, "%.200s",
                 row->reason ? row->reason : recorded_status_name(row->status));
}

static void replayed_interrupt(struct device *d)
{
    struct replayed *x = replayed_of(d);
    pthread_mutex_lock(&x->lock);
    x->interrupted = true;
    pthread_cond_broadcast(&x->wake);
    pthread_mutex_unlock(&x->lock);
}

static void replayed_close(struct device *d)
{
    struct replayed *x = replayed_of(d);
    for (int i = 0; i < x->nr; i++) {
        recorded_free(x->place[i].r);
        free(x->place[i].visited);
    }
    free(x->place);
    recorded_rules_release(&x->rules);
    pthread_cond_destroy(&x->wake);
    pthread_mutex_destroy(&x->lock);
    free(x);
}

static const struct device_class replayed_class = {
    .name = "recorded",
    .info = replayed_info,
    .space = replayed_space,
    .operands = replayed_operands,
    .operands_free = replayed_operands_free,
    .build = replayed_build,
    .artifact_free = replayed_artifact_free,
    .measure = replayed_measure,
    .interrupt = replayed_interrupt,
    .close = replayed_close,
    .now = replayed_now,
};

int recorded_device_open(int nr, const char *const *path, const struct recorded_device_options *o,
                         struct task_list *tasks, struct device **out, struct err *e)
{
    struct replayed *x = xcalloc(1, sizeof *x);
    pthread_condattr_t attr;
    x->device.class = &replayed_class;
    for (int i = 0; o->rules && i < o->rules->nr; i++)
        recorded_rules_add(&x->rules, o->rules->v[i]);
    x->speed = o->speed;
    pthread_mutex_init(&x->lock, NULL);
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&x->wake, &attr);
    pthread_condattr_destroy(&attr);
    int rc = 0;
    for (int i = 0; i < nr && !rc; i++)
        rc = open_file(x, path[i], &o->load, tasks, e);
    rc = rc ? rc : check_rules(x, e);
    if (rc) {
        task_list_release(tasks);
        replayed_close(&x->device);
        return rc;
    }
    describe(x);
    *out = &x->device;
    return 0;
}
