/* SPDX-License-Identifier: Apache-2.0 */
#include "ui/bench_child.h"

#include <dlfcn.h>
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "engine/base/clock.h"

enum { WARM_UP = 3, MIN_RUNS = 10, USUAL_RUNS = 1000 };

#define FILL_NS INT64_C(2000000000)

/* The interface of a library (backends/library.h). */
struct model;

struct functions {
    struct model *(*create)(const char *weights, char *why, size_t size);
    int (*threads)(struct model *m, int n);
    void (*run)(struct model *m, const float *const in[], float *const out[]);
};

void *bench_shared(int64_t bytes)
{
    void *p = mmap(NULL, (size_t)(bytes > 0 ? bytes : 1), PROT_READ | PROT_WRITE,
                   MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    return p == MAP_FAILED ? NULL : p;
}

static int find(void *library, const char *name, const char *verb, void *function)
{
    char symbol[128];
    snprintf(symbol, sizeof symbol, "%s_%s", name, verb);
    void *at = dlsym(library, symbol);
    memcpy(function, &at, sizeof at);
    return at ? 0 : -1;
}

/* As the runner: the last core, where neither interrupts nor builders are. */
static void pin(void)
{
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) < 0)
        return;
    for (int i = CPU_SETSIZE; i-- > 0;)
        if (CPU_ISSET(i, &set)) {
            CPU_ZERO(&set);
            CPU_SET(i, &set);
            sched_setaffinity(0, sizeof set, &set);
            return;
        }
}

static void measure(const struct bench_call *c, struct bench_result *r)
{
    struct functions f;
    void *library = dlopen(c->library, RTLD_NOW | RTLD_LOCAL);
    if (!library || find(library, c->name, "create", &f.create) ||
        find(library, c->name, "threads", &f.threads) || find(library, c->name, "run", &f.run)) {
        snprintf(r->why, sizeof r->why, "cannot load \"%s\": %s", c->library,
                 library ? "it has not the functions of a compiled model" : dlerror());
        return;
    }
    if (c->threads == 1)
        pin();
    int64_t start_ns = clock_mono_ns();
    char why[400] = "";
    struct model *m = f.create(NULL, why, sizeof why);
    if (!m) {
        snprintf(r->why, sizeof r->why, "cannot make the model: %s", why);
        return;
    }
    r->create_ns = (double)(clock_mono_ns() - start_ns);
    r->threads = f.threads(m, c->threads);
    for (int i = 0; i < WARM_UP; i++)
        f.run(m, c->in, c->out);
    int most = c->runs ? c->runs : USUAL_RUNS;
    for (start_ns = clock_mono_ns(); r->nr < most; r->nr++) {
        int64_t before_ns = clock_mono_ns();
        if (!c->runs && r->nr >= MIN_RUNS && before_ns - start_ns > FILL_NS)
            break;
        f.run(m, c->in, c->out);
        r->ns[r->nr] = (double)(clock_mono_ns() - before_ns);
    }
}

int bench_in_child(const struct bench_call *c, struct bench_result *r, struct err *e)
{
    fflush(NULL);
    pid_t child = fork();
    if (child < 0)
        return err_set(e, ERR_IO, "cannot start a process: %s", strerror(errno));
    if (child == 0) {
        measure(c, r);
        _exit(0);
    }
    int status;
    while (waitpid(child, &status, 0) < 0)
        if (errno != EINTR)
            return err_set(e, ERR_IO, "lost the process of the model: %s", strerror(errno));
    if (WIFSIGNALED(status))
        return err_set(e, ERR_BACKEND, "the compiled model crashed: %s",
                       strsignal(WTERMSIG(status)));
    return r->why[0] ? err_set(e, ERR_BACKEND, "%s", r->why) : 0;
}
