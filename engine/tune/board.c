/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The reducer. Two rules hold everywhere:
 *
 * - An event may be told twice (a resumed session repeats what it cannot know to be stored): the
 *   second time changes nothing.
 * - Events may come from a file of a stranger: numbers outside what was announced are ignored, and
 *   no number makes the board allocate more than a bounded amount.
 *
 * Stages of a task: the incumbent of its explore phase is the best explored, of its refine phase
 * the best refined; a phase that found nothing better ends with the incumbent it began with. The
 * final measurement says the last word. sessions/schema.c and rows.c follow the same rules in SQL.
 */
#include "engine/tune/board.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/arena.h"
#include "engine/base/hash.h"
#include "engine/base/utf8.h"

enum {
    MAX_TASKS = 1 << 16,
    MAX_KNOBS = 16 * SKETCH_MAX_KNOBS, /* of a task: all sketches */
    MAX_GAP = 1 << 13, /* between the numbers of trials: far above what is in flight */
    NO_VERDICT = 255,
    WORDS_START = 256,
};

/*
 * Texts of the trials. Few of the sketches, reasons and notes differ: they are kept once, found by
 * an open hash table. Codes and knobs all differ and are copied. None is freed before the board.
 */
struct board_texts {
    struct arena arena;
    char **word;
    size_t nr, cap; /* a power of two */
};

static char empty[1] = "";

static char **word_slot(struct board_texts *t, const char *text, size_t len)
{
    size_t i = (size_t)hash64(HASH64_INIT, text, len) & (t->cap - 1);
    while (t->word[i] && strcmp(t->word[i], text) != 0)
        i = (i + 1) & (t->cap - 1);
    return &t->word[i];
}

static void words_grow(struct board_texts *t)
{
    struct board_texts old = *t;
    t->cap = old.cap ? old.cap * 2 : WORDS_START;
    t->word = xcalloc(t->cap, sizeof *t->word);
    for (size_t i = 0; i < old.cap; i++)
        if (old.word[i])
            *word_slot(t, old.word[i], strlen(old.word[i])) = old.word[i];
    free(old.word);
}

static char *word(struct board *b, const char *text)
{
    if (!*text)
        return empty;
    struct board_texts *t = b->texts;
    size_t len = strlen(text);
    if (t->nr * 2 >= t->cap)
        words_grow(t);
    char **slot = word_slot(t, text, len);
    if (!*slot) {
        *slot = arena_strndup(&t->arena, text, len);
        t->nr++;
    }
    return *slot;
}

static char *copy(struct board *b, const char *text)
{
    return *text ? arena_strdup(&b->texts->arena, text) : empty;
}

void board_init(struct board *b)
{
    memset(b, 0, sizeof *b);
    b->current = -1;
    b->texts = xcalloc(1, sizeof *b->texts);
}

void board_release(struct board *b)
{
    for (int i = 0; i < b->nr_tasks; i++) {
        free(b->task[i].knob);
        free(b->task[i].point);
        free(b->task[i].ring);
    }
    free(b->task);
    free(b->trial);
    free(b->note);
    if (b->texts) {
        arena_release(&b->texts->arena);
        free(b->texts->word);
        free(b->texts);
    }
    memset(b, 0, sizeof *b);
}

const struct board_trial *board_trial(const struct board *b, int64_t id)
{
    return id > 0 && id <= b->nr_trials && b->trial[id - 1].id ? &b->trial[id - 1] : NULL;
}

static double median_of(const struct board *b, int64_t id)
{
    const struct board_trial *t = board_trial(b, id);
    return t ? t->median_ns : NAN;
}

/* The task of an event; NULL where it has none or one that was not announced. */
static struct board_task *task_of(struct board *b, const struct event *ev)
{
    return ev->task >= 0 && ev->task < b->nr_tasks ? &b->task[ev->task] : NULL;
}

