/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A backend for tests: its code is the name of a function of the test program, which is also the
 * runner. Candidates choose the function by the value of their first slot.
 *
 * The task is out = x * w + 1 over FAKE_ROWS x FAKE_COLS elements; buffers are x, w, out and
 * scratch.
 */
#ifndef TESTS_FAKE_BACKEND_H
#define TESTS_FAKE_BACKEND_H

#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "backends/backend.h"
#include "engine/base/arena.h"

enum { FAKE_ROWS = 6, FAKE_COLS = 10, FAKE_SIZE = FAKE_ROWS * FAKE_COLS };

static void fake_reference(const void *ctx, float *const *logical)
{
    (void)ctx;
    for (int i = 0; i < FAKE_SIZE; i++)
        logical[2][i] = logical[0][i] * logical[1][i] + 1;
}

/* x and the output lie in blocks of so many columns, or rows where `block` is negative; 0: plainly. The
 * stages are never run. */
static struct task *fake_task(int block)
{
    struct task *t = xcalloc(1, sizeof *t);
    const int64_t dims[] = {FAKE_ROWS, FAKE_COLS};
    struct layout plain = layout_plain(2, dims);
    struct layout l = block > 0   ? layout_blocked(2, dims, 1, block)
                      : block < 0 ? layout_blocked(2, dims, 0, -block)
                                  : plain;
    snprintf(t->name, sizeof t->name, "fake");
    t->weight = 1;
    t->reference = fake_reference;
    t->reduce_length = 1;
    workload_init(&t->wl, "fake");
    workload_tensor(&t->wl, "x", WL_INPUT, &l);
    workload_tensor(&t->wl, "w", WL_CONST, &plain);
    int out = workload_tensor(&t->wl, "out", WL_OUTPUT, &l);
    int stage = workload_stage(&t->wl, "out", out, WL_NONE);
    for (int i = 0; i < l.nr_p; i++) {
        char name[WL_NAME];
        snprintf(name, sizeof name, "i%d", i);
        workload_axis(&t->wl, stage, name, l.p[i].extent, false);
    }
    t->wl.stage[stage].body = wl_literal(&t->wl, 0);
    struct err e = ERR_INIT;
    if (workload_finish(&t->wl, &e)) {
        fprintf(stderr, "%s\n", e.msg);
        abort();
    }
    return t;
}

static volatile int fake_forever = 1;

static void fake_good(void *const *buf)
{
    const float *x = buf[0], *w = buf[1];
    float *out = buf[2];
    for (int i = 0; i < FAKE_SIZE; i++)
        out[i] = x[i] * w[i] + 1;
}

/* All arrays in blocks of 4 columns, w packed so by the runner; leaves the padding unwritten. */
static void fake_blocked(void *const *buf)
{
    const float *x = buf[0], *w = buf[1];
    float *out = buf[2];
    for (int r = 0; r < FAKE_ROWS; r++)
        for (int c = 0; c < FAKE_COLS; c++) {
            int i = (r * 3 + c / 4) * 4 + c % 4;
            out[i] = x[i] * w[i] + 1;
        }
}

static void fake_wrong(void *const *buf)
{
    fake_good(buf);
    ((float *)buf[2])[25] += 1;
}

static void fake_nan(void *const *buf)
{
    fake_good(buf);
    ((float *)buf[2])[7] = NAN;
}

static void fake_unwritten(void *const *buf)
{
    const float *x = buf[0], *w = buf[1];
    float *out = buf[2];
    for (int i = 0; i < FAKE_SIZE - 6; i++)
        out[i] = x[i] * w[i] + 1;
}

static void fake_segfault(void *const *buf)
{
    (void)buf;
    volatile uintptr_t nowhere = 64;
    *(volatile int *)nowhere = 1;
}

static void fake_past_end(void *const *buf)
{
    fake_good(buf);
    ((volatile float *)buf[2])[FAKE_SIZE] = 1;
}

static void fake_far_past_end(void *const *buf)
{
    fake_good(buf);
    ((volatile float *)buf[2])[FAKE_SIZE + 64] = 1;
}

static void fake_scratch_past_end(void *const *buf)
{
    fake_good(buf);
    ((volatile char *)buf[3])[256] = 1;
}

static void fake_writes_input(void *const *buf)
{
    fake_good(buf);
    ((volatile float *)buf[0])[0] = 1;
}

