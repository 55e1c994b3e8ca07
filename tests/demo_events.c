/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/demo_events.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/arena.h"
#include "engine/base/rng.h"
#include "engine/search/space.h"

enum { NR_KNOBS = 6, MAX_TASKS = 12, RING = 32 };

static const struct {
    const char *name;
    double weight, mflop, ms;
} layers[MAX_TASKS] = {
    {"conv2d_7x7_s2_3x224_64", 1, 236, 6.1},   {"conv2d_3x3_64x56_64", 4, 231, 4.4},
    {"conv2d_3x3_s2_64x56_128", 1, 116, 2.6},  {"conv2d_3x3_128x28_128", 3, 231, 4.2},
    {"conv2d_1x1_s2_64x56_128", 1, 12.8, 0.41}, {"conv2d_3x3_s2_128x28_256", 1, 116, 2.5},
    {"conv2d_3x3_256x14_256", 3, 231, 4.3},    {"conv2d_1x1_s2_128x28_256", 1, 12.8, 0.38},
    {"conv2d_3x3_s2_256x14_512", 1, 116, 2.9}, {"conv2d_3x3_512x7_512", 3, 231, 5.0},
    {"conv2d_1x1_s2_256x14_512", 1, 12.8, 0.44}, {"dense_512_1000", 1, 1.02, 0.097},
};

static const char *const knob_name[NR_KNOBS] = {"tile_oc", "tile_ow", "tile_ic", "unroll",
                                                "vectorize", "pack"};

/* A candidate: exponents and indices, small enough to step by hand. */
struct point {
    int oc[3];  /* powers of two, together 6: the split of 64 */
    int ow[2];  /* together 3: the split of 8 */
    int ic, unroll, vec, pack;
};

struct maker {
    struct demo *out;
    const struct demo_options *o;
    struct rng rng;
    int64_t t_ns, trial;
    int task;
    double base_ms;
    struct point best_point;
    double best_ns;
    int64_t best;
    enum phase phase;
    struct { /* of the trial made last */
        enum trial_status status;
        double ns;
    } last;
};

static struct event *emit(struct maker *m, enum event_kind kind, int task, int64_t trial)
{
    struct demo *d = m->out;
    GROW(d->event, d->nr, d->cap);
    struct event *ev = &d->event[d->nr++];
    memset(ev, 0, sizeof *ev);
    ev->kind = kind;
    ev->seq = d->nr;
    ev->t_ns = m->t_ns;
    ev->wall_ns = INT64_C(1700000000000000000) + m->t_ns;
    ev->task = task;
    ev->trial = trial;
    return ev;
}

#define PUT(field, ...) snprintf(field, sizeof(field), __VA_ARGS__)

/* Time of a candidate: a bowl over the knobs, its bottom a third of the default. */
static double cost_ms(const struct maker *m, const struct point *p)
{
    double x = 0;
    x += 0.10 * pow(p->oc[2] - 3, 2) + 0.05 * pow(p->oc[1] - 2, 2);
    x += 0.08 * pow(p->ow[1] - 2, 2) + 0.06 * pow(p->ic - 2, 2);
    x += 0.03 * fabs(p->unroll - 2.0) + 0.12 * (p->vec != 1) + 0.15 * !p->pack;
    return m->base_ms * 0.28 * (1 + x);
}

static void knobs_text(const struct point *p, char *out, size_t size)
{
    static const int unroll[] = {0, 16, 64, 512};
    snprintf(out, size,
             "{\"tile_oc\":[%d,%d,%d],\"tile_ow\":[%d,%d],\"tile_ic\":%d,\"unroll\":%d,"
             "\"vectorize\":%d,\"pack\":%s}",
             1 << p->oc[0], 1 << p->oc[1], 1 << p->oc[2], 1 << p->ow[0], 1 << p->ow[1], 1 << p->ic,
             unroll[p->unroll], 4 << p->vec, p->pack ? "true" : "false");
}

