/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runner, the parent's side: turns what happens to the child into the result of a measurement.
 *
 * A child that failed is replaced at once, without waiting for its hello, so that it starts up
 * while the next candidate is still being built. The next measurement waits for the rest.
 */
#include "backends/runner.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

#include "backends/child.h"
#include "backends/operands.h"
#include "backends/wire.h"
#include "engine/base/arena.h"
#include "engine/base/clock.h"

enum { MAX_START_TRIES = 5 };

static const int64_t second_ns = INT64_C(1000000000);

/* Loading a compiler library on a busy machine takes its time; nothing waits for less. */
static const int64_t hello_limit_ns = 30 * INT64_C(1000000000);
/* Copying and packing gigabytes of operands is not the kernel's fault: it has its own limit. */
static const int64_t prepare_limit_ns = 60 * INT64_C(1000000000);
static const int64_t default_timeout_ns = 10 * INT64_C(1000000000);
/* From the end of the connection to that of the process: libraries tidy up. */
static const int64_t death_grace_ns = 2 * INT64_C(1000000000);
static const int64_t exit_grace_ns = INT64_C(300000000);

struct runner {
    struct runner_options o; /* exe and backend are copies */
    struct child child;
    bool ready; /* the child has said hello */
    int starts; /* children so far */
    int board_fd;
    struct board *board;
    int interrupt_fd; /* the only member that other threads touch */
};

static int make_board(struct runner *r, struct err *e)
{
    int fd = memfd_create("squall-board", MFD_CLOEXEC);
    if (fd < 0 || ftruncate(fd, (off_t)sizeof *r->board) < 0) {
        err_set(e, ERR_IO, "cannot make shared memory: %s", strerror(errno));
        if (fd >= 0)
            close(fd);
        return ERR_IO;
    }
    /* out of the way of the descriptors that a child is given */
    r->board_fd = fcntl(fd, F_DUPFD_CLOEXEC, 10);
    close(fd);
    void *map = MAP_FAILED;
    if (r->board_fd >= 0)
        map = mmap(NULL, sizeof *r->board, PROT_READ | PROT_WRITE, MAP_SHARED, r->board_fd, 0);
    if (map == MAP_FAILED)
        return err_set(e, ERR_IO, "cannot map shared memory: %s", strerror(errno));
    r->board = map;
    return 0;
}

static int start_child(struct runner *r, struct err *e)
{
    r->ready = false;
    int rc = child_start(&r->child, &r->o, r->board_fd, e);
    if (!rc)
        r->starts++;
    return rc;
}

/* Waits for the child's hello. On failure the child is gone. */
static int await_hello(struct runner *r, struct err *e)
{
    struct strbuf how = {0};
    int rc = 0;
    int64_t deadline_ns = clock_mono_ns() + hello_limit_ns;
    switch (child_receive(&r->child, WIRE_HELLO, r->interrupt_fd, deadline_ns)) {
    case CHILD_MESSAGE: {
        struct wire_hello *hello = &r->child.in.hello;
        hello->reason[sizeof hello->reason - 1] = '\0';
        child_clean_text(hello->reason);
        r->ready = hello->ready;
        if (!r->ready) {
            rc = err_set(e, ERR_BACKEND, "%s", hello->reason);
            child_end(&r->child, 0, NULL);
        }
        break;
    }
    case CHILD_LATE:
        child_end(&r->child, 0, NULL);
        rc = err_set(e, ERR_IO, "it was not ready after %" PRId64 " s", hello_limit_ns / second_ns);
        break;
    case CHILD_INTERRUPTED:
        child_end(&r->child, 0, NULL);
        rc = err_set(e, ERR_INTERRUPTED, "interrupted");
        break;
    case CHILD_GONE:
        child_end(&r->child, death_grace_ns, &how);
        rc = err_set(e, ERR_IO, "%s", strbuf_text(&how));
        break;
    default:
        child_end(&r->child, 0, NULL);
        rc = err_set(e, ERR_IO, "\"%s\" is not a runner", r->o.exe);
        break;
    }
    strbuf_release(&how);
    return rc;
}

/* A living child that has said hello: this one, or a new one. */
static int ensure_ready(struct runner *r, struct err *e)
{
    struct err why = ERR_INIT;
    /* it may have gone while nobody asked: the thread that started it has ended, say */
    if (r->child.pid && r->ready && !child_is_alive(&r->child))
        child_end(&r->child, 0, NULL);
    for (int i = 0; i < MAX_START_TRIES; i++) {
        err_clear(&why);
        if (!r->child.pid && start_child(r, &why))
            continue;
        if (r->ready)
            return 0;
        int rc = await_hello(r, &why);
        if (!rc)
            return 0;
        /* a child that can say what it lacks will lack it again */
        if (rc == ERR_INTERRUPTED || rc == ERR_BACKEND)
            break;
    }
    if (why.code == ERR_INTERRUPTED)
        return err_set(e, why.code, "%s", why.msg);
    return err_set(e, why.code, "cannot start the runner of backend \"%s\": %s", r->o.backend,
                   why.msg);
}