/* The trial of an event, new or not; NULL where its number is not to be believed. */
static struct board_trial *trial_of(struct board *b, const struct event *ev)
{
    if (!task_of(b, ev) || ev->trial <= 0 || ev->trial > b->nr_trials + MAX_GAP)
        return NULL;
    if (ev->trial > b->cap_trials) {
        int64_t cap = b->cap_trials ? b->cap_trials : 1024;
        while (cap < ev->trial)
            cap *= 2;
        b->trial = xrealloc(b->trial, (size_t)cap * sizeof *b->trial);
        b->cap_trials = cap;
    }
    while (b->nr_trials < ev->trial)
        b->trial[b->nr_trials++].id = 0;
    struct board_trial *t = &b->trial[ev->trial - 1];
    if (!t->id)
        *t = (struct board_trial){
            .id = ev->trial,
            .task = ev->task,
            .verdict = NO_VERDICT,
            .knob = -1,
            .cost_ns = NAN,
            .median_ns = NAN,
            .p_value = NAN,
            .gain = NAN,
            .code = empty,
            .knobs = empty,
            .sketch = empty,
            .reason = empty,
            .note = empty,
            .text = empty,
            .strategy = empty,
        };
    return t->task == ev->task ? t : NULL;
}

static double or_else(double ns, double otherwise)
{
    return isnan(ns) ? otherwise : ns;
}

/* The stages as the final measured them, before that the medians of their trials. */
static void update_stages(const struct board *b, struct board_task *t)
{
    t->default_ns = or_else(t->final_ns[0], median_of(b, t->default_trial));
    t->explored_ns = or_else(t->final_ns[1], median_of(b, t->best_explored));
    t->refined_ns = or_else(t->final_ns[2], median_of(b, t->best_refined));
    t->best_ns = t->final ? or_else(t->refined_ns, or_else(t->explored_ns, t->default_ns))
                          : median_of(b, t->best);
}

static void apply_session(struct board *b, const struct event *ev)
{
    b->session = *ev;
    b->has_session = true;
    b->ended = b->finished = b->paused = false;
    b->why[0] = '\0';
    b->measuring = 0;
}

static void forget_final(struct board_task *t)
{
    t->final = false;
    t->verdict = FINAL_NONE;
    t->error = t->p_value = t->gain = t->gain_lo = t->gain_hi = NAN;
    t->order[0] = '\0';
    for (int i = 0; i < 3; i++)
        t->final_ns[i] = t->lo[i] = t->hi[i] = NAN;
}

static void apply_task(struct board *b, const struct event *ev)
{
    if (ev->task < 0 || ev->task >= MAX_TASKS || ev->task > b->nr_tasks + MAX_GAP)
        return;
    while (b->nr_tasks <= ev->task) {
        GROW(b->task, b->nr_tasks, b->cap_tasks);
        struct board_task *t = &b->task[b->nr_tasks++];
        *t = (struct board_task){
            .best_ns = NAN,
            .default_ns = NAN,
            .explored_ns = NAN,
            .refined_ns = NAN,
        };
        forget_final(t);
    }
    struct board_task *t = &b->task[ev->task];
    utf8_copy(t->name, sizeof t->name, ev->u.task.name);
    utf8_copy(t->workload, sizeof t->workload, ev->u.task.workload);
    utf8_copy(t->where, sizeof t->where, ev->u.task.where);
    utf8_copy(t->kind, sizeof t->kind, ev->u.task.kind);
    t->weight = isfinite(ev->u.task.weight) ? ev->u.task.weight : 1;
    t->flops = isfinite(ev->u.task.flops) ? ev->u.task.flops : 0;
    t->bytes = ev->u.task.bytes;
    t->space = ev->u.task.space;
    t->nr_sketches = ev->u.task.nr_sketches;
    t->refine = b->session.u.session.refine;
}

static void apply_knob(struct board *b, const struct event *ev)
{
    struct board_task *t = task_of(b, ev);
    if (!t)
        return;
    struct board_knob *k = NULL;
    for (int i = 0; i < t->nr_knobs && !k; i++)
        if (t->knob[i].sketch == ev->u.knob.sketch && !strcmp(t->knob[i].name, ev->u.knob.name))
            k = &t->knob[i];
    if (!k) {
        if (t->nr_knobs >= MAX_KNOBS)
            return;
        GROW(t->knob, t->nr_knobs, t->cap_knobs);
        k = &t->knob[t->nr_knobs++];
    }
    k->sketch = ev->u.knob.sketch;
    k->kind = ev->u.knob.kind;
    k->extent = ev->u.knob.extent;
    utf8_copy(k->name, sizeof k->name, ev->u.knob.name);
    utf8_copy(k->values, sizeof k->values, ev->u.knob.values);
}

