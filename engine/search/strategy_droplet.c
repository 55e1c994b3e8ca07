/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Droplet search: coordinate descent from the best candidates known.
 *
 * Words. The *incumbent* is the point of the descent. Its *ring* are its valid neighbours: one step
 * in one knob, both ways, from it or from a twin of it (struct sketch): all programs that are one
 * step away, each once, but for those predicted to be slow. A *probe* is a point to measure against
 * the incumbent, of the ring or beyond it. A *descent* runs from a *start* until it *converges*:
 * until every probe of the ring has been a trial and none was better.
 *
 *   start    the fastest trial known; without any, the sketches' start candidates and samples,
 *            the fastest of which becomes the incumbent
 *   ring     probes in batches, each measured interleaved with the incumbent; after a batch the
 *            best of those that judge.h calls better, if any, is the new incumbent. The step that
 *            won is done once and twice more at the head of the next batch (speculation)
 *   pairs    of a converged ring the steps that looked best are combined, two by two: along a
 *            constraint, or in a valley not parallel to a knob, no single step leads downwards
 *   restart  from the fastest trial known that is of a sketch not descended in, or in at least
 *            three knobs away from every incumbent so far, and not more than twice as slow as the
 *            first start; a session that knew nothing at first starts at new samples when none
 *            is left
 *
 * What the ports of this search get wrong, and this one must not (see tests/test_droplet.c):
 * whether a point has been visited is asked of the point, never of the step; a ring has the steps
 * of all knobs, both ways; results find their probe by their candidate; a difference within the
 * noise is no gain.
 *
 * The order of a ring decides what a small budget gets to see: the fastest by prediction come first
 * (strategy_env.score), and knobs that have brought gains; what is equal is in a random order.
 *
 * Where the engine predicts, steps and pairs that it takes for much slower than the incumbent are
 * left out, and refinement rests when half of its budget has brought no gain. Of 10,000 probes of
 * two networks' kernels, 1.4 % of those predicted at .9 of the incumbent's speed or above were
 * better, .9 % of those at .8 to .9, and one of 300 below. Without a prediction the last probe of a
 * ring is as good as the first, and none is left out.
 *
 * Costs known from different moments are comparable only roughly. A descent keeps them so: the cost
 * of a paired trial is the incumbent's times the median ratio. A restart which finds a neighbour
 * known, from before it began, to be faster by KNOWN_GAIN goes there without a trial; where that
 * was an incumbent before, the descent has run into an old one and ends.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/clock.h"
#include "engine/search/history.h"
#include "engine/search/judge.h"
#include "engine/search/strategies.h"

enum {
    MAX_DESCENTS = 8,  /* from trials known; more of the same basin cost more than they find */
    DISTANT_KNOBS = 3, /* a pair is two knobs away from an incumbent, and still of its basin */
    FIRST_STARTS = 8,  /* trials spent to find a start where nothing is known, */
    NEW_STARTS = 4,    /* and once more for each later descent */
    PAIR_STEPS = 8,    /* the steps combined, and the pairs made of them */
    MAX_PAIRS = 16,
    MAX_TWINS = 16, /* of an incumbent, whose steps are looked at */
    LEAST_PATIENCE = 16,
};

static const double KNOWN_GAIN = 0.05, PAIR_MIN_GAIN = -0.2, START_MAX_RATIO = 2;
/* A predicted speed, over the incumbent's, below which a probe is not worth a trial. */
static const double UNLIKELY = 0.8;
/* What a knob's gains so far count beside predicted speeds over the incumbent's. */
static const double MOST_CREDIT = 0.1;

enum stage { STAGE_START, STAGE_RING, STAGE_PAIR, STAGE_DONE };
enum probe_state { PROBE_WAITING, PROBE_OUT, PROBE_JUDGED };

struct probe {
    struct candidate c, via; /* via: where the last step began */
    enum origin origin;
    int knob, knob2, dir; /* -1: none */
    char note[64];
    enum probe_state state;
    bool better;
    int fact;    /* in the history once it is judged and was measured, else -1 */
    double gain; /* NAN where unknown */
    double p;
    double promise; /* predicted speed over the incumbent's, and the credit of a single knob */
    char text[128];
};