int runner_start(const struct runner_options *o, struct runner **out, struct err *e)
{
    struct runner *r = xcalloc(1, sizeof *r);
    r->o = *o;
    r->o.exe = xstrdup(o->exe);
    r->o.backend = xstrdup(o->backend);
    r->board_fd = -1;
    r->child = (struct child){.pid_fd = -1, .sock = -1, .err_fd = -1};
    r->interrupt_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    int rc = 0;
    if (r->interrupt_fd < 0)
        rc = err_set(e, ERR_IO, "cannot make an event descriptor: %s", strerror(errno));
    if (!rc)
        rc = make_board(r, e);
    if (!rc)
        rc = ensure_ready(r, e);
    if (rc) {
        runner_free(r);
        r = NULL;
    }
    *out = r;
    return rc;
}

void runner_free(struct runner *r)
{
    if (!r)
        return;
    child_end(&r->child, exit_grace_ns, NULL);
    if (r->board)
        munmap(r->board, sizeof *r->board);
    if (r->board_fd >= 0)
        close(r->board_fd);
    if (r->interrupt_fd >= 0)
        close(r->interrupt_fd);
    free((char *)r->o.exe);
    free((char *)r->o.backend);
    free(r);
}

int runner_restarts(const struct runner *r)
{
    return r->starts > 0 ? r->starts - 1 : 0;
}

void runner_interrupt(struct runner *r)
{
    uint64_t one = 1;
    ssize_t n = write(r->interrupt_fd, &one, sizeof one);
    (void)n; /* it fails only where the counter is full, and then it is readable all the same */
}

/* An interrupt that came too late for the last measurement is not meant for this one. */
static void forget_interrupt(struct runner *r)
{
    uint64_t count;
    ssize_t n = read(r->interrupt_fd, &count, sizeof count);
    (void)n;
}

static void put_request(const struct measure_request *q, int64_t timeout_ns, struct strbuf *msg)
{
    const struct operands *o = q->operands;
    struct strbuf artifacts = {0};
    struct wire_request w = {.operands = o->id,
                             .nr = q->nr,
                             .check = q->check,
                             .cold = q->cold,
                             .fill_ns = q->fill_ns,
                             .timeout_ns = timeout_ns,
                             .cut_ns = q->cut_ns};
    for (int k = 0; k < q->nr; k++) {
        size_t before = artifacts.len;
        artifact_encode(q->artifact[k], &artifacts);
        w.artifact_bytes[k] = artifacts.len - before;
    }
    struct wire_head head = {
        .magic = wire_magic, .type = WIRE_REQUEST, .bytes = sizeof w + artifacts.len};
    strbuf_add(msg, &head, sizeof head);
    strbuf_add(msg, &w, sizeof w);
    strbuf_add(msg, artifacts.buf, artifacts.len);
    strbuf_release(&artifacts);
}

/* When the wait for a result is over: counted from the first call, once there was one. */
static int64_t limit_ns(const struct runner *r, int64_t sent_ns, int64_t timeout_ns)
{
    int64_t since = atomic_load(&r->board->running_since);
    if (since >= sent_ns && since <= clock_mono_ns())
        return since + timeout_ns;
    if (since)
        return sent_ns + timeout_ns; /* overwritten by a kernel */
    return sent_ns + (timeout_ns > prepare_limit_ns ? timeout_ns : prepare_limit_ns);
}

static enum child_event await_result(struct runner *r, int64_t timeout_ns)
{
    int64_t sent_ns = clock_mono_ns();
    int64_t deadline = sent_ns + timeout_ns;
    for (;;) {
        enum child_event event = child_receive(&r->child, WIRE_RESULT, r->interrupt_fd, deadline);
        if (event != CHILD_LATE)
            return event;
        int64_t now = clock_mono_ns(), limit = limit_ns(r, sent_ns, timeout_ns);
        if (now >= limit)
            return CHILD_LATE;
        deadline = limit < now + timeout_ns ? limit : now + timeout_ns;
    }
}

/* Copies what the child answered; false where it makes no sense. */
static bool take_result(struct wire_result *w, int nr, struct measure_result *res)
{
    if (w->status <= TRIAL_PENDING || w->status >= TRIAL_NR_STATUS || w->nr_samples < 0 ||
        w->nr_samples > TRIAL_MAX_SAMPLES || isnan(w->error) ||
        (w->status == TRIAL_OK && w->nr_samples == 0))
        return false;
    for (int k = 0; k < nr; k++)
        for (int i = 0; i < w->nr_samples; i++)
            if (!isfinite(w->sample_ns[k][i]) || w->sample_ns[k][i] < 0)
                return false;
    w->reason[sizeof w->reason - 1] = '\0';
    child_clean_text(w->reason);
    res->status = (enum trial_status)w->status;
    memcpy(res->reason, w->reason, sizeof w->reason);
    res->nr_samples = w->nr_samples;
    memcpy(res->sample_ns, w->sample_ns, sizeof w->sample_ns);
    for (int i = 0; i < 2; i++)
        res->canary_ns[i] = isfinite(w->canary_ns[i]) && w->canary_ns[i] > 0 ? w->canary_ns[i] : 0;
    res->checked = w->checked;
    res->error = w->error;
    return true;
}