static void apply_phase(struct board *b, const struct event *ev)
{
    struct board_task *t = task_of(b, ev);
    if (!t)
        return;
    enum phase next = ev->u.phase.phase;
    if (t->phase == PHASE_EXPLORE && next > PHASE_EXPLORE && !t->best_explored)
        t->best_explored = t->best;
    if (t->phase == PHASE_REFINE && next > PHASE_REFINE && !t->best_refined)
        t->best_refined = t->best;
    if (t->phase != next)
        t->nr_phase = ev->u.phase.used;
    if (next < PHASE_FINAL)
        forget_final(t); /* it goes on: what was measured at its end is not the last word */
    t->phase = next;
    t->budget = ev->u.phase.budget;
    utf8_copy(t->strategy, sizeof t->strategy, ev->u.phase.strategy);
    utf8_copy(t->why, sizeof t->why, ev->u.phase.why);
    update_stages(b, t);
}

static void ring_add(struct board_task *t, int64_t id)
{
    for (int i = t->nr_ring; i-- > 0 && t->ring[i] >= id;)
        if (t->ring[i] == id)
            return;
    GROW(t->ring, t->nr_ring, t->cap_ring);
    t->ring[t->nr_ring++] = id;
}

/* Trials derive from earlier ones: those of the new centre's ring are numbered above it. */
static void ring_move(struct board *b, struct board_task *t, int64_t centre)
{
    if (t->centre == centre)
        return;
    t->centre = centre;
    t->nr_ring = 0;
    for (int64_t id = centre + 1; id <= b->nr_trials; id++) {
        const struct board_trial *k = &b->trial[id - 1];
        if (k->id && k->parent == centre && &b->task[k->task] == t)
            ring_add(t, id);
    }
}

static void apply_proposed(struct board *b, const struct event *ev)
{
    struct board_trial *k = trial_of(b, ev);
    if (!k || k->status != TRIAL_PENDING)
        return;
    struct board_task *t = task_of(b, ev);
    if (strcmp(k->code, ev->u.proposed.code) != 0)
        k->code = copy(b, ev->u.proposed.code);
    if (strcmp(k->knobs, ev->u.proposed.knobs) != 0)
        k->knobs = copy(b, ev->u.proposed.knobs);
    k->sketch = word(b, ev->u.proposed.sketch);
    k->note = word(b, ev->u.proposed.note);
    k->strategy = word(b, ev->u.proposed.strategy);
    k->phase = (uint8_t)ev->u.proposed.phase;
    k->origin = (uint8_t)ev->u.proposed.origin;
    k->parent = ev->u.proposed.parent;
    k->knob = (int16_t)ev->u.proposed.knob;
    k->dir = (int16_t)ev->u.proposed.dir;
    k->measuring = false;
    if (k->parent && k->parent == t->centre)
        ring_add(t, k->id);
}

static void apply_measuring(struct board *b, const struct event *ev)
{
    struct board_trial *k = trial_of(b, ev);
    if (!k || k->status != TRIAL_PENDING)
        return;
    k->measuring = true;
    k->started_ns = ev->t_ns;
    b->measuring = k->id;
    b->current = k->task;
}

static bool ahead(const struct board *b, const struct board_trial *k, int64_t other)
{
    const struct board_trial *o = &b->trial[other - 1];
    return k->median_ns < o->median_ns || (k->median_ns == o->median_ns && k->id < o->id);
}

static void lead(const struct board *b, struct board_task *t, const struct board_trial *k)
{
    int at = t->nr_leaders;
    while (at > 0 && ahead(b, k, t->leader[at - 1]))
        at--;
    if (at == BOARD_LEADERS)
        return;
    if (t->nr_leaders < BOARD_LEADERS)
        t->nr_leaders++;
    memmove(&t->leader[at + 1], &t->leader[at],
            (size_t)(t->nr_leaders - 1 - at) * sizeof t->leader[0]);
    t->leader[at] = k->id;
}

