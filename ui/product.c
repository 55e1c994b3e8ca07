/* SPDX-License-Identifier: Apache-2.0 */
#include "ui/product.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/model/evaluate.h"
#include "engine/tune/board.h"
#include "sessions/feed.h"
#include "ui/cli.h"
#include "ui/flow.h"
#include "ui/product_manifest.h"

/* ---- the model ---- */

/* Whatever is behind the Softmax only changes the shape. */
static int cut_softmax(struct graph *g, struct err *e)
{
    int v = g->output[0], n = g->value[v]->node;
    while (n >= 0 && g->node[n]->op.kind == OP_RESHAPE)
        n = g->value[g->node[n]->in[0]]->node;
    if (n < 0 || g->node[n]->op.kind != OP_SOFTMAX)
        return err_set(e, ERR_INPUT, "model \"%s\" does not end in a Softmax: it has no logits",
                       g->name);
    g->value[v]->is_output = false;
    g->output[0] = g->node[n]->in[0];
    g->value[g->output[0]]->is_output = true;
    graph_mark_live(g);
    return 0;
}

int product_load(const struct product_source *s, struct product_model *m, struct err *e)
{
    struct model_options o = {.block = s->block, .plain = *s->plain ? s->plain : NULL};
    *m = (struct product_model){.graph = input_graph(s->input, s->shapes, &o.block, e)};
    if (!m->graph)
        return e->code;
    int rc = s->logits ? cut_softmax(m->graph, e) : 0;
    rc = rc ? rc : plan_build(&m->plan, m->graph, &o, &m->tasks, e);
    if (rc)
        product_release(m);
    else
        graph_seed(m->graph, s->seed_weights);
    return rc;
}

void product_release(struct product_model *m)
{
    plan_release(&m->plan);
    task_list_release(&m->tasks);
    graph_free(m->graph);
    *m = (struct product_model){0};
}

/* ---- the session ---- */

/* What is compiled, from the session and the command line. */
struct compilation {
    const struct product_options *o;
    struct product *p;
    struct err *e;
    struct session *s;
    struct board board;
    const struct backend *backend;
    struct target *target;
    struct product_model model;
    int number, nr_inputs; /* of its input among the session's */
    const char **code, **origin; /* of each task */
};

static int read_board(struct compilation *c)
{
    struct feed *f;
    struct event ev;
    int rc = feed_open(c->o->session, 0, &f, c->e);
    if (rc)
        return rc;
    while ((rc = feed_next(f, &ev, c->e)) == 1)
        board_apply(&c->board, &ev);
    feed_free(f);
    if (!rc && !c->board.has_session)
        rc = err_set(c->e, ERR_SESSION, "session \"%s\" has not begun yet: resume it first",
                     c->o->session);
    return rc;
}

static bool is_input(const char *stored, const char *given)
{
    size_t n = strlen(stored), m = strlen(given);
    return !strcmp(stored, given) ||
           (n > m && stored[n - m - 1] == '/' && !strcmp(stored + n - m, given));
}

/* The session's only input, or the one that was named. */
static int choose_input(struct compilation *c)
{
    struct strbuf lines = {0};
    int rc = session_get(c->s, KEY_INPUTS, &lines, c->e), nr = 0;
    if (rc != 1)
        return rc < 0 ? rc
                      : err_set(c->e, ERR_SESSION, "session \"%s\" does not say what it tunes",
                                c->o->session);
    struct strbuf all = {0};
    char *save = NULL;
    for (char *p = strtok_r(lines.buf, "\n", &save); p; p = strtok_r(NULL, "\n", &save)) {
        strbuf_addf(&all, "%s%s", nr++ ? ", " : "", p);
        if (c->o->input ? is_input(p, c->o->input) : nr == 1) {
            free(c->p->input);
            c->p->input = xstrdup(p);
            c->number = nr - 1;
        }
    }
    c->nr_inputs = nr;
    if (c->o->input && !c->p->input)
        rc = err_set(c->e, ERR_INPUT, "session \"%s\" does not tune \"%s\" but %.500s",
                     c->o->session, c->o->input, strbuf_text(&all));
    else if (!c->o->input && nr > 1)
        rc = err_set(c->e, ERR_INPUT,
                     "session \"%s\" tunes several models, name one of them behind "
                     "it: %.500s",
                     c->o->session, strbuf_text(&all));
    else
        rc = session_check_inputs(c->s, c->e);
    strbuf_release(&all);
    strbuf_release(&lines);
    return rc;
}

static int open_named(struct compilation *c, const char *name)
{
    const char *spec;
    c->backend = backend_of_target(name, &spec, c->e);
    return c->backend ? c->backend->target_open(spec, c->p->threads, &c->target, c->e) : ERR_USAGE;
}

/*
 * The target as it was asked for, and else as the session was given it; on another machine that is
 * another processor, and then the one that the session was tuned for is built for by its name.
 */
static int open_target(struct compilation *c)
{
    const struct event *ev = &c->board.session;
    const char *tuned = ev->u.session.target;
    struct strbuf given = {0};
    c->p->threads = ev->u.session.threads > 0 ? ev->u.session.threads : 1;
    if (session_get(c->s, KEY_TARGET, &given, NULL) != 1)
        strbuf_adds(&given, tuned);
    int rc = open_named(c, c->o->target ? c->o->target : strbuf_text(&given));
    strbuf_release(&given);
    if (rc)
        return rc;
    if (!strcmp(c->backend->target_info(c->target)->target, tuned))
        return 0;
    if (c->o->target)
        return err_set(c->e, ERR_INPUT,
                       "session \"%s\" was tuned for %s, not for %s, and its "
                       "schedules are not used for another target; tune for that one with "
                       "squall tune --target %s",
                       c->o->session, tuned, c->backend->target_info(c->target)->target,
                       c->o->target);
    c->backend->target_close(c->target);
    c->target = NULL;
    return open_named(c, tuned);
}

