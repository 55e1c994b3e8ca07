/* SPDX-License-Identifier: Apache-2.0 */
#include "ui/pump.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "engine/base/arena.h"
#include "engine/base/clock.h"

/* Events that wait for the watcher; the feed waits when it is full, and nothing is lost. */
enum { CAPACITY = 256, FILE_POLL_MS = 100 };

struct pump {
    struct feed *feed;
    struct queue *queue;
    pthread_t thread;
    int stop_fd;
    double speed;
    bool follow;
    int64_t t0_ns, mono0_ns; /* session time and clock when the replay began */
};

/* Waits until `fd` is readable, the time is up, or the pump is to stop: false then. */
static bool wait_for(struct pump *p, int fd, int timeout_ms)
{
    struct pollfd fds[] = {{.fd = p->stop_fd, .events = POLLIN}, {.fd = fd, .events = POLLIN}};
    while (poll(fds, fd >= 0 ? 2 : 1, timeout_ms) < 0 && errno == EINTR)
        ;
    return !(fds[0].revents & POLLIN);
}

static bool wait_for_moment(struct pump *p, const struct event *ev)
{
    if (p->speed <= 0)
        return true;
    if (!p->mono0_ns) {
        p->mono0_ns = clock_mono_ns();
        p->t0_ns = ev->t_ns;
    }
    for (;;) {
        double due = (double)(ev->t_ns - p->t0_ns) / p->speed;
        double left = due - (double)(clock_mono_ns() - p->mono0_ns);
        if (left < 1e6)
            return wait_for(p, -1, 0);
        if (!wait_for(p, -1, left < 5e8 ? (int)(left / 1e6) : 500))
            return false;
    }
}

static void *run(void *arg)
{
    struct pump *p = arg;
    struct event ev;
    for (;;) {
        int rc = feed_next(p->feed, &ev, NULL);
        if (rc == 1) {
            if (!wait_for_moment(p, &ev) || !queue_push(p->queue, &ev))
                break;
        } else if (rc < 0 || !p->follow) {
            break;
        } else {
            int fd = feed_fd(p->feed);
            if (!wait_for(p, fd, fd >= 0 ? -1 : FILE_POLL_MS))
                break;
        }
    }
    queue_close(p->queue);
    return NULL;
}

struct pump *pump_start(struct feed *f, double speed, bool follow, struct err *e)
{
    struct pump *p = xcalloc(1, sizeof *p);
    *p = (struct pump){.feed = f, .speed = speed, .follow = follow};
    p->queue = queue_new(sizeof(struct event), CAPACITY);
    p->stop_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int rc = p->stop_fd < 0 ? errno : pthread_create(&p->thread, NULL, run, p);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (rc) {
        err_set(e, ERR_IO, "cannot start a thread: %s", strerror(rc));
        feed_free(f);
        queue_free(p->queue);
        free(p);
        return NULL;
    }
    return p;
}

struct queue *pump_queue(struct pump *p)
{
    return p->queue;
}

void pump_free(struct pump *p)
{
    if (!p)
        return;
    uint64_t one = 1;
    if (write(p->stop_fd, &one, sizeof one) < 0) {
        /* the counter is at its limit: the thread has been told already */
    }
    queue_close(p->queue);
    pthread_join(p->thread, NULL);
    close(p->stop_fd);
    feed_free(p->feed);
    queue_free(p->queue);
    free(p);
}