struct strategy {
    struct strategy_env env;
    struct rng rng;
    struct supply supply;
    struct history history;
    struct candset incumbents; /* all so far */
    enum stage stage;
    bool roaming; /* nothing was known at first: restarts may be samples */
    double first_start_ns;
    int starts_left;             /* to propose before the fastest start is chosen */
    int next_sketch;             /* whose start candidate is the next to be proposed */
    int incumbent;               /* in the history; -1 before the first */
    int descents, descent_began; /* how many, and the history's length then */
    struct probe *probe;
    int nr_probes, cap_probes;
    int nr_out;                         /* proposed and not yet observed */
    int family;                         /* probes that this incumbent meets in this stage */
    double (*credit)[SKETCH_MAX_KNOBS]; /* by sketch and knob: the gains it brought */
    int fruitless;                      /* probes judged since the last move */
    bool stagnant;                      /* when it was asked last */
    const char *why;
};

static const struct candidate *point(const struct strategy *s, int fact)
{
    return &s->history.set.v[fact];
}

static double incumbent_ns(const struct strategy *s)
{
    return s->history.fact[s->incumbent].cost_ns;
}

static int64_t incumbent_trial(const struct strategy *s)
{
    return s->incumbent < 0 ? 0 : s->history.fact[s->incumbent].trial;
}

static void report(const struct strategy *s, int64_t trial, int64_t incumbent, enum verdict v,
                   double p, double gain, const char *text)
{
    if (!s->env.decided)
        return;
    struct decision d = {trial, incumbent, v, p, gain, ""};
    snprintf(d.text, sizeof d.text, "%s", text);
    s->env.decided(s->env.ctx, &d);
}

/* A point that is a trial already, or the twin of one, needs none: what is known of it is taken
 * over. */
static struct probe *add_probe(struct strategy *s, const struct candidate *c,
                               const struct candidate *via, enum origin origin, int knob, int dir)
{
    GROW(s->probe, s->nr_probes, s->cap_probes);
    struct probe *p = &s->probe[s->nr_probes++];
    *p = (struct probe){.c = *c,
                        .via = *via,
                        .origin = origin,
                        .knob = knob,
                        .knob2 = -1,
                        .dir = dir,
                        .fact = -1,
                        .gain = NAN,
                        .p = NAN,
                        .promise = NAN};
    if (supply_is_new(&s->supply, c))
        return p;
    p->state = PROBE_JUDGED;
    p->fact = history_find(&s->history, c);
    if (p->fact >= 0 && s->incumbent >= 0 && isfinite(s->history.fact[p->fact].cost_ns))
        p->gain = 1 - s->history.fact[p->fact].cost_ns / incumbent_ns(s);
    return p;
}

static void set_note(struct probe *p, const char *text, const char *more)
{
    char note[2 * sizeof p->note] = "";
    snprintf(note, sizeof note, "%s%s", text, more);
    memcpy(p->note, note, sizeof p->note - 1);
}

static int count_waiting(const struct strategy *s)
{
    int nr = 0;
    for (int i = 0; i < s->nr_probes; i++)
        nr += s->probe[i].state == PROBE_WAITING;
    return nr;
}

/* Does the engine predict speeds? */
static bool is_predicted(const struct strategy *s)
{
    double speed;
    return s->env.score && s->env.score(s->env.ctx, point(s, s->incumbent), 1, &speed);
}

/* The most promising first; what is equal stays in its order. */
static void sort_probes(struct probe *v, int nr)
{
    for (int i = 1; i < nr; i++) {
        const struct probe p = v[i];
        int j = i;
        for (; j > 0 && v[j - 1].promise < p.promise; j--)
            v[j] = v[j - 1];
        v[j] = p;
    }
}

/* Sorts the probes from `first` on, and drops those that would have to be tried and are predicted
 * to be slow. Speeds compare within one call only. */
