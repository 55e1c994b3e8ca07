/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_fit [--hold TEXT] [MODEL SESSION]...: fits the numbers of the estimate of costs
 * (engine/tensor/sketch_cost.c) for this machine to the trials of sessions.
 *
 * Of each task it takes the first trials, which are the least chosen, and a random part of the
 * others. A pair of trials of a task counts the more, the more they differ (up to a factor of 1.6)
 * and the faster the better one is. The loss is the share of pairs in the wrong order, so counted.
 * Number by number is multiplied or divided by a step where that lessens the loss, and the step is
 * reduced where none does.
 *
 * Tasks of models with TEXT in their names are no part of the fit, and tell how far it carries.
 * Printed are the loss, the plain share of pairs in order, and the best of the eight trials that
 * the estimate likes most, over the best of all; before, after, and the numbers.
 */
#include <math.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COST_STORAGE static
#include "engine/tensor/sketch_cost.c"

#include "backends/llvm/llvm.h"
#include "engine/base/arena.h"
#include "engine/model/model.h"
#include "engine/search/cost_model.h"
#include "engine/tensor/sketch_features.h"

enum { FIRST = 60, MOST = 130, NUMBERS = sizeof(struct cost) / sizeof(double) };

static const char *const name[NUMBERS] = {"ops",     "latency", "loads", "broadcasts", "spills",
                                          "l2",      "l3",      "overlap", "pass",     "tile",
                                          "sums",    "copy",    "guard", "call",       "division"};

struct set {
    struct space space;
    bool held;
    int nr;
    struct candidate c[MOST];
    double cost[MOST], best;
    double guess[MOST];
};

struct fit {
    struct set *set;
    int nr, cap;
};

struct loss {
    double wrong, all, pairs, right, top;
    int nr;
};

static void take(struct set *s, const struct candidate *c, double cost, int seen, struct rng *r)
{
    int at = s->nr;
    if (s->nr == MOST) { /* each of the later ones is equally likely to stay */
        at = FIRST + (int)rng_below(r, (uint64_t)(seen - FIRST + 1));
        if (at >= MOST)
            return;
    } else {
        s->nr++;
    }
    s->c[at] = *c;
    s->cost[at] = cost;
}

static int read_task(struct fit *f, sqlite3 *db, const struct target *t, const struct task *task,
                     bool held, struct err *e)
{
    GROW(f->set, f->nr, f->cap);
    struct set *s = &f->set[f->nr];
    memset(s, 0, sizeof *s);
    s->held = held;
    space_init(&s->space);
    if (llvm_backend.space(t, task, &s->space, e) < 0)
        return -1;
    sqlite3_stmt *st = NULL;
    struct rng r;
    rng_seed(&r, 1);
    if (sqlite3_prepare_v2(db,
                           "SELECT code, cost_ns FROM trials WHERE task = ? AND status = 'ok' "
                           "ORDER BY id",
                           -1, &st, NULL) != SQLITE_OK)
        return err_set(e, ERR_SESSION, "%s", sqlite3_errmsg(db));
    sqlite3_bind_text(st, 1, task->name, -1, SQLITE_STATIC);
    for (int seen = 0; sqlite3_step(st) == SQLITE_ROW; seen++) {
        struct candidate c;
        struct err skip = ERR_INIT;
        if (candidate_parse(&s->space, (const char *)sqlite3_column_text(st, 0), &c, &skip) == 0)
            take(s, &c, sqlite3_column_double(st, 1), seen, &r);
    }
    sqlite3_finalize(st);
    s->best = INFINITY;
    for (int i = 0; i < s->nr; i++)
        s->best = fmin(s->best, s->cost[i]);
    f->nr += s->nr >= 16;
    return 0;
}

static int read_session(struct fit *f, const char *model, const char *path, const struct target *t,
                        bool held, struct err *e)
{
    struct task_list *list = xcalloc(1, sizeof *list); /* spaces point to their tasks */
    struct model_options o = {.block = llvm_backend.target_info(t)->lanes};
    sqlite3 *db = NULL;
    if (model_tasks_from_onnx(model, &o, list, e) < 0)
        return -1;
    if (sqlite3_open_v2(path, &db, SQLITE_OPEN_READONLY, NULL) != SQLITE_OK)
        return err_set(e, ERR_SESSION, "cannot read \"%s\"", path);
    int rc = 0;
    for (int i = 0; i < list->nr && rc == 0; i++)
        rc = read_task(f, db, t, list->task[i], held, e);
    sqlite3_close(db);
    return rc;
}

