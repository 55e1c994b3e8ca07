/* SPDX-License-Identifier: Apache-2.0 */
#include "ui/flow.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine/base/arena.h"
#include "engine/model/regions.h"
#include "engine/tune/survey.h"
#include "ui/format.h"
#include "ui/watch.h"

#define ALL_PLAIN "plain"

/* ---- the text ---- */

/* "3 CHOICE": the number, and where the choice begins; NULL where the line is none. */
static const char *read_line(const char *line, int *input)
{
    char *end;
    if (*line < '0' || *line > '9')
        return NULL;
    long v = strtol(line, &end, 10);
    *input = (int)v;
    return v < CLI_MAX_INPUTS && end[0] == ' ' && end[1] && end[1] != '\n' ? end + 1 : NULL;
}

static const char *next_line(const char *line)
{
    line += strcspn(line, "\n");
    return *line ? line + 1 : line;
}

void flow_options(const char *flow, int input, struct model_options *o)
{
    if (!flow)
        return;
    if (strcmp(flow, ALL_PLAIN) == 0) {
        o->block = 1;
        return;
    }
    int of;
    for (const char *line = flow, *choice; *line; line = next_line(line))
        if ((choice = read_line(line, &of)) && of == input)
            o->plain = choice;
}

int flow_check(const char *flow, int nr_inputs, struct err *e)
{
    int last = -1;
    if (strcmp(flow, ALL_PLAIN) == 0)
        return 0;
    for (const char *line = flow; *line; line = next_line(line)) {
        int of, shown = (int)strcspn(line, "\n");
        if (!read_line(line, &of) || of <= last || of >= nr_inputs)
            return err_set(e, ERR_SESSION, "\"%.*s\" does not say how an input flows",
                           shown < 60 ? shown : 60, line);
        last = of;
    }
    return 0;
}

/* ---- the survey ---- */

struct flows {
    const struct cli_options *o;
    struct device *device;
    struct task_list tasks;                 /* of all inputs, in both forms */
    struct regions regions[CLI_MAX_INPUTS]; /* of each input */
    bool *wanted;                           /* of each task */
    int nr_wanted;
    double *cost_ns;
    bool stuck;
};

/* A workload by name is one kernel. */
static int find_regions(struct flows *f, struct err *e)
{
    int rc = 0;
    for (int i = 0; i < f->o->nr_inputs && !rc; i++) {
        struct model_options o = {.block = f->device->class->info(f->device)->lanes};
        if (model_is_named_workload(f->o->input[i]))
            continue;
        struct graph *g = input_graph(f->o->input[i], f->o->shapes, &o.block, e);
        rc = g ? regions_find(&f->regions[i], g, &o, &f->tasks, e) : e->code;
        graph_free(g);
    }
    return rc;
}

static void list_wanted(struct flows *f)
{
    f->wanted = xcalloc((size_t)f->tasks.nr + 1, sizeof *f->wanted);
    f->cost_ns = xcalloc((size_t)f->tasks.nr + 1, sizeof *f->cost_ns);
    for (int i = 0; i < f->o->nr_inputs; i++)
        for (int k = 0; k < f->regions[i].nr; k++)
            for (int c = 0; c < f->regions[i].region[k].nr_changes; c++)
                f->wanted[f->regions[i].region[k].change[c].task] = true;
    for (int i = 0; i < f->tasks.nr; i++)
        f->nr_wanted += f->wanted[i];
}

static int survey(struct flows *f, int signals, struct err *e)
{
    if (!f->o->json)
        fprintf(stderr, "layouts: measuring %d kernels, in blocks or plain\n", f->nr_wanted);
    struct survey *s = survey_start(&f->o->tune, &f->tasks, f->wanted, f->device, e);
    if (!s)
        return e->code;
    watch_quietly(survey_conductor(s), signals);
    int rc = survey_join(s, f->cost_ns, e);
    f->stuck = conductor_stuck(survey_conductor(s)) > 0;
    survey_free(s);
    return rc;
}

static int measure(struct flows *f, struct err *e)
{
    sigset_t before;
    int signals = watch_signals(&before, e);
    if (signals < 0)
        return e->code;
    int rc = survey(f, signals, e);
    close(signals);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return rc;
}

static void say_gain(const struct regions_gain *g)
{
    char plain[FORMAT_MAX], blocked[FORMAT_MAX];
    if (g->kernels)
        fprintf(stderr, "layouts: %d kernel%s plain, %s instead of %s (measured)\n", g->kernels,
                g->kernels == 1 ? " flows" : "s flow", format_time(plain, g->plain_ns),
                format_time(blocked, g->blocked_ns));
    else
        fprintf(stderr, "layouts: in blocks wherever they can be (measured)\n");
}

static void choose(struct flows *f, struct strbuf *flow)
{
    struct regions_gain gain = {0};
    for (int i = 0; i < f->o->nr_inputs; i++) {
        struct strbuf choice = {0};
        regions_choose(&f->regions[i], f->cost_ns, &choice, &gain);
        if (choice.len)
            strbuf_addf(flow, "%d %s\n", i, strbuf_text(&choice));
        strbuf_release(&choice);
    }
    if (!f->o->json)
        say_gain(&gain);
}

static void release(struct flows *f)
{
    for (int i = 0; i < CLI_MAX_INPUTS; i++)
        regions_release(&f->regions[i]);
    task_list_release(&f->tasks);
    free(f->wanted);
    free(f->cost_ns);
    free(f);
}

int flow_survey(const struct cli_options *o, struct device *device, struct strbuf *flow,
                bool *stuck, struct err *e)
{
    struct flows *f = xcalloc(1, sizeof *f);
    f->o = o;
    f->device = device;
    int rc = find_regions(f, e);
    if (!rc)
        list_wanted(f);
    if (!rc && f->nr_wanted && !(rc = measure(f, e)))
        choose(f, flow);
    *stuck = f->stuck;
    if (!f->stuck) /* else a builder still reads the tasks */
        release(f);
    return rc;
}