static void rate_probes(struct strategy *s, int first)
{
    int nr = s->nr_probes - first, kept = first;
    struct candidate *c = xmalloc(((size_t)nr + 1) * sizeof *c);
    double *speed = xmalloc(((size_t)nr + 1) * sizeof *speed);
    c[0] = *point(s, s->incumbent);
    for (int i = 0; i < nr; i++)
        c[i + 1] = s->probe[first + i].c;
    bool some = s->env.score && s->env.score(s->env.ctx, c, nr + 1, speed) && speed[0] > 0;
    const double *credit = s->credit[c[0].sketch];
    for (int i = 0; i < nr; i++) {
        struct probe p = s->probe[first + i];
        double over = some ? speed[i + 1] / speed[0] : 1;
        p.promise = over + (p.knob2 < 0 ? fmin(credit[p.knob], MOST_CREDIT) : 0);
        if (over >= UNLIKELY || p.state != PROBE_WAITING)
            s->probe[kept++] = p;
    }
    s->nr_probes = kept;
    sort_probes(s->probe + first, kept - first);
    free(speed);
    free(c);
}

/* The winning step once more, which is a neighbour, and twice more. Returns the neighbour. */
static int speculate(struct strategy *s, const struct probe *won, const struct neighbour *ring,
                     int nr)
{
    struct candidate once, twice;
    const struct candidate here = *point(s, s->incumbent);
    if (won->knob2 >= 0 || won->knob < 0 ||
        !space_step_again(s->env.space, &won->via, &here, &once))
        return -1;
    int i = 0;
    while (i < nr && !candidate_equal(&ring[i].c, &once))
        i++;
    if (i == nr || !supply_is_new(&s->supply, &once))
        return -1;
    struct probe *p = add_probe(s, &once, &here, ORIGIN_SPECULATE, won->knob, won->dir);
    set_note(p, ring[i].text, "");
    if (space_step_again(s->env.space, &here, &once, &twice)) {
        p = add_probe(s, &twice, &once, ORIGIN_SPECULATE, won->knob, won->dir);
        set_note(p, ring[i].text, ", twice");
    }
    return i;
}

/* Steps that lead to different programs. */
struct steps {
    struct neighbour *v;
    struct candidate *from;
    int nr, cap;
    struct candset twins; /* of the incumbent, which comes first */
    struct idmap had;
};

static void add_steps(const struct strategy *s, int twin, struct steps *out)
{
    const struct candidate from = out->twins.v[twin];
    uint64_t here = twins_of(s->env.space, &from);
    struct neighbour *n;
    int nr = space_neighbours(s->env.space, &from, &n);
    for (int i = 0; i < nr; i++) {
        uint64_t id = twins_of(s->env.space, &n[i].c);
        if (id == here) {
            if (out->twins.nr < MAX_TWINS)
                candset_add(&out->twins, &n[i].c);
            continue;
        }
        if (idmap_add(&out->had, id, out->nr) != out->nr)
            continue;
        GROW(out->v, out->nr, out->cap);
        out->from = xrealloc(out->from, (size_t)out->cap * sizeof *out->from);
        out->from[out->nr] = from;
        out->v[out->nr++] = n[i];
    }
    free(n);
}

/* Probes of the steps, in a random order, but for one. */
static void add_ring(struct strategy *s, const struct steps *ring, int but)
{
    int *order = xmalloc(((size_t)ring->nr + 1) * sizeof *order);
    for (int i = 0; i < ring->nr; i++) {
        int j = (int)rng_below(&s->rng, (uint64_t)i + 1);
        order[i] = order[j];
        order[j] = i;
    }
    for (int i = 0; i < ring->nr; i++) {
        int at = order[i];
        const struct neighbour *n = &ring->v[at];
        if (at != but)
            set_note(add_probe(s, &n->c, &ring->from[at], ORIGIN_NEIGHBOUR, n->knob, n->dir),
                     n->text, "");
    }
    free(order);
}

