/* SPDX-License-Identifier: Apache-2.0 */
#include "ui/watch.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "ui/batch.h"
#include "ui/json_lines.h"

enum { TABLE_COLUMNS = 120 };

struct watch {
    const struct cli_options *o;
    struct board *b;
    struct conductor *c;
    struct strbuf text;
    int64_t seen;
    int interrupts;
    bool broken; /* standard output is gone */
};

static void put(struct watch *w)
{
    if (w->text.len && !w->broken &&
        (fwrite(w->text.buf, 1, w->text.len, stdout) != w->text.len || fflush(stdout)))
        w->broken = true;
    strbuf_reset(&w->text);
}

/* True at the end of a live session. */
static bool show(struct watch *w, const struct event *ev)
{
    board_apply(w->b, ev);
    if (ev->seq <= w->seen)
        return false;
    if (w->o->json)
        json_line(ev, &w->text);
    else
        batch_line(w->b, ev, &w->text);
    put(w);
    return w->c && ev->kind == EV_ENDED;
}

/* A signal, or a closed pipe: stop gracefully, then at once. */
static void interrupt(struct watch *w, const char *why)
{
    w->interrupts++;
    if (!w->c)
        return;
    if (w->interrupts == 1 && !w->o->json)
        fprintf(stderr, "squall: %s, stopping after the running measurement\n", why);
    conductor_command(w->c, w->interrupts == 1 ? TUNE_STOP : TUNE_ABANDON, -1);
}

static int table_columns(void)
{
    struct winsize ws;
    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &ws) == 0 && ws.ws_col >= 80)
        return ws.ws_col < TABLE_COLUMNS ? ws.ws_col : TABLE_COLUMNS;
    return TABLE_COLUMNS;
}

/* Those that the parent has ignored (nohup; a shell's background) stay ignored: a blocked signal
 * would come through all the same. */
int watch_signals(sigset_t *before, struct err *e)
{
    static const int wanted[] = {SIGINT, SIGTERM, SIGHUP};
    sigset_t set;
    sigemptyset(&set);
    for (size_t i = 0; i < sizeof wanted / sizeof wanted[0]; i++) {
        struct sigaction sa;
        if (sigaction(wanted[i], NULL, &sa) == 0 && sa.sa_handler != SIG_IGN)
            sigaddset(&set, wanted[i]);
    }
    pthread_sigmask(SIG_BLOCK, &set, before);
    int fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    if (fd < 0)
        err_set(e, ERR_IO, "cannot watch for signals: %s", strerror(errno));
    return fd;
}

static void read_signals(struct watch *w, int fd)
{
    struct signalfd_siginfo s;
    while (read(fd, &s, sizeof s) == sizeof s)
        interrupt(w, s.ssi_signo == SIGINT ? "interrupted" : "asked to end");
}

static void clear_eventfd(int fd)
{
    uint64_t count;
    if (read(fd, &count, sizeof count) < 0) {
        /* nothing to clear: the wake-up was taken with an earlier one */
    }
}

/* Until the session's end, the end of a replay, or (nothing to steer) a signal. */
static void loop(struct watch *w, struct queue *events, int fail_fd, int signals)
{
    struct event ev;
    bool ended = false, failing = false;
    while (!ended) {
        while (!ended && queue_try_pop(events, &ev))
            ended = show(w, &ev);
        if (ended || (!w->c && w->interrupts))
            return;
        if (w->broken && !w->interrupts)
            interrupt(w, "the output is closed");
        if (queue_finished(events))
            return;
        struct pollfd fds[] = {{.fd = queue_fd(events), .events = POLLIN},
                               {.fd = signals, .events = POLLIN},
                               {.fd = w->c ? conductor_fd(w->c) : -1, .events = POLLIN},
                               {.fd = failing ? -1 : fail_fd, .events = POLLIN}};
        int ready = poll(fds, 4, 500);
        if ((ready < 0 && errno != EINTR) || (ready == 0 && !w->c && w->b->ended))
            return;
        if (fds[0].revents)
            clear_eventfd(fds[0].fd);
        if (fds[1].revents)
            read_signals(w, signals);
        if (fds[3].revents) {
            failing = true; /* what cannot be stored must not go on */
            conductor_command(w->c, TUNE_STOP, -1);
        }
        if (failing && fds[2].revents)
            return; /* its last events will never be committed */
    }
}

int watch_run(const struct cli_options *o, struct queue *events, struct conductor *c, int64_t seen,
              int fail_fd, struct board *b, struct err *e)
{
    sigset_t before;
    /* For good: what is said last must not kill a process that has a session to close. */
    signal(SIGPIPE, SIG_IGN);
    int signals = watch_signals(&before, e);
    if (signals < 0)
        return e->code;
    struct watch w = {.o = o, .b = b, .c = c, .seen = seen};
    loop(&w, events, fail_fd, signals);
    if (!o->json && b->nr_tasks) {
        strbuf_addc(&w.text, '\n');
        batch_table(b, table_columns(), &w.text);
        put(&w);
    }
    strbuf_release(&w.text);
    close(signals);
    signal(SIGHUP, SIG_IGN); /* it may come again, before the session is closed */
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return !c && w.interrupts ? ERR_INTERRUPTED : 0;
}

void watch_quietly(struct conductor *c, int signals)
{
    static const struct cli_options options;
    struct watch w = {.o = &options, .c = c};
    struct pollfd fds[] = {{.fd = conductor_fd(c), .events = POLLIN},
                           {.fd = signals, .events = POLLIN}};
    while (!fds[0].revents) {
        if (poll(fds, 2, -1) < 0) /* EINTR: revents are as they were */
            fds[1].revents = 0;
        if (fds[1].revents)
            read_signals(&w, signals);
    }
}
