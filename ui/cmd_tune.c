/* SPDX-License-Identifier: Apache-2.0 */
/* `tune` and `resume`: from inputs, or from what a session says of them, to a running conductor. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "backends/local.h"
#include "engine/base/cpu_cache.h"
#include "engine/base/strbuf.h"
#include "scripts/lua_model.h"
#include "sessions/store.h"
#include "ui/cli.h"
#include "ui/flow.h"
#include "ui/learn.h"
#include "ui/recorded_input.h"
#include "ui/restore.h"
#include "ui/run.h"

/* The network that the program carries, for a first run without any file. */
#define DEFAULT_INPUT LUA_MODEL_DEFAULT

static int make_folders(char *path, struct err *e)
{
    for (char *p = path + 1;; p++) {
        if (*p && *p != '/')
            continue;
        char c = *p;
        *p = '\0';
        if (mkdir(path, 0777) && errno != EEXIST)
            return err_set(e, ERR_IO, "cannot make the folder \"%s\": %s; name a file with "
                           "--session", path, strerror(errno));
        *p = c;
        if (!c)
            return 0;
    }
}

/* $XDG_DATA_HOME/squall/MODEL-DATE-TIME.squall */
static int default_session_path(const char *model, struct strbuf *out, struct err *e)
{
    const char *data = getenv("XDG_DATA_HOME"), *home = getenv("HOME");
    if (data && *data == '/')
        strbuf_addf(out, "%s/squall", data);
    else
        strbuf_addf(out, "%s/.local/share/squall", home && *home ? home : ".");
    int rc = make_folders(out->buf, e);
    if (rc)
        return rc;
    time_t now = time(NULL);
    struct tm tm;
    char stamp[32];
    strftime(stamp, sizeof stamp, "%Y%m%d-%H%M%S", localtime_r(&now, &tm));
    strbuf_adds(out, "/");
    for (const char *p = model; *p; p++)
        strbuf_addc(out, *p == '/' || *p == ' ' || *p == ':' ? '_' : *p);
    strbuf_addf(out, "-%s.squall", stamp);
    return 0;
}

static int store_inputs(struct session *s, const struct cli_options *o, struct err *e)
{
    struct strbuf lines = {0};
    char number[16];
    int rc = 0;
    for (int i = 0; i < o->nr_inputs && !rc; i++) {
        char *full = input_is_file(o->input[i]) ? realpath(o->input[i], NULL) : NULL;
        strbuf_addf(&lines, "%s\n", full ? full : o->input[i]);
        if (full)
            rc = session_add_input(s, full, e);
        free(full);
    }
    snprintf(number, sizeof number, "%d", o->threads);
    rc = rc ? rc : session_set(s, KEY_INPUTS, strbuf_text(&lines), e);
    rc = rc ? rc : session_set(s, KEY_TARGET, o->target, e);
    rc = rc ? rc : session_set(s, KEY_THREADS, number, e);
    if (o->task_glob)
        rc = rc ? rc : session_set(s, KEY_TASK_GLOB, o->task_glob, e);
    if (o->shapes[0])
        rc = rc ? rc : session_set(s, KEY_SHAPES, o->shapes, e);
    if (o->flow)
        rc = rc ? rc : session_set(s, KEY_LAYOUT, o->flow, e);
    if (recorded_inputs(o))
        rc = rc ? rc : recorded_store(s, o, e);
    strbuf_release(&lines);
    return rc;
}

/* Opens the device and loads the tasks; on failure nothing is left open. */
static int prepare(const struct cli_options *o, struct device **device, struct task_list *tasks,
                   struct err *e)
{
    if (recorded_inputs(o))
        return recorded_prepare(o, device, tasks, e);
    int rc = local_device_open(o->target, o->threads, device, e);
    if (rc)
        return rc;
    int lanes = (*device)->class->info(*device)->lanes;
    rc = load_inputs(o, lanes, tasks, e);
    if (rc) {
        task_list_release(tasks);
        (*device)->class->close(*device);
    }
    return rc;
}

/*
 * In a network whose weights do not fit the last-level cache each kernel finds its own in memory,
 * and a kernel that does less arithmetic on more weights may lose there what it wins when warm.
 */
static bool weights_are_cold(const struct cli_options *o, const struct task_list *tasks)
{
    if (strcmp(o->cache, "auto") != 0)
        return strcmp(o->cache, "cold") == 0;
    double bytes = 0;
    for (int i = 0; i < tasks->nr; i++) {
        const struct workload *w = &tasks->task[i]->wl;
        for (int t = 0; t < w->nr_tensors; t++)
            if (w->tensor[t].role == WL_CONST)
                bytes += tasks->task[i]->weight * 4 *
                         (double)layout_stored_size(&w->tensor[t].layout);
    }
    return bytes > (double)cpu_last_cache_bytes();
}

/*
 * Chooses the layouts by measured costs, and loads the tasks that follow from them; `flow` holds
 * what o->flow then points to. Not for a session file that is there already: that is refused soon.
 * Where a builder hangs (*stuck) the session gets another device.
 */
static int choose_layouts(struct cli_options *o, struct device **device, struct task_list *tasks,
                          struct strbuf *flow, bool *stuck, struct err *e)
{
    if (strcmp(o->layout, "auto") != 0 || recorded_inputs(o) ||
        (o->session && access(o->session, F_OK) == 0))
        return 0;
    int rc = flow_survey(o, *device, flow, stuck, e);
    if (rc == ERR_INTERRUPTED)
        err_set(e, rc, "interrupted before the session began");
    if (!rc && *stuck)
        rc = local_device_open(o->target, o->threads, device, e);
    if (rc || !flow->len)
        return rc;
    o->flow = strbuf_text(flow);
    task_list_release(tasks);
    return load_inputs(o, (*device)->class->info(*device)->lanes, tasks, e);
}