static void fake_writes_constant(void *const *buf)
{
    fake_good(buf);
    ((volatile float *)buf[1])[0] = 1;
}

/* The 64 bytes behind each buffer can be read; scratch is zero at first and kept between calls. */
static void fake_reads_behind(void *const *buf)
{
    volatile char sink = 0;
    const int bytes[] = {FAKE_SIZE * 4, FAKE_SIZE * 4, FAKE_SIZE * 4, 256};
    for (int b = 0; b < 4; b++)
        for (int i = 0; i < 64; i++)
            sink = ((const volatile char *)buf[b])[bytes[b] + i];
    (void)sink;
    char *scratch = buf[3];
    for (int i = 0; i < 256; i++)
        if (scratch[i] != scratch[0])
            abort();
    if (scratch[0] != 0 && scratch[0] != 1)
        abort();
    memset(scratch, 1, 256);
    fake_good(buf);
}

static void fake_note_pid(void)
{
    const char *path = getenv("FAKE_PID_FILE");
    FILE *f = path ? fopen(path, "w") : NULL;
    if (!f)
        return;
    fprintf(f, "%ld\n", (long)getpid());
    fclose(f);
}

static void fake_hang(void *const *buf)
{
    (void)buf;
    fake_note_pid();
    while (fake_forever)
        ;
}

/* Takes 2 ms or more. */
static void fake_slow(void *const *buf)
{
    fake_good(buf);
    nanosleep(&(struct timespec){.tv_nsec = 2000000}, NULL);
}

static void fake_exit(void *const *buf)
{
    (void)buf;
    fprintf(stderr, "first line\nthis \x1b[31mcannot\tgo on\n\n");
    exit(3);
}

static void fake_abort(void *const *buf)
{
    (void)buf;
    abort();
}

static void fake_prints(void *const *buf)
{
    printf("something for the terminal\n");
    fflush(stdout);
    fake_good(buf);
}

static void fake_chatters(void *const *buf)
{
    static int calls;
    char line[1024];
    memset(line, 'x', sizeof line);
    line[sizeof line - 1] = '\n';
    for (int i = 0; calls == 0 && i < 300; i++)
        fwrite(line, 1, sizeof line, stderr);
    calls++;
    fake_good(buf);
}

/* Answers in the runner's place; the socket is its descriptor 3. */
static void fake_nonsense(void *const *buf)
{
    (void)buf;
    ssize_t n = write(3, "to be or not to be, that is the question", 40);
    (void)n;
    while (fake_forever)
        ;
}

static void fake_closes(void *const *buf)
{
    (void)buf;
    close(3);
    while (fake_forever)
        ;
}

/* Leaves a process behind, which keeps what it inherited open. */
static void fake_forks(void *const *buf)
{
    (void)buf;
    if (fork() == 0)
        for (;;)
            pause();
    fake_note_pid();
    _exit(4);
}

static void fake_good_once(void *const *buf)
{
    static int calls;
    if (calls++ > 0)
        abort();
    fake_good(buf);
}

struct fake_kernel {
    const char *name;
    void (*call)(void *const *buf);
};

static const struct fake_kernel fake_kernels[] = {
    {"good", fake_good},
    {"blocked", fake_blocked},
    {"wrong", fake_wrong},
    {"nan", fake_nan},
    {"unwritten", fake_unwritten},
    {"segfault", fake_segfault},
    {"past_end", fake_past_end},
    {"far_past_end", fake_far_past_end},
    {"scratch_past_end", fake_scratch_past_end},
    {"writes_input", fake_writes_input},
    {"writes_constant", fake_writes_constant},
    {"reads_behind", fake_reads_behind},
    {"hang", fake_hang},
    {"slow", fake_slow},
    {"exit", fake_exit},
    {"abort", fake_abort},
    {"prints", fake_prints},
    {"chatters", fake_chatters},
    {"nonsense", fake_nonsense},
    {"closes", fake_closes},
    {"forks", fake_forks},
    {"good_once", fake_good_once},
};

enum { FAKE_NR_KERNELS = sizeof fake_kernels / sizeof *fake_kernels };

/* Candidates past the kernels are those that cannot be built, in this order. */
enum { FAKE_UNSUPPORTED = FAKE_NR_KERNELS, FAKE_TOO_LARGE, FAKE_NO_BUILD };

