/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/tune_fixture.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "engine/base/arena.h"
#include "engine/base/hash.h"
#include "engine/base/rng.h"
#include "engine/base/strbuf.h"

/* ---- the formula */

struct blob {
    int task;
    struct candidate c;
    double times; /* of the formula */
};

static uint64_t blob_hash(const struct blob *b)
{
    return rng_mix(candidate_hash(&b->c), (uint64_t)b->task + 1);
}

/* A bowl around a point that is neither the start nor at an edge, and differs by task. */
static double true_cost_ns(const struct blob *b)
{
    double ns = b->c.sketch == 0 ? 4000 : 12000;
    for (int i = 0; i < b->c.nr; i++) {
        double want = 2 + (i + b->task) % 3;
        double off = log2(1 + (double)b->c.v[i]) - log2(1 + want);
        ns += 1500 * off * off;
    }
    return ns * b->times;
}

/* Between -2 and 2, of mean 0 and a standard deviation of 0.58. */
static double deviation(uint64_t a, uint64_t b, int sample)
{
    struct rng r;
    rng_seed(&r, rng_mix(rng_mix(a, b), (uint64_t)sample));
    double sum = 0;
    for (int i = 0; i < 4; i++)
        sum += rng_unit(&r) - 0.5;
    return sum;
}

/* The start of either sketch of the large space. */
static bool is_start(const struct blob *b)
{
    const int32_t *v = b->c.v;
    if (b->c.sketch == 1)
        return v[0] == 0 && v[1] == 0 && v[2] == 0;
    return v[0] == 64 && v[3] == 0 && v[4] == 0 && v[5] == 0 && v[6] == 1;
}

/* TRIAL_OK where the candidate is fine. */
static enum trial_status fate(const struct fake *f, const struct blob *b)
{
    if (b->task == f->broken_task)
        return TRIAL_BUILD_ERROR;
    if (f->flat || is_start(b))
        return TRIAL_OK;
    uint64_t h = blob_hash(b) % 60;
    return h < 2   ? TRIAL_BUILD_ERROR
           : h < 4 ? TRIAL_CRASHED
           : h < 6 ? TRIAL_WRONG_RESULT
           : h < 8 ? TRIAL_RUN_TIMEOUT
           : h < 9 ? TRIAL_INVALID
                   : TRIAL_OK;
}

static void nap_us(int64_t us)
{
    struct timespec ts = {.tv_sec = us / 1000000, .tv_nsec = us % 1000000 * 1000};
    nanosleep(&ts, NULL);
}

/* ---- the device */

static struct fake *fake_of(const struct device *d)
{
    return (struct fake *)(uintptr_t)d;
}

static int task_number(const struct fake *f, const struct task *t)
{
    if (!f->tasks)
        return (int)(hash32(HASH32_INIT, t->wl.id, strlen(t->wl.id)) % 1000);
    for (int i = 0; i < f->tasks->nr; i++)
        if (f->tasks->task[i] == t)
            return i;
    abort();
}

static const struct device_info *fake_info(const struct device *d)
{
    return &fake_of(d)->info;
}

static bool not_all_large(const void *ctx, const struct candidate *c)
{
    (void)ctx;
    return c->v[2] * c->v[3] < 200;
}

/* One row: the sketch, the slots, and as the estimate their sum. */
static int features(const struct sketch *k, const struct candidate *c, float (*row)[FEATURES])
{
    _Static_assert(FEATURE_COST == 0, "it comes first");
    double sum = 1;
    memset(row, 0, FEATURE_ROWS * sizeof *row);
    row[0][1] = (float)c->sketch;
    for (int i = 0; i < k->nr_slots; i++) {
        row[0][2 + i] = (float)log2(1 + (double)c->v[i]);
        sum += c->v[i];
    }
    row[0][FEATURE_COST] = (float)log2(1 + sum);
    return 1;
}