/*
 * The child did not answer: blames the candidate, kernel 0, unless the child was busy with
 * something else. While several are timed in turn nobody can tell which it was, but the others have
 * been through that before.
 */
static void blame(const struct runner *r, enum trial_status status, const char *what,
                  struct measure_result *res)
{
    static const char *const doing[NR_STEPS] = {
        [STEP_IDLE] = " between two kernels",
        [STEP_PREPARE] = " while it prepared the operands",
        [STEP_LOAD] = " while the kernel was loaded",
        [STEP_WARM_UP] = "",
        [STEP_TIME] = "",
    };
    int step = atomic_load(&r->board->step), kernel = atomic_load(&r->board->kernel);
    bool step_known = step >= 0 && step < NR_STEPS;
    const char *who = "";
    if (step == STEP_IDLE || step == STEP_PREPARE) {
        status = TRIAL_DEVICE_ERROR;
        who = "runner: ";
    } else if (kernel > 0 && (step == STEP_LOAD || step == STEP_WARM_UP)) {
        status = TRIAL_DEVICE_ERROR;
        who = "the kernel compared with: ";
    }
    res->status = status;
    snprintf(res->reason, sizeof res->reason, "%s%s%s", who, what, step_known ? doing[step] : "");
}

static void settle(struct runner *r, const struct measure_request *q, int64_t timeout_ns,
                   enum child_event event, struct measure_result *res)
{
    struct strbuf what = {0};
    bool replace = true;
    switch (event) {
    case CHILD_MESSAGE:
        if (take_result(&r->child.in.result, q->nr, res)) {
            replace = false;
            break;
        }
        /* fall through */
    case CHILD_NONSENSE:
    case CHILD_SENT:
        child_end(&r->child, 0, NULL);
        blame(r, TRIAL_CRASHED, "the runner answered nonsense", res);
        break;
    case CHILD_GONE:
        child_end(&r->child, death_grace_ns, &what);
        blame(r, TRIAL_CRASHED, strbuf_text(&what), res);
        break;
    case CHILD_LATE:
        child_end(&r->child, 0, NULL);
        strbuf_addf(&what, "no answer for %.1f s", (double)timeout_ns / 1e9);
        blame(r, TRIAL_RUN_TIMEOUT, strbuf_text(&what), res);
        break;
    case CHILD_INTERRUPTED:
        child_end(&r->child, 0, NULL);
        res->status = TRIAL_DEVICE_ERROR;
        snprintf(res->reason, sizeof res->reason, "interrupted");
        replace = false; /* whoever interrupts is about to stop */
        break;
    }
    if (replace)
        start_child(r, NULL); /* a failure is for the next measurement to report */
    strbuf_release(&what);
}

void runner_measure(struct runner *r, const struct measure_request *q, struct measure_result *res)
{
    assert(q->nr >= 1 && q->nr <= DEVICE_MAX_KERNELS && q->operands);
    int64_t start_ns = clock_mono_ns();
    int64_t timeout_ns = q->timeout_ns > 0 ? q->timeout_ns : default_timeout_ns;
    memset(res, 0, sizeof *res);
    forget_interrupt(r);

    struct err e = ERR_INIT;
    struct strbuf msg = {0};
    if (ensure_ready(r, &e)) {
        res->status = TRIAL_DEVICE_ERROR;
        snprintf(res->reason, sizeof res->reason, "%.*s", (int)sizeof res->reason - 1, e.msg);
        goto out;
    }
    put_request(q, timeout_ns, &msg);
    if (msg.len > WIRE_MAX_REQUEST) {
        res->status = TRIAL_BUILD_ERROR;
        snprintf(res->reason, sizeof res->reason, "code of %zu MB is too large", msg.len >> 20);
        goto out;
    }
    atomic_store(&r->board->step, STEP_IDLE);
    atomic_store(&r->board->kernel, 0);
    atomic_store(&r->board->running_since, 0);
    const struct operands *o = q->operands;
    enum child_event event =
        child_send(&r->child, &msg, o->fd, r->interrupt_fd, clock_mono_ns() + prepare_limit_ns);
    if (event == CHILD_SENT)
        event = await_result(r, timeout_ns);
    settle(r, q, timeout_ns, event, res);
out:
    strbuf_release(&msg);
    res->measure_ns = clock_mono_ns() - start_ns;
}
