/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Events of the conductor, and the session's clock.
 *
 * The clock counts active time: it goes on from what an earlier run left, and stands still while
 * the session is paused. Times of events never go back, whatever the order in which threads report.
 * A device with a clock of its own (device_now()) sets the time.
 *
 * A resumed session decides everything again. What follows from decisions that an earlier run is
 * known to have made is not emitted a second time. At the border, where that run may or may not
 * have come so far, it is: an event twice says the same twice, an event lost would be missing for
 * ever.
 */
#include "engine/tune/conductor_private.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "engine/base/clock.h"
#include "engine/base/strbuf.h"

int64_t clock_session_ns(const struct conductor *c, int64_t mono_ns)
{
    if (c->paused_since && mono_ns > c->paused_since)
        mono_ns = c->paused_since;
    int64_t t = c->base_ns + mono_ns - c->start_ns - c->paused_ns;
    return t > 0 ? t : 0;
}

void clock_pause(struct conductor *c, bool paused)
{
    int64_t now = device_now(c->device);
    if (paused && !c->paused_since) {
        c->paused_since = now;
    } else if (!paused && c->paused_since) {
        c->paused_ns += now - c->paused_since;
        c->paused_since = 0;
    }
}

bool is_replaying(const struct conductor *c)
{
    return c->next_trial <= c->last_stored;
}

static void put(char *out, size_t size, const char *text)
{
    snprintf(out, size, "%s", text);
}

#define PUT(field, text) put(field, sizeof(field), text)

struct event *event_begin(struct conductor *c, enum event_kind kind, int task, int64_t trial)
{
    memset(&c->ev, 0, sizeof c->ev);
    c->ev.kind = kind;
    c->ev.task = task;
    c->ev.trial = trial;
    return &c->ev;
}

void event_emit(struct conductor *c, int64_t mono_ns)
{
    int64_t now = device_now(c->device);
    if (mono_ns <= 0)
        mono_ns = now;
    c->ev.wall_ns = clock_wall_ns() - (c->device->class->now ? 0 : now - mono_ns);
    int64_t t = clock_session_ns(c, mono_ns);
    if (t > c->last_t_ns)
        c->last_t_ns = t;
    c->ev.t_ns = c->last_t_ns;
    c->sink->emit(c->sink->ctx, &c->ev);
}

static void emit_session(struct conductor *c)
{
    struct event *ev = event_begin(c, EV_SESSION, -1, 0);
    PUT(ev->u.session.input, c->o.input);
    PUT(ev->u.session.model, c->tasks->name);
    PUT(ev->u.session.target, c->info->target);
    PUT(ev->u.session.hardware, c->info->hardware);
    PUT(ev->u.session.compiler, c->info->compiler);
    PUT(ev->u.session.version, SQUALL_VERSION);
    struct strbuf both = {0};
    strbuf_addf(&both, "%s + %s", c->o.explore_strategy, c->o.refine_strategy);
    PUT(ev->u.session.strategy, strbuf_text(&both));
    strbuf_release(&both);
    ev->u.session.trials = c->o.trials;
    ev->u.session.explore = orders_budget(c, TUNE_EXPLORE, c->o.explore);
    ev->u.session.refine = orders_budget(c, TUNE_REFINE, c->o.refine);
    ev->u.session.seconds = c->o.seconds;
    ev->u.session.peak_gflops = c->info->peak_gflops;
    ev->u.session.seed = c->o.seed;
    ev->u.session.cold = c->o.cold;
    ev->u.session.jobs = pipeline_jobs(c->pipeline);
    ev->u.session.threads = c->info->threads;
    ev->u.session.nr_tasks = c->tasks->nr;
    ev->u.session.resumed = c->history ? c->history->resumed : 0;
    event_emit(c, 0);
}

static void emit_task(const struct course *t)
{
    struct conductor *c = t->c;
    struct event *ev = event_begin(c, EV_TASK, t->number, 0);
    PUT(ev->u.task.name, t->task->name);
    PUT(ev->u.task.workload, t->task->wl.id);
    PUT(ev->u.task.where, t->task->where);
    PUT(ev->u.task.kind, t->task->wl.name);
    ev->u.task.weight = t->task->weight;
    ev->u.task.flops = t->task->wl.flops;
    ev->u.task.bytes = (double)workload_bytes(&t->task->wl);
    ev->u.task.space = (double)space_count(&t->space, EVENT_SPACE_CAP);
    ev->u.task.nr_sketches = t->space.nr_sketches;
    event_emit(c, 0);
}