/* ---- schedules ---- */

/* Tasks with other numbers in them may have equal workloads: their name then tells. */
static const struct board_task *find_task(const struct board *b, const struct task *t)
{
    const struct board_task *found = NULL;
    for (int i = 0; i < b->nr_tasks; i++)
        if (!strcmp(b->task[i].workload, t->wl.id) && (!found || !strcmp(b->task[i].name, t->name)))
            found = &b->task[i];
    return found;
}

static void choose_schedules(struct compilation *c)
{
    struct product *p = c->p;
    for (int i = 0; i < c->model.tasks.nr; i++) {
        const struct board_task *k = find_task(&c->board, c->model.tasks.task[i]);
        int64_t id = !k                 ? 0
                     : k->best_refined  ? k->best_refined
                     : k->best_explored ? k->best_explored
                                        : k->default_trial;
        const struct board_trial *best = board_trial(&c->board, id);
        c->code[i] = best && best->status == TRIAL_OK && best->code[0] ? best->code : NULL;
        c->origin[i] = !c->code[i]              ? "default, for want of a result"
                       : id == k->default_trial ? "default"
                       : id == k->best_refined  ? "refined"
                                                : "explored";
        p->nr_refined += *c->origin[i] == 'r';
        p->nr_explored += *c->origin[i] == 'e';
    }
}

static int make_library(struct compilation *c)
{
    struct product *p = c->p;
    char name[64];
    struct strbuf about = {0};
    const char *slash = strrchr(p->input, '/'), *file = slash ? slash + 1 : p->input;
    const char *from = strrchr(c->o->session, '/');
    library_name(c->o->name ? c->o->name : c->model.graph->name, name, sizeof name);
    p->name = xstrdup(name);
    strbuf_addf(&about, "%s, compiled by squall %s for %s, %d thread%s, from session %s", file,
                SQUALL_VERSION, p->target, p->threads, p->threads == 1 ? "" : "s",
                from ? from + 1 : c->o->session);
    struct library_options l = {.folder = c->o->folder,
                                .name = name,
                                .about = strbuf_text(&about),
                                .backend = c->backend,
                                .target = c->target,
                                .plan = &c->model.plan,
                                .tasks = &c->model.tasks,
                                .code = c->code,
                                .origin = c->origin,
                                .weights = c->o->weights};
    int rc = library_write(&l, &p->report, c->e);
    p->nr_default = p->report.nr_kernels - p->nr_refined - p->nr_explored;
    strbuf_release(&about);
    return rc;
}

/* As the session's kernels were planned. */
static int read_layouts(struct compilation *c, int lanes)
{
    struct model_options o = {.block = lanes};
    struct strbuf flow = {0};
    int rc = session_get(c->s, KEY_LAYOUT, &flow, c->e) < 0 ? c->e->code : 0;
    rc = rc ? rc : flow_check(strbuf_text(&flow), c->nr_inputs, c->e);
    if (rc)
        err_prefix(c->e, "session \"%s\" is damaged", c->o->session);
    else
        flow_options(strbuf_text(&flow), c->number, &o);
    struct strbuf plain = {0};
    if (o.plain)
        strbuf_add(&plain, o.plain, strcspn(o.plain, "\n"));
    c->p->block = o.block;
    c->p->plain = strbuf_detach(&plain);
    strbuf_release(&flow);
    return rc;
}

/* Session and target are open. */
static int compile(struct compilation *c)
{
    struct product *p = c->p;
    const struct device_info *info = c->backend->target_info(c->target);
    p->target = xstrdup(info->target);
    p->compiler = xstrdup(info->compiler);
    p->tuned_with = xstrdup(c->board.session.u.session.compiler);
    p->session = xstrdup(c->o->session);
    p->seed_weights = c->o->seed_weights;
    p->logits = c->o->logits;
    struct strbuf shapes = {0};
    session_get(c->s, KEY_SHAPES, &shapes, NULL); /* only there where some were given */
    p->shapes = strbuf_detach(&shapes);
    int rc = read_layouts(c, info->lanes);
    rc = rc ? rc : manifest_hash(p->input, &p->input_hash, c->e);
    struct product_source source = {p->input,  p->shapes,        p->block,
                                    p->plain, p->seed_weights, p->logits};
    rc = rc ? rc : product_load(&source, &c->model, c->e);
    if (rc)
        return rc;
    c->code = xcalloc((size_t)c->model.tasks.nr, sizeof *c->code);
    c->origin = xcalloc((size_t)c->model.tasks.nr, sizeof *c->origin);
    choose_schedules(c);
    rc = make_library(c);
    rc = rc ? rc : manifest_write(c->o->folder, p, c->e);
    free(c->origin);
    free(c->code);
    product_release(&c->model);
    return rc;
}

int product_compile(const struct product_options *o, struct product *out, struct err *e)
{
    struct compilation c = {.o = o, .p = out, .e = e};
    *out = (struct product){0};
    board_init(&c.board);
    int rc = session_open(o->session, SESSION_READ, &c.s, e);
    rc = rc ? rc : read_board(&c);
    rc = rc ? rc : choose_input(&c);
    rc = rc ? rc : open_target(&c);
    rc = rc ? rc : compile(&c);
    if (c.target)
        c.backend->target_close(c.target);
    session_close(c.s, NULL);
    board_release(&c.board);
    if (rc)
        product_clear(out);
    return rc;
}
