/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The final measurement of a task.
 *
 * The lowest cost of many noisy trials is partly luck, and trials hours apart saw different clocks.
 * So the finalists are measured once more, all of them interleaved, in several rounds; what is
 * reported are these medians only. Each round puts another finalist first, because the device
 * checks the output of the first kernel; one that fails there is out, and the rounds begin anew.
 *
 * Finalists: the default, the best explored, the best refined by cost, and the best refined that
 * passed the strategy's test. Of two for the same title the faster one here has it. The refined
 * result is the winner among explored and refined, so that refining never reports a regression.
 *
 * Nothing is decided from a final, so that it runs beside the flights without a place in their
 * order.
 */
#include "engine/tune/conductor_private.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/arena.h"
#include "engine/search/stats.h"

static const double INTERVAL_LEVEL = 0.95, TIE_P = 0.05;

struct finalist {
    int at; /* trial of the course */
    struct kernel *kernel;
    bool out;
    double error; /* of its output; NAN until it was checked */
    double sample_ns[FINAL_SAMPLES];
    double median_ns, lo, hi;
};

struct final {
    struct course *t;
    bool running; /* else it waits for its turn */
    int nr;
    struct finalist f[DEVICE_MAX_KERNELS];
    int round, tries;
    int nr_samples;
    int place[DEVICE_MAX_KERNELS]; /* of the request: which finalist */
    struct work work;
};

static void add_finalist(struct final *n, int at)
{
    for (int i = 0; i < n->nr; i++)
        if (n->f[i].at == at)
            return;
    if (at < 0)
        return;
    struct finalist *f = &n->f[n->nr++];
    f->at = at;
    f->kernel = role_kernel(n->t, at);
    f->error = NAN;
}

void final_free(struct final *n)
{
    if (!n)
        return;
    for (int i = 0; i < n->nr; i++)
        kernel_unref(n->f[i].kernel);
    free(n);
}

/* The round's finalists, another one first each time. False: nobody is left. */
static bool submit_round(struct final *n)
{
    struct work *w = &n->work;
    *w = (struct work){.task = n->t->number, .check = true, .final = true, .user = n->t};
    for (int i = 0; i < n->nr; i++) {
        int who = (i + n->round) % n->nr;
        if (n->f[who].out)
            continue;
        n->place[w->nr] = who;
        w->kernel[w->nr++] = n->f[who].kernel;
    }
    if (w->nr == 0)
        return false;
    pipeline_submit(n->t->c->pipeline, w);
    return true;
}

static void begin_anew(struct final *n)
{
    n->round = 0;
    n->nr_samples = 0;
}

/* Was this very set of trials measured finally in an earlier run? */
static bool has_result(const struct course *t)
{
    const struct history *h = t->c->history;
    return !t->live && h && h->resulted && t->nr_trials > 0 &&
           h->resulted(h->ctx, t->number) == t->trial[t->nr_trials - 1].o.trial;
}

static void run_final(struct course *t)
{
    struct final *n = t->final;
    n->running = true;
    t->c->nr_finals_running++;
    add_finalist(n, t->role[ROLE_MOVED].at);
    add_finalist(n, t->role[ROLE_REFINED].at);
    add_finalist(n, t->role[ROLE_EXPLORED].at);
    add_finalist(n, t->role[ROLE_DEFAULT].at);
    submit_round(n);
}

/* A budget that ends leaves all tasks at their final together; their operands need not all be in
 * memory at the same time. */
static void run_waiting_finals(struct conductor *c)
{
    for (int i = 0; i < c->nr_courses && c->nr_finals_running < MAX_FINALS; i++)
        if (c->course[i].final && !c->course[i].final->running)
            run_final(&c->course[i]);
}

static void end_final(struct course *t)
{
    struct conductor *c = t->c;
    char why[sizeof t->why];
    memcpy(why, t->why, sizeof why);
    c->nr_finals--;
    c->nr_finals_running -= t->final->running;
    final_free(t->final);
    t->final = NULL;
    course_done(t, why);
    run_waiting_finals(c);
}

void final_begin(struct course *t)
{
    t->final = xcalloc(1, sizeof *t->final);
    t->final->t = t;
    t->c->nr_finals++;
    if (has_result(t))
        end_final(t);
    else
        run_waiting_finals(t->c);
}

/* ---- the result */

static struct finalist *finalist_of(struct final *n, enum role r)
{
    int at = n->t->role[r].at;
    for (int i = 0; i < n->nr; i++)
        if (at >= 0 && n->f[i].at == at && !n->f[i].out)
            return &n->f[i];
    return NULL;
}

/* NULL loses. */
static struct finalist *faster(struct finalist *a, struct finalist *b)
{
    if (!a || !b)
        return a ? a : b;
    return b->median_ns < a->median_ns ? b : a;
}

static void put_result(const struct final *n, const struct finalist *f, double *ns, double *lo,
                       double *hi, int64_t *trial)
{
    *ns = f ? f->median_ns : NAN;
    *lo = f ? f->lo : NAN;
    *hi = f ? f->hi : NAN;
    *trial = f ? n->t->trial[f->at].o.trial : 0;
}