static void knob_values(const struct knob *k, struct strbuf *out)
{
    switch (k->kind) {
    case KNOB_SPLIT:
        strbuf_addf(out, "%d levels", k->nr_slots);
        break;
    case KNOB_FLAG:
        strbuf_adds(out, "off,on");
        break;
    case KNOB_PERMUTATION:
        strbuf_addf(out, "orders of %d", k->nr_values);
        break;
    case KNOB_ORDINAL:
    case KNOB_CHOICE:
        for (int i = 0; i < k->nr_values; i++) {
            if (i)
                strbuf_addc(out, ',');
            if (k->label)
                strbuf_adds(out, k->label[i]);
            else
                strbuf_addf(out, "%" PRId64, k->values[i]);
        }
        break;
    }
}

static void emit_knob(const struct course *t, int sketch, int knob)
{
    const struct sketch *s = t->space.sketch[sketch];
    const struct knob *k = &s->knob[knob];
    struct strbuf values = {0};
    knob_values(k, &values);
    struct event *ev = event_begin(t->c, EV_KNOB, t->number, 0);
    ev->u.knob.sketch = sketch;
    ev->u.knob.knob = knob;
    ev->u.knob.kind = (int32_t)k->kind;
    ev->u.knob.extent = k->extent;
    PUT(ev->u.knob.sketch_name, s->name);
    PUT(ev->u.knob.name, k->name);
    PUT(ev->u.knob.values, strbuf_text(&values));
    event_emit(t->c, 0);
    strbuf_release(&values);
}

void emit_opening(struct conductor *c)
{
    emit_session(c);
    if (c->history && c->history->resumed > 0)
        return;
    for (int i = 0; i < c->nr_courses; i++) {
        const struct course *t = &c->course[i];
        emit_task(t);
        for (int s = 0; s < t->space.nr_sketches; s++)
            for (int k = 0; k < t->space.sketch[s]->nr_knobs; k++)
                emit_knob(t, s, k);
    }
}

void emit_phase(struct course *t, const char *strategy, int64_t budget, int64_t used)
{
    struct event *ev = event_begin(t->c, EV_PHASE, t->number, 0);
    ev->u.phase.phase = t->phase;
    PUT(ev->u.phase.strategy, strategy);
    PUT(ev->u.phase.why, t->why);
    ev->u.phase.budget = budget;
    ev->u.phase.used = used;
    event_emit(t->c, 0);
    t->told = true;
}

void emit_proposed(struct course *t, const struct proposal *p, int64_t trial)
{
    struct strbuf sb = {0};
    struct event *ev = event_begin(t->c, EV_PROPOSED, t->number, trial);
    candidate_code(&t->space, &p->c, &sb);
    PUT(ev->u.proposed.code, strbuf_text(&sb));
    strbuf_reset(&sb);
    candidate_json(&t->space, &p->c, &sb);
    PUT(ev->u.proposed.knobs, strbuf_text(&sb));
    strbuf_release(&sb);
    PUT(ev->u.proposed.sketch, t->space.sketch[p->c.sketch]->name);
    PUT(ev->u.proposed.strategy, t->class ? t->class->name : "default");
    PUT(ev->u.proposed.note, p->note);
    ev->u.proposed.phase = t->phase;
    ev->u.proposed.origin = p->origin;
    ev->u.proposed.parent = p->parent;
    ev->u.proposed.knob = p->knob;
    ev->u.proposed.dir = p->dir;
    ev->u.proposed.compare = p->compare;
    event_emit(t->c, 0);
}

void emit_measuring(struct course *t, int64_t trial, int64_t mono_ns)
{
    event_begin(t->c, EV_MEASURING, t->number, trial);
    event_emit(t->c, mono_ns);
}