static void propose(struct maker *m, const struct point *p, enum origin origin, int64_t parent,
                    int knob, int dir, const char *note)
{
    struct event *ev = emit(m, EV_PROPOSED, m->task, ++m->trial);
    knobs_text(p, ev->u.proposed.knobs, sizeof ev->u.proposed.knobs);
    PUT(ev->u.proposed.code, "0:%d.%d.%d/%d.%d/%d/%d/%d/%d", 1 << p->oc[0], 1 << p->oc[1],
        1 << p->oc[2], 1 << p->ow[0], 1 << p->ow[1], p->ic, p->unroll, p->vec, p->pack);
    PUT(ev->u.proposed.sketch, "direct");
    PUT(ev->u.proposed.strategy, "%s", m->phase == PHASE_REFINE ? "droplet" : "evolutionary");
    PUT(ev->u.proposed.note, "%s", note);
    ev->u.proposed.phase = m->phase;
    ev->u.proposed.origin = origin;
    ev->u.proposed.parent = parent;
    ev->u.proposed.knob = knob;
    ev->u.proposed.dir = dir;
    ev->u.proposed.compare = m->phase == PHASE_REFINE;
}

static void fail_some(struct maker *m, struct event *ev)
{
    static const struct {
        enum trial_status status;
        const char *reason;
    } ways[] = {
        {TRIAL_BUILD_ERROR, "register tile of %d vectors does not fit 32 registers"},
        {TRIAL_CRASHED, "signal 11 (SIGSEGV) after %d ms"},
        {TRIAL_RUN_TIMEOUT, "no answer in %d s"},
        {TRIAL_WRONG_RESULT, "output differs by %d tolerances at [0,3,5,7]"},
    };
    uint64_t r = rng_below(&m->rng, 10);
    int way = r < 6 ? 0 : r < 8 ? 1 : r < 9 ? 2 : 3;
    ev->u.trial.status = ways[way].status;
    char number[96];
    snprintf(number, sizeof number, "%d", 33 + (int)rng_below(&m->rng, 30));
    const char *mark = strstr(ways[way].reason, "%d");
    PUT(ev->u.trial.reason, "%.*s%s%s", (int)(mark - ways[way].reason), ways[way].reason, number,
        mark + 2);
    ev->u.trial.cost_ns = ev->u.trial.median_ns = NAN;
}

/* Measures the trial `id`; what came of it is in m->last. */
static void measure(struct maker *m, int64_t id, const struct point *p, bool safe)
{
    emit(m, EV_MEASURING, m->task, id);
    int64_t started = m->t_ns;
    double ns = 1e6 * cost_ms(m, p) * (1 + 0.012 * (rng_unit(&m->rng) - 0.5));
    m->t_ns += 60000000 + (int64_t)(8 * ns);
    struct event *ev = emit(m, EV_TRIAL, m->task, id);
    ev->u.trial.status = TRIAL_OK;
    ev->u.trial.median_ns = ns;
    ev->u.trial.cost_ns = ns * 0.997;
    if (!safe && rng_unit(&m->rng) < m->o->failing)
        fail_some(m, ev);
    else if (!safe && m->best_ns > 0 && ns > 2.2 * m->best_ns)
        ev->u.trial.status = TRIAL_CUT;
    ev->u.trial.nr_samples = 6;
    for (int i = 0; i < 6; i++)
        ev->u.trial.sample_ns[i] = ns * (1 + 0.004 * (i - 2));
    ev->u.trial.checked = id % 5 == 1;
    ev->u.trial.build_ns = 90000000;
    ev->u.trial.measure_ns = m->t_ns - started;
    ev->u.trial.started_ns = started;
    ev->u.trial.ended_ns = m->t_ns;
    m->last.status = ev->u.trial.status;
    m->last.ns = ns;
}

static void incumbent(struct maker *m, int64_t id, const struct point *p, double ns, bool centre)
{
    struct event *ev = emit(m, EV_INCUMBENT, m->task, id);
    ev->u.incumbent.phase = m->phase;
    ev->u.incumbent.cost_ns = ns;
    ev->u.incumbent.centre = centre;
    m->best = id;
    m->best_ns = ns;
    m->best_point = *p;
}

static void enter(struct maker *m, enum phase phase, const char *strategy, int64_t budget,
                  const char *why)
{
    struct event *ev = emit(m, EV_PHASE, m->task, 0);
    m->phase = ev->u.phase.phase = phase;
    PUT(ev->u.phase.strategy, "%s", strategy);
    PUT(ev->u.phase.why, "%s", why);
    ev->u.phase.budget = budget;
}

