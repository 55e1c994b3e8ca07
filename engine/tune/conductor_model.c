/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The session's cost model (engine/search/cost_model.h): one for all tasks.
 *
 * It is given every trial when its flight is observed. It learns while the following flights are
 * built and measured, and what it learned comes into use when a number of them has been observed
 * that depends on the amount of data: so the search seldom waits, and never decides by the clock.
 *
 * What comes into use goes to the session as well. A resumed one proposes all its trials again, and
 * needs at each point what was in use there: so all of it is kept, and recalled in place of
 * learned.
 */
#include "engine/tune/conductor_private.h"

#include <math.h>
#include <stdlib.h>

#include "engine/base/clock.h"

/* Trials for which it may learn during one flight more. Learning takes some 60 us a trial, a flight
 * of exploration some 200 ms. */
enum { TRIALS_A_FLIGHT = 1500 };

static bool has_features(const struct space *s)
{
    for (int i = 0; i < s->nr_sketches; i++)
        if (!s->sketch[i]->features)
            return false;
    return s->nr_sketches > 0;
}

static void keep(struct conductor *c, const struct cost_model_news *n)
{
    struct strbuf bytes = {0};
    if (!c->sink->keep)
        return;
    cost_model_write(c->model, &bytes);
    c->sink->keep(c->sink->ctx, n->data, n->nr, strbuf_text(&bytes), bytes.len);
    strbuf_release(&bytes);
}

/* It was in use before trials that are stored, and so should have been, too. */
static void tell_missing(struct conductor *c, const struct cost_model_news *n)
{
    if (c->model_relearns || !c->history->learned)
        return;
    c->model_relearns = true;
    if (n->refused.code < 0)
        emit_note(c, -1, 1, "cost model: learns again what the session should tell: %s",
                  n->refused.msg);
    else
        emit_note(c, -1, 0, "cost model: learns again what the session does not tell");
}

static void settle(struct conductor *c)
{
    struct cost_model_news n;
    struct err e = ERR_INIT;
    bool ok = cost_model_settle(c->model, &n, &e);
    c->search_ns += n.train_ns;
    if (n.recalled)
        return;
    if (ok)
        keep(c, &n);
    if (is_replaying(c)) {
        if (ok)
            tell_missing(c, &n);
        return;
    }
    if (!ok)
        emit_note(c, -1, 1, "the cost model could not learn: %s", e.msg);
    else if (n.nr_pairs > 0)
        emit_note(
            c, -1, 0,
            "cost model: learned from %d trials in %.0f ms; of new ones it had put %.0f %% of "
            "the pairs into the right order",
            n.nr, (double)n.train_ns * 1e-6, 100 * n.right);
    else
        emit_note(c, -1, 0, "cost model: learned from %d trials in %.0f ms", n.nr,
                  (double)n.train_ns * 1e-6);
}

/* What other sessions found is known before the first decision. */
static void begin_with(struct conductor *c, const struct lessons *l)
{
    for (int i = 0; i < l->nr; i++)
        cost_model_add(c->model, c->nr_courses + l->v[i].task,
                       (const float(*)[FEATURES])l->v[i].row, l->v[i].nr_rows, l->v[i].cost_ns);
    if (!is_replaying(c))
        emit_note(c, -1, 0, "cost model: begins with %d trials of earlier sessions", l->nr);
    if (cost_model_learn(c->model))
        settle(c);
}

void model_open(struct conductor *c)
{
    struct err e = ERR_INIT;
    bool some = false;
    for (int i = 0; i < c->nr_courses; i++)
        some |= has_features(&c->course[i].space);
    if (!c->o.cost_model || !some)
        return;
    c->model = cost_model_new(&e);
    if (!c->model) {
        err_set(&c->err, e.code,
                "%s, and the session needs its cost model; resume it with one that has", e.msg);
        return;
    }
    if (c->history && c->history->learned)
        cost_model_recalls(c->model, c->history->learned, c->history->ctx);
    if (c->o.lessons)
        begin_with(c, c->o.lessons);
}

void model_close(struct conductor *c)
{
    cost_model_free(c->model);
    c->model = NULL;
}

void model_observe(const struct flight *f)
{
    const struct course *t = f->t;
    struct cost_model *m = t->c->model;
    if (!m || !has_features(&t->space))
        return;
    int64_t since = clock_thread_cpu_ns();
    float row[FEATURE_ROWS][FEATURES];
    for (int i = 0; i < f->nr; i++) {
        const struct observation *o = &t->trial[f->item[i].at].o;
        double cost = cost_model_cost(o->status, o->cost_ns, o->nr_samples, o->sample_ns);
        if (!f->item[i].fresh || isnan(cost))
            continue;
        const struct sketch *k = t->space.sketch[o->c.sketch];
        int nr = k->features(k, &o->c, row);
        cost_model_add(m, t->number, (const float(*)[FEATURES])row, nr, cost);
    }
    t->c->search_ns += clock_thread_cpu_ns() - since;
}

void model_step(struct conductor *c)
{
    if (!c->model)
        return;
    c->flights_observed++;
    if (c->model_due > 0 && c->flights_observed >= c->model_due) {
        settle(c);
        c->model_due = 0;
    }
    if (c->model_due == 0 && cost_model_learn(c->model))
        c->model_due = c->flights_observed + 1 + cost_model_size(c->model) / TRIALS_A_FLIGHT;
}

bool model_score(void *ctx, const struct candidate *cand, int nr, double *out)
{
    struct course *t = ctx;
    if (!t->c->model || !has_features(&t->space))
        return false;
    cost_model_predict(t->c->model, t->number, &t->space, cand, nr, out);
    return true;
}
