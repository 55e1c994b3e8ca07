/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/local.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/backend.h"
#include "backends/runner.h"
#include "engine/base/arena.h"
#include "engine/base/clock.h"

enum { MAX_BUILDERS = 256 };

struct local {
    struct device device;
    const struct backend *backend;
    struct target *target;
    struct runner *runner;
    /* Each is made and used by the builder thread of that number alone. */
    struct builder *builder[MAX_BUILDERS];
};

static struct local *local_of(struct device *d)
{
    return (struct local *)d;
}

static const struct device_info *local_info(const struct device *d)
{
    const struct local *l = (const struct local *)d;
    return l->backend->target_info(l->target);
}

static int local_space(struct device *d, const struct task *t, struct space *out, struct err *e)
{
    struct local *l = local_of(d);
    return l->backend->space(l->target, t, out, e);
}

static void *local_operands(struct device *d, const struct task *t, struct err *e)
{
    (void)d;
    return operands_new(t, e);
}

static void local_operands_free(struct device *d, void *operands)
{
    (void)d;
    operands_free(operands);
}

static enum trial_status build_status(int rc)
{
    if (rc == 0)
        return TRIAL_OK;
    return rc == ERR_UNSUPPORTED || rc == ERR_LIMIT ? TRIAL_INVALID : TRIAL_BUILD_ERROR;
}

static int build(struct local *l, int builder, const struct task *t, const struct space *s,
                 const struct candidate *c, struct artifact *out, struct err *e)
{
    if (builder < 0 || builder >= MAX_BUILDERS)
        return err_set(e, ERR_BACKEND, "there are at most %d builders", MAX_BUILDERS);
    if (!l->builder[builder])
        l->builder[builder] = l->backend->builder_new(l->target, e);
    if (!l->builder[builder])
        return ERR_BACKEND;
    return l->backend->build(l->builder[builder], t, s, c, out, e);
}

static void local_build(struct device *d, int builder, const struct task *t, const struct space *s,
                        const struct candidate *c, struct build_result *r)
{
    int64_t start_ns = clock_mono_ns();
    struct err e = ERR_INIT;
    struct artifact *a = xcalloc(1, sizeof *a);
    memset(r, 0, sizeof *r);
    int rc = build(local_of(d), builder, t, s, c, a, &e);
    r->status = build_status(rc);
    if (rc) {
        snprintf(r->reason, sizeof r->reason, "%.*s", DEVICE_REASON - 1,
                 e.code ? e.msg : err_text(rc));
        artifact_release(a);
        free(a);
    } else {
        r->artifact = a;
        r->code_bytes = (int64_t)a->code_bytes;
    }
    r->build_ns = clock_mono_ns() - start_ns;
}

static void local_artifact_free(struct device *d, void *artifact)
{
    (void)d;
    if (!artifact)
        return;
    artifact_release(artifact);
    free(artifact);
}

static void local_measure(struct device *d, const struct measure_request *q,
                          struct measure_result *r)
{
    runner_measure(local_of(d)->runner, q, r);
}

static void local_interrupt(struct device *d)
{
    runner_interrupt(local_of(d)->runner);
}

static void local_close(struct device *d)
{
    struct local *l = local_of(d);
    runner_free(l->runner);
    for (int i = 0; i < MAX_BUILDERS; i++)
        if (l->builder[i])
            l->backend->builder_free(l->builder[i]);
    if (l->target)
        l->backend->target_close(l->target);
    free(l);
}

static const struct device_class local_class = {
    .name = "local",
    .info = local_info,
    .space = local_space,
    .operands = local_operands,
    .operands_free = local_operands_free,
    .build = local_build,
    .artifact_free = local_artifact_free,
    .measure = local_measure,
    .interrupt = local_interrupt,
    .close = local_close,
};

/* The last core this process may use, -1 where that is not known: the first ones get the interrupts
 * and the builders. */
static int last_core(void)
{
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) < 0)
        return -1;
    int last = -1;
    for (int i = 0; i < CPU_SETSIZE; i++)
        if (CPU_ISSET(i, &set))
            last = i;
    return last;
}

int local_device_open(const char *target, int threads, struct device **out, struct err *e)
{
    const char *spec;
    *out = NULL;
    const struct backend *b = backend_of_target(target, &spec, e);
    if (!b)
        return ERR_USAGE;
    struct local *l = xcalloc(1, sizeof *l);
    l->device.class = &local_class;
    l->backend = b;
    int rc = b->target_open(spec, threads, &l->target, e);
    if (rc)
        l->target = NULL;
    else
        rc = runner_start(&(struct runner_options){.exe = "/proc/self/exe",
                                                   .backend = b->name,
                                                   .cpu = threads == 1 ? last_core() : -1,
                                                   .threads = threads},
                          &l->runner, e);
    if (rc) {
        local_close(&l->device);
        return rc;
    }
    *out = &l->device;
    return 0;
}
