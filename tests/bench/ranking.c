/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_ranking SESSION...: how well candidates are ranked before they are measured.
 *
 * Reads sessions of named workloads that were tuned for this machine, and asks of the trials of
 * each what the search could have known of them:
 *
 *   estimate    the analytic one (sketch_estimate)
 *   neighbours  the surrogate, given the first half of the task's trials, about the second half
 *   trees       the cost model, given all trials of all other sessions, about all of this one
 *   trees+half  the same, and the first half of the task's own, about the second half
 *   half alone  given only that half
 *
 * Printed are the share of pairs in the right order (pairs that differ by 5 % or more, .5 is
 * chance), and top: the best time among the sixth part ranked first, over the best of all.
 */
#include <math.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/llvm/llvm.h"
#include "engine/base/arena.h"
#include "engine/base/clock.h"
#include "engine/model/model.h"
#include "engine/search/cost_model.h"
#include "engine/search/strategy.h"
#include "engine/search/surrogate.h"
#include "engine/tensor/sketch_features.h"

struct set {
    struct task_list list;
    struct space space;
    char name[128];
    int nr, cap;
    struct candidate *c;
    double *cost;
};

struct tally {
    double pairs, right, top;
    int nr;
};

static int load(struct set *s, const char *path, const struct target *t, struct err *e)
{
    sqlite3 *db = NULL;
    sqlite3_stmt *st = NULL;
    int rc = 0;
    if (sqlite3_open_v2(path, &db, SQLITE_OPEN_READONLY, NULL) != SQLITE_OK ||
        sqlite3_prepare_v2(
            db, "SELECT json_extract(body, '$.input') FROM events WHERE kind = 'session'", -1, &st,
            NULL) != SQLITE_OK ||
        sqlite3_step(st) != SQLITE_ROW) {
        rc = err_set(e, ERR_SESSION, "cannot read session \"%s\"", path);
        goto out;
    }
    snprintf(s->name, sizeof s->name, "%s", (const char *)sqlite3_column_text(st, 0));
    sqlite3_finalize(st);
    st = NULL;
    struct model_options o = {.block = llvm_backend.target_info(t)->lanes};
    rc = model_task_from_name(s->name, &o, &s->list, e);
    space_init(&s->space);
    rc = rc ? rc : llvm_backend.space(t, s->list.task[0], &s->space, e);
    if (rc || sqlite3_prepare_v2(db,
                                 "SELECT code, cost_ns, status FROM trials WHERE status IN "
                                 "('ok', 'cut') ORDER BY id",
                                 -1, &st, NULL) != SQLITE_OK)
        goto out;
    while (sqlite3_step(st) == SQLITE_ROW) {
        struct candidate c;
        struct err skip = ERR_INIT;
        const char *code = (const char *)sqlite3_column_text(st, 0);
        if (!code || candidate_parse(&s->space, code, &c, &skip) < 0)
            continue;
        GROW(s->c, s->nr, s->cap);
        s->cost = xrealloc(s->cost, (size_t)s->cap * sizeof *s->cost);
        s->c[s->nr] = c;
        bool ok = !strcmp((const char *)sqlite3_column_text(st, 2), "ok");
        s->cost[s->nr++] = ok ? sqlite3_column_double(st, 1) : INFINITY;
    }
out:
    sqlite3_finalize(st);
    sqlite3_close(db);
    return rc;
}

/* `guess`: higher is faster. */
static void judge(const struct set *s, int from, const double *guess, struct tally *t)
{
    double best = INFINITY, top = INFINITY;
    int nr = s->nr - from;
    if (nr < 12)
        return;
    for (int i = from; i < s->nr; i++) {
        int before = 0;
        best = fmin(best, s->cost[i]);
        for (int j = from; j < s->nr; j++) {
            before += guess[j] > guess[i] || (guess[j] == guess[i] && j < i);
            if (j <= i || !(fabs(log(s->cost[i] / s->cost[j])) > 0.05))
                continue;
            t->pairs++;
            t->right +=
                guess[i] == guess[j] ? 0.5 : (guess[i] > guess[j]) == (s->cost[i] < s->cost[j]);
        }
        if (before < nr / 6)
            top = fmin(top, s->cost[i]);
    }
    t->top += log(top / best);
    t->nr++;
}

static void print(const char *name, const struct tally *t)
{
    printf("%-12s pairs %.3f  top %.3f  (%d tasks)\n", name, t->right / t->pairs,
           exp(t->top / t->nr), t->nr);
}

static void add(struct cost_model *m, int task, const struct set *s, int to)
{
    float row[FEATURE_ROWS][FEATURES];
    for (int i = 0; i < to; i++) {
        int nr = sketch_features(s->space.sketch[s->c[i].sketch], &s->c[i], row);
        cost_model_add(m, task, (const float(*)[FEATURES])row, nr, s->cost[i]);
    }
}

/* What a model knows of set `i` that learned from the others, and from its first `own` trials. */
static void ask_trees(const struct set *s, int nr, int i, bool others, int own, int from,
                      double *guess, struct tally *t)
{
    struct err e = ERR_INIT;
    struct cost_model *m = cost_model_new(&e);
    for (int j = 0; m && others && j < nr; j++)
        if (j != i)
            add(m, j, &s[j], s[j].nr);
    if (m && own)
        add(m, i, &s[i], own);
    if (m && cost_model_learn(m) && cost_model_settle(m, NULL, &e)) {
        cost_model_predict(m, i, &s[i].space, s[i].c, s[i].nr, guess);
        judge(&s[i], from, guess, t);
    }
    cost_model_free(m);
}

