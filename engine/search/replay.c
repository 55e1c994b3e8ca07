/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/search/replay.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "engine/search/history.h"

/* A strategy that proposes nothing but what it had is stuck; this many in a row end its run. */
enum { MAX_REPEATS = 10000 };

void replay_init(struct replay *r, const struct space *space)
{
    *r = (struct replay){.space = space, .set = xcalloc(1, sizeof *r->set)};
}

void replay_release(struct replay *r)
{
    if (r->set)
        candset_release(r->set);
    free(r->set);
    free(r->value);
    free(r->cost_s);
    free(r->cost_ns);
    score_space_release(&r->score);
    memset(r, 0, sizeof *r);
}

void replay_add(struct replay *r, const struct candidate *c, double value, double cost_s)
{
    int before = r->set->nr, i = candset_add(r->set, c);
    if (r->set->nr > before) {
        GROW(r->value, before, r->cap_value);
        GROW(r->cost_s, before, r->cap_cost);
    }
    r->value[i] = value;
    r->cost_s[i] = cost_s;
}

/*
 * Strategies think in times, which are positive. Other values (a negated GFLOP/s) are shifted so
 * that the best is at half the distance to the median above 0.
 */
static void tell_costs(struct replay *r)
{
    double best = r->score.sorted[0], unit = r->score.median - best;
    double shift = best > 0 ? 0 : (unit > 0 ? unit / 2 : 1) - best;
    r->cost_ns = xmalloc((size_t)r->set->nr * sizeof *r->cost_ns);
    for (int i = 0; i < r->set->nr; i++)
        r->cost_ns[i] = isnan(r->value[i]) ? INFINITY : (r->value[i] + shift) * 1e6;
}

int replay_ready(struct replay *r, struct err *e)
{
    int rc = score_space_init(&r->score, r->set->nr, r->value, r->cost_s, e);
    if (rc)
        return rc;
    tell_costs(r);
    return 0;
}

struct replay_state {
    const struct replay *replay;
    int64_t *trial; /* of candidate i, 0 where it was not evaluated */
};

static bool seen(void *ctx, const struct candidate *c)
{
    const struct replay_state *s = ctx;
    int i = candset_find(s->replay->set, c);
    return i >= 0 && s->trial[i] > 0;
}

static void decided(void *ctx, const struct decision *d)
{
    (void)ctx;
    (void)d;
}

static int64_t cpu_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static struct observation answer(const struct replay *r, const struct proposal *p, int i,
                                 int64_t trial)
{
    struct observation o = {
        .trial = trial,
        .c = p->c,
        .origin = p->origin,
        .parent = p->parent,
        .knob = p->knob,
        .dir = p->dir,
        .status = isnan(r->value[i]) ? TRIAL_INVALID : TRIAL_OK,
        .cost_ns = r->cost_ns[i],
    };
    if (o.status == TRIAL_OK) {
        o.nr_samples = 1;
        o.sample_ns[0] = o.cost_ns;
    }
    return o;
}

static int evaluate(struct replay_state *s, struct strategy *strategy,
                    const struct strategy_class *class, struct replay_result *out, struct err *e)
{
    const struct replay *r = s->replay;
    double clock_s = 0;
    for (int repeats = 0; repeats < MAX_REPEATS && out->evaluations < r->set->nr;) {
        struct proposal p;
        int64_t before = cpu_ns();
        int nr = class->propose(strategy, 1, &p);
        if (nr == 0)
            break;
        int i = candset_find(r->set, &p.c);
        if (i < 0)
            return err_set(e, ERR_INPUT, "strategy \"%s\" proposed what is not in the space",
                           class->name);
        if (s->trial[i]) {
            repeats++;
        } else {
            repeats = 0;
            s->trial[i] = ++out->evaluations;
            out->failed += isnan(r->value[i]);
            clock_s += isnan(r->cost_s[i]) ? r->score.median_cost_s : r->cost_s[i];
            score_run_add(&out->run, clock_s, r->value[i]);
        }
        struct observation o = answer(r, &p, i, s->trial[i]);
        class->observe(strategy, &o);
        out->strategy_ns += cpu_ns() - before;
        if (clock_s > r->score.to_s || r->value[i] == r->score.sorted[0])
            break;
    }
    return 0;
}

int replay_run(const struct replay *r, const struct strategy_class *class, uint64_t seed,
               struct replay_result *result, struct err *e)
{
    *result = (struct replay_result){0};
    struct replay_state s = {r, xcalloc((size_t)r->set->nr, sizeof *s.trial)};
    struct strategy_env env = {
        .space = r->space,
        .seed = seed,
        .seen = seen,
        .decided = decided,
        .ctx = &s,
        .batch = 1,
        .budget = (int)r->score.to.evaluations,
    };
    struct strategy *strategy = class->create(&env, e);
    int rc = 0;
    if (strategy) {
        rc = evaluate(&s, strategy, class, result, e);
        class->destroy(strategy);
    } else {
        rc = err_set(e, ERR_LIMIT, "strategy \"%s\" could not begin", class->name);
    }
    free(s.trial);
    return rc;
}