static int fake_space(struct device *d, const struct task *t, struct space *out, struct err *e)
{
    struct fake *f = fake_of(d);
    if (task_number(f, t) == f->without_space)
        return err_set(e, ERR_UNSUPPORTED, "no sketch fits");
    static const int64_t values[] = {0, 1, 2, 4, 8, 16, 32};
    if (f->tiny) {
        struct sketch *k = space_sketch(out, "tiny");
        sketch_ordinal(out, k, "unroll", 6, values);
        sketch_flag(out, k, "pack");
        k->start = (struct candidate){.sketch = 0, .nr = 2};
        return 0;
    }
    struct sketch *a = space_sketch(out, "tiles");
    int x = sketch_split(out, a, "tile_x", 64, 3, 0);
    int u = sketch_ordinal(out, a, "unroll", 7, values);
    sketch_choice(out, a, "order", 5, values);
    sketch_flag(out, a, "pack");
    sketch_split(out, a, "tile_y", 12, 2, 0);
    sketch_constraint(out, a, "not all large", UINT64_C(1) << x | UINT64_C(1) << u, not_all_large,
                      NULL);
    a->start = (struct candidate){.sketch = 0, .nr = a->nr_slots, .v = {64, 1, 1}};
    a->start.v[6] = 1;
    a->start.v[7] = 12;
    struct sketch *b = space_sketch(out, "plain");
    sketch_ordinal(out, b, "unroll", 7, values);
    sketch_ordinal(out, b, "threads", 7, values);
    sketch_flag(out, b, "pack");
    b->start = (struct candidate){.sketch = 1, .nr = b->nr_slots};
    for (int i = 0; f->features && i < 2; i++)
        out->sketch[i]->features = features;
    return 0;
}

static void *fake_operands(struct device *d, const struct task *t, struct err *e)
{
    struct fake *f = fake_of(d);
    int number = task_number(f, t);
    if (number == f->without_operands) {
        err_set(e, ERR_NOMEM, "no room");
        return NULL;
    }
    int *data = xmalloc(sizeof *data);
    *data = number;
    pthread_mutex_lock(&f->lock);
    f->operands++;
    if (f->operands > f->most_operands)
        f->most_operands = f->operands;
    pthread_mutex_unlock(&f->lock);
    return data;
}

static void fake_operands_free(struct device *d, void *operands)
{
    struct fake *f = fake_of(d);
    free(operands);
    pthread_mutex_lock(&f->lock);
    f->operands--;
    pthread_mutex_unlock(&f->lock);
}

/* Lock held. */
static void hang(struct fake *f)
{
    f->hanging++;
    pthread_cond_broadcast(&f->cond);
    while (!f->released)
        pthread_cond_wait(&f->cond, &f->lock);
    f->hanging--;
}

static void fake_build(struct device *d, int builder, const struct task *t, const struct space *s,
                       const struct candidate *c, struct build_result *r)
{
    struct fake *f = fake_of(d);
    (void)s;
    bool slow = f->slow && strstr(t->name, f->slow);
    struct blob b = {task_number(f, t), *c, slow ? f->slow_times : 1};
    pthread_mutex_lock(&f->lock);
    int64_t call = ++f->builds;
    f->building++;
    f->overlap |= f->measuring > 0;
    f->number_clash |= f->number_busy[builder];
    f->number_busy[builder] = true;
    if (f->hang_build && call >= f->hang_build && call < f->hang_build + f->hang_builds)
        hang(f);
    pthread_mutex_unlock(&f->lock);
    if (f->shuffle)
        nap_us((int64_t)(rng_mix(candidate_hash(c), (uint64_t)call) % 300));
    enum trial_status status = fate(f, &b);
    bool built = status != TRIAL_BUILD_ERROR && status != TRIAL_INVALID;
    r->status = built ? TRIAL_OK : status;
    if (built) {
        struct blob *artifact = xmalloc(sizeof *artifact);
        *artifact = b;
        r->artifact = artifact;
    } else {
        snprintf(r->reason, sizeof r->reason, "does not build");
    }
    pthread_mutex_lock(&f->lock);
    f->artifacts += built;
    f->building--;
    f->number_busy[builder] = false;
    pthread_mutex_unlock(&f->lock);
}

static void fake_artifact_free(struct device *d, void *artifact)
{
    struct fake *f = fake_of(d);
    free(artifact);
    pthread_mutex_lock(&f->lock);
    f->artifacts--;
    pthread_mutex_unlock(&f->lock);
}

static bool is_final(const struct fake *f, const struct measure_request *q)
{
    return f->final_noise > 0 && q->cut_ns == 0 && q->nr > 1;
}

/* How many of the kernels of a request are better. */
static int rank_of(const struct measure_request *q, int kernel)
{
    int rank = 0;
    for (int k = 0; k < q->nr; k++)
        rank += true_cost_ns(q->artifact[k]) < true_cost_ns(q->artifact[kernel]);
    return rank;
}