static void move_factor(int *level, int nr, struct rng *r)
{
    int from = (int)rng_below(r, (uint64_t)nr), to = (int)rng_below(r, (uint64_t)nr);
    if (level[from] > 0) {
        level[from]--;
        level[to]++;
    }
}

static struct point mutate(struct maker *m, struct point p)
{
    for (int i = 0; i < 2; i++) {
        switch (rng_below(&m->rng, NR_KNOBS)) {
        case 0:
            move_factor(p.oc, 3, &m->rng);
            break;
        case 1:
            move_factor(p.ow, 2, &m->rng);
            break;
        case 2:
            p.ic = (int)rng_below(&m->rng, 5);
            break;
        case 3:
            p.unroll = (int)rng_below(&m->rng, 4);
            break;
        case 4:
            p.vec = (int)rng_below(&m->rng, 3);
            break;
        default:
            p.pack = !p.pack;
            break;
        }
    }
    return p;
}

static void explore(struct maker *m)
{
    enter(m, PHASE_EXPLORE, "evolutionary", m->o->explore, "");
    for (int i = 0; i < m->o->explore; i += 4) {
        struct point p[4];
        int64_t first = m->trial + 1;
        for (int k = 0; k < 4; k++) {
            bool sample = i < 8 || rng_below(&m->rng, 10) == 0;
            p[k] = mutate(m, m->best_point);
            if (sample)
                p[k] = mutate(m, mutate(m, p[k]));
            propose(m, &p[k], sample ? ORIGIN_SAMPLE : ORIGIN_MUTATE, sample ? 0 : m->best, -1, 0,
                    "");
        }
        for (int k = 0; k < 4; k++) {
            measure(m, first + k, &p[k], false);
            if (m->last.status == TRIAL_OK && m->last.ns < m->best_ns)
                incumbent(m, first + k, &p[k], m->last.ns, false);
        }
    }
}

struct step {
    struct point p;
    int knob, dir;
    char note[64];
};

static void add_step(struct step *s, int *nr, struct point p, int knob, int dir, const char *note)
{
    s[*nr].p = p;
    s[*nr].knob = knob;
    s[*nr].dir = dir;
    snprintf(s[*nr].note, sizeof s[*nr].note, "%s", note);
    ++*nr;
}

/* Factor moves of a split; dir < 0 outwards. */
static void split_steps(struct step *s, int *nr, const struct point *p, int knob, int levels)
{
    for (int from = 0; from < levels; from++)
        for (int to = 0; to < levels; to++) {
            struct point q = *p;
            int *level = knob == 0 ? q.oc : q.ow;
            if (from == to || level[from] == 0)
                continue;
            level[from]--;
            level[to]++;
            char note[64];
            snprintf(note, sizeof note, "%s: 2 from level %d to %d", knob_name[knob], from, to);
            add_step(s, nr, q, knob, to < from ? -1 : 1, note);
        }
}

static int neighbours(const struct point *p, struct step *s)
{
    int nr = 0;
    split_steps(s, &nr, p, 0, 3);
    split_steps(s, &nr, p, 1, 2);
    for (int dir = -1; dir <= 1; dir += 2) {
        struct point q = *p;
        q.ic += dir;
        if (q.ic >= 0 && q.ic < 5)
            add_step(s, &nr, q, 2, dir, dir < 0 ? "tile_ic: one down" : "tile_ic: one up");
        q = *p;
        q.unroll += dir;
        if (q.unroll >= 0 && q.unroll < 4)
            add_step(s, &nr, q, 3, dir, dir < 0 ? "unroll: one down" : "unroll: one up");
    }
    for (int v = 0; v < 3; v++) {
        struct point q = *p;
        q.vec = v;
        if (v != p->vec)
            add_step(s, &nr, q, 4, 0, "vectorize: another");
    }
    struct point q = *p;
    q.pack = !q.pack;
    add_step(s, &nr, q, 5, 0, "pack: the other");
    return nr;
}

