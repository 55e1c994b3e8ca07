/* SPDX-License-Identifier: Apache-2.0 */
/*
 * OpenBLAS chooses its kernels once, when it is loaded, by the environment. So every choice that is
 * compared has a process of its own, a fork that loads the library under a cleaned environment and
 * then makes slices of calls when it is asked for them: the processes share the core and take turns
 * as the entrants of this process do, and the time is taken where the calls are made.
 */
#include "tests/bench/bench.h"

#include <cblas.h>
#include <dlfcn.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "backends/region.h"
#include "engine/base/arena.h"

static const char library[] = "libopenblas.so.0";

struct request {
    int32_t layer;
    int64_t calls; /* 0: load, compute once and compare */
};

struct reply {
    double ns; /* of one call; < 0: failed, see text */
    double error;
    char text[128];
};

struct openblas {
    const char *name;
    pid_t pid;
    int fd;
    char version[128];
};

/* What an entrant needs: the process, and the layer's number there. */
struct place {
    const struct openblas *o;
    int layer;
};

/* In the child. */

struct child {
    const char *coretype;
    const struct cores *cores;
    struct layer *const *layer;
    int nr_layers, current; /* -1: none */
    __typeof__(&cblas_sgemm) sgemm;
    __typeof__(&cblas_sgemv) sgemv;
    __typeof__(&openblas_get_config) config;
    __typeof__(&openblas_get_corename) corename;
    int m, n, k;
    struct region a, b, c;
    const float *bias;
};

extern char **environ;

static void clean_environment(const struct child *ch)
{
    char name[128];
    for (char **v = environ; *v;) {
        size_t len = strcspn(*v, "=");
        bool ours = strncmp(*v, "OPENBLAS_", 9) == 0 || strncmp(*v, "GOTO_", 5) == 0;
        if (!ours || len >= sizeof name) {
            v++;
            continue;
        }
        memcpy(name, *v, len);
        name[len] = '\0';
        unsetenv(name);
        v = environ;
    }
    char threads[16];
    snprintf(threads, sizeof threads, "%d", ch->cores->nr);
    setenv("OPENBLAS_NUM_THREADS", threads, 1);
    if (ch->coretype)
        setenv("OPENBLAS_CORETYPE", ch->coretype, 1);
}

/* POSIX lets a pointer to an object carry a function's address; ISO C has no cast for it. */
static bool find_function(void *so, const char *name, void *function, size_t size)
{
    void *address = dlsym(so, name);
    memcpy(function, &address, size);
    return address != NULL;
}

static bool load_library(struct child *ch, struct reply *r)
{
    if (ch->sgemm)
        return true;
    clean_environment(ch);
    void *so = dlopen(library, RTLD_NOW);
    if (so && find_function(so, "openblas_get_config", &ch->config, sizeof ch->config) &&
        find_function(so, "openblas_get_corename", &ch->corename, sizeof ch->corename) &&
        find_function(so, "cblas_sgemv", &ch->sgemv, sizeof ch->sgemv) &&
        find_function(so, "cblas_sgemm", &ch->sgemm, sizeof ch->sgemm))
        return true;
    snprintf(r->text, sizeof r->text, "%s", dlerror());
    ch->sgemm = NULL;
    return false;
}

static void multiply(void *ctx)
{
    struct child *ch = ctx;
    ch->sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, ch->m, ch->n, ch->k, 1,
              (float *)ch->a.data, ch->k, (float *)ch->b.data, ch->n, 0, (float *)ch->c.data,
              ch->n);
}

/* The library adds to what is there, so the bias is put there first. */
static void multiply_dense(void *ctx)
{
    struct child *ch = ctx;
    float *x = (float *)ch->a.data, *w = (float *)ch->b.data, *y = (float *)ch->c.data;
    for (int i = 0; i < ch->m; i++)
        memcpy(y + (ptrdiff_t)i * ch->n, ch->bias, (size_t)ch->n * sizeof *y);
    if (ch->m == 1)
        ch->sgemv(CblasRowMajor, CblasNoTrans, ch->n, ch->k, 1, w, ch->k, x, 1, 1, y, 1);
    else
        ch->sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, ch->m, ch->n, ch->k, 1, x, ch->k, w,
                  ch->k, 1, y, ch->n);
}

static void call(void *ctx)
{
    struct child *ch = ctx;
    (ch->bias ? multiply_dense : multiply)(ch);
}

static bool region_of(struct region *r, const float *from, int64_t floats)
{
    region_release(r);
    if (!region_init(r, (size_t)floats * sizeof(float)))
        return false;
    if (from)
        memcpy(r->data, from, r->bytes);
    return true;
}

