/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lessons from a session: its events say which candidates were tried and what became of them; its
 * inputs, read again, make the spaces these are from, and so their features.
 */
#include "ui/learn.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/arena.h"
#include "sessions/feed.h"
#include "ui/recorded_input.h"
#include "ui/restore.h"

#define MOST_TRIALS INT64_C(10000000)

struct source {
    struct session *session;
    struct feed *feed;
    struct task_list tasks;
    struct space *space; /* of each task; without sketches where it has none */
    char **code;         /* of each trial, by number */
    int64_t nr_codes;
    int first; /* number of its first task among the lessons */
};

static int open_spaces(struct source *s, struct device *d, struct err *e)
{
    struct cli_options o = {0};
    struct strbuf text[RESTORE_TEXTS] = {{0}};
    int rc = restore_inputs(s->session, &o, text, e);
    if (!rc && recorded_inputs(&o))
        rc = err_set(e, ERR_INPUT, "it has no kernels, but recorded times");
    rc = rc ? rc : load_inputs(&o, d->class->info(d)->lanes, &s->tasks, e);
    for (int i = 0; i < RESTORE_TEXTS; i++)
        strbuf_release(&text[i]);
    if (rc)
        return rc;
    s->space = xcalloc((size_t)s->tasks.nr, sizeof *s->space);
    for (int i = 0; i < s->tasks.nr; i++) {
        struct err none = ERR_INIT;
        space_init(&s->space[i]);
        if (d->class->space(d, s->tasks.task[i], &s->space[i], &none) < 0)
            s->space[i].nr_sketches = 0;
    }
    return 0;
}

static void keep_code(struct source *s, const struct event *ev)
{
    if (ev->trial < 1 || ev->trial > MOST_TRIALS)
        return;
    if (ev->trial >= s->nr_codes) {
        int64_t nr = 2 * ev->trial + 64;
        s->code = xrealloc(s->code, (size_t)nr * sizeof *s->code);
        memset(s->code + s->nr_codes, 0, (size_t)(nr - s->nr_codes) * sizeof *s->code);
        s->nr_codes = nr;
    }
    free(s->code[ev->trial]);
    s->code[ev->trial] = xstrdup(ev->u.proposed.code);
}

static void take_trial(struct source *s, const struct event *ev, struct lessons *out)
{
    struct candidate c;
    struct err none = ERR_INIT;
    double cost = cost_model_cost(ev->u.trial.status, ev->u.trial.cost_ns,
                                  ev->u.trial.nr_samples, ev->u.trial.sample_ns);
    if (ev->task < 0 || ev->task >= s->tasks.nr || ev->trial < 1 || ev->trial >= s->nr_codes ||
        !s->code[ev->trial] || isnan(cost))
        return;
    const struct space *space = &s->space[ev->task];
    if (!space->nr_sketches || candidate_parse(space, s->code[ev->trial], &c, &none) < 0 ||
        !candidate_valid(space, &c, NULL))
        return; /* of another version's space */
    const struct sketch *k = space->sketch[c.sketch];
    float row[FEATURE_ROWS][FEATURES];
    if (!k->features)
        return;
    int nr = k->features(k, &c, row);
    lessons_add(out, s->first + ev->task, (const float(*)[FEATURES])row, nr, cost);
}

static int check_target(const struct event *ev, const struct device *d, struct err *e)
{
    const char *mine = d->class->info(d)->target;
    if (strcmp(ev->u.session.target, mine) == 0)
        return 0;
    return err_set(e, ERR_INPUT, "it was tuned for %s, and this is %s: its times say nothing here",
                   ev->u.session.target, mine);
}

static int read_events(struct source *s, struct device *d, struct lessons *out, struct err *e)
{
    struct event ev;
    int rc;
    while ((rc = feed_next(s->feed, &ev, e)) == 1) {
        int other = ev.kind == EV_SESSION ? check_target(&ev, d, e) : 0;
        if (other)
            return other;
        if (ev.kind == EV_PROPOSED)
            keep_code(s, &ev);
        else if (ev.kind == EV_TRIAL)
            take_trial(s, &ev, out);
    }
    return rc;
}

int learn_from(const char *path, struct device *device, struct lessons *out, struct err *e)
{
    struct source s = {0};
    for (int i = 0; i < out->nr; i++)
        if (out->v[i].task >= s.first)
            s.first = out->v[i].task + 1;
    int before = out->nr, rc = session_open(path, SESSION_READ, &s.session, e);
    rc = rc ? rc : feed_open(path, 0, &s.feed, e);
    rc = rc ? rc : open_spaces(&s, device, e);
    rc = rc ? rc : read_events(&s, device, out, e);
    if (!rc && out->nr == before)
        rc = err_set(e, ERR_INPUT, "it has no trials of this version's kernels");
    if (rc)
        err_prefix(e, "cannot learn from \"%s\"", path);
    feed_free(s.feed);
    session_close(s.session, NULL);
    for (int i = 0; i < s.tasks.nr && s.space; i++)
        space_release(&s.space[i]);
    for (int64_t i = 0; i < s.nr_codes; i++)
        free(s.code[i]);
    free(s.space);
    free(s.code);
    task_list_release(&s.tasks);
    return rc;
}