static void decide(struct maker *m, int64_t id, double gain, bool moved)
{
    struct event *ev = emit(m, EV_DECISION, m->task, id);
    ev->u.decision.incumbent = m->best;
    ev->u.decision.gain = gain;
    ev->u.decision.p_value = gain > 0.01 ? 0.0004 + 0.01 * rng_unit(&m->rng)
                             : gain > -0.01 ? 0.06 + 0.6 * rng_unit(&m->rng) : 0.995;
    ev->u.decision.verdict = m->last.status != TRIAL_OK && m->last.status != TRIAL_CUT
                                 ? VERDICT_FAILED
                             : moved                                     ? VERDICT_MOVED
                             : gain > 0.01                               ? VERDICT_BETTER
                             : gain > -0.01                              ? VERDICT_NOISE
                                                                         : VERDICT_WORSE;
    if (ev->u.decision.verdict == VERDICT_FAILED)
        ev->u.decision.gain = ev->u.decision.p_value = NAN;
}

/* Coordinate descent with a few rounds; a round ends when a neighbour is better. */
static void refine(struct maker *m)
{
    enter(m, PHASE_REFINE, "droplet", m->o->refine, "");
    incumbent(m, m->best, &m->best_point, m->best_ns, true);
    int left = m->o->refine;
    for (bool moved = true; moved && left > 0;) {
        struct step s[RING];
        int nr = neighbours(&m->best_point, s);
        moved = false;
        nr = nr < left ? nr : left;
        left -= nr;
        int64_t centre = m->best, first = m->trial + 1;
        for (int i = 0; i < nr; i++)
            propose(m, &s[i].p, i == 3 ? ORIGIN_SPECULATE : ORIGIN_NEIGHBOUR, centre, s[i].knob,
                    s[i].dir, s[i].note);
        double best = m->best_ns;
        int at = -1;
        for (int i = 0; i < nr; i++) {
            measure(m, first + i, &s[i].p, false);
            bool ok = m->last.status == TRIAL_OK;
            double gain = (m->best_ns - m->last.ns) / m->best_ns;
            decide(m, first + i, gain, false);
            if (ok && gain > 0.01 && m->last.ns < best) {
                best = m->last.ns;
                at = i;
            }
        }
        if (at >= 0) {
            m->last.status = TRIAL_OK;
            decide(m, first + at, (m->best_ns - best) / m->best_ns, true);
            incumbent(m, first + at, &s[at].p, best, true);
            moved = true;
        }
    }
}

static void result(struct maker *m, double default_ns, int64_t default_trial, double explored_ns,
                   int64_t explored)
{
    struct event *ev = emit(m, EV_RESULT, m->task, m->best);
    ev->u.result.default_ns = default_ns;
    ev->u.result.explored_ns = explored_ns;
    ev->u.result.refined_ns = m->best_ns;
    ev->u.result.default_lo = default_ns * 0.99;
    ev->u.result.default_hi = default_ns * 1.01;
    ev->u.result.explored_lo = explored_ns * 0.995;
    ev->u.result.explored_hi = explored_ns * 1.006;
    ev->u.result.refined_lo = m->best_ns * 0.996;
    ev->u.result.refined_hi = m->best_ns * 1.004;
    ev->u.result.default_trial = default_trial;
    ev->u.result.explored_trial = explored;
    ev->u.result.refined_trial = m->best;
    ev->u.result.error = 0.021;
    ev->u.result.verdict = FINAL_SEPARATED;
    snprintf(ev->u.result.why, sizeof ev->u.result.why,
             "refined is %.1f %% faster than explored (p = 2e-06)",
             100 * (1 - m->best_ns / explored_ns));
}

static void usage(struct maker *m)
{
    struct event *ev = emit(m, EV_USAGE, -1, 0);
    ev->u.usage.active_ns = m->t_ns;
    ev->u.usage.measure_ns = m->t_ns / 10 * 7;
    ev->u.usage.build_ns = m->t_ns / 10 * 11;
    ev->u.usage.search_ns = m->t_ns / 25;
    ev->u.usage.trials = m->trial;
    ev->u.usage.canary_ns = 30900;
    ev->u.usage.drift = 1.034;
}

static void note(struct maker *m, int level, const char *text)
{
    struct event *ev = emit(m, EV_NOTE, -1, 0);
    ev->u.note.level = level;
    PUT(ev->u.note.text, "%s", text);
}