static bool prepare(struct child *ch, int number, struct reply *r)
{
    if (ch->current == number)
        return true;
    const struct layer *l = ch->layer[number];
    ch->current = -1;
    ch->m = (int)l->m;
    ch->n = (int)l->n;
    ch->k = (int)l->k;
    ch->bias = l->bias;
    if (!region_of(&ch->a, l->x, l->m * l->k) || !region_of(&ch->b, l->w, l->k * l->n) ||
        !region_of(&ch->c, NULL, l->m * l->n)) {
        snprintf(r->text, sizeof r->text, "not enough memory");
        return false;
    }
    ch->current = number;
    return true;
}

static void answer(struct child *ch, const struct request *q, struct reply *r)
{
    *r = (struct reply){.ns = -1};
    if (q->layer < 0 || q->layer >= ch->nr_layers || !load_library(ch, r) ||
        !prepare(ch, q->layer, r))
        return;
    if (q->calls > 0) {
        r->ns = bench_slice(call, ch, q->calls);
        return;
    }
    call(ch);
    r->ns = 0;
    r->error = layer_error(ch->layer[q->layer], (float *)ch->c.data);
    char version[32] = "";
    sscanf(ch->config(), "OpenBLAS %31s", version);
    snprintf(r->text, sizeof r->text, "%s %s", version, ch->corename());
}

static _Noreturn void serve(int fd, struct child *ch)
{
    struct request q;
    struct reply r;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    /* OpenMP's runtime may have pinned the thread that this is a copy of to one of them */
    sched_setaffinity(0, sizeof ch->cores->set, &ch->cores->set);
    while (read(fd, &q, sizeof q) == (ssize_t)sizeof q) {
        answer(ch, &q, &r);
        if (write(fd, &r, sizeof r) != (ssize_t)sizeof r)
            break;
    }
    _exit(0);
}

/* In this process. */

struct openblas *openblas_start(const char *name, const char *coretype, const struct cores *cores,
                                struct layer *const *layer, int nr_layers, struct err *e)
{
    int pair[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0) {
        err_set(e, ERR_IO, "cannot start a process for OpenBLAS: %s", strerror(errno));
        return NULL;
    }
    pid_t pid = fork();
    if (pid == 0) {
        close(pair[0]);
        struct child ch = {.coretype = coretype,
                           .cores = cores,
                           .layer = layer,
                           .nr_layers = nr_layers,
                           .current = -1};
        serve(pair[1], &ch);
    }
    close(pair[1]);
    if (pid < 0) {
        err_set(e, ERR_IO, "cannot start a process for OpenBLAS: %s", strerror(errno));
        close(pair[0]);
        return NULL;
    }
    struct openblas *o = xcalloc(1, sizeof *o);
    o->name = name;
    o->pid = pid;
    o->fd = pair[0];
    return o;
}

void openblas_stop(struct openblas *o)
{
    if (!o)
        return;
    close(o->fd);
    kill(o->pid, SIGKILL);
    waitpid(o->pid, NULL, 0);
    free(o);
}

const char *openblas_version(const struct openblas *o)
{
    return o->version;
}

static void ask(const struct openblas *o, const struct request *q, struct reply *r)
{
    *r = (struct reply){.ns = -1};
    ssize_t n = send(o->fd, q, sizeof *q, MSG_NOSIGNAL);
    if (n == (ssize_t)sizeof *q)
        n = recv(o->fd, r, sizeof *r, 0);
    if (n != (ssize_t)sizeof *r)
        *r = (struct reply){.ns = -1, .text = "its process died"};
}

static double slice(void *ctx, int64_t calls)
{
    const struct place *p = ctx;
    struct reply r;
    ask(p->o, &(struct request){.layer = p->layer, .calls = calls}, &r);
    return r.ns;
}

int openblas_enter(struct openblas *o, struct layer *l, int number, struct err *e)
{
    struct reply r;
    ask(o, &(struct request){.layer = number}, &r);
    if (r.ns < 0)
        return err_set(e, ERR_BACKEND, "%s does not run: %.*s", o->name, (int)sizeof r.text,
                       r.text);
    snprintf(o->version, sizeof o->version, "%.*s", (int)sizeof r.text, r.text);
    struct place *p = xcalloc(1, sizeof *p);
    *p = (struct place){o, number};
    struct entrant *en = layer_entrant(l, o->name, ENTRANT_PEER);
    snprintf(en->detail, sizeof en->detail, "%s", o->version);
    en->slice = slice;
    en->free = free;
    en->ctx = p;
    en->error = r.error;
    return 0;
}