/* Makes the probes of the incumbent's ring; `won` is the probe that led here, or NULL. */
static void open_ring(struct strategy *s, const struct probe *won)
{
    struct steps ring = {0};
    s->stage = STAGE_RING;
    s->nr_probes = 0;
    candset_add(&s->incumbents, point(s, s->incumbent));
    candset_add(&ring.twins, point(s, s->incumbent));
    for (int i = 0; i < ring.twins.nr; i++)
        add_steps(s, i, &ring);
    int again = won ? speculate(s, won, ring.v, ring.nr) : -1, first = s->nr_probes;
    add_ring(s, &ring, again);
    rate_probes(s, first);
    free(ring.v);
    free(ring.from);
    candset_release(&ring.twins);
    idmap_release(&ring.had);
    s->family = count_waiting(s);
}

/* Two steps from `here` at once. False where they do not go together. */
static bool combine(const struct strategy *s, const struct candidate *here, const struct probe *a,
                    const struct probe *b, struct candidate *out)
{
    const struct sketch *sk = s->env.space->sketch[here->sketch];
    const struct knob *k = &sk->knob[b->knob];
    *out = a->c;
    for (int i = k->slot; i < k->slot + k->nr_slots; i++) {
        if (a->knob != b->knob) {
            out->v[i] = b->c.v[i];
            continue;
        }
        /* Two moves within one split: their factors multiply, and the product stays the extent. */
        int64_t f = (int64_t)a->c.v[i] * b->c.v[i];
        if (k->kind != KNOB_SPLIT || f % here->v[i])
            return false;
        out->v[i] = (int32_t)(f / here->v[i]);
    }
    return !candidate_equal(out, here) && candidate_valid(s->env.space, out, NULL);
}

static int by_gain(const void *pa, const void *pb)
{
    const struct probe *a = pa, *b = pb;
    if (a->gain != b->gain)
        return a->gain > b->gain ? -1 : 1;
    return a->fact - b->fact; /* older first: qsort is not stable */
}

/* The steps of the finished ring that looked best, best first. */
static int best_steps(const struct strategy *s, struct probe *out, int max)
{
    const struct candidate *here = point(s, s->incumbent);
    struct probe *all = xmalloc((size_t)s->nr_probes * sizeof *all);
    int nr = 0;
    for (int i = 0; i < s->nr_probes; i++) {
        const struct probe *p = &s->probe[i];
        if (p->gain >= PAIR_MIN_GAIN && p->fact >= 0 && candidate_equal(&p->via, here))
            all[nr++] = *p;
    }
    qsort(all, (size_t)nr, sizeof *all, by_gain);
    nr = nr < max ? nr : max;
    memcpy(out, all, (size_t)nr * sizeof *all);
    free(all);
    return nr;
}

/* The most promising pairs. Where nothing is predicted they are in the order of the sum of their
 * ranks: the best with the second best, and so on. */
static void open_pairs(struct strategy *s)
{
    struct probe step[PAIR_STEPS];
    const struct candidate here = *point(s, s->incumbent);
    int nr = best_steps(s, step, PAIR_STEPS);
    s->stage = STAGE_PAIR;
    s->nr_probes = 0;
    for (int sum = 1; sum < 2 * nr - 2; sum++) {
        for (int i = 0; 2 * i < sum; i++) {
            int j = sum - i;
            struct candidate c;
            if (j >= nr || !combine(s, &here, &step[i], &step[j], &c))
                continue;
            struct probe *p = add_probe(s, &c, &here, ORIGIN_PAIR, step[i].knob, 0);
            p->knob2 = step[j].knob;
            const struct knob *k = s->env.space->sketch[here.sketch]->knob;
            snprintf(p->note, sizeof p->note, "%.28s and %.28s", k[p->knob].name, k[p->knob2].name);
            if (p->state != PROBE_WAITING)
                s->nr_probes--;
        }
    }
    rate_probes(s, 0);
    if (s->nr_probes > MAX_PAIRS)
        s->nr_probes = MAX_PAIRS;
    s->family = s->nr_probes;
}