static void apply_trial(struct board *b, const struct event *ev)
{
    struct board_trial *k = trial_of(b, ev);
    if (!k || k->status != TRIAL_PENDING || ev->u.trial.status == TRIAL_PENDING)
        return;
    struct board_task *t = task_of(b, ev);
    k->status = (uint8_t)ev->u.trial.status;
    k->reason = word(b, ev->u.trial.reason);
    k->cost_ns = ev->u.trial.cost_ns;
    k->median_ns = ev->u.trial.median_ns;
    k->checked = ev->u.trial.checked;
    k->started_ns = ev->u.trial.started_ns;
    k->ended_ns = ev->u.trial.ended_ns;
    k->measuring = false;
    if (b->measuring == k->id)
        b->measuring = 0;
    b->current = k->task;
    b->nr_ended++;
    b->by_status[k->status]++;
    t->nr_trials++;
    t->by_status[k->status]++;
    t->nr_phase += k->phase == t->phase;
    if (k->status != TRIAL_OK)
        return;
    if (k->origin == ORIGIN_DEFAULT) {
        t->default_trial = k->id;
        if (!t->best)
            t->best = k->id;
        update_stages(b, t);
    }
    if (k->origin != ORIGIN_FINAL && isfinite(k->median_ns))
        lead(b, t, k);
}

/* Does the incumbent of the ladder's centre also take the lead of its task? */
static bool leads(const struct board *b, const struct board_task *t, const struct event *ev)
{
    const struct board_trial *best = board_trial(b, t->best);
    return !best || ev->u.incumbent.cost_ns < best->cost_ns;
}

static void apply_incumbent(struct board *b, const struct event *ev)
{
    struct board_task *t = task_of(b, ev);
    const struct board_trial *k = board_trial(b, ev->trial);
    if (!t || !k || k->task != ev->task)
        return;
    if (ev->u.incumbent.centre)
        ring_move(b, t, k->id);
    if (ev->u.incumbent.centre && !leads(b, t, ev))
        return;
    t->best = k->id;
    if (ev->u.incumbent.phase == PHASE_EXPLORE)
        t->best_explored = k->id;
    if (ev->u.incumbent.phase == PHASE_REFINE)
        t->best_refined = k->id;
    update_stages(b, t);
    if (t->nr_points && t->point[t->nr_points - 1].trial == k->id)
        return;
    GROW(t->point, t->nr_points, t->cap_points);
    t->point[t->nr_points++] = (struct board_point){k->id, ev->t_ns, ev->u.incumbent.cost_ns};
}

static void apply_decision(struct board *b, const struct event *ev)
{
    struct board_trial *k = trial_of(b, ev);
    if (!k)
        return;
    k->verdict = (uint8_t)ev->u.decision.verdict;
    k->p_value = ev->u.decision.p_value;
    k->gain = ev->u.decision.gain;
    if (strcmp(k->text, ev->u.decision.text) != 0)
        k->text = word(b, ev->u.decision.text);
}

static void apply_result(struct board *b, const struct event *ev)
{
    struct board_task *t = task_of(b, ev);
    if (!t)
        return;
    const double ns[3] = {ev->u.result.default_ns, ev->u.result.explored_ns,
                          ev->u.result.refined_ns};
    const double lo[3] = {ev->u.result.default_lo, ev->u.result.explored_lo,
                          ev->u.result.refined_lo};
    const double hi[3] = {ev->u.result.default_hi, ev->u.result.explored_hi,
                          ev->u.result.refined_hi};
    memcpy(t->final_ns, ns, sizeof ns);
    memcpy(t->lo, lo, sizeof lo);
    memcpy(t->hi, hi, sizeof hi);
    if (ev->u.result.default_trial)
        t->default_trial = ev->u.result.default_trial;
    if (ev->u.result.explored_trial)
        t->best_explored = ev->u.result.explored_trial;
    if (ev->u.result.refined_trial)
        t->best_refined = ev->u.result.refined_trial;
    /* The last word on the best, too: what led by one lucky measurement may lose here. */
    const struct board_trial *won = board_trial(b, ev->trial);
    if (won && won->task == ev->task)
        t->best = won->id;
    t->error = ev->u.result.error;
    t->verdict = ev->u.result.verdict;
    t->p_value = ev->u.result.p_value;
    t->gain = ev->u.result.gain;
    t->gain_lo = ev->u.result.gain_lo;
    t->gain_hi = ev->u.result.gain_hi;
    utf8_copy(t->order, sizeof t->order, ev->u.result.why);
    t->final = true;
    update_stages(b, t);
}

