/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_arms MODEL SESSION...: what several sessions of a model have found, in one run.
 *
 * Of each task that all sessions (at most three) have, it builds the untuned default and each
 * session's best candidate, and measures them in turn, slice by slice, as squall's own final does.
 * So what the machine does meanwhile meets all of them; the sessions' own figures are of different
 * moments, between which the same kernel can be twice as slow on a shared machine.
 *
 * Prints a line a task, tabs between the fields: name, the default's nanoseconds, and those of each
 * session's best. A kernel's figure is the first session's median times the median ratio of the
 * samples of the same moments. Constants are cold where they were in the first session, and outputs
 * are checked. Fails where a task of the first session could not be measured, or is another one: of
 * sessions whose activations flow plainly. headline.sh runs this.
 */
#include <math.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/llvm/llvm.h"
#include "backends/local.h"
#include "backends/runner.h"
#include "engine/base/arena.h"
#include "engine/model/model.h"
#include "engine/search/stats.h"

enum { MAX_SESSIONS = DEVICE_MAX_KERNELS - 1, ROUNDS = 6, SAMPLES = ROUNDS * TRIAL_MAX_SAMPLES };

static const int64_t SLICES_NS = 5000000, TIMEOUT_NS = 20000000000;

static const char is_cold[] =
    "SELECT json_extract(body, '$.cold') FROM events WHERE kind = 'session'";
static const char nr_tuned[] = "SELECT count(*) FROM task WHERE default_trial IS NOT NULL";
static const char default_code[] =
    "SELECT r.code FROM trials r JOIN task k ON r.id = k.default_trial WHERE k.name = ?1";
static const char best_code[] =
    "SELECT r.code FROM trials r JOIN task k ON"
    " r.id = coalesce(k.refined_trial, k.explored_trial, k.default_trial) WHERE k.name = ?1";

struct kernels {
    int nr;
    int of[DEVICE_MAX_KERNELS];             /* entrant -> kernel: equal candidates are one */
    struct candidate c[DEVICE_MAX_KERNELS]; /* by kernel */
    void *artifact[DEVICE_MAX_KERNELS];
    double sample[DEVICE_MAX_KERNELS][SAMPLES]; /* by kernel */
    int nr_samples;
};

/* The number that a query gives; 0 where it gives none. */
static int number(sqlite3 *db, const char *query)
{
    sqlite3_stmt *st = NULL;
    int n = 0;
    if (sqlite3_prepare_v2(db, query, -1, &st, NULL) == SQLITE_OK && sqlite3_step(st) == SQLITE_ROW)
        n = sqlite3_column_int(st, 0);
    sqlite3_finalize(st);
    return n;
}

/* Has the session this very task? */
static bool has_task(sqlite3 *db, const struct task *t)
{
    sqlite3_stmt *st = NULL;
    bool yes = sqlite3_prepare_v2(db, "SELECT 1 FROM task WHERE name = ? AND workload = ?", -1, &st,
                                  NULL) == SQLITE_OK &&
               sqlite3_bind_text(st, 1, t->name, -1, SQLITE_STATIC) == SQLITE_OK &&
               sqlite3_bind_text(st, 2, t->wl.id, -1, SQLITE_STATIC) == SQLITE_OK &&
               sqlite3_step(st) == SQLITE_ROW;
    sqlite3_finalize(st);
    return yes;
}

/* A candidate of a session's task; false where it has none. */
static bool find(sqlite3 *db, const char *query, const char *task, const struct space *s,
                 struct candidate *c)
{
    sqlite3_stmt *st = NULL;
    struct err e = ERR_INIT;
    bool found = sqlite3_prepare_v2(db, query, -1, &st, NULL) == SQLITE_OK &&
                 sqlite3_bind_text(st, 1, task, -1, SQLITE_STATIC) == SQLITE_OK &&
                 sqlite3_step(st) == SQLITE_ROW && sqlite3_column_text(st, 0) &&
                 candidate_parse(s, (const char *)sqlite3_column_text(st, 0), c, &e) == 0;
    sqlite3_finalize(st);
    return found;
}

static void add(struct kernels *k, int entrant, const struct candidate *c)
{
    int i = 0;
    while (i < k->nr && !candidate_equal(&k->c[i], c))
        i++;
    k->c[i] = *c;
    k->of[entrant] = i;
    k->nr += i == k->nr;
}

