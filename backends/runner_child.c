/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runner, the child's side: loads kernels, checks what they compute, measures how long they take.
 *
 * Nothing here survives a bad kernel, and nothing has to: it may die at any call, and the parent
 * explains it from the board and the exit status. What a kernel could spoil without dying is kept
 * from it: operands are read-only, guard pages and canaries surround what it writes.
 */
#include "backends/runner.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "backends/backend.h"
#include "backends/cache.h"
#include "backends/timing.h"
#include "backends/wire.h"
#include "engine/base/arena.h"
#include "engine/base/clock.h"
#include "engine/base/cpu_cache.h"

struct options {
    int fd;
    int cpu;
    const char *backend;
};

struct runner_process {
    int sock;
    const struct backend *backend;
    struct loader *loader;
    struct cache *cache;
    struct board *board;
};

/* One kernel of a request, with the buffers it is called with. */
struct bound {
    struct cached_kernel *kernel;
    void *buf[ARTIFACT_MAX_BUFFERS];
    struct region *written[ARTIFACT_MAX_BUFFERS]; /* output and scratch; NULL the others */
};

struct request {
    const struct wire_request *wire;
    const char *artifact[DEVICE_MAX_KERNELS];
    struct cached_task *task;
    struct region *output; /* shared by the kernels: the same pages for all, the same conditions */
    struct bound kernel[DEVICE_MAX_KERNELS];
};

static bool parse_options(int argc, char **argv, struct options *o)
{
    *o = (struct options){.fd = -1, .cpu = -1};
    for (int i = 1; i + 1 < argc; i++) {
        if (!strcmp(argv[i], "--fd"))
            o->fd = atoi(argv[++i]);
        else if (!strcmp(argv[i], "--cpu"))
            o->cpu = atoi(argv[++i]);
        else if (!strcmp(argv[i], "--backend"))
            o->backend = argv[++i];
    }
    return o->fd == WIRE_SOCKET_FD && o->backend;
}

static void volunteer_for_oom(void)
{
    int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
    if (fd < 0)
        return;
    ssize_t n = write(fd, "1000", 4);
    (void)n; /* without it the kernel may choose the parent; nothing to be done */
    close(fd);
}

/* All of this is a courtesy: where it is refused, measuring goes on without. */
static void set_up_process(const struct options *o)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    signal(SIGINT, SIG_IGN);
    /* 1 byte, not 0: with 0 a core file that is piped to a program is written all the same, and a
     * crash takes as long as that program does; see core(5) and fs/coredump.c of Linux */
    setrlimit(RLIMIT_CORE, &(struct rlimit){.rlim_cur = 1, .rlim_max = 1});
    volunteer_for_oom();
    if (o->cpu >= 0) {
        cpu_set_t set;
        CPU_ZERO(&set);
        CPU_SET(o->cpu, &set);
        sched_setaffinity(0, sizeof set, &set);
    }
}

/* Denormals count as zero: they would slow down some kernels and not others for reasons that have
 * nothing to do with the schedule. Threads inherit it. */
static void flush_denormals(void)
{
#if defined(__x86_64__)
    _mm_setcsr(_mm_getcsr() | 0x8040); /* FTZ and DAZ */
#elif defined(__aarch64__)
    uint64_t fpcr;
    __asm__ volatile("mrs %0, fpcr" : "=r"(fpcr));
    __asm__ volatile("msr fpcr, %0" : : "r"(fpcr | (UINT64_C(1) << 24)));
#endif
}

static void note(struct runner_process *p, enum step step, int kernel)
{
    atomic_store(&p->board->kernel, kernel);
    atomic_store(&p->board->step, (int)step);
}