/* Number of knobs in which two candidates of a sketch differ. */
static int distance(const struct sketch *sk, const struct candidate *a, const struct candidate *b)
{
    int nr = 0;
    for (int i = 0; i < sk->nr_knobs; i++) {
        const struct knob *k = &sk->knob[i];
        nr += memcmp(a->v + k->slot, b->v + k->slot, (size_t)k->nr_slots * sizeof *a->v) != 0;
    }
    return nr;
}

static bool is_distant(const struct strategy *s, const struct candidate *c)
{
    const struct sketch *sk = s->env.space->sketch[c->sketch];
    int least = sk->nr_knobs < DISTANT_KNOBS ? sk->nr_knobs : DISTANT_KNOBS;
    for (int i = 0; i < s->incumbents.nr; i++) {
        const struct candidate *in = &s->incumbents.v[i];
        if (in->sketch == c->sketch && distance(sk, in, c) < least)
            return false;
    }
    return true;
}

static void begin_descent(struct strategy *s, int fact)
{
    char text[128], time[CLOCK_TEXT];
    s->incumbent = fact;
    if (s->descents++ == 0)
        s->first_start_ns = incumbent_ns(s);
    s->descent_began = s->history.set.nr;
    snprintf(text, sizeof text, "start %d: %s", s->descents, clock_text(time, incumbent_ns(s)));
    report(s, incumbent_trial(s), 0, VERDICT_MOVED, NAN, NAN, text);
}

/* Begins at the fastest trial that is a start; false where none is. */
static bool next_start(struct strategy *s)
{
    if (s->descents >= MAX_DESCENTS && !s->roaming)
        return false;
    int *best, nr = history_best(&s->history, s->history.set.nr, &best), found = -1;
    for (int i = 0; i < nr && found < 0; i++) {
        if (s->descents > 0 &&
            s->history.fact[best[i]].cost_ns > START_MAX_RATIO * s->first_start_ns)
            break;
        if (is_distant(s, point(s, best[i])))
            found = best[i];
    }
    free(best);
    if (found < 0)
        return false;
    begin_descent(s, found);
    return true;
}

/* The neighbour known to be faster from before this descent; -1 where there is none. */
static int known_better(const struct strategy *s)
{
    int best = -1;
    for (int i = 0; i < s->nr_probes; i++) {
        const struct probe *p = &s->probe[i];
        if (p->fact >= 0 && p->fact < s->descent_began && p->gain >= KNOWN_GAIN &&
            (best < 0 || p->gain > s->probe[best].gain))
            best = i;
    }
    return best;
}

/* Opens the incumbent's ring. False where the descent has run into an earlier one. */
static bool arrive(struct strategy *s, const struct probe *won)
{
    for (;;) {
        open_ring(s, won);
        int i = s->descents > 1 ? known_better(s) : -1;
        if (i < 0)
            return true;
        const struct probe p = s->probe[i];
        if (candset_find(&s->incumbents, &p.c) >= 0)
            return false;
        char text[128];
        snprintf(text, sizeof text, "%s: known to be %.1f %% faster", p.note, 100 * p.gain);
        report(s, s->history.fact[p.fact].trial, incumbent_trial(s), VERDICT_MOVED, NAN, p.gain,
               text);
        s->incumbent = p.fact;
        won = NULL;
    }
}

static void seek_start(struct strategy *s, int trials)
{
    s->stage = STAGE_START;
    s->nr_probes = 0;
    s->starts_left = trials;
}

static void restart(struct strategy *s)
{
    while (next_start(s)) {
        if (arrive(s, NULL))
            return;
    }
    if (s->roaming)
        seek_start(s, NEW_STARTS);
    else
        s->stage = STAGE_DONE;
}

static struct strategy *create(const struct strategy_env *env, struct err *e)
{
    (void)e;
    struct strategy *s = xcalloc(1, sizeof *s);
    s->env = *env;
    s->incumbent = -1;
    s->why = "converged";
    s->credit = xcalloc((size_t)env->space->nr_sketches, sizeof *s->credit);
    rng_seed(&s->rng, env->seed);
    supply_init(&s->supply, &s->env, &s->rng);
    history_init(&s->history, env);
    if (next_start(s)) {
        arrive(s, NULL);
    } else {
        s->roaming = true;
        int sketches = env->space->nr_sketches;
        seek_start(s, sketches > FIRST_STARTS ? sketches : FIRST_STARTS);
    }
    return s;
}