static void set_refine(struct board *b, int32_t task, int64_t trials)
{
    if (task < 0)
        b->session.u.session.refine = trials;
    for (int i = 0; i < b->nr_tasks; i++)
        if (task < 0 || task == i)
            b->task[i].refine = trials;
}

static void apply_command(struct board *b, const struct event *ev)
{
    double value = ev->u.command.value >= 0 ? ev->u.command.value : 0;
    int64_t trials = value <= INT32_MAX ? (int64_t)value : 0;
    if (!strcmp(ev->u.command.verb, "trials"))
        b->session.u.session.trials = trials;
    else if (!strcmp(ev->u.command.verb, "seconds"))
        b->session.u.session.seconds = value;
    else if (!strcmp(ev->u.command.verb, "explore") && ev->task < 0)
        b->session.u.session.explore = trials;
    else if (!strcmp(ev->u.command.verb, "refine"))
        set_refine(b, ev->task, trials);
    else if (!strcmp(ev->u.command.verb, "pause"))
        b->paused = true;
    else if (!strcmp(ev->u.command.verb, "go"))
        b->paused = false;
}

static void apply_note(struct board *b, const struct event *ev)
{
    if (!b->note)
        b->note = xmalloc(BOARD_NOTES * sizeof *b->note);
    if (b->nr_notes == BOARD_NOTES)
        memmove(b->note, b->note + 1, (size_t)--b->nr_notes * sizeof *b->note);
    b->note[b->nr_notes++] = *ev;
}

static void apply_usage(struct board *b, const struct event *ev)
{
    b->usage = *ev;
}

static void apply_ended(struct board *b, const struct event *ev)
{
    b->ended = true;
    b->finished = ev->u.ended.finished;
    b->paused = false;
    b->measuring = 0;
    utf8_copy(b->why, sizeof b->why, ev->u.ended.why);
}

void board_apply(struct board *b, const struct event *ev)
{
    static void (*const apply[EV_NR_KINDS])(struct board *, const struct event *) = {
        [EV_SESSION] = apply_session,   [EV_TASK] = apply_task,
        [EV_KNOB] = apply_knob,         [EV_PHASE] = apply_phase,
        [EV_PROPOSED] = apply_proposed, [EV_MEASURING] = apply_measuring,
        [EV_TRIAL] = apply_trial,       [EV_INCUMBENT] = apply_incumbent,
        [EV_DECISION] = apply_decision, [EV_RESULT] = apply_result,
        [EV_COMMAND] = apply_command,   [EV_NOTE] = apply_note,
        [EV_USAGE] = apply_usage,       [EV_ENDED] = apply_ended,
    };
    if ((unsigned)ev->kind < EV_NR_KINDS)
        apply[ev->kind](b, ev);
    b->seq = ev->seq;
    b->t_ns = ev->t_ns;
    b->wall_ns = ev->wall_ns;
}

struct board_model board_model(const struct board *b)
{
    struct board_model m = {0, 0, 0};
    for (int i = 0; i < b->nr_tasks; i++) {
        const struct board_task *t = &b->task[i];
        double explored = or_else(t->explored_ns, t->default_ns);
        m.default_ns += t->weight * t->default_ns;
        m.explored_ns += t->weight * explored;
        m.refined_ns += t->weight * or_else(t->refined_ns, explored);
    }
    return b->nr_tasks ? m : (struct board_model){NAN, NAN, NAN};
}

double board_trials_per_s(const struct board *b)
{
    return b->t_ns > 0 ? (double)b->nr_ended * 1e9 / (double)b->t_ns : 0;
}

double board_gflops(const struct board_task *t, double ns)
{
    return t->flops > 0 && ns > 0 ? t->flops / ns : 0;
}