static bool fail(struct wire_result *res, enum trial_status status, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

static bool fail(struct wire_result *res, enum trial_status status, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(res->reason, sizeof res->reason, fmt, ap);
    va_end(ap);
    res->status = (int32_t)status;
    return false;
}

/* What goes wrong with another kernel than the first is no fault of the candidate. */
static bool fail_kernel(struct wire_result *res, int kernel, enum trial_status status,
                        const char *reason)
{
    if (kernel > 0)
        return fail(res, TRIAL_DEVICE_ERROR, "the kernel compared with: %s", reason);
    return fail(res, status, "%s", reason);
}

static int64_t total_bytes(const struct artifact *a)
{
    int64_t sum = 0, most = INT64_MAX / ARTIFACT_MAX_BUFFERS;
    for (int i = 0; i < a->nr_buffers; i++)
        sum += a->buf[i].bytes < most ? a->buf[i].bytes : most;
    return sum;
}

static bool fits_memory(const struct artifact *a)
{
    int64_t memory = (int64_t)sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGESIZE);
    return total_bytes(a) < memory / 4 * 3;
}

/* Does the buffer describe the tensor of the task that it names? */
static bool buffer_matches(const struct operands_head *h, const struct buffer *b)
{
    static const enum wl_role wanted[] = {
        [BUF_INPUT] = WL_INPUT, [BUF_CONST] = WL_CONST, [BUF_OUTPUT] = WL_OUTPUT};
    if (b->role == BUF_SCRATCH)
        return true;
    if (b->tensor < 0 || b->tensor >= h->nr_tensors || h->tensor[b->tensor].role != wanted[b->role])
        return false;
    const struct operand *o = &h->tensor[b->tensor];
    if (b->role != BUF_CONST)
        return b->bytes == o->bytes;
    if (b->layout.nr_l != o->layout.nr_l)
        return false;
    for (int i = 0; i < o->layout.nr_l; i++)
        if (b->layout.l[i] != o->layout.l[i])
            return false;
    return b->bytes == layout_stored_size(&b->layout) * (int64_t)sizeof(float);
}

static void *bind_buffer(struct runner_process *p, struct request *q, const struct buffer *b,
                         struct region **written)
{
    switch (b->role) {
    case BUF_INPUT:
        return q->task->input[b->tensor].data;
    case BUF_CONST: {
        const struct region *r = cache_constant(p->cache, q->task, b->tensor, &b->layout);
        return r ? r->data : NULL;
    }
    case BUF_OUTPUT:
        if (!q->output)
            q->output = cache_buffer(p->cache, (size_t)b->bytes);
        *written = q->output;
        break;
    case BUF_SCRATCH:
        *written = cache_buffer(p->cache, (size_t)b->bytes);
        if (*written)
            memset((*written)->data, 0, (size_t)b->bytes);
        break;
    }
    return *written ? (*written)->data : NULL;
}

static bool prepare_kernel(struct runner_process *p, struct request *q, int i,
                           struct wire_result *res)
{
    struct bound *b = &q->kernel[i];
    struct err e = ERR_INIT;
    note(p, STEP_LOAD, i);
    b->kernel = cache_kernel(p->cache, q->artifact[i], (size_t)q->wire->artifact_bytes[i], &e);
    if (!b->kernel)
        return fail_kernel(res, i, TRIAL_BUILD_ERROR, e.msg);

    note(p, STEP_PREPARE, i);
    const struct artifact *a = &b->kernel->artifact;
    if (!fits_memory(a))
        return fail_kernel(res, i, TRIAL_INVALID, "its buffers do not fit the memory");
    for (int k = 0; k < a->nr_buffers; k++) {
        char reason[96];
        if (!buffer_matches(q->task->head, &a->buf[k])) {
            snprintf(reason, sizeof reason, "buffer %d of the kernel is not that of the task", k);
            return fail_kernel(res, i, TRIAL_BUILD_ERROR, reason);
        }
        b->buf[k] = bind_buffer(p, q, &a->buf[k], &b->written[k]);
        if (!b->buf[k]) {
            snprintf(reason, sizeof reason, "no memory for buffer %d of %" PRId64 " MB", k,
                     a->buf[k].bytes >> 20);
            return fail_kernel(res, i, TRIAL_INVALID, reason);
        }
    }
    return true;
}

static bool prepare(struct runner_process *p, struct request *q, int operands_fd,
                    struct wire_result *res)
{
    struct err e = ERR_INIT;
    note(p, STEP_PREPARE, 0);
    cache_begin(p->cache);
    q->task = cache_task(p->cache, q->wire->operands, operands_fd, &e);
    if (!q->task)
        return fail(res, TRIAL_DEVICE_ERROR, "%.*s", DEVICE_REASON - 1, e.msg);
    for (int i = 0; i < q->wire->nr; i++)
        if (!prepare_kernel(p, q, i, res))
            return false;
    return true;
}

