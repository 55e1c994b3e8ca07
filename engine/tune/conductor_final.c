/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The final measurement of a task.
 *
 * The lowest cost of many noisy trials is partly luck, and trials hours apart saw different clocks.
 * So the finalists are measured once more, all of them interleaved, in several rounds; what is
 * reported comes from these samples only: the winner's median, and for the others that times the
 * median ratio to it of the samples of the same moments. Which of two is faster is asked of the
 * ratios, too. Medians of each by itself would go wrong where a neighbour takes the machine for a
 * part of the rounds: on one that did, a kernel that was 12 % faster by the median of the pairs had
 * a median 2 % above that of the other. Each round puts another finalist first, because the device
 * checks the output of the first kernel; one that fails there is out, and the round is made anew.
 *
 * Finalists: the default, the best explored, the best refined by cost, and the best refined that
 * passed the strategy's test. Of two for the same title the faster one here has it. The refined
 * result is the winner among explored and refined, so that refining never reports a regression.
 *
 * HOW LONG. After the rounds in which everybody was first once, FINAL_ROUNDS at least, there is a
 * look after each at the pair whose order is the result: best explored and best refined; where
 * nothing was refined, default and best explored. It is
 *
 *   separated  where Wilcoxon's signed-rank test of all pairs so far, two-sided, is at or below the
 *              level;
 *   tied       where the interval of the median of the pairs' ratios lies within 1 +- TIE_MARGIN,
 *              which is equivalence as Schuirmann's two one-sided tests (1987) have it;
 *   open       where neither holds when FINAL_MAX_ROUNDS were made, or EXTRA_NS spent on more than
 *              the obligatory ones.
 *
 * Who is clearly slower than the leader of that pair is left out of further rounds.
 *
 * THE LEVEL. Testing at 0.05 after each of five rounds would call 14 % of ties separated
 * (Armitage, McPherson and Rowe 1969). The level of a look is therefore 0.05 over the number of
 * looks there can be, and over the pairs that could have become this one, since it is the data that
 * name it (Bonferroni's inequality). Pocock's boundary (1977) would allow 0.0142 instead of 0.0083
 * for six looks, but only where all rounds bring the same information: here their samples vary in
 * number and the pair can change. O'Brien and Fleming's (1979) keeps the level for the last look,
 * when it is the early end that saves time. Samples are plenty, so the difference costs little.
 *
 * WHAT IT DOES. Of 72 finals in which all finalists were one and the same kernel, 62 were called
 * tied, 3 separated (4 %), and 7 stayed open. In sessions of SqueezeNet with 25 and 25 trials (24
 * tasks, some 15 s) the further rounds take 0.1 to 0.2 s and leave 1 to 3 results open where there
 * were 5.
 *
 * A recorded device answers a repetition with a copy, which is no new evidence: only its first
 * round counts.
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

static const double INTERVAL_LEVEL = 0.95, FINAL_ALPHA = 0.05, TIE_MARGIN = 0.01;
/* What a task's further rounds may take in all: kernels of 50 ms get one or two, usual ones all. */
static const int64_t EXTRA_NS = 1000000000;

struct finalist {
    int at; /* trial of the course */
    struct kernel *kernel;
    bool out;     /* it failed */
    bool settled; /* clearly slower: what was measured of it stands */
    double error; /* of its output; NAN until it was checked */
    /* All begin together and none comes back, so that sample i of each is of the same moment. */
    int nr_samples;
    double sample_ns[FINAL_SAMPLES];
    double median_ns, lo, hi;
};

/* a is to be the faster one; see the head of the file. */
struct separation {
    const struct finalist *a, *b; /* NULL both: there is nothing to compare */
    enum final_verdict verdict;
    int nr_pairs;
    double p;            /* two-sided, of the order that `gain` has */
    double gain, lo, hi; /* 1 - median of a / b, and its interval at the level of the look */
};

struct final {
    struct course *t;
    bool running; /* else it waits for its turn */
    int nr;
    struct finalist f[DEVICE_MAX_KERNELS];
    int round, tries;
    int64_t extra_ns;
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
        if (n->f[who].out || n->f[who].settled)
            continue;
        n->place[w->nr] = who;
        w->kernel[w->nr++] = n->f[who].kernel;
    }
    if (w->nr == 0)
        return false;
    pipeline_submit(n->t->c->pipeline, w);
    return true;
}

