/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/tune/queue.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <pthread.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "engine/base/arena.h"

struct queue {
    size_t item_bytes;
    int capacity;
    int fd; /* eventfd; -1 where the system has none left: the queue itself still works */

    pthread_mutex_t lock; /* guards all below; a leaf: no other lock is taken under it */
    pthread_cond_t not_empty, not_full;
    bool closed;
    int head, length;
    unsigned char *ring;
};

struct queue *queue_new(size_t item_bytes, int capacity)
{
    assert(item_bytes > 0 && capacity > 0);
    struct queue *q = xcalloc(1, sizeof *q);
    q->item_bytes = item_bytes;
    q->capacity = capacity;
    q->ring = xcalloc((size_t)capacity, item_bytes);
    q->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    pthread_mutex_init(&q->lock, NULL);
    /* Timeouts count monotonic time, so that setting the wall clock does not stretch a wait. */
    pthread_condattr_t attr;
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&q->not_empty, &attr);
    pthread_cond_init(&q->not_full, NULL);
    pthread_condattr_destroy(&attr);
    return q;
}

void queue_free(struct queue *q)
{
    if (!q)
        return;
    pthread_cond_destroy(&q->not_full);
    pthread_cond_destroy(&q->not_empty);
    pthread_mutex_destroy(&q->lock);
    if (q->fd >= 0)
        close(q->fd);
    free(q->ring);
    free(q);
}

/* The counter cannot overflow into blocking: it is written once per fill from empty, and a failed
 * write means that it is readable already. */
static void wake(struct queue *q)
{
    uint64_t one = 1;
    if (q->fd >= 0 && write(q->fd, &one, sizeof one) < 0)
        assert(errno == EAGAIN);
}

static bool push(struct queue *q, const void *item, bool wait)
{
    pthread_mutex_lock(&q->lock);
    while (wait && !q->closed && q->length == q->capacity)
        pthread_cond_wait(&q->not_full, &q->lock);
    bool ok = !q->closed && q->length < q->capacity;
    bool was_empty = q->length == 0;
    if (ok) {
        size_t at = ((size_t)q->head + (size_t)q->length) % (size_t)q->capacity;
        memcpy(q->ring + at * q->item_bytes, item, q->item_bytes);
        q->length++;
        pthread_cond_signal(&q->not_empty);
        /* Under the lock: after it, the queue may be drained, closed and freed by its reader. The
         * descriptor is non-blocking, so this is no I/O that could wait. */
        if (was_empty)
            wake(q);
    }
    pthread_mutex_unlock(&q->lock);
    return ok;
}

bool queue_push(struct queue *q, const void *item)
{
    return push(q, item, true);
}

bool queue_try_push(struct queue *q, const void *item)
{
    return push(q, item, false);
}

static struct timespec deadline_after(int64_t timeout_ns)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    ts.tv_sec += timeout_ns / 1000000000;
    ts.tv_nsec += timeout_ns % 1000000000;
    if (ts.tv_nsec >= 1000000000) {
        ts.tv_sec++;
        ts.tv_nsec -= 1000000000;
    }
    return ts;
}

bool queue_pop(struct queue *q, void *item, int64_t timeout_ns)
{
    struct timespec until = deadline_after(timeout_ns > 0 ? timeout_ns : 0);
    pthread_mutex_lock(&q->lock);
    while (q->length == 0 && !q->closed && timeout_ns != 0) {
        if (timeout_ns < 0)
            pthread_cond_wait(&q->not_empty, &q->lock);
        else if (pthread_cond_timedwait(&q->not_empty, &q->lock, &until) == ETIMEDOUT)
            break;
    }
    bool ok = q->length > 0;
    if (ok) {
        memcpy(item, q->ring + (size_t)q->head * q->item_bytes, q->item_bytes);
        q->head = (q->head + 1) % q->capacity;
        q->length--;
        pthread_cond_signal(&q->not_full);
    }
    pthread_mutex_unlock(&q->lock);
    return ok;
}

bool queue_try_pop(struct queue *q, void *item)
{
    return queue_pop(q, item, 0);
}

void queue_close(struct queue *q)
{
    pthread_mutex_lock(&q->lock);
    if (!q->closed) {
        q->closed = true;
        pthread_cond_broadcast(&q->not_empty);
        pthread_cond_broadcast(&q->not_full);
        wake(q); /* a poll loop learns of the end too */
    }
    pthread_mutex_unlock(&q->lock);
}

int queue_length(struct queue *q)
{
    pthread_mutex_lock(&q->lock);
    int n = q->length;
    pthread_mutex_unlock(&q->lock);
    return n;
}

int queue_fd(struct queue *q)
{
    return q->fd;
}

bool queue_finished(struct queue *q)
{
    pthread_mutex_lock(&q->lock);
    bool finished = q->closed && q->length == 0;
    pthread_mutex_unlock(&q->lock);
    return finished;
}