/* Elements in their logical order, to say which is wrong; or of an output that has padding. */
static bool check_elements(const struct cached_task *t, const float *stored,
                           struct wire_result *res)
{
    const struct layout *l = &t->head->tensor[t->head->output].layout;
    float *got = malloc((size_t)t->nr_want * sizeof *got);
    if (!got)
        return fail(res, TRIAL_DEVICE_ERROR, "no memory to check the output");
    layout_unpack(l, stored, got);
    struct comparison c = compare_output(got, t->want, NULL, t->nr_want, t->tolerance);
    res->checked = true;
    res->error = c.error;
    bool right = c.error <= 1;
    if (!right) {
        struct strbuf text = {0};
        compare_explain(&c, l, got, t->want, &text);
        fail(res, TRIAL_WRONG_RESULT, "%s", strbuf_text(&text));
        strbuf_release(&text);
    }
    free(got);
    return right;
}

/* Compares what the first kernel has written with the expected output. */
static bool check_output(const struct request *q, struct wire_result *res)
{
    const struct cached_task *t = q->task;
    if (!q->output)
        return fail(res, TRIAL_WRONG_RESULT, "the kernel has no output");
    const float *got = (const float *)q->output->data;
    if (!t->stored)
        return check_elements(t, got, res);
    struct comparison c = compare_output(got, t->stored, NULL, t->nr_want, t->tolerance);
    if (c.error > 1)
        return check_elements(t, got, res);
    res->checked = true;
    res->error = c.error;
    return true;
}

static bool check_canaries(const struct request *q, int i, struct wire_result *res)
{
    const struct bound *b = &q->kernel[i];
    for (int k = 0; k < b->kernel->artifact.nr_buffers; k++) {
        if (!b->written[k] || region_intact(b->written[k]))
            continue;
        char reason[96];
        snprintf(reason, sizeof reason, "wrote past the end of buffer %d (%s)", k,
                 b->kernel->artifact.buf[k].role == BUF_OUTPUT ? "output" : "scratch");
        return fail_kernel(res, i, TRIAL_CRASHED, reason);
    }
    return true;
}

/* A first call finds cold caches and pages that were never touched. From this time on that cannot
 * double it, and a candidate that is over twice the limit is not called again to be cut. */
static const double hopeless_ns = 5e6;

/* The first call of a kernel: the one whose output is looked at. */
static bool warm_up(struct runner_process *p, const struct request *q, int i,
                    struct wire_result *res)
{
    const struct bound *b = &q->kernel[i];
    /* NaN: what is never written shows as wrong */
    if (i == 0 && q->output)
        memset(q->output->data, 0xff, q->output->bytes);
    note(p, STEP_WARM_UP, i);
    int64_t start_ns = clock_mono_ns();
    b->kernel->code.call(b->buf);
    double warm_up_ns = (double)(clock_mono_ns() - start_ns);
    note(p, STEP_PREPARE, i);
    if (!check_canaries(q, i, res) || (i == 0 && q->wire->check && !check_output(q, res)))
        return false;
    if (i == 0 && q->wire->cut_ns > 0 && warm_up_ns > hopeless_ns &&
        warm_up_ns > 2 * q->wire->cut_ns) {
        char a[CLOCK_TEXT], c[CLOCK_TEXT];
        res->nr_samples = 1;
        res->sample_ns[0][0] = warm_up_ns;
        return fail(res, TRIAL_CUT, "first call %s, cut at %s", clock_text(a, warm_up_ns),
                    clock_text(c, q->wire->cut_ns));
    }
    return true;
}

static struct timed_kernel timed(const struct request *q, int i)
{
    const struct bound *b = &q->kernel[i];
    const struct artifact *a = &b->kernel->artifact;
    struct timed_kernel k = {.call = b->kernel->code.call, .buf = b->buf};
    for (int n = 0; q->wire->cold && n < a->nr_buffers; n++)
        if (a->buf[n].role == BUF_CONST)
            k.cold[k.nr_cold++] = (struct cold_range){b->buf[n], (size_t)a->buf[n].bytes};
    return k;
}