/* Was this very set of trials, or a later one, measured finally in an earlier run? */
static bool has_result(const struct course *t)
{
    const struct history *h = t->c->history;
    return !t->live && h && h->resulted && t->nr_trials > 0 &&
           h->resulted(h->ctx, t->number) >= t->trial[t->nr_trials - 1].o.trial;
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

static int nr_pairs(const struct finalist *a, const struct finalist *b)
{
    return a->nr_samples < b->nr_samples ? a->nr_samples : b->nr_samples;
}

/* The ratios a / b of the samples of the same moments. Returns their number. */
static int ratios(const struct finalist *a, const struct finalist *b, double *out)
{
    int nr = nr_pairs(a, b);
    for (int i = 0; i < nr; i++)
        out[i] = a->sample_ns[i] / b->sample_ns[i];
    return nr;
}

static double median_ratio(const struct finalist *a, const struct finalist *b)
{
    double ratio[FINAL_SAMPLES];
    return stats_median(ratio, ratios(a, b, ratio));
}

/* NULL loses. */
static struct finalist *faster(struct finalist *a, struct finalist *b)
{
    if (!a || !b)
        return a ? a : b;
    return median_ratio(b, a) < 1 ? b : a;
}

static struct finalist *best_explored(struct final *n)
{
    return faster(finalist_of(n, ROLE_EXPLORED), finalist_of(n, ROLE_DEFAULT));
}

static struct finalist *best_refined(struct final *n)
{
    return faster(finalist_of(n, ROLE_MOVED), finalist_of(n, ROLE_REFINED));
}

static bool is_refined(const struct final *n)
{
    return course_refines(n->t);
}

/* The level of one look at one of the pairs that may turn out to be the one that matters. */
static double look_level(struct final *n)
{
    static const enum role title[2][2] = {{ROLE_MOVED, ROLE_REFINED},
                                          {ROLE_EXPLORED, ROLE_DEFAULT}};
    int pairs = 1;
    for (int i = 0; i < 2 && is_refined(n); i++) {
        const struct finalist *x = finalist_of(n, title[i][0]), *y = finalist_of(n, title[i][1]);
        pairs *= x && y && x != y ? 2 : 1;
    }
    return FINAL_ALPHA / ((FINAL_MAX_ROUNDS - FINAL_ROUNDS + 1) * pairs);
}

/* Two-sided p that they are equal, small only where `a` is the faster one. */
static double p_faster(const struct finalist *a, const struct finalist *b)
{
    return fmin(2 * stats_signed_rank(a->sample_ns, b->sample_ns, nr_pairs(a, b)), 1);
}

static void compare(struct separation *s, double level)
{
    double ratio[FINAL_SAMPLES], lo, hi;
    s->nr_pairs = ratios(s->a, s->b, ratio);
    stats_median_interval(ratio, s->nr_pairs, 1 - level, &lo, &hi);
    s->gain = 1 - stats_median(ratio, s->nr_pairs);
    s->lo = 1 - hi;
    s->hi = 1 - lo;
    s->p = s->gain > 0 ? p_faster(s->a, s->b) : p_faster(s->b, s->a);
    /* The range of fewer samples than this misses the median more often than the level says. */
    bool enough = ldexp(2, -s->nr_pairs) <= level;
    if (s->p <= level)
        s->verdict = FINAL_SEPARATED;
    else if (enough && s->lo >= -TIE_MARGIN && s->hi <= TIE_MARGIN)
        s->verdict = FINAL_TIED;
    else
        s->verdict = FINAL_OPEN;
}

/* The pair whose order decides the result, as it is now. */
static struct separation look(struct final *n)
{
    struct separation s = {.verdict = FINAL_NONE, .p = NAN, .gain = NAN, .lo = NAN, .hi = NAN};
    const struct finalist *a = is_refined(n) ? best_refined(n) : finalist_of(n, ROLE_EXPLORED);
    const struct finalist *b = is_refined(n) ? best_explored(n) : finalist_of(n, ROLE_DEFAULT);
    if (!a || !b || a == b)
        return s;
    s.a = a;
    s.b = b;
    compare(&s, look_level(n));
    return s;
}

static void put_result(const struct final *n, const struct finalist *f, double *ns, double *lo,
                       double *hi, int64_t *trial)
{
    *ns = f ? f->median_ns : NAN;
    *lo = f ? f->lo : NAN;
    *hi = f ? f->hi : NAN;
    *trial = f ? n->t->trial[f->at].o.trial : 0;
}

static void say_order(const struct final *n, const struct separation *s, char *out, size_t size)
{
    static const char *const name[2][2] = {{"explored", "default"}, {"refined", "explored"}};
    const char *who = name[is_refined(n)][0], *other = name[is_refined(n)][1];
    const char *stays = s->gain <= 0 ? ", which stays" : "";
    bool faster = s->gain >= 0;
    const char *how = faster ? "faster" : "slower";
    double sign = faster ? 100 : -100, gain = sign * s->gain;
    char test[64];
    snprintf(test, sizeof test, "(%.1f to %.1f %%, p = %.2g)", sign * (faster ? s->lo : s->hi),
             sign * (faster ? s->hi : s->lo), s->p);
    if (s->verdict == FINAL_SEPARATED)
        snprintf(out, size, "%s is %.1f %% %s than %s%s %s", who, gain, how, other, stays, test);
    else if (s->verdict == FINAL_TIED)
        snprintf(out, size, "%s ties with %s%s: %.1f %% %s %s", who, other, stays, gain, how, test);
    else
        snprintf(out, size, "%s and %s not separated in %d rounds: %.1f %% %s %s", who, other,
                 n->round, gain, how, test);
}

static void say_why(struct final *n, const struct separation *s, char *out, size_t size)
{
    if (s->a)
        say_order(n, s, out, size);
    else if (!is_refined(n))
        snprintf(out, size, "not refined");
    else if (!best_refined(n))
        snprintf(out, size, "refining gave no valid trial: the explored one stays");
    else
        snprintf(out, size, "only the refined one runs");
}

static void put_separation(const struct final *n, const struct separation *s, struct event *ev)
{
    ev->u.result.verdict = s->verdict;
    ev->u.result.rounds = n->round;
    ev->u.result.pairs = s->nr_pairs;
    ev->u.result.p_value = s->p;
    ev->u.result.gain = s->gain;
    ev->u.result.gain_lo = s->lo;
    ev->u.result.gain_hi = s->hi;
}

static void emit_result(struct final *n, const struct separation *s)
{
    struct course *t = n->t;
    struct finalist *untuned = finalist_of(n, ROLE_DEFAULT), *explored = best_explored(n);
    struct finalist *best = faster(explored, best_refined(n));

    struct event *ev = event_begin(t->c, EV_RESULT, t->number, t->trial[best->at].o.trial);
    put_result(n, untuned, &ev->u.result.default_ns, &ev->u.result.default_lo,
               &ev->u.result.default_hi, &ev->u.result.default_trial);
    put_result(n, explored, &ev->u.result.explored_ns, &ev->u.result.explored_lo,
               &ev->u.result.explored_hi, &ev->u.result.explored_trial);
    put_result(n, is_refined(n) ? best : NULL, &ev->u.result.refined_ns, &ev->u.result.refined_lo,
               &ev->u.result.refined_hi, &ev->u.result.refined_trial);
    ev->u.result.error = best->error;
    put_separation(n, s, ev);
    say_why(n, s, ev->u.result.why, sizeof ev->u.result.why);
    event_emit(t->c, 0);
}

/* What is reported, relative to the winner. What a recorded device gives are no samples of the same
 * moments: there each has its own median. */
static void set_times(struct final *n, const struct finalist *winner)
{
    bool recorded = n->t->c->device->class->now;
    double base_ns = stats_median(winner->sample_ns, winner->nr_samples), ratio[FINAL_SAMPLES];
    for (int i = 0; i < n->nr; i++) {
        struct finalist *f = &n->f[i];
        bool own = recorded || f == winner;
        int nr = own ? f->nr_samples : ratios(f, winner, ratio);
        const double *sample = own ? f->sample_ns : ratio;
        double unit = own ? 1 : base_ns;
        stats_median_interval(sample, nr, INTERVAL_LEVEL, &f->lo, &f->hi);
        f->lo *= unit;
        f->hi *= unit;
        f->median_ns = unit * stats_median(sample, nr);
    }
}

static void conclude(struct final *n, const struct separation *s)
{
    set_times(n, faster(best_explored(n), best_refined(n)));
    emit_result(n, s);
    end_final(n->t);
}

/* ---- rounds */

static void take_samples(struct finalist *f, const double *sample_ns, int nr)
{
    if (nr > FINAL_SAMPLES - f->nr_samples)
        nr = FINAL_SAMPLES - f->nr_samples;
    memcpy(f->sample_ns + f->nr_samples, sample_ns, (size_t)nr * sizeof *sample_ns);
    f->nr_samples += nr;
}

/* False: one of the round is out; the round is made anew without it. */
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
    bool copy = n->round > 0 && n->t->c->device->class->now;
    for (int i = 0; i < w->nr && !copy; i++)
        take_samples(&n->f[n->place[i]], w->result.sample_ns[i], w->result.nr_samples);
    return true;
}