static double burst(const struct fake *f, int sample, int rank)
{
    return f->final_bursts && (sample % 2 || (sample == 0 && rank == 0)) ? 2 : 1;
}

/* Lock held. */
static void fill_final(struct fake *f, const struct measure_request *q, struct measure_result *r)
{
    enum { SAMPLES = 12 };
    if (f->finals < (int64_t)(sizeof f->final_nr / sizeof *f->final_nr))
        f->final_nr[f->finals] = q->nr;
    f->finals++;
    r->checked = q->check;
    r->error = 0.25;
    uint64_t hash = blob_hash(q->artifact[0]);
    if (f->wrong_final && !f->wrong && rank_of(q, 0) == 0)
        f->wrong = hash;
    if (f->wrong == hash) {
        r->status = TRIAL_WRONG_RESULT;
        return;
    }
    r->status = TRIAL_OK;
    r->nr_samples = SAMPLES;
    for (int k = 0; k < q->nr; k++)
        for (int i = 0; i < SAMPLES; i++)
            r->sample_ns[k][i] =
                1e4 * (1 + f->final_gap * rank_of(q, k)) * burst(f, i, rank_of(q, k)) *
                (1 + f->final_noise * deviation(f->final_seed + (uint64_t)f->finals,
                                                blob_hash(q->artifact[k]), i));
}

static void fill(const struct measure_request *q, struct measure_result *r)
{
    enum { SAMPLES = 12 };
    const struct blob *first = q->artifact[0];
    r->nr_samples = SAMPLES;
    for (int k = 0; k < q->nr; k++) {
        const struct blob *b = q->artifact[k];
        for (int i = 0; i < SAMPLES; i++)
            r->sample_ns[k][i] =
                true_cost_ns(b) * (1 + 0.02 * deviation(blob_hash(first), blob_hash(b), i));
    }
    r->checked = q->check;
    r->error = 0.25;
}

/* Lock held. True: the measurement gave a device error. */
static bool misbehaves(struct fake *f)
{
    while (f->measures == f->block_measure && !f->interrupted)
        pthread_cond_wait(&f->cond, &f->lock);
    return f->dead || f->interrupted || f->measures == f->flaky_measure;
}

static void slow_down(const struct fake *f, int64_t number, const struct measure_request *q,
                      struct measure_result *r)
{
    bool slow = f->drift_from > 0 && number >= f->drift_from;
    for (int k = 0; k < q->nr && slow; k++)
        for (int i = 0; i < r->nr_samples; i++)
            r->sample_ns[k][i] *= f->drift;
    r->canary_ns[0] = r->canary_ns[1] = f->canary_ns * (slow ? f->drift : 1);
    if (slow && f->unsteady)
        r->canary_ns[1] *= 1.1;
}

static void cut(const struct measure_request *q, struct measure_result *r)
{
    if (r->status == TRIAL_OK && q->cut_ns > 0 && r->sample_ns[0][0] > q->cut_ns) {
        r->status = TRIAL_CUT;
        r->nr_samples = 1;
    }
}

static void fake_measure(struct device *d, const struct measure_request *q,
                         struct measure_result *r)
{
    struct fake *f = fake_of(d);
    const struct blob *first = q->artifact[0];
    pthread_mutex_lock(&f->lock);
    int64_t number = ++f->measures;
    f->overlap |= f->building > 0 || f->measuring > 0 || *(int *)q->operands != first->task;
    f->measuring++;
    pthread_cond_broadcast(&f->cond);
    bool bad = misbehaves(f), final = !bad && is_final(f, q);
    if (final)
        fill_final(f, q, r);
    pthread_mutex_unlock(&f->lock);
    if (f->measure_us)
        nap_us(f->measure_us);
    if (!final)
        r->status = bad ? TRIAL_DEVICE_ERROR : fate(f, first);
    if (r->status == TRIAL_OK && !final)
        fill(q, r);
    else if (r->status != TRIAL_OK)
        snprintf(r->reason, sizeof r->reason, "does not run");
    slow_down(f, number, q, r);
    cut(q, r);
    pthread_mutex_lock(&f->lock);
    f->measuring--;
    pthread_mutex_unlock(&f->lock);
}

static void fake_interrupt(struct device *d)
{
    struct fake *f = fake_of(d);
    pthread_mutex_lock(&f->lock);
    f->interrupted = true;
    pthread_cond_broadcast(&f->cond);
    pthread_mutex_unlock(&f->lock);
}