static int exit_code_of(int rc)
{
    return rc == ERR_USAGE ? EXIT_USAGE : rc == ERR_INTERRUPTED ? EXIT_INTERRUPTED : EXIT_FAILED;
}

int cmd_tune(int argc, char **argv)
{
    struct cli_options o;
    int code = cli_parse(command_find("tune"), argc, argv, &o);
    if (code >= 0)
        return code;
    if (!o.nr_inputs)
        o.input[o.nr_inputs++] = DEFAULT_INPUT;
    snprintf(o.tune.input, sizeof o.tune.input, "%s", o.input[0]);
    o.flow = strcmp(o.layout, "plain") == 0 ? o.layout : NULL;
    /* Evolution is for the sketches of kernels; of a recorded space nothing is known. */
    if (recorded_inputs(&o) && !o.given_strategy)
        strcpy(o.tune.explore_strategy, "forest");
    if (o.nr_learn_from && (!o.tune.cost_model || recorded_inputs(&o))) {
        fprintf(stderr, "squall tune: --learn-from is for the cost model, which %s has not; leave one of "
                "them out\n", o.tune.cost_model ? "a recorded space" : "this session");
        return EXIT_USAGE;
    }
    struct err e = ERR_INIT;
    struct device *device = NULL;
    struct task_list tasks = {0};
    struct strbuf path = {0}, flow = {0};
    struct lessons lessons = {0};
    int rc = prepare(&o, &device, &tasks, &e);
    if (rc) {
        cli_error(&e);
        return exit_code_of(rc);
    }
    for (int i = 0; i < o.nr_learn_from && !rc; i++)
        rc = learn_from(o.learn_from[i], device, &lessons, &e);
    o.tune.cold = weights_are_cold(&o, &tasks);
    bool stuck = false;
    rc = rc ? rc : choose_layouts(&o, &device, &tasks, &flow, &stuck, &e);
    struct session *s = NULL;
    if (o.session)
        strbuf_adds(&path, o.session);
    else if (!rc)
        rc = default_session_path(tasks.name, &path, &e);
    rc = rc ? rc : session_create(strbuf_text(&path), &o.tune, &s, &e);
    if (!rc && ((rc = store_inputs(s, &o, &e)) ||
                (lessons.nr && (rc = session_add_lessons(s, &lessons, &e)))))
        session_close(s, NULL);
    lessons_release(&lessons);
    if (rc) {
        cli_error(&e);
        code = exit_code_of(rc);
    } else {
        code = run_session(&o, s, device, &tasks, false);
    }
    if (stuck) {
        fflush(NULL);
        _exit(code);
    }
    device->class->close(device);
    task_list_release(&tasks);
    strbuf_release(&path);
    strbuf_release(&flow);
    return code;
}

/* Resume. */

static void change(struct cli_options *o, bool given, enum tune_verb verb, double value)
{
    if (given)
        o->change[o->nr_changes++] = (struct tune_command){verb, -1, value};
}

/* Those it was created with; budgets given now are commands, which change them after what is stored. */
static int restore_options(struct session *s, const struct cli_options *now,
                           struct cli_options *o, struct strbuf text[RESTORE_TEXTS], struct err *e)
{
    *o = *now;
    int rc = session_options(s, &o->tune, e);
    if (rc)
        return rc;
    const char *vain = NULL;
    if (now->given_explore && strcmp(o->tune.explore_strategy, "none") == 0)
        vain = "explore";
    if (now->given_refine && strcmp(o->tune.refine_strategy, "none") == 0)
        vain = "refine";
    if (vain)
        return err_set(e, ERR_USAGE, "session \"%s\" does not %s; leave --%s out", session_path(s),
                       vain, vain);
    change(o, now->given_explore, TUNE_EXPLORE, (double)now->tune.explore);
    change(o, now->given_refine, TUNE_REFINE, (double)now->tune.refine);
    change(o, now->given_trials, TUNE_TRIALS, (double)now->tune.trials);
    change(o, now->given_time, TUNE_SECONDS, now->tune.seconds);
    return restore_inputs(s, o, text, e);
}

int cmd_resume(int argc, char **argv)
{
    struct cli_options given, o;
    int code = cli_parse(command_find("resume"), argc, argv, &given);
    if (code >= 0)
        return code;
    if (given.nr_inputs != 1) {
        fprintf(stderr, "squall resume: wants one session; see squall resume --help\n");
        return EXIT_USAGE;
    }
    struct err e = ERR_INIT;
    struct session *s = NULL;
    struct device *device = NULL;
    struct task_list tasks = {0};
    struct strbuf text[RESTORE_TEXTS] = {{0}};
    int rc = session_open(given.input[0], given.take_over ? SESSION_TAKE_OVER : SESSION_RESUME, &s,
                          &e);
    if (rc) {
        cli_error(&e);
        return EXIT_FAILED;
    }
    rc = restore_options(s, &given, &o, text, &e);
    if (!rc)
        rc = prepare(&o, &device, &tasks, &e);
    if (rc) {
        session_close(s, NULL);
        cli_error(&e);
        code = exit_code_of(rc);
    } else {
        code = run_session(&o, s, device, &tasks, true);
        device->class->close(device);
        task_list_release(&tasks);
    }
    for (int i = 0; i < RESTORE_TEXTS; i++)
        strbuf_release(&text[i]);
    return code;
}