static int obligatory_rounds(const struct final *n)
{
    return n->nr > FINAL_ROUNDS ? n->nr : FINAL_ROUNDS;
}

/* Who cannot come near the pair any more. */
static void settle_slow(struct final *n, const struct separation *s)
{
    const struct finalist *leader = s->gain > 0 ? s->a : s->b;
    double level = look_level(n);
    for (int i = 0; i < n->nr; i++) {
        struct finalist *f = &n->f[i];
        if (f != s->a && f != s->b && !f->out && median_ratio(leader, f) < 1)
            f->settled |= p_faster(leader, f) <= level;
    }
}

/* Is one round more worth its time? The obligatory ones are over. */
static bool goes_on(struct final *n, const struct separation *s)
{
    if (s->verdict != FINAL_OPEN || n->round >= FINAL_MAX_ROUNDS || n->extra_ns >= EXTRA_NS ||
        n->t->c->device->class->now)
        return false;
    settle_slow(n, s);
    return true;
}

static bool is_alive(const struct final *n)
{
    for (int i = 0; i < n->nr; i++)
        if (!n->f[i].out)
            return true;
    return false;
}

void final_step(struct course *t, struct work *w)
{
    struct final *n = t->final;
    if (w->result.status == TRIAL_DEVICE_ERROR && n->tries++ == 0) {
        pipeline_submit(t->c->pipeline, w); /* the runner may have been on its way out */
        return;
    }
    if (n->round >= obligatory_rounds(n))
        n->extra_ns += w->result.measure_ns;
    n->round += take_round(n, w);
    if (is_alive(n) && n->round >= obligatory_rounds(n)) {
        struct separation s = look(n);
        if (!goes_on(n, &s)) {
            conclude(n, &s);
            return;
        }
    }
    if (submit_round(n))
        return;
    emit_note(t->c, t->number, 2, "task \"%s\" has no result: no finalist ran once more",
              t->task->name);
    end_final(t);
}