static void tune(struct maker *m, int task)
{
    struct point start = {{6, 0, 0}, {3, 0}, 0, 0, 0, 0};
    m->task = task;
    m->base_ms = layers[task].ms;
    m->best_ns = 0;
    enter(m, PHASE_DEFAULT, "default", 1, "");
    propose(m, &start, ORIGIN_DEFAULT, 0, -1, 0, "");
    int64_t default_trial = m->trial;
    measure(m, default_trial, &start, true);
    double default_ns = m->last.ns;
    incumbent(m, default_trial, &start, default_ns, false);
    explore(m);
    double explored_ns = m->best_ns;
    int64_t explored = m->best;
    usage(m);
    refine(m);
    enter(m, PHASE_FINAL, "final", 3, "converged");
    m->t_ns += 400000000;
    result(m, default_ns, default_trial, explored_ns, explored);
    enter(m, PHASE_DONE, "", 0, "converged");
    usage(m);
}

static void opening(struct maker *m)
{
    struct event *ev = emit(m, EV_SESSION, -1, 0);
    PUT(ev->u.session.input, "models/resnet18.onnx");
    PUT(ev->u.session.model, "resnet18");
    PUT(ev->u.session.target, "llvm:cpu=znver4");
    PUT(ev->u.session.hardware, "AMD EPYC 9354, 2 cores");
    PUT(ev->u.session.compiler, "LLVM 19.1.7");
    PUT(ev->u.session.version, "0.1.0");
    PUT(ev->u.session.strategy, "evolutionary + droplet");
    ev->u.session.trials = (int64_t)m->o->nr_tasks * (m->o->explore + m->o->refine + 1);
    ev->u.session.explore = m->o->explore;
    ev->u.session.refine = m->o->refine;
    ev->u.session.peak_gflops = 230;
    ev->u.session.seed = m->o->seed;
    ev->u.session.jobs = 2;
    ev->u.session.threads = 2;
    ev->u.session.nr_tasks = m->o->nr_tasks;
    static const struct {
        enum knob_kind kind;
        int extent;
        const char *values;
    } knobs[NR_KNOBS] = {
        {KNOB_SPLIT, 64, "3 levels"},        {KNOB_SPLIT, 8, "2 levels"},
        {KNOB_ORDINAL, 0, "1,2,4,8,16"},     {KNOB_ORDINAL, 0, "0,16,64,512"},
        {KNOB_CHOICE, 0, "4,8,16"},          {KNOB_FLAG, 0, "off,on"},
    };
    for (int t = 0; t < m->o->nr_tasks; t++) {
        ev = emit(m, EV_TASK, t, 0);
        PUT(ev->u.task.name, "%s", layers[t].name);
        PUT(ev->u.task.workload, "%016llx", (unsigned long long)rng_mix(7, (uint64_t)t));
        PUT(ev->u.task.where, "/layer%d/conv", t);
        PUT(ev->u.task.kind, "conv2d+relu");
        ev->u.task.weight = layers[t].weight;
        ev->u.task.flops = layers[t].mflop * 1e6;
        ev->u.task.bytes = 3e6;
        ev->u.task.space = 40320;
        ev->u.task.nr_sketches = 1;
        for (int k = 0; k < NR_KNOBS; k++) {
            ev = emit(m, EV_KNOB, t, 0);
            ev->u.knob.knob = k;
            ev->u.knob.kind = (int32_t)knobs[k].kind;
            ev->u.knob.extent = knobs[k].extent;
            PUT(ev->u.knob.sketch_name, "direct");
            PUT(ev->u.knob.name, "%s", knob_name[k]);
            PUT(ev->u.knob.values, "%s", knobs[k].values);
        }
    }
}

void demo_init(struct demo *d, const struct demo_options *o)
{
    memset(d, 0, sizeof *d);
    struct maker m = {.out = d, .o = o};
    rng_seed(&m.rng, o->seed);
    opening(&m);
    note(&m, 0, "cost model: XGBoost 1.7.6; canary kernel every 32 trials");
    for (int t = 0; t < o->nr_tasks; t++) {
        tune(&m, t);
        if (t == 0)
            note(&m, 1, "runner restarted after signal 11; the trial is kept as crashed");
    }
    struct event *ev = emit(&m, EV_ENDED, -1, 0);
    ev->u.ended.finished = true;
    PUT(ev->u.ended.why, "all tasks are done");
}

void demo_release(struct demo *d)
{
    free(d->event);
    memset(d, 0, sizeof *d);
}