static void fake_close(struct device *d)
{
    (void)d;
}

static const struct device_class fake_class = {
    "fake",     fake_info,          fake_space,   fake_operands,  fake_operands_free,
    fake_build, fake_artifact_free, fake_measure, fake_interrupt, fake_close,
    NULL,
};

void fake_init(struct fake *f, const struct task_list *tasks)
{
    memset(f, 0, sizeof *f);
    f->device.class = &fake_class;
    f->tasks = tasks;
    f->broken_task = f->without_operands = f->without_space = -1;
    f->info = (struct device_info){
        .target = "fake:0", .hardware = "a formula", .compiler = "none", .cores = 2, .threads = 1};
    pthread_mutex_init(&f->lock, NULL);
    pthread_cond_init(&f->cond, NULL);
}

void fake_release_hung(struct fake *f)
{
    pthread_mutex_lock(&f->lock);
    f->released = true;
    pthread_cond_broadcast(&f->cond);
    pthread_mutex_unlock(&f->lock);
}

void fake_free(struct fake *f)
{
    pthread_cond_destroy(&f->cond);
    pthread_mutex_destroy(&f->lock);
}

void tasks_make(struct task_list *l, int nr)
{
    memset(l, 0, sizeof *l);
    snprintf(l->name, sizeof l->name, "toy");
    l->task = xcalloc((size_t)nr, sizeof *l->task);
    l->nr = l->cap = nr;
    for (int i = 0; i < nr; i++) {
        struct task *t = l->task[i] = xcalloc(1, sizeof *t);
        snprintf(t->name, sizeof t->name, "task%d", i);
        t->weight = i + 1;
        workload_init(&t->wl, "toy");
    }
}

/* ---- recorder */

static void record(void *ctx, const struct event *ev)
{
    struct recorder *r = ctx;
    pthread_mutex_lock(&r->lock);
    while (!r->conductor)
        pthread_cond_wait(&r->cond, &r->lock);
    GROW(r->ev, r->nr, r->cap);
    r->ev[r->nr++] = *ev;
    bool act = false;
    if (ev->kind == EV_TRIAL) {
        r->ended_trials++;
        act = r->ended_trials == r->at_trial;
    }
    if (r->at_trial == AT_FINAL && ev->kind == EV_PHASE && ev->u.phase.phase == PHASE_FINAL) {
        r->at_trial = 0;
        act = true;
    }
    pthread_cond_broadcast(&r->cond);
    pthread_mutex_unlock(&r->lock);
    if (!act)
        return;
    if (r->verb >= TUNE_EXPLORE && r->verb <= TUNE_SECONDS)
        conductor_budget(r->conductor,
                         &(struct tune_command){r->verb, r->verb_task, r->verb_value});
    else
        conductor_command(r->conductor, r->verb, r->verb_task);
}

static void keep(void *ctx, uint64_t data, int nr_trials, const void *bytes, size_t len)
{
    struct recorder *r = ctx;
    (void)nr_trials;
    pthread_mutex_lock(&r->lock);
    GROW(r->kept, r->nr_kept, r->cap_kept);
    r->kept[r->nr_kept++] = (struct kept){data, r->nr, xmalloc(len), len};
    memcpy(r->kept[r->nr_kept - 1].bytes, bytes, len);
    pthread_mutex_unlock(&r->lock);
}

void kept_free(struct kept *kept, int nr)
{
    for (int i = 0; i < nr; i++)
        free(kept[i].bytes);
    free(kept);
}

/* ---- history from recorded events */

static bool learned(void *ctx, uint64_t data, struct strbuf *out)
{
    const struct run *r = ctx;
    for (int i = 0; i < r->nr_kept; i++)
        if (r->kept[i].data == data) {
            strbuf_add(out, r->kept[i].bytes, r->kept[i].len);
            return true;
        }
    return false;
}

static bool find(void *ctx, int64_t id, struct observation *o, char code[EVENT_CODE])
{
    const struct run *r = ctx;
    const struct event *proposed = NULL, *ended = NULL;
    for (int i = 0; i < r->nr_past; i++) {
        const struct event *ev = &r->past[i];
        if (ev->trial == id && ev->kind == EV_PROPOSED)
            proposed = ev;
        if (ev->trial == id && ev->kind == EV_TRIAL)
            ended = ev;
    }
    if (!ended)
        return false;
    memset(o, 0, sizeof *o);
    o->trial = id;
    o->status = ended->u.trial.status;
    o->cost_ns = ended->u.trial.cost_ns;
    o->drift = ended->u.trial.drift;
    o->nr_samples = ended->u.trial.nr_samples;
    o->nr_ref = ended->u.trial.nr_ref;
    memcpy(o->sample_ns, ended->u.trial.sample_ns, sizeof o->sample_ns);
    memcpy(o->ref_ns, ended->u.trial.ref_ns, sizeof o->ref_ns);
    memcpy(code, proposed->u.proposed.code, EVENT_CODE);
    return true;
}