/* What the search asks of a model. */
struct asked {
    struct cost_model *model;
    const struct space *space;
};

static bool score(void *ctx, const struct candidate *c, int nr, double *out)
{
    struct asked *a = ctx;
    cost_model_predict(a->model, 0, a->space, c, nr, out);
    return true;
}

static bool never_seen(void *ctx, const struct candidate *c)
{
    (void)ctx, (void)c;
    return false;
}

static double ms_since(int64_t since)
{
    return (double)(clock_mono_ns() - since) * 1e-6;
}

static void time_proposals(struct asked *a)
{
    enum { KNOWN = 10000, BATCHES = 20, WANT = 16 };
    struct observation *known = xcalloc(KNOWN, sizeof *known);
    struct err e = ERR_INIT;
    struct rng r;
    rng_seed(&r, 2);
    for (int i = 0; i < KNOWN; i++) {
        known[i] = (struct observation){
            .trial = i + 1, .status = TRIAL_OK, .cost_ns = 1000 + i, .knob = -1};
        space_sample(a->space, -1, &r, &known[i].c);
    }
    struct strategy_env env = {.space = a->space,
                               .known = known,
                               .nr_known = KNOWN,
                               .seen = never_seen,
                               .score = score,
                               .ctx = a,
                               .batch = WANT,
                               .budget = 2 * KNOWN};
    const struct strategy_class *class = strategy_find("evolutionary");
    struct strategy *s = class->create(&env, &e);
    struct proposal p[WANT];
    int64_t since = clock_mono_ns();
    for (int i = 0; i < BATCHES; i++)
        class->propose(s, WANT, p);
    printf("a batch of %d proposed with %d trials known: %.2f ms\n", WANT, KNOWN,
           ms_since(since) / BATCHES);
    class->destroy(s);
    free(known);
}

static void time_search(const struct set *s, int nr)
{
    enum { NR = 2000 };
    struct candidate *c = xmalloc(NR * sizeof *c);
    double *out = xmalloc(NR * sizeof *out);
    float row[FEATURE_ROWS][FEATURES];
    struct err e = ERR_INIT;
    struct asked a = {cost_model_new(&e), &s[0].space};
    struct rng r;
    rng_seed(&r, 1);
    for (int j = 0; a.model && j < nr; j++)
        add(a.model, j, &s[j], s[j].nr);
    struct cost_model_news news = {0};
    if (a.model && cost_model_learn(a.model) && cost_model_settle(a.model, &news, &e)) {
        for (int i = 0; i < NR; i++)
            space_sample(a.space, -1, &r, &c[i]);
        int64_t since = clock_mono_ns();
        for (int i = 0; i < NR; i++)
            sketch_features(a.space->sketch[c[i].sketch], &c[i], row);
        printf("learned from %d trials in %.0f ms; %d candidates: features %.1f ms, ", news.nr,
               (double)news.train_ns * 1e-6, NR, ms_since(since));
        since = clock_mono_ns();
        cost_model_predict(a.model, 0, a.space, c, NR, out);
        printf("features and predictions %.1f ms\n", ms_since(since));
        time_proposals(&a);
    }
    cost_model_free(a.model);
    free(c);
    free(out);
}

int main(int argc, char **argv)
{
    struct err e = ERR_INIT;
    struct target *target;
    struct set *s = xcalloc((size_t)argc, sizeof *s);
    struct tally estimate = {0}, neighbours = {0}, trees = {0}, half = {0}, alone = {0};
    int nr = 0;
    if (llvm_backend.target_open("", 1, &target, &e) < 0) {
        fprintf(stderr, "bench_ranking: %s\n", e.msg);
        return 1;
    }
    for (int i = 1; i < argc; i++) {
        struct err why = ERR_INIT;
        if (load(&s[nr], argv[i], target, &why) < 0)
            fprintf(stderr, "bench_ranking: %s\n", why.msg);
        else
            nr++;
    }
    for (int i = 0; i < nr; i++) {
        double *guess = xcalloc((size_t)s[i].nr + 1, sizeof *guess);
        struct tally one = {0};
        struct cost_model *ignorant = cost_model_new(&e);
        if (ignorant)
            cost_model_predict(ignorant, 0, &s[i].space, s[i].c, s[i].nr, guess);
        cost_model_free(ignorant);
        judge(&s[i], 0, guess, &estimate);
        judge(&s[i], 0, guess, &one);
        printf("%-40s %3d  estimate %.3f  top %.3f\n", s[i].name, s[i].nr, one.right / one.pairs,
               exp(one.top / one.nr));
        struct surrogate u;
        surrogate_init(&u, &s[i].space);
        for (int j = 0; j < s[i].nr / 2; j++)
            surrogate_add(&u, &s[i].c[j], s[i].cost[j]);
        surrogate_fit(&u);
        for (int j = 0; j < s[i].nr; j++)
            guess[j] = surrogate_score(&u, &s[i].c[j]);
        judge(&s[i], s[i].nr / 2, guess, &neighbours);
        surrogate_release(&u);
        ask_trees(s, nr, i, true, 0, 0, guess, &trees);
        ask_trees(s, nr, i, true, s[i].nr / 2, s[i].nr / 2, guess, &half);
        ask_trees(s, nr, i, false, s[i].nr / 2, s[i].nr / 2, guess, &alone);
        free(guess);
    }
    print("estimate", &estimate);
    print("neighbours", &neighbours);
    print("trees", &trees);
    print("trees+half", &half);
    print("half alone", &alone);
    if (nr)
        time_search(s, nr);
    return 0;
}