void emit_trial(struct course *t, const struct trial *k, const char *reason, const struct work *w)
{
    const struct observation *o = &k->o;
    struct event *ev = event_begin(t->c, EV_TRIAL, t->number, o->trial);
    ev->u.trial.status = o->status;
    PUT(ev->u.trial.reason, reason);
    ev->u.trial.cost_ns = o->status == TRIAL_OK ? o->cost_ns : NAN;
    ev->u.trial.median_ns = o->status == TRIAL_OK ? k->median_ns : NAN;
    ev->u.trial.nr_samples = o->nr_samples;
    ev->u.trial.nr_ref = o->nr_ref;
    memcpy(ev->u.trial.sample_ns, o->sample_ns, sizeof o->sample_ns);
    memcpy(ev->u.trial.ref_ns, o->ref_ns, sizeof o->ref_ns);
    ev->u.trial.error = ev->u.trial.canary_ns = NAN;
    ev->u.trial.drift = o->drift > 0 ? o->drift : NAN;
    int64_t mono = device_now(t->c->device);
    ev->u.trial.started_ns = ev->u.trial.ended_ns = clock_session_ns(t->c, mono);
    if (w) {
        ev->u.trial.checked = w->result.checked;
        if (w->result.checked)
            ev->u.trial.error = w->result.error;
        ev->u.trial.canary_ns = drift_canary(&w->result);
        ev->u.trial.build_ns = w->build_ns;
        ev->u.trial.measure_ns = w->result.measure_ns;
        ev->u.trial.code_bytes = w->code_bytes;
        ev->u.trial.started_ns = clock_session_ns(t->c, w->began_ns);
        ev->u.trial.ended_ns = clock_session_ns(t->c, w->ended_ns);
        mono = w->ended_ns;
    }
    event_emit(t->c, mono);
}

void emit_incumbent(struct course *t, int at, enum phase phase, bool centre)
{
    struct event *ev = event_begin(t->c, EV_INCUMBENT, t->number, t->trial[at].o.trial);
    ev->u.incumbent.phase = phase;
    ev->u.incumbent.cost_ns = t->trial[at].o.cost_ns;
    ev->u.incumbent.centre = centre;
    event_emit(t->c, 0);
}

void emit_decision(struct course *t, const struct decision *d)
{
    struct event *ev = event_begin(t->c, EV_DECISION, t->number, d->trial);
    ev->u.decision.incumbent = d->incumbent;
    ev->u.decision.verdict = d->verdict;
    ev->u.decision.p_value = d->p_value;
    ev->u.decision.gain = d->gain;
    PUT(ev->u.decision.text, d->text);
    event_emit(t->c, 0);
}

void emit_command(struct conductor *c, const char *verb)
{
    struct event *ev = event_begin(c, EV_COMMAND, -1, 0);
    PUT(ev->u.command.verb, verb);
    ev->u.command.after = c->observed;
    event_emit(c, 0);
}

void emit_order(struct conductor *c, const struct tune_command *m, const char *verb,
                const char *text, int64_t after)
{
    struct event *ev = event_begin(c, EV_COMMAND, m->task, 0);
    PUT(ev->u.command.verb, verb);
    PUT(ev->u.command.text, text);
    ev->u.command.value = m->value;
    ev->u.command.after = after;
    event_emit(c, 0);
}

void emit_note(struct conductor *c, int task, int level, const char *fmt, ...)
{
    struct event *ev = event_begin(c, EV_NOTE, task, 0);
    ev->u.note.level = level;
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(ev->u.note.text, sizeof ev->u.note.text, fmt, ap);
    va_end(ap);
    event_emit(c, 0);
}

void emit_usage(struct conductor *c)
{
    struct pipeline_usage p;
    pipeline_usage(c->pipeline, &p);
    struct event *ev = event_begin(c, EV_USAGE, -1, 0);
    if (c->history && c->history->usage)
        ev->u.usage = c->history->usage->u.usage;
    ev->u.usage.build_ns += p.build_ns;
    ev->u.usage.measure_ns += p.measure_ns;
    ev->u.usage.prepare_ns += p.prepare_ns;
    ev->u.usage.wait_ns += p.wait_ns;
    ev->u.usage.search_ns += c->search_ns;
    ev->u.usage.trials += c->nr_ended;
    ev->u.usage.restarts += c->restarts;
    ev->u.usage.canary_ns = c->drift.reference_ns;
    ev->u.usage.drift = drift_now(c);
    ev->u.usage.active_ns = clock_session_ns(c, device_now(c->device));
    event_emit(c, 0);
    c->usage_at = clock_mono_ns();
}

void emit_ended(struct conductor *c, bool finished, const char *why)
{
    struct event *ev = event_begin(c, EV_ENDED, -1, 0);
    ev->u.ended.finished = finished;
    PUT(ev->u.ended.why, why);
    event_emit(c, 0);
}