static void fake_artifact(const char *kernel, const struct task *t, struct artifact *a)
{
    *a = (struct artifact){.backend = "fake", .entry = "kernel", .threads = 1, .nr_buffers = 4};
    for (int i = 0; i < 3; i++) {
        struct layout l = t->wl.tensor[i].layout;
        if (i == 1)
            l = t->wl.tensor[2].layout; /* the constant as the output lies */
        a->buf[i] = (struct buffer){.role = (enum buffer_role)i,
                                    .tensor = i,
                                    .layout = l,
                                    .bytes = layout_stored_size(&l) * 4};
    }
    a->buf[3] = (struct buffer){.role = BUF_SCRATCH, .tensor = -1, .bytes = 256};
    a->code = xstrdup(kernel);
    a->code_bytes = strlen(kernel) + 1;
}

struct target {
    struct device_info info;
};

static int fake_target_open(const char *spec, int threads, struct target **out, struct err *e)
{
    if (!strcmp(spec, "bad"))
        return err_set(e, ERR_INPUT, "no such processor \"%s\"", spec);
    *out = xcalloc(1, sizeof **out);
    snprintf((*out)->info.target, sizeof(*out)->info.target, "fake:%s", spec);
    (*out)->info.threads = threads;
    return 0;
}

static void fake_target_close(struct target *t)
{
    free(t);
}

static const struct device_info *fake_target_info(const struct target *t)
{
    return &t->info;
}

static int fake_space(const struct target *t, const struct task *task, struct space *out,
                      struct err *e)
{
    (void)t;
    (void)task;
    (void)out;
    return err_set(e, ERR_UNSUPPORTED, "the fake backend has no sketches");
}

struct builder {
    int built;
};

static struct builder *fake_builder_new(const struct target *t, struct err *e)
{
    (void)t;
    (void)e;
    return xcalloc(1, sizeof(struct builder));
}

static void fake_builder_free(struct builder *b)
{
    free(b);
}

static int fake_build(struct builder *b, const struct task *task, const struct space *s,
                      const struct candidate *c, struct artifact *out, struct err *e)
{
    (void)s;
    b->built++;
    switch (c->v[0]) {
    case FAKE_UNSUPPORTED:
        return err_set(e, ERR_UNSUPPORTED, "not on this processor");
    case FAKE_TOO_LARGE:
        return err_set(e, ERR_LIMIT, "more than 1024 threads");
    case FAKE_NO_BUILD:
        return err_set(e, ERR_BACKEND, "the compiler failed");
    default:
        fake_artifact(fake_kernels[c->v[0]].name, task, out);
        return 0;
    }
}

struct loader {
    int loaded;
};

static struct loader *fake_loader_new(struct err *e)
{
    if (getenv("FAKE_LOADER_DIES"))
        _exit(7);
    if (getenv("FAKE_LOADER_FAILS")) {
        err_set(e, ERR_UNSUPPORTED, "the driver is not there");
        return NULL;
    }
    return xcalloc(1, sizeof(struct loader));
}

static void fake_loader_free(struct loader *l)
{
    free(l);
}

static int fake_load(struct loader *l, const struct artifact *a, struct loaded *out, struct err *e)
{
    const char *name = a->code;
    for (int i = 0; i < FAKE_NR_KERNELS; i++)
        if (a->code_bytes == strlen(fake_kernels[i].name) + 1 &&
            !memcmp(name, fake_kernels[i].name, a->code_bytes)) {
            l->loaded++;
            *out = (struct loaded){.call = fake_kernels[i].call, .handle = l};
            return 0;
        }
    return err_set(e, ERR_BACKEND, "no such kernel");
}

static void fake_unload(struct loader *l, struct loaded *k)
{
    (void)k;
    l->loaded--;
}

static void fake_canary(void)
{
    volatile int sink = 0;
    for (int i = 0; i < 10000; i++)
        sink = i;
    (void)sink;
}

static const struct backend fake_backend = {
    .name = "fake",
    .summary = "functions of the test program",
    .target_open = fake_target_open,
    .target_close = fake_target_close,
    .target_info = fake_target_info,
    .space = fake_space,
    .builder_new = fake_builder_new,
    .builder_free = fake_builder_free,
    .build = fake_build,
    .loader_new = fake_loader_new,
    .loader_free = fake_loader_free,
    .load = fake_load,
    .unload = fake_unload,
    .canary = fake_canary,
};

#endif