static void judge(struct set *s, struct loss *l)
{
    float row[FEATURE_ROWS][FEATURES];
    double top = INFINITY, wrong = 0, all = 0;
    for (int i = 0; i < s->nr; i++) {
        int nr = sketch_features(s->space.sketch[s->c[i].sketch], &s->c[i], row);
        s->guess[i] = cost_model_estimate((const float(*)[FEATURES])row, nr);
    }
    for (int i = 0; i < s->nr; i++) {
        int before = 0;
        for (int j = 0; j < s->nr; j++) {
            double ratio = s->cost[j] / s->cost[i];
            before += s->guess[j] < s->guess[i];
            if (ratio < 1.03)
                continue;
            double weight = fmin(log(ratio), 0.47) * pow(s->best / s->cost[i], 3);
            bool right = s->guess[i] < s->guess[j];
            all += weight;
            wrong += right ? 0 : weight;
            l->pairs++;
            l->right += right;
        }
        if (before < 8)
            top = fmin(top, s->cost[i]);
    }
    if (all > 0) {
        l->all++;
        l->wrong += wrong / all;
    }
    l->top += log(top / s->best);
    l->nr++;
}

static struct loss judge_all(struct fit *f, bool held)
{
    struct loss l = {0};
    for (int i = 0; i < f->nr; i++)
        if (f->set[i].held == held)
            judge(&f->set[i], &l);
    return l;
}

static void print(const char *what, const struct loss *l)
{
    if (l->nr)
        printf("%-22s %3d tasks  loss %.4f  pairs %.3f  best of eight %.3f\n", what, l->nr,
               l->wrong / l->all, l->right / l->pairs, exp(l->top / l->nr));
    fflush(stdout);
}

static void print_both(const char *when, struct fit *f)
{
    char what[64];
    struct loss in = judge_all(f, false), out = judge_all(f, true);
    print(when, &in);
    snprintf(what, sizeof what, "%s, held out", when);
    print(what, &out);
}

static double loss_of(struct fit *f)
{
    struct loss l = judge_all(f, false);
    return l.wrong / l.all;
}

static void fit(struct fit *f, double *number)
{
    double best = loss_of(f);
    for (double step = 1.6; step > 1.04;) {
        double began = best;
        for (int i = 0; i < NUMBERS; i++) {
            for (int down = 0; down < 2; down++) {
                double was = number[i], now;
                number[i] *= down ? 1 / step : step;
                if ((now = loss_of(f)) < best - 1e-6) {
                    best = now;
                    break;
                }
                number[i] = was;
            }
        }
        printf("step %.3f  loss %.4f\n", step, best);
        fflush(stdout);
        if (best > began - 2e-4)
            step = sqrt(step);
    }
}

int main(int argc, char **argv)
{
    struct err e = ERR_INIT;
    struct target *t = NULL;
    struct fit f = {0};
    const char *hold = NULL;
    int at = 1;
    if (argc > 2 && !strcmp(argv[1], "--hold")) {
        hold = argv[2];
        at = 3;
    }
    if (llvm_backend.target_open("", 1, &t, &e) < 0)
        goto fail;
    for (; at + 1 < argc; at += 2)
        if (read_session(&f, argv[at], argv[at + 1], t, hold && strstr(argv[at], hold), &e) < 0)
            goto fail;
    struct cost *c = llvm_backend.target_info(t)->registers < 32 ? &of_16_registers
                                                                 : &of_32_registers;
    print_both("before", &f);
    fit(&f, (double *)c);
    print_both("after", &f);
    for (int i = 0; i < NUMBERS; i++)
        printf(".%s = %.4g,\n", name[i], ((double *)c)[i]);
    return 0;
fail:
    fprintf(stderr, "bench_fit: %s\n", e.msg);
    return 1;
}