static void say_why(const struct final *n, const struct finalist *explored,
                    const struct finalist *tried, char *out, size_t size)
{
    if (!n->t->c->refine || n->t->c->o.refine == 0) {
        snprintf(out, size, "not refined");
    } else if (!tried) {
        snprintf(out, size, "refining gave no valid trial: the explored one stays");
    } else if (!explored) {
        snprintf(out, size, "only the refined one runs");
    } else {
        double gain = 1 - tried->median_ns / explored->median_ns;
        double p = gain > 0
                       ? stats_signed_rank(tried->sample_ns, explored->sample_ns, n->nr_samples)
                       : stats_signed_rank(explored->sample_ns, tried->sample_ns, n->nr_samples);
        if (gain > 0)
            snprintf(out, size,
                     p <= TIE_P ? "refined is %.1f %% faster than explored (p = %.2g)"
                                : "refined ties with explored: %.1f %% faster (p = %.2g)",
                     100 * gain, p);
        else
            snprintf(out, size,
                     p <= TIE_P ? "refined is %.1f %% slower: the explored one stays "
                                  "(p = %.2g)"
                                : "refined ties with explored, which stays: %.1f %% "
                                  "slower (p = %.2g)",
                     -100 * gain, p);
    }
}

static void emit_result(struct final *n)
{
    struct course *t = n->t;
    struct finalist *untuned = finalist_of(n, ROLE_DEFAULT);
    struct finalist *explored = faster(finalist_of(n, ROLE_EXPLORED), untuned);
    struct finalist *tried = faster(finalist_of(n, ROLE_MOVED), finalist_of(n, ROLE_REFINED));
    struct finalist *best = faster(explored, tried);
    bool refined = t->c->refine && t->c->o.refine != 0;

    struct event *ev = event_begin(t->c, EV_RESULT, t->number, t->trial[best->at].o.trial);
    put_result(n, untuned, &ev->u.result.default_ns, &ev->u.result.default_lo,
               &ev->u.result.default_hi, &ev->u.result.default_trial);
    put_result(n, explored, &ev->u.result.explored_ns, &ev->u.result.explored_lo,
               &ev->u.result.explored_hi, &ev->u.result.explored_trial);
    put_result(n, refined ? best : NULL, &ev->u.result.refined_ns, &ev->u.result.refined_lo,
               &ev->u.result.refined_hi, &ev->u.result.refined_trial);
    ev->u.result.error = best->error;
    say_why(n, explored, tried, ev->u.result.why, sizeof ev->u.result.why);
    event_emit(t->c, 0);
}

static void conclude(struct final *n)
{
    for (int i = 0; i < n->nr; i++) {
        struct finalist *f = &n->f[i];
        f->median_ns = stats_median(f->sample_ns, n->nr_samples);
        stats_median_interval(f->sample_ns, n->nr_samples, INTERVAL_LEVEL, &f->lo, &f->hi);
    }
    emit_result(n);
    end_final(n->t);
}

/* ---- rounds */

/* False: the first kernel of the round is out, or one could not be built; begin anew. */
static bool take_round(struct final *n, const struct work *w)
{
    bool all = w->result.status == TRIAL_OK && w->result.nr_samples > 0;
    struct finalist *first = &n->f[n->place[0]];
    if (!all) {
        first->out = true;
        emit_note(n->t->c, n->t->number, 1, "final of \"%s\": trial %lld ended as %s: %s",
                  n->t->task->name, (long long)n->t->trial[first->at].o.trial,
                  trial_status_name(w->result.status), w->result.reason);
        return false;
    }
    for (int i = 0; i < w->nr; i++) {
        n->f[n->place[i]].out |= !w->has[i];
        all &= w->has[i];
    }
    if (!all)
        return false;
    if (w->result.checked)
        first->error = w->result.error;
    int nr = w->result.nr_samples;
    if (nr > FINAL_SAMPLES - n->nr_samples)
        nr = FINAL_SAMPLES - n->nr_samples;
    for (int i = 0; i < w->nr; i++)
        memcpy(n->f[n->place[i]].sample_ns + n->nr_samples, w->result.sample_ns[i],
               (size_t)nr * sizeof(double));
    n->nr_samples += nr;
    return true;
}

void final_step(struct course *t, struct work *w)
{
    struct final *n = t->final;
    if (w->result.status == TRIAL_DEVICE_ERROR && n->tries++ == 0) {
        pipeline_submit(t->c->pipeline, w); /* the runner may have been on its way out */
        return;
    }
    if (take_round(n, w))
        n->round++;
    else
        begin_anew(n);
    int rounds = n->nr > FINAL_ROUNDS ? n->nr : FINAL_ROUNDS;
    if (n->round >= rounds) {
        conclude(n);
        return;
    }
    if (submit_round(n))
        return;
    emit_note(t->c, t->number, 2, "task \"%s\" has no result: no finalist ran once more",
              t->task->name);
    end_final(t);
}