static void destroy(struct strategy *s)
{
    supply_release(&s->supply);
    history_release(&s->history);
    candset_release(&s->incumbents);
    free(s->probe);
    free(s->credit);
    free(s);
}

static void propose_start(struct strategy *s, const struct candidate *c, const char *note,
                          struct proposal *out)
{
    struct probe *p = add_probe(s, c, c, ORIGIN_START, -1, 0);
    p->state = PROBE_OUT;
    s->nr_out++;
    proposal_init(out, c, ORIGIN_START);
    snprintf(out->note, sizeof out->note, "%s", note);
}

/* The start candidate of each sketch once, then samples. */
static int propose_starts(struct strategy *s, int max, struct proposal *out)
{
    int nr = 0, nr_sketches = s->env.space->nr_sketches;
    char note[64];
    for (; s->next_sketch < nr_sketches && nr < max; s->next_sketch++) {
        const struct sketch *k = s->env.space->sketch[s->next_sketch];
        if (!candidate_valid(s->env.space, &k->start, NULL) || !supply_take(&s->supply, &k->start))
            continue;
        snprintf(note, sizeof note, "start of sketch %s", k->name);
        propose_start(s, &k->start, note, &out[nr++]);
    }
    struct candidate c;
    while (nr < max && nr < s->starts_left && supply_draw(&s->supply, &c))
        propose_start(s, &c, "random start", &out[nr++]);
    s->starts_left -= nr;
    return nr;
}

static int propose_probes(struct strategy *s, int max, struct proposal *out)
{
    int nr = 0;
    for (int i = 0; i < s->nr_probes && nr < max; i++) {
        struct probe *p = &s->probe[i];
        if (p->state != PROBE_WAITING)
            continue;
        if (!supply_take(&s->supply, &p->c)) { /* has become a trial by another hand */
            p->state = PROBE_JUDGED;
            continue;
        }
        proposal_init(&out[nr], &p->c, p->origin);
        out[nr].parent = incumbent_trial(s);
        out[nr].compare = true;
        if (p->origin != ORIGIN_PAIR) {
            out[nr].knob = p->knob;
            out[nr].dir = p->dir;
        }
        memcpy(out[nr].note, p->note, sizeof p->note);
        p->state = PROBE_OUT;
        s->nr_out++;
        nr++;
    }
    return nr;
}

static void move(struct strategy *s, const struct probe *won)
{
    s->fruitless = 0;
    report(s, s->history.fact[won->fact].trial, incumbent_trial(s), VERDICT_MOVED, won->p,
           won->gain, won->text);
    double *credit = s->credit[won->c.sketch];
    credit[won->knob] += won->gain;
    if (won->knob2 >= 0 && won->knob2 != won->knob)
        credit[won->knob2] += won->gain;
    s->incumbent = won->fact;
    if (!arrive(s, won))
        restart(s);
}

static void choose_start(struct strategy *s, const struct probe *fastest)
{
    if (s->starts_left > 0)
        return;
    if (!fastest) { /* none was ok */
        seek_start(s, FIRST_STARTS);
        return;
    }
    begin_descent(s, fastest->fact);
    if (!arrive(s, NULL))
        restart(s);
}

/* The batch is complete: the best of the better ones is the next incumbent. */
static void settle(struct strategy *s)
{
    int best = -1;
    for (int i = 0; i < s->nr_probes; i++) {
        const struct probe *p = &s->probe[i];
        if (p->better && (best < 0 || p->gain > s->probe[best].gain))
            best = i;
    }
    /* A copy: the array is about to be filled anew. */
    struct probe won = best >= 0 ? s->probe[best] : (struct probe){0};
    if (s->stage == STAGE_START)
        choose_start(s, best >= 0 ? &won : NULL);
    else if (best >= 0)
        move(s, &won);
}

