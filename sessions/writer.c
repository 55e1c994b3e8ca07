/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The writer thread: whatever is queued goes into one transaction, and is handed on once that is
 * committed. While the disk is slow the batches grow; while it is fast an event waits for nothing.
 *
 * The first commit that fails ends it: what was committed stays, everything later is dropped (the
 * log must not have holes), and main is told through session_fd() to stop the conductor.
 */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "engine/base/arena.h"
#include "engine/base/clock.h"
#include "sessions/private.h"

static void rollback(struct session *s)
{
    if (!sqlite3_get_autocommit(s->db))
        sqlite3_exec(s->db, "ROLLBACK", NULL, NULL, NULL);
}

/* Stores the events and numbers them; those that were dropped are taken out of the batch. */
static int store_batch(struct session *s, struct event *batch, int *nr, struct err *e)
{
    int kept = 0, rc = 0;
    for (int i = 0; i < *nr; i++) {
        batch[i].seq = s->next_seq + kept;
        if (!batch[i].wall_ns)
            batch[i].wall_ns = clock_wall_ns();
        rc = rows_store(s, &batch[i]);
        if (rc < 0)
            return sql_error(s->path, s->db, -rc, e);
        if (rc && kept++ != i)
            batch[kept - 1] = batch[i];
    }
    *nr = kept;
    return 0;
}

static int commit_batch(struct session *s, struct event *batch, int *nr, const struct kept *kept,
                        struct err *e)
{
    bool ended = s->ended;
    int rc = db_exec(s->path, s->db, "BEGIN IMMEDIATE", e);
    if (!rc)
        rc = trees_store(s, kept, e);
    if (!rc)
        rc = store_batch(s, batch, nr, e);
    if (!rc)
        rc = db_exec(s->path, s->db, "COMMIT", e);
    if (rc) {
        rollback(s);
        s->ended = ended;
        return rc;
    }
    s->next_seq += *nr;
    return 0;
}

static void fail(struct session *s, const struct err *e)
{
    pthread_mutex_lock(&s->lock);
    s->failure = *e;
    pthread_mutex_unlock(&s->lock);
    uint64_t one = 1;
    ssize_t n = write(s->fd, &one, sizeof one);
    (void)n; /* cannot fail: nobody else counts it up */
}

/* committed is set before the push: a watcher that finds its queue empty can trust it. */
static void hand_on(struct session *s, const struct event *batch, int nr, int handled)
{
    pthread_mutex_lock(&s->lock);
    if (nr)
        s->committed = batch[nr - 1].seq;
    for (int i = 0; s->watcher && i < nr; i++)
        if (!queue_try_push(s->watcher, &batch[i]))
            break;
    s->handled += handled;
    pthread_cond_broadcast(&s->handled_more);
    pthread_mutex_unlock(&s->lock);
}

/* One transaction of the events, and of the trees that came before them; the number committed. */
static int write_batch(struct session *s, struct event *batch, int nr, bool *failed)
{
    struct err e = ERR_INIT;
    struct kept *kept = trees_take(s);
    if (*failed) {
        nr = 0;
    } else if ((nr || kept) && commit_batch(s, batch, &nr, kept, &e) != 0) {
        fail(s, &e);
        *failed = true;
        nr = 0;
    }
    trees_drop(kept);
    return nr;
}

static void *writer_main(void *arg)
{
    struct session *s = arg;
    struct event *batch = xmalloc(BATCH_EVENTS * sizeof *batch);
    bool failed = false;
    while (queue_pop(s->queue, &batch[0], -1)) {
        int taken = 1;
        while (taken < BATCH_EVENTS && queue_try_pop(s->queue, &batch[taken]))
            taken++;
        hand_on(s, batch, write_batch(s, batch, taken, &failed), taken);
    }
    write_batch(s, batch, 0, &failed);
    free(batch);
    return NULL;
}

int session_start(struct session *s, struct err *e)
{
    int rc = rows_open(s, e);
    if (rc)
        return rc;
    s->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (s->fd < 0)
        return err_set(e, ERR_IO, "cannot make an eventfd: %s", strerror(errno));
    s->queue = queue_new(sizeof(struct event), QUEUE_EVENTS);
    /* Signals are main's. */
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int os = pthread_create(&s->thread, NULL, writer_main, s);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (os)
        return err_set(e, ERR_IO, "cannot start the session's writer: %s", strerror(os));
    s->started = true;
    return 0;
}

static void emit(void *ctx, const struct event *ev)
{
    struct session *s = ctx;
    pthread_mutex_lock(&s->lock);
    s->emitted++;
    pthread_mutex_unlock(&s->lock);
    if (queue_push(s->queue, ev))
        return;
    pthread_mutex_lock(&s->lock);
    s->emitted--;
    pthread_mutex_unlock(&s->lock);
}

struct event_sink session_sink(struct session *s)
{
    return (struct event_sink){.emit = emit, .ctx = s, .keep = trees_keep};
}

void session_watch(struct session *s, struct queue *q)
{
    pthread_mutex_lock(&s->lock);
    s->watcher = q;
    pthread_mutex_unlock(&s->lock);
}

int64_t session_committed(struct session *s)
{
    pthread_mutex_lock(&s->lock);
    int64_t seq = s->committed;
    pthread_mutex_unlock(&s->lock);
    return seq;
}

int session_flush(struct session *s, struct err *e)
{
    pthread_mutex_lock(&s->lock);
    int64_t all = s->emitted;
    while (s->handled < all)
        pthread_cond_wait(&s->handled_more, &s->lock);
    pthread_mutex_unlock(&s->lock);
    return session_failed(s, e);
}

int session_failed(struct session *s, struct err *e)
{
    pthread_mutex_lock(&s->lock);
    int code = s->failure.code;
    if (code)
        err_set(e, code, "%s", s->failure.msg);
    pthread_mutex_unlock(&s->lock);
    return code;
}

int session_fd(struct session *s)
{
    return s->fd;
}