static bool command(void *ctx, int i, struct event *out)
{
    const struct run *r = ctx;
    for (int at = 0; at < r->nr_past; at++) {
        if (r->past[at].kind != EV_COMMAND || i-- > 0)
            continue;
        *out = r->past[at];
        return true;
    }
    return false;
}

static int64_t resulted(void *ctx, int task)
{
    const struct run *r = ctx;
    int64_t last = 0, at_result = 0;
    for (int i = 0; i < r->nr_past; i++) {
        const struct event *ev = &r->past[i];
        if (ev->task == task && ev->kind == EV_TRIAL && ev->trial > last)
            last = ev->trial;
        if (ev->task == task && ev->kind == EV_RESULT)
            at_result = last;
    }
    return at_result;
}

static void history_make(struct run *r, struct history *h)
{
    *h = (struct history){.resumed = r->resumed,
                          .find = find,
                          .command = command,
                          .learned = learned,
                          .budget = r->budget,
                          .nr_budgets = r->nr_budgets,
                          .ctx = r};
    if (r->knows_results)
        h->resulted = resulted;
    for (int i = 0; i < r->nr_past; i++) {
        if (r->past[i].kind == EV_USAGE && r->past[i].u.usage.canary_ns > 0)
            h->usage = &r->past[i];
        if (r->past[i].kind == EV_TRIAL && r->past[i].trial > h->last_trial)
            h->last_trial = r->past[i].trial;
        h->active_seconds = (double)r->past[i].t_ns * 1e-9;
    }
}

/* ---- runs */

void options_init(struct tune_options *o)
{
    *o = (struct tune_options){
        .input = "toy",
        .explore_strategy = "evolutionary",
        .refine_strategy = "droplet",
        .explore = 40,
        .refine = 24,
        .seed = 7,
        .jobs = 1,
        .fill_ns = 1000000,
        .build_timeout_ns = INT64_C(600000000000),
        .run_timeout_ns = INT64_C(600000000000),
    };
}

void run_init(struct run *r, struct fake *f, struct task_list *tasks)
{
    memset(r, 0, sizeof *r);
    options_init(&r->o);
    r->fake = f;
    r->tasks = tasks;
    pthread_mutex_init(&r->rec.lock, NULL);
    pthread_cond_init(&r->rec.cond, NULL);
}

void run_start(struct run *r)
{
    r->sink = (struct event_sink){.emit = record, .ctx = &r->rec, .keep = keep};
    history_make(r, &r->history);
    struct conductor *c = conductor_start(&r->o, r->tasks, &r->fake->device, &r->sink,
                                          r->past ? &r->history : NULL, &r->err);
    pthread_mutex_lock(&r->rec.lock);
    r->rec.conductor = c;
    pthread_cond_broadcast(&r->rec.cond);
    pthread_mutex_unlock(&r->rec.lock);
    if (!c)
        r->rc = r->err.code;
}

void run_join(struct run *r)
{
    struct conductor *c = r->rec.conductor;
    if (!c)
        return;
    r->rc = conductor_join(c, &r->err);
    fake_release_hung(r->fake);
    while (conductor_stuck(c) > 0)
        nap_us(1000);
    conductor_free(c);
}

void run_all(struct run *r)
{
    run_start(r);
    run_join(r);
}

void run_release(struct run *r)
{
    free(r->rec.ev);
    kept_free(r->rec.kept, r->rec.nr_kept);
    pthread_cond_destroy(&r->rec.cond);
    pthread_mutex_destroy(&r->rec.lock);
}

void run_wait_trials(struct run *r, int64_t nr)
{
    pthread_mutex_lock(&r->rec.lock);
    while (r->rec.ended_trials < nr)
        pthread_cond_wait(&r->rec.cond, &r->rec.lock);
    pthread_mutex_unlock(&r->rec.lock);
}

