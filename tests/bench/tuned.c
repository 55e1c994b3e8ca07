/* SPDX-License-Identifier: Apache-2.0 */
/*
 * squall's kernels: candidates by their codes, built and loaded in this process, on operands like
 * those of the runner (backends/runner_child.c).
 *
 * A session's leaderboard is ordered by measurements of which the best are also the luckiest. So
 * several candidates of a layer meet in a qualifying round first, whose times are thrown away.
 */
#include "tests/bench/bench.h"

#include <math.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/llvm/llvm.h"
#include "backends/region.h"
#include "engine/base/arena.h"

enum { QUALIFYING_ROUNDS = 9 };

struct tuned {
    struct target *target;
    struct builder *builder;
    struct loader *loader;
};

struct kernel {
    struct tuned *t;
    struct artifact artifact;
    struct loaded loaded;
    struct region region[ARTIFACT_MAX_BUFFERS];
    void *buf[ARTIFACT_MAX_BUFFERS];
};

int tuned_open(struct tuned **out, int threads, struct err *e)
{
    struct tuned *t = xcalloc(1, sizeof *t);
    int rc = llvm_backend.target_open("", threads, &t->target, e);
    if (!rc && (!(t->builder = llvm_backend.builder_new(t->target, e)) ||
                !(t->loader = llvm_backend.loader_new(e))))
        rc = ERR_BACKEND;
    if (rc) {
        tuned_close(t);
        return rc;
    }
    *out = t;
    return 0;
}

void tuned_close(struct tuned *t)
{
    if (!t)
        return;
    if (t->loader)
        llvm_backend.loader_free(t->loader);
    if (t->builder)
        llvm_backend.builder_free(t->builder);
    if (t->target)
        llvm_backend.target_close(t->target);
    free(t);
}

int tuned_lanes(const struct tuned *t)
{
    return llvm_backend.target_info(t->target)->lanes;
}

const char *tuned_target(const struct tuned *t)
{
    return llvm_backend.target_info(t->target)->target;
}

const char *tuned_hardware(const struct tuned *t)
{
    return llvm_backend.target_info(t->target)->hardware;
}

/* Sessions. */

static sqlite3_stmt *prepare(sqlite3 *db, const char *path, const char *sql, struct err *e)
{
    sqlite3_stmt *st = NULL;
    if (sqlite3_prepare_v2(db, sql, -1, &st, NULL) != SQLITE_OK)
        err_set(e, ERR_SESSION, "cannot read session \"%s\": %s", path, sqlite3_errmsg(db));
    return st;
}

/* Kernels are tuned for one processor; on another they only show that they are not for it. */
static void warn_of_target(const struct tuned *t, sqlite3 *db, const char *path)
{
    sqlite3_stmt *st = prepare(db, path,
                               "SELECT json_extract(body, '$.target') FROM events "
                               "WHERE kind = 'session' ORDER BY seq LIMIT 1",
                               NULL);
    if (!st)
        return;
    const char *target =
        sqlite3_step(st) == SQLITE_ROW ? (const char *)sqlite3_column_text(st, 0) : NULL;
    if (target && strcmp(target, tuned_target(t)) != 0)
        fprintf(stderr, "bench_kernels: \"%s\" was tuned for %s, this is %s\n", path, target,
                tuned_target(t));
    sqlite3_finalize(st);
}

static int read_codes(sqlite3_stmt *st, struct layer *l, int top)
{
    int nr = 0;
    sqlite3_reset(st);
    sqlite3_bind_text(st, 1, l->task->wl.id, -1, SQLITE_STATIC);
    sqlite3_bind_int(st, 2, top);
    while (sqlite3_step(st) == SQLITE_ROW && l->nr_codes < MAX_CODES) {
        const char *code = (const char *)sqlite3_column_text(st, 0);
        if (!code)
            continue;
        l->code[l->nr_codes++] = xstrdup(code);
        nr++;
    }
    return nr;
}

int tuned_read_session(const struct tuned *t, const char *path, int top, struct layer *const *layer,
                       int nr_layers, struct err *e)
{
    sqlite3 *db = NULL;
    sqlite3_stmt *st = NULL;
    int rc = 0;
    if (sqlite3_open_v2(path, &db, SQLITE_OPEN_READONLY, NULL) != SQLITE_OK) {
        rc = err_set(e, ERR_SESSION, "cannot open session \"%s\": %s", path, sqlite3_errmsg(db));
        goto out;
    }
    st = prepare(db, path,
                 "SELECT r.code FROM tasks k JOIN leaderboard l ON l.task = k.name "
                 "JOIN trials r ON r.id = l.trial WHERE k.workload = ?1 AND l.rank <= ?2 "
                 "ORDER BY l.rank",
                 e);
    if (!st) {
        rc = ERR_SESSION;
        goto out;
    }
    for (int i = 0; i < nr_layers; i++)
        if (read_codes(st, layer[i], top))
            rc++;
    warn_of_target(t, db, path);
out:
    sqlite3_finalize(st);
    sqlite3_close(db);
    return rc;
}

/* Kernels. */

static void call(void *ctx)
{
    struct kernel *k = ctx;
    k->loaded.call(k->buf);
}