/* Do the kernels of a request touch more than the last cache holds, of which each holds its own? */
static bool share_cache(const struct request *q)
{
    int64_t bytes = 0;
    for (int i = 0; i < q->wire->nr; i++) {
        const struct artifact *a = &q->kernel[i].kernel->artifact;
        for (int n = 0; n < a->nr_buffers; n++)
            if (a->buf[n].role == BUF_CONST || i == 0)
                bytes += (int64_t)a->buf[n].bytes;
    }
    return q->wire->nr > 1 && bytes > cpu_last_cache_bytes() / 2;
}

static void time_kernels(struct runner_process *p, const struct request *q, int64_t since_ns,
                         struct wire_result *res)
{
    struct timed_kernel k[DEVICE_MAX_KERNELS] = {0};
    for (int i = 0; i < q->wire->nr; i++)
        k[i] = timed(q, i);
    bool settles = share_cache(q);
    for (int i = 0; i < q->wire->nr; i++)
        k[i].settles = settles;
    struct timing_limits limits = {
        .fill_ns = q->wire->fill_ns,
        .cut_ns = q->wire->cut_ns,
        /* fewer samples are better than none: the parent does not wait longer */
        .budget_ns = q->wire->timeout_ns / 5 * 4 - (clock_mono_ns() - since_ns),
    };
    struct timing timing = {0};
    note(p, STEP_TIME, 0);
    void (*canary)(void) = p->backend->canary;
    res->canary_ns[0] = canary ? timing_canary(canary) : 0;
    timing_run(k, q->wire->nr, &limits, &timing);
    res->canary_ns[1] = canary ? timing_canary(canary) : 0;
    note(p, STEP_PREPARE, 0);
    for (int i = 0; i < q->wire->nr; i++)
        if (!check_canaries(q, i, res))
            return;
    res->nr_samples = timing.nr_samples;
    memcpy(res->sample_ns, timing.sample_ns, sizeof timing.sample_ns);
    res->status = TRIAL_OK;
    char a[CLOCK_TEXT], c[CLOCK_TEXT];
    if (timing.cut)
        fail(res, TRIAL_CUT, "first sample %s, cut at %s", clock_text(a, timing.sample_ns[0][0]),
             clock_text(c, limits.cut_ns));
}

static void measure(struct runner_process *p, struct request *q, int operands_fd,
                    struct wire_result *res)
{
    flush_denormals();
    if (!prepare(p, q, operands_fd, res))
        return;
    int64_t since_ns = clock_mono_ns();
    atomic_store(&p->board->running_since, since_ns);
    for (int i = 0; i < q->wire->nr; i++)
        if (!warm_up(p, q, i, res))
            return;
    time_kernels(p, q, since_ns, res);
}

static bool send_all(int sock, const void *data, size_t len)
{
    const char *at = data;
    while (len > 0) {
        ssize_t n = send(sock, at, len, MSG_NOSIGNAL);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return false;
        at += n;
        len -= (size_t)n;
    }
    return true;
}

static bool send_message(int sock, enum wire_type type, const void *body, size_t len)
{
    struct wire_head head = {.magic = wire_magic, .type = (uint32_t)type, .bytes = len};
    return send_all(sock, &head, sizeof head) && send_all(sock, body, len);
}

static bool receive_all(int sock, void *data, size_t len)
{
    char *at = data;
    while (len > 0) {
        ssize_t n = recv(sock, at, len, 0);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return false;
        at += n;
        len -= (size_t)n;
    }
    return true;
}