const struct event *run_event(const struct run *r, enum event_kind k, int task, int i)
{
    for (int at = 0; at < r->rec.nr; at++) {
        const struct event *ev = &r->rec.ev[at];
        if (ev->kind == k && (task < 0 || ev->task == task) && i-- == 0)
            return ev;
    }
    return NULL;
}

int run_count(const struct run *r, enum event_kind k, int task)
{
    int nr = 0;
    while (run_event(r, k, task, nr))
        nr++;
    return nr;
}

int run_count_phase(const struct run *r, enum phase p, int task)
{
    int nr = 0;
    for (int i = 0; i < r->rec.nr; i++) {
        const struct event *ev = &r->rec.ev[i];
        nr += ev->kind == EV_PROPOSED && ev->task == task && ev->u.proposed.phase == p;
    }
    return nr;
}

/* ---- essence */

static void describe(const struct event *ev, struct strbuf *out)
{
    switch (ev->kind) {
    case EV_PROPOSED:
        strbuf_addf(out, "%d #%" PRId64 " %s %s of %" PRId64 " in %s by %s: %s", ev->task,
                    ev->trial, ev->u.proposed.code, origin_name(ev->u.proposed.origin),
                    ev->u.proposed.parent, phase_name(ev->u.proposed.phase),
                    ev->u.proposed.strategy, ev->u.proposed.note);
        break;
    case EV_TRIAL:
        strbuf_addf(out, "%d #%" PRId64 " %s %.17g, %d and %d samples", ev->task, ev->trial,
                    trial_status_name(ev->u.trial.status), ev->u.trial.cost_ns,
                    ev->u.trial.nr_samples, ev->u.trial.nr_ref);
        break;
    case EV_DECISION:
        strbuf_addf(out, "%d #%" PRId64 " against %" PRId64 ": %s %.17g %.17g", ev->task, ev->trial,
                    ev->u.decision.incumbent, verdict_name(ev->u.decision.verdict),
                    ev->u.decision.p_value, ev->u.decision.gain);
        break;
    case EV_INCUMBENT:
        strbuf_addf(out, "%d #%" PRId64 " leads %s, centre %d: %.17g", ev->task, ev->trial,
                    phase_name(ev->u.incumbent.phase), ev->u.incumbent.centre,
                    ev->u.incumbent.cost_ns);
        break;
    case EV_PHASE: /* that a task goes on is told again by every run */
        if (strcmp(ev->u.phase.why, "goes on") == 0)
            break;
        strbuf_addf(out, "%d enters %s: %s", ev->task, phase_name(ev->u.phase.phase),
                    ev->u.phase.why);
        break;
    case EV_RESULT:
        strbuf_addf(out, "%d result %.17g %.17g %.17g: %s", ev->task, ev->u.result.default_ns,
                    ev->u.result.explored_ns, ev->u.result.refined_ns, ev->u.result.why);
        break;
    default:
        break;
    }
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* When the last final ends, and in which order results come, is a matter of time. */
static bool is_ordered(const struct event *ev)
{
    return ev->kind == EV_PROPOSED || ev->kind == EV_DECISION || ev->kind == EV_INCUMBENT ||
           (ev->kind == EV_PHASE && ev->u.phase.phase != PHASE_DONE);
}

char *sequence(const struct event *ev, int nr)
{
    struct strbuf sb = {0};
    for (int i = 0; i < nr; i++) {
        if (!is_ordered(&ev[i]))
            continue;
        describe(&ev[i], &sb);
        if (sb.len && sb.buf[sb.len - 1] != '\n')
            strbuf_addc(&sb, '\n');
    }
    return strbuf_detach(&sb);
}

char *essence(const struct event *ev, int nr)
{
    char **line = xcalloc((size_t)nr + 1, sizeof *line);
    int nr_lines = 0;
    for (int i = 0; i < nr; i++) {
        struct strbuf sb = {0};
        describe(&ev[i], &sb);
        if (sb.len)
            line[nr_lines++] = strbuf_detach(&sb);
        strbuf_release(&sb);
    }
    qsort(line, (size_t)nr_lines, sizeof *line, by_text);
    struct strbuf all = {0};
    for (int i = 0; i < nr_lines; i++)
        if (i == 0 || strcmp(line[i], line[i - 1]) != 0)
            strbuf_addf(&all, "%s\n", line[i]);
    for (int i = 0; i < nr_lines; i++)
        free(line[i]);
    free(line);
    return strbuf_detach(&all);
}
