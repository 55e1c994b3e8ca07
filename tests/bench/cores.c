/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/bench/bench.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Of libgomp, as compilers call it for a parallel region: squall's kernels do, too. */
extern void GOMP_parallel(void (*fn)(void *), void *data, unsigned threads, unsigned flags);

/*
 * A thread a core. Between two calls of a slice the threads spin, as they do in a network's run;
 * after some milliseconds they sleep, so that another process finds its cores free.
 */
static const char *const environment[][2] = {
    {"OMP_DYNAMIC", "false"},
    {"OMP_PROC_BIND", "true"},
    {"GOMP_SPINCOUNT", "100000"},
};

/* Set for the second start. The cores stand in it, since by then OpenMP's runtime has pinned the
 * main thread to one of them. */
static const char mark[] = "BENCH_KERNELS_CORES";

static void add(struct cores *c, int cpu)
{
    c->cpu[c->nr++] = cpu;
    CPU_SET(cpu, &c->set);
}

static bool read_mark(struct cores *c, int nr)
{
    const char *text = getenv(mark);
    char *end;
    for (; text && *text && c->nr < MAX_CORES; text = *end ? end + 1 : end) {
        long cpu = strtol(text, &end, 10);
        if (end == text || cpu < 0 || cpu >= CPU_SETSIZE)
            break;
        add(c, (int)cpu);
    }
    return c->nr == nr;
}

static int start_again(const struct cores *c, char **argv, struct err *e)
{
    char list[MAX_CORES * 8] = "", threads[16];
    for (int i = 0, at = 0; i < c->nr; i++)
        at += snprintf(list + at, sizeof list - (size_t)at, "%s%d", i ? "," : "", c->cpu[i]);
    snprintf(threads, sizeof threads, "%d", c->nr);
    setenv(mark, list, 1);
    setenv("OMP_NUM_THREADS", threads, 1);
    for (size_t i = 0; i < sizeof environment / sizeof environment[0]; i++)
        setenv(environment[i][0], environment[i][1], 1);
    execv("/proc/self/exe", argv);
    return err_set(e, ERR_IO, "cannot start again with %d threads: %s", c->nr, strerror(errno));
}

int cores_take(struct cores *c, int nr, int cpu, char **argv, struct err *e)
{
    cpu_set_t may;
    *c = (struct cores){0};
    if (nr > 1 && read_mark(c, nr))
        return 0;
    *c = (struct cores){0};
    if (sched_getaffinity(0, sizeof may, &may) < 0)
        return err_set(e, ERR_IO, "cannot ask for the cores: %s", strerror(errno));
    for (int i = CPU_SETSIZE - 1; i >= 0 && c->nr < nr && cpu < 0; i--)
        if (CPU_ISSET(i, &may))
            add(c, i);
    if (cpu >= 0)
        add(c, cpu);
    if (c->nr < nr)
        return err_set(e, ERR_USAGE, "%d threads want as many cores, here are %d", nr, c->nr);
    if (sched_setaffinity(0, sizeof c->set, &c->set) < 0)
        return err_set(e, ERR_USAGE, "cannot run on core %d: %s", c->cpu[0], strerror(errno));
    return nr > 1 ? start_again(c, argv, e) : 0;
}

struct region_call {
    void (*call)(void *ctx);
    void *ctx;
};

static void in_region(void *data)
{
    const struct region_call *r = data;
    r->call(r->ctx);
}

void cores_call(const struct cores *c, void (*call)(void *ctx), void *ctx)
{
    if (c->nr == 1)
        call(ctx);
    else
        GOMP_parallel(in_region, &(struct region_call){call, ctx}, (unsigned)c->nr, 0);
}
