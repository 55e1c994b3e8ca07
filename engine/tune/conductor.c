/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/tune/conductor.h"

#include <stdlib.h>
#include <string.h>

#include <sys/eventfd.h>
#include <unistd.h>

#include "engine/base/arena.h"
#include "engine/base/clock.h"
#include "engine/base/strbuf.h"
#include "engine/tune/conductor_private.h"
#include "engine/tune/pipeline_private.h"

/* "none" is a strategy of no class. */
static int find_strategy(const char *name, const struct strategy_class **out, struct err *e)
{
    *out = NULL;
    if (strcmp(name, "none") == 0)
        return 0;
    *out = strategy_find(name);
    if (*out)
        return 0;
    struct strbuf names = {0};
    for (int i = 0; strategy_at(i); i++)
        strbuf_addf(&names, "%s, ", strategy_at(i)->name);
    int rc =
        err_set(e, ERR_USAGE, "no strategy \"%s\"; there are: %snone", name, strbuf_text(&names));
    strbuf_release(&names);
    return rc;
}

static struct conductor *conductor_new(const struct tune_options *o, const struct task_list *tasks,
                                       struct device *device, const struct event_sink *sink,
                                       const struct history *history)
{
    struct conductor *c = xcalloc(1, sizeof *c);
    c->o = *o;
    c->tasks = tasks;
    c->device = device;
    c->info = device->class->info(device);
    c->sink = sink;
    c->history = history;
    c->next_trial = 1;
    c->last_stored = history ? history->last_trial : 0;
    c->base_ns = history ? (int64_t)(history->active_seconds * 1e9) : 0;
    c->start_ns = device_now(device);
    c->usage_at = clock_mono_ns();
    c->done_fd = -1;
    if (c->o.fill_ns <= 0)
        c->o.fill_ns = 4000000;
    pthread_mutex_init(&c->lock, NULL);
    orders_load(c);
    drift_init(c);
    return c;
}

struct conductor *conductor_start(const struct tune_options *o, const struct task_list *tasks,
                                  struct device *device, const struct event_sink *sink,
                                  const struct history *history, struct err *e)
{
    struct conductor *c = conductor_new(o, tasks, device, sink, history);
    if (tasks->nr == 0) {
        err_set(e, ERR_INPUT, "\"%s\" has nothing to tune", o->input);
        goto fail;
    }
    if (find_strategy(o->explore_strategy, &c->explore, e) < 0 ||
        find_strategy(o->refine_strategy, &c->refine, e) < 0)
        goto fail;
    c->done_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (c->done_fd < 0) {
        err_set(e, ERR_LIMIT, "no file descriptor is left; raise the limit with ulimit -n");
        goto fail;
    }
    c->pipeline = pipeline_start(
        &(struct pipeline_options){
            .device = device,
            .tasks = tasks,
            .jobs = o->jobs,
            .fill_ns = c->o.fill_ns,
            .cold = c->o.cold,
            .build_timeout_ns = o->build_timeout_ns,
            .run_timeout_ns = o->run_timeout_ns,
        },
        e);
    if (!c->pipeline)
        goto fail;
    if (thread_start(&c->thread, conductor_main, c, e) < 0) {
        pipeline_close(c->pipeline);
        goto fail;
    }
    return c;
fail:
    conductor_free(c);
    return NULL;
}

static void send(struct conductor *c, const struct tune_command *m)
{
    pthread_mutex_lock(&c->lock);
    GROW(c->inbox, c->nr_inbox, c->cap_inbox);
    c->inbox[c->nr_inbox++] = *m;
    c->stop |= m->verb == TUNE_STOP || m->verb == TUNE_ABANDON;
    c->abandon |= m->verb == TUNE_ABANDON;
    pthread_mutex_unlock(&c->lock);
}

void conductor_budget(struct conductor *c, const struct tune_command *m)
{
    send(c, m);
    pipeline_kick(c->pipeline);
}

void conductor_command(struct conductor *c, enum tune_verb verb, int task)
{
    send(c, &(struct tune_command){verb, task, 0});

    /* At once, and not when the conductor comes round to it: it may be searching. */
    if (verb == TUNE_PAUSE || verb == TUNE_GO)
        pipeline_hold(c->pipeline, verb == TUNE_PAUSE);
    if (verb == TUNE_STOP || verb == TUNE_ABANDON)
        pipeline_stop(c->pipeline);
    if (verb == TUNE_ABANDON)
        c->device->class->interrupt(c->device);
    pipeline_kick(c->pipeline);
}

int conductor_fd(struct conductor *c)
{
    return c->done_fd;
}

int conductor_join(struct conductor *c, struct err *e)
{
    pthread_join(c->thread, NULL);
    if (c->err.code < 0)
        return err_set(e, c->err.code, "%s", c->err.msg);
    return 0;
}

int conductor_stuck(struct conductor *c)
{
    return pipeline_stuck(c->pipeline);
}

void conductor_free(struct conductor *c)
{
    if (!c)
        return;
    /* Threads that hang still read the spaces: these stay then, with the pipeline itself. */
    bool stuck = c->pipeline && pipeline_stuck(c->pipeline) > 0;
    for (int i = 0; i < c->nr_courses && !stuck; i++)
        space_release(&c->course[i].space);
    if (!stuck)
        free(c->course);
    pipeline_free(c->pipeline);
    free(c->sched);
    free(c->order);
    free(c->inbox);
    if (c->done_fd >= 0)
        close(c->done_fd);
    pthread_mutex_destroy(&c->lock);
    free(c);
}