/* Another kernel first in each round. */
static bool measure_round(struct device *d, void *operands, bool cold, int round, struct kernels *k)
{
    struct measure_request q = {.operands = operands,
                                .nr = k->nr,
                                .cold = cold,
                                .check = true,
                                .fill_ns = SLICES_NS,
                                .timeout_ns = TIMEOUT_NS};
    struct measure_result r;
    for (int i = 0; i < k->nr; i++)
        q.artifact[i] = k->artifact[(i + round) % k->nr];
    d->class->measure(d, &q, &r);
    if (r.status != TRIAL_OK)
        return false;
    for (int i = 0; i < k->nr; i++)
        memcpy(&k->sample[(i + round) % k->nr][k->nr_samples], r.sample_ns[i],
               (size_t)r.nr_samples * sizeof r.sample_ns[i][0]);
    k->nr_samples += r.nr_samples;
    return true;
}

static void print(const char *name, const struct kernels *k, int nr_entrants)
{
    const double *first = k->sample[k->of[1]];
    double ratio[SAMPLES];
    printf("%s", name);
    for (int i = 0; i < nr_entrants; i++) {
        for (int j = 0; j < k->nr_samples; j++)
            ratio[j] = k->sample[k->of[i]][j] / first[j];
        printf("\t%.2f", stats_median(first, k->nr_samples) * stats_median(ratio, k->nr_samples));
    }
    printf("\n");
    fflush(stdout);
}

/* Measures and prints a task; false where that could not be. */
static bool compare(struct device *d, const struct task *t, sqlite3 *const *db, int nr)
{
    struct space s;
    bool ok = false, cold = number(db[0], is_cold);
    struct kernels *k = xcalloc(1, sizeof *k);
    struct err e = ERR_INIT;
    void *operands = NULL;
    space_init(&s);
    if (d->class->space(d, t, &s, &e) < 0)
        goto out;
    for (int i = 0; i <= nr; i++) {
        struct candidate c;
        if (!find(db[i ? i - 1 : 0], i ? best_code : default_code, t->name, &s, &c))
            goto out;
        add(k, i, &c);
    }
    ok = (operands = d->class->operands(d, t, &e)) != NULL;
    for (int i = 0; i < k->nr && ok; i++) {
        struct build_result r = {0};
        d->class->build(d, 0, t, &s, &k->c[i], &r);
        k->artifact[i] = r.artifact;
        ok = r.status == TRIAL_OK;
    }
    for (int i = 0; i < ROUNDS && ok; i++)
        ok = measure_round(d, operands, cold, i, k);
    if (ok)
        print(t->name, k, nr + 1);
out:
    if (!ok)
        fprintf(stderr, "bench_arms: %s could not be measured %s\n", t->name, e.msg);
    for (int i = 0; i < k->nr; i++)
        if (k->artifact[i])
            d->class->artifact_free(d, k->artifact[i]);
    if (operands)
        d->class->operands_free(d, operands);
    space_release(&s);
    free(k);
    return ok;
}

int main(int argc, char **argv)
{
    struct err e = ERR_INIT;
    struct device *d = NULL;
    struct task_list list = {0};
    sqlite3 *db[MAX_SESSIONS] = {0};
    int nr = argc - 2, rc = 1;
    backend_register(&llvm_backend);
    if (argc > 1 && !strcmp(argv[1], "runner")) /* this program as the device's runner */
        return runner_main(argc - 1, argv + 1);
    if (nr < 1 || nr > MAX_SESSIONS) {
        fprintf(stderr, "usage: bench_arms MODEL SESSION... (at most %d)\n", MAX_SESSIONS);
        return 2;
    }
    for (int i = 0; i < nr; i++) {
        if (sqlite3_open_v2(argv[i + 2], &db[i], SQLITE_OPEN_READONLY, NULL) != SQLITE_OK) {
            fprintf(stderr, "bench_arms: cannot open %s\n", argv[i + 2]);
            goto out;
        }
    }
    if (local_device_open("llvm", 1, &d, &e) < 0 ||
        model_tasks_from_onnx(argv[1], &(struct model_options){.block = d->class->info(d)->lanes},
                              &list, &e) < 0) {
        fprintf(stderr, "bench_arms: %s\n", e.msg);
        goto out;
    }
    int left = number(db[0], nr_tuned);
    rc = left == 0;
    for (int i = 0; i < list.nr; i++)
        if (has_task(db[0], list.task[i]))
            left -= compare(d, list.task[i], db, nr);
    if (left > 0) {
        fprintf(stderr, "bench_arms: %d tasks were not measured\n", left);
        rc = 1;
    }
out:
    task_list_release(&list);
    if (d)
        d->class->close(d);
    for (int i = 0; i < nr; i++)
        sqlite3_close(db[i]);
    return rc;
}