/* Receives the head of a message and the descriptor that came beside its first byte (-1: none). */
static bool receive_head(int sock, struct wire_head *head, int *fd)
{
    union {
        struct cmsghdr head;
        char space[CMSG_SPACE(sizeof(int))];
    } control;
    struct iovec iov = {.iov_base = head, .iov_len = sizeof *head};
    struct msghdr m = {.msg_iov = &iov,
                       .msg_iovlen = 1,
                       .msg_control = control.space,
                       .msg_controllen = sizeof control.space};
    *fd = -1;
    ssize_t n;
    do {
        n = recvmsg(sock, &m, MSG_CMSG_CLOEXEC);
    } while (n < 0 && errno == EINTR);
    if (n <= 0)
        return false;
    struct cmsghdr *h = CMSG_FIRSTHDR(&m);
    if (h && h->cmsg_level == SOL_SOCKET && h->cmsg_type == SCM_RIGHTS)
        memcpy(fd, CMSG_DATA(h), sizeof *fd);
    return receive_all(sock, (char *)head + n, sizeof *head - (size_t)n);
}

/* Finds the artifacts in a request of `len` bytes; false where the lengths do not add up. */
static bool open_request(const char *body, size_t len, struct request *q)
{
    if (len < sizeof *q->wire)
        return false;
    q->wire = (const struct wire_request *)body;
    if (q->wire->nr < 1 || q->wire->nr > DEVICE_MAX_KERNELS)
        return false;
    size_t at = sizeof *q->wire;
    for (int i = 0; i < q->wire->nr; i++) {
        q->artifact[i] = body + at;
        if (q->wire->artifact_bytes[i] > len - at)
            return false;
        at += q->wire->artifact_bytes[i];
    }
    return at == len;
}

/* One request; false when the parent is gone or does not make sense. */
static bool serve(struct runner_process *p)
{
    struct wire_head head;
    int fd;
    if (!receive_head(p->sock, &head, &fd))
        return false;
    bool served = false;
    char *body = NULL;
    if (head.magic != wire_magic || head.type != WIRE_REQUEST || head.bytes > WIRE_MAX_REQUEST)
        goto out;
    body = xmalloc(head.bytes + 1);
    struct request q = {0};
    if (!receive_all(p->sock, body, head.bytes) || !open_request(body, head.bytes, &q))
        goto out;
    struct wire_result res = {.status = TRIAL_DEVICE_ERROR};
    measure(p, &q, fd, &res);
    note(p, STEP_IDLE, 0);
    served = send_message(p->sock, WIRE_RESULT, &res, sizeof res);
out:
    free(body);
    if (fd >= 0)
        close(fd);
    return served;
}

static bool open_backend(struct runner_process *p, const char *name, struct wire_hello *hello)
{
    struct err e = ERR_INIT;
    p->backend = backend_find(name);
    if (!p->backend) {
        snprintf(hello->reason, sizeof hello->reason, "there is no backend \"%s\"", name);
        return false;
    }
    p->loader = p->backend->loader_new(&e);
    if (!p->loader) {
        snprintf(hello->reason, sizeof hello->reason, "%.*s", DEVICE_REASON - 1, e.msg);
        return false;
    }
    return true;
}

int runner_main(int argc, char **argv)
{
    struct options o;
    struct runner_process p = {.sock = WIRE_SOCKET_FD};
    if (!parse_options(argc, argv, &o)) {
        fprintf(stderr, "the runner is started by squall itself\n");
        return 2;
    }
    set_up_process(&o);
    /* what libraries of the parent left open is not for kernels */
    close_range(WIRE_BOARD_FD + 1, ~0U, 0);
    p.board = mmap(NULL, sizeof *p.board, PROT_READ | PROT_WRITE, MAP_SHARED, WIRE_BOARD_FD, 0);
    if (p.board == MAP_FAILED) {
        fprintf(stderr, "cannot map the board: %s\n", strerror(errno));
        return 2;
    }
    close(WIRE_BOARD_FD);
    fcntl(WIRE_SOCKET_FD, F_SETFD, FD_CLOEXEC);

    struct wire_hello hello = {0};
    hello.ready = open_backend(&p, o.backend, &hello);
    bool talking = send_message(p.sock, WIRE_HELLO, &hello, sizeof hello);
    if (hello.ready) {
        p.cache = cache_new(p.backend, p.loader);
        while (talking)
            talking = serve(&p);
        cache_free(p.cache);
        p.backend->loader_free(p.loader);
    }
    return hello.ready ? 0 : 1;
}