/* Nothing is left to propose in this stage. */
static void next_stage(struct strategy *s)
{
    if (s->stage == STAGE_RING) {
        open_pairs(s);
    } else if (s->stage == STAGE_PAIR) {
        restart(s);
    } else { /* no start is left: that of the last batch, if any, is the last */
        bool some = s->nr_probes > 0;
        s->starts_left = 0;
        settle(s);
        if (s->stage != STAGE_START || some)
            return;
        s->stage = STAGE_DONE;
        s->why = "space exhausted";
    }
}

/* With a prediction the probes that could gain come early. Where half of the budget has brought
 * nothing, the other half seldom does. */
static bool is_stagnant(const struct strategy *s)
{
    int patience = s->env.budget / 2;
    return s->env.may_rest && s->incumbent >= 0 &&
           s->fruitless >= (patience > LEAST_PATIENCE ? patience : LEAST_PATIENCE) &&
           is_predicted(s);
}

static int propose(struct strategy *s, int want, struct proposal *out)
{
    if (want <= 0)
        return 0;
    if (s->nr_out > 0) { /* some were never answered: the others decide */
        for (int i = 0; i < s->nr_probes; i++) {
            if (s->probe[i].state == PROBE_OUT)
                s->probe[i].state = PROBE_JUDGED;
        }
        s->nr_out = 0;
        settle(s);
    }
    s->stagnant = is_stagnant(s);
    if (s->stagnant) {
        s->fruitless = 0; /* whoever asks again wants as much once more */
        return 0;
    }
    /* A batch ends with a decision, so it is no larger than the machine needs. */
    int batch = s->env.batch > 1 ? s->env.batch : 1, max = want < batch ? want : batch;
    while (s->stage != STAGE_DONE) {
        int nr =
            s->stage == STAGE_START ? propose_starts(s, max, out) : propose_probes(s, max, out);
        if (nr > 0)
            return nr;
        next_stage(s);
    }
    return 0;
}

static void judge_start(struct strategy *s, struct probe *p, const struct observation *o)
{
    p->fact = history_add(&s->history, &o->c, o->trial, o->status, o->cost_ns);
    p->better = isfinite(s->history.fact[p->fact].cost_ns);
    p->gain = -s->history.fact[p->fact].cost_ns; /* the fastest is best */
    if (!p->better)
        report(s, o->trial, 0, VERDICT_FAILED, NAN, NAN, trial_status_name(o->status));
}

static void judge_probe(struct strategy *s, struct probe *p, const struct observation *o)
{
    struct judgement j = judge(o, incumbent_trial(s), incumbent_ns(s), s->family);
    double cost = j.paired ? incumbent_ns(s) * (1 - j.gain) : o->cost_ns;
    p->fact = history_add(&s->history, &o->c, o->trial, o->status, cost);
    p->better = j.verdict == VERDICT_BETTER;
    p->gain = j.gain;
    p->p = j.p;
    s->fruitless++;
    judgement_text(&j, o, p->note, p->text, sizeof p->text);
    report(s, o->trial, incumbent_trial(s), j.verdict, j.p, j.gain, p->text);
}

static void observe(struct strategy *s, const struct observation *o)
{
    if (!candidate_valid(s->env.space, &o->c, NULL))
        return;
    for (int i = 0; i < s->nr_probes; i++) {
        struct probe *p = &s->probe[i];
        if (p->state != PROBE_OUT || !candidate_equal(&p->c, &o->c))
            continue;
        p->state = PROBE_JUDGED;
        if (s->stage == STAGE_START)
            judge_start(s, p, o);
        else
            judge_probe(s, p, o);
        if (--s->nr_out == 0)
            settle(s);
        return;
    }
    history_add(&s->history, &o->c, o->trial, o->status, o->cost_ns);
}

static const char *why(const struct strategy *s)
{
    return s->stagnant ? "stagnated" : s->why;
}

static bool rests(const struct strategy *s)
{
    return s->stagnant;
}

const struct strategy_class strategy_droplet = {
    "droplet", "coordinate descent from the best candidates, with a test of significance",
    create,    propose,
    observe,   why,
    destroy,   rests,
};