static void kernel_free(void *ctx)
{
    struct kernel *k = ctx;
    if (k->loaded.call)
        llvm_backend.unload(k->t->loader, &k->loaded);
    for (int i = 0; i < k->artifact.nr_buffers; i++)
        region_release(&k->region[i]);
    artifact_release(&k->artifact);
    free(k);
}

static int make_buffer(const struct layer *l, struct kernel *k, int i, struct err *e)
{
    const struct buffer *b = &k->artifact.buf[i];
    int64_t bytes =
        b->role == BUF_SCRATCH ? b->bytes : layout_stored_size(&b->layout) * (int64_t)sizeof(float);
    if (!region_init(&k->region[i], (size_t)bytes))
        return err_set(e, ERR_NOMEM, "not enough memory for the operands of \"%s\"", l->name);
    k->buf[i] = k->region[i].data;
    if (b->role != BUF_INPUT && b->role != BUF_CONST)
        return 0;
    const struct layout *logical = &l->task->wl.tensor[b->tensor].layout;
    float *v = xmalloc((size_t)layout_logical_size(logical) * sizeof *v);
    task_fill(l->task, b->tensor, v);
    layout_pack(&b->layout, v, k->buf[i]);
    free(v);
    return 0;
}

static double output_error(const struct layer *l, struct kernel *k)
{
    double error = INFINITY;
    for (int i = 0; i < k->artifact.nr_buffers; i++) {
        const struct buffer *b = &k->artifact.buf[i];
        if (b->role != BUF_OUTPUT)
            continue;
        float *got = xcalloc((size_t)layout_logical_size(&b->layout), sizeof *got);
        call(k);
        layout_unpack(&b->layout, k->buf[i], got);
        error = layer_error(l, got);
        free(got);
    }
    return error;
}

static int find_candidate(const struct space *s, const char *code, struct candidate *c,
                          struct err *e)
{
    if (strcmp(code, "start") == 0) {
        *c = s->sketch[0]->start;
        return 0;
    }
    const char *why = NULL;
    int rc = candidate_parse(s, code, c, e);
    if (!rc && !candidate_valid(s, c, &why))
        rc = err_set(e, ERR_INPUT, "candidate \"%s\" breaks the constraint \"%s\"", code, why);
    return rc;
}

static int add_kernel(struct tuned *t, struct layer *l, const struct space *s, const char *code,
                      struct entrant *en, struct err *e)
{
    struct kernel *k = xcalloc(1, sizeof *k);
    k->t = t;
    struct candidate c;
    int rc = find_candidate(s, code, &c, e);
    if (!rc)
        rc = llvm_backend.build(t->builder, l->task, s, &c, &k->artifact, e);
    if (!rc)
        rc = llvm_backend.load(t->loader, &k->artifact, &k->loaded, e);
    for (int i = 0; i < k->artifact.nr_buffers && !rc; i++)
        rc = make_buffer(l, k, i, e);
    if (rc) {
        kernel_free(k);
        return rc;
    }
    *en = (struct entrant){.name = "squall",
                           .role = ENTRANT_SQUALL,
                           .flops = l->task->wl.flops,
                           .call = call,
                           .free = kernel_free,
                           .ctx = k,
                           .error = output_error(l, k)};
    snprintf(en->detail, sizeof en->detail, "%s", code);
    return 0;
}

static int fastest(struct entrant *en, int nr, double slice_ns)
{
    double ns[MAX_CODES][QUALIFYING_ROUNDS];
    int best = 0;
    for (int i = 0; i < nr; i++)
        en[i].calls = entrant_calls(&en[i], slice_ns);
    for (int r = 0; r < QUALIFYING_ROUNDS; r++)
        for (int i = 0; i < nr; i++)
            ns[i][r] = entrant_slice(&en[i], en[i].calls);
    for (int i = 1; i < nr; i++)
        if (quantile(ns[i], QUALIFYING_ROUNDS, 0.5) < quantile(ns[best], QUALIFYING_ROUNDS, 0.5))
            best = i;
    return best;
}

int tuned_enter(struct tuned *t, struct layer *l, double slice_ns, struct err *e)
{
    if (!l->nr_codes)
        return 0;
    struct space s;
    struct entrant *en = xcalloc(MAX_CODES, sizeof *en);
    int nr = 0, best = -1;
    space_init(&s);
    int rc = llvm_backend.space(t->target, l->task, &s, e);
    while (!rc && nr < l->nr_codes) {
        rc = add_kernel(t, l, &s, l->code[nr], &en[nr], e);
        if (rc)
            err_prefix(e, "%s", l->name);
        else
            nr++;
    }
    /* a wrong kernel is not passed over in favour of a right one: it is what was asked about */
    for (int i = 0; i < nr && best < 0; i++)
        if (!(en[i].error <= 1))
            best = i;
    if (!rc && best < 0)
        best = fastest(en, nr, slice_ns);
    if (!rc)
        l->entrant[l->nr_entrants++] = en[best];
    for (int i = 0; i < nr; i++)
        if (rc || i != best)
            kernel_free(en[i].ctx);
    free(en);
    space_release(&s);
    return rc;
}
