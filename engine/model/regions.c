/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/model/regions.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Medians of a few trials repeat within two or three percent: less is no gain. */
#define LEAST_GAIN 0.03

/* Where more kernels than that pass blocks on for each conversion, blocks gain more than it costs,
 * and to measure them all would take long. */
enum { MOST_KERNELS_EACH = 3 };

/* Each region is planned once, with all calls of the model; bounds what a hostile file costs. Real
 * networks have some dozen regions and some hundred calls. */
enum { MAX_PLANNED_CALLS = 100000 };

/* ---- the plan in blocks ---- */

struct finder {
    const struct plan *p;
    const struct task_list *tasks;
    int nr_groups;
    int *up;         /* union-find: groups, then buffers */
    bool *had, *has; /* of buffers: kernels on blocks are before it; are behind it */
    int *inner;      /* of the root of a set: conversions within the model */
};

static int find(int *up, int i)
{
    while (up[i] != i)
        i = up[i] = up[up[i]];
    return i;
}

static int memory_of(const struct finder *f, int buffer)
{
    int64_t offset;
    return plan_root(f->p, buffer, &offset);
}

static bool is_blocked(const struct finder *f, int buffer)
{
    return f->p->buffer[buffer].block > 1;
}

/* The buffer of operand `t`, -1 where that is none. */
static int operand_buffer(const struct finder *f, const struct plan_call *c, int t)
{
    enum wl_role role = f->tasks->task[c->task]->wl.tensor[t].role;
    return role == WL_INPUT || role == WL_OUTPUT ? c->operand[t] : -1;
}

static int result_buffer(const struct finder *f, const struct plan_call *c)
{
    return c->operand[workload_output(&f->tasks->task[c->task]->wl)];
}

static int nr_operands(const struct finder *f, const struct plan_call *c)
{
    return f->tasks->task[c->task]->wl.nr_tensors;
}

/* Does a group work on blocks here? Conversions do not. */
static bool works_on_blocks(const struct finder *f, const struct plan_call *c)
{
    bool any = false;
    for (int t = 0; t < nr_operands(f, c) && c->group >= 0; t++) {
        int b = operand_buffer(f, c, t);
        any |= b >= 0 && is_blocked(f, b);
    }
    return any;
}

/* Groups that share a value in blocks are of one set, with the memory the value is in. */
static void join_groups(struct finder *f)
{
    for (int i = 0; i < f->nr_groups + f->p->nr_buffers; i++)
        f->up[i] = i;
    for (int i = 0; i < f->p->nr_calls; i++) {
        const struct plan_call *c = &f->p->call[i];
        for (int t = 0; t < nr_operands(f, c) && c->group >= 0; t++) {
            int b = operand_buffer(f, c, t);
            if (b >= 0 && is_blocked(f, b))
                f->up[find(f->up, c->group)] = find(f->up, f->nr_groups + memory_of(f, b));
        }
    }
}

static void look_back(struct finder *f)
{
    for (int i = 0; i < f->p->nr_calls; i++) {
        const struct plan_call *c = &f->p->call[i];
        bool any = works_on_blocks(f, c);
        for (int t = 0; t < nr_operands(f, c); t++) {
            int b = operand_buffer(f, c, t);
            any |= b >= 0 && f->had[memory_of(f, b)];
        }
        f->had[memory_of(f, result_buffer(f, c))] |= any;
    }
}

static void look_ahead(struct finder *f)
{
    for (int i = f->p->nr_calls; i-- > 0;) {
        const struct plan_call *c = &f->p->call[i];
        bool any = works_on_blocks(f, c) || f->has[memory_of(f, result_buffer(f, c))];
        for (int t = 0; t < nr_operands(f, c) && any; t++) {
            int b = operand_buffer(f, c, t);
            if (b >= 0)
                f->has[memory_of(f, b)] = true;
        }
    }
}

static void count_conversions(struct finder *f)
{
    for (int i = 0; i < f->p->nr_calls; i++) {
        const struct plan_call *c = &f->p->call[i];
        if (c->group >= 0)
            continue;
        int to = result_buffer(f, c), from = -1;
        for (int t = 0; t < nr_operands(f, c); t++) {
            int b = operand_buffer(f, c, t);
            from = b >= 0 && b != to ? b : from;
        }
        bool packs = is_blocked(f, to);
        bool edge = packs ? !f->had[memory_of(f, from)] : !f->has[memory_of(f, to)];
        if (!edge)
            f->inner[find(f->up, f->nr_groups + memory_of(f, packs ? to : from))]++;
    }
}

/* The region whose set has that root, without its changes, if its conversions are worth a look. */
static void add_region(struct regions *r, struct finder *f, int root)
{
    struct region x = {.group = xcalloc((size_t)f->nr_groups, sizeof *x.group)};
    for (int i = 0; i < f->nr_groups; i++)
        if (find(f->up, i) == root)
            x.group[x.nr_groups++] = i;
    if (x.nr_groups > MOST_KERNELS_EACH * f->inner[root]) {
        free(x.group);
        return;
    }
    GROW(r->region, r->nr, r->cap);
    r->region[r->nr++] = x;
}

static void find_sets(struct regions *r, const struct plan *p, const struct task_list *tasks)
{
    size_t nr = (size_t)(p->nr_groups + p->nr_buffers);
    struct finder f = {.p = p, .tasks = tasks, .nr_groups = p->nr_groups};
    f.up = xcalloc(nr, sizeof *f.up);
    f.inner = xcalloc(nr, sizeof *f.inner);
    f.had = xcalloc(nr, sizeof *f.had);
    f.has = xcalloc(nr, sizeof *f.has);
    join_groups(&f);
    look_back(&f);
    look_ahead(&f);
    count_conversions(&f);
    for (size_t i = 0; i < nr; i++)
        if (f.inner[i])
            add_region(r, &f, (int)i);
    r->nr_groups = p->nr_groups;
    free(f.up);
    free(f.inner);
    free(f.had);
    free(f.has);
}

/* ---- what changes with a region plain ---- */

static void write_groups(const bool *plain, int nr_groups, struct strbuf *text)
{
    char between = ':';
    strbuf_addf(text, "%d", nr_groups);
    for (int i = 0; i < nr_groups; i++) {
        if (!plain[i] || (i && plain[i - 1]))
            continue;
        int last = i;
        while (last + 1 < nr_groups && plain[last + 1])
            last++;
        strbuf_addf(text, last > i ? "%c%d-%d" : "%c%d", between, i, last);
        between = ',';
    }
}

static int conversions_of(const struct plan *p)
{
    int nr = 0;
    for (int i = 0; i < p->nr_calls; i++)
        nr += p->call[i].group < 0;
    return nr;
}

static void add_change(struct region *x, int task, int calls)
{
    x->change[x->nr_changes++] = (struct region_change){task, calls};
}

/* From the calls of the plan in blocks to those of the one with the region plain. */
static void set_changes(struct region *x, const struct plan *from, const struct plan *to,
                        int nr_tasks)
{
    int *calls = xcalloc((size_t)nr_tasks, sizeof *calls), nr = 0;
    for (int i = 0; i < from->nr_calls; i++)
        calls[from->call[i].task]--;
    for (int i = 0; i < to->nr_calls; i++)
        calls[to->call[i].task]++;
    for (int i = 0; i < nr_tasks; i++)
        nr += calls[i] != 0;
    x->change = xcalloc((size_t)nr, sizeof *x->change);
    for (int i = 0; i < nr_tasks; i++)
        if (calls[i])
            add_change(x, i, calls[i]);
    free(calls);
}

static void set_plain(const struct region *x, bool *plain, bool value)
{
    for (int i = 0; i < x->nr_groups; i++)
        plain[x->group[i]] = value;
}

/* Plans the model with the region plain. Can it be, and has it fewer conversions then? */
static bool plan_region(struct region *x, const struct plan *blocked, const struct model_options *o,
                        struct task_list *tasks)
{
    struct err none = ERR_INIT;
    struct plan p = {0};
    struct strbuf text = {0};
    struct model_options with = *o;
    bool *plain = xcalloc((size_t)blocked->nr_groups, sizeof *plain);
    set_plain(x, plain, true);
    write_groups(plain, blocked->nr_groups, &text);
    with.plain = strbuf_text(&text);
    bool saves = plan_build(&p, blocked->graph, &with, tasks, &none) == 0 &&
                 conversions_of(&p) < conversions_of(blocked);
    if (saves)
        set_changes(x, blocked, &p, tasks->nr);
    plan_release(&p);
    strbuf_release(&text);
    free(plain);
    return saves;
}

static void region_release(struct region *x)
{
    free(x->group);
    free(x->change);
}

void regions_release(struct regions *r)
{
    for (int i = 0; i < r->nr; i++)
        region_release(&r->region[i]);
    free(r->region);
    *r = (struct regions){0};
}

int regions_find(struct regions *r, struct graph *g, const struct model_options *o,
                 struct task_list *tasks, struct err *e)
{
    struct plan p = {0};
    int rc = plan_build(&p, g, o, tasks, e), kept = 0;
    *r = (struct regions){0};
    if (!rc)
        find_sets(r, &p, tasks);
    int most = p.nr_calls ? MAX_PLANNED_CALLS / p.nr_calls : 0;
    for (int i = 0; i < r->nr; i++) {
        if (i < most && plan_region(&r->region[i], &p, o, tasks))
            r->region[kept++] = r->region[i];
        else
            region_release(&r->region[i]);
    }
    r->nr = kept;
    plan_release(&p);
    return rc;
}

/* ---- the choice ---- */

/* Of the kernels that come and go with the region; the rest of the model is the same. */
static void region_cost(const struct region *x, const double *cost_ns, double *blocked_ns,
                        double *plain_ns)
{
    *blocked_ns = *plain_ns = 0;
    for (int i = 0; i < x->nr_changes; i++) {
        const struct region_change *c = &x->change[i];
        *(c->calls < 0 ? blocked_ns : plain_ns) += abs(c->calls) * cost_ns[c->task];
    }
}

void regions_choose(const struct regions *r, const double *cost_ns, struct strbuf *text,
                    struct regions_gain *gain)
{
    bool *plain = xcalloc((size_t)r->nr_groups + 1, sizeof *plain), any = false;
    for (int i = 0; i < r->nr; i++) {
        const struct region *x = &r->region[i];
        double blocked, flat;
        region_cost(x, cost_ns, &blocked, &flat);
        if (!(flat < blocked * (1 - LEAST_GAIN))) /* also where either is not known */
            continue;
        set_plain(x, plain, any = true);
        gain->kernels += x->nr_groups;
        gain->blocked_ns += blocked;
        gain->plain_ns += flat;
    }
    if (any)
        write_groups(plain, r->nr_groups, text);
    free(plain);
}

/* A number from 0 to `most`; *text is moved behind it. */
static bool read_number(const char **text, int most, int *out)
{
    if (**text < '0' || **text > '9')
        return false;
    char *end;
    errno = 0;
    long v = strtol(*text, &end, 10);
    *text = end;
    *out = (int)v;
    return !errno && v <= most;
}

/* "3,17-19": rising, up to the end of the line. */
static bool read_groups(const char *p, int nr_groups, bool *plain)
{
    int next = 0;
    for (;;) {
        int from, to;
        if (!read_number(&p, nr_groups - 1, &from) || from < next)
            return false;
        to = from;
        if (*p == '-' && (p++, !read_number(&p, nr_groups - 1, &to) || to <= from))
            return false;
        for (int i = from; i <= to; i++)
            plain[i] = true;
        next = to + 1;
        if (!*p || *p == '\n')
            return true;
        if (*p++ != ',')
            return false;
    }
}

int regions_read(const char *text, int nr_groups, bool *plain, struct err *e)
{
    const char *p = text;
    int nr, shown = (int)strcspn(text, "\n");
    if (!read_number(&p, INT_MAX, &nr) || *p != ':')
        return err_set(e, ERR_INPUT, "\"%.*s\" does not say which kernels flow plain",
                       shown < 60 ? shown : 60, text);
    if (nr != nr_groups)
        return err_set(e, ERR_INPUT,
                       "the layouts were chosen for a model of %d kernels, and this has %d: tune "
                       "it anew",
                       nr, nr_groups);
    if (!read_groups(p + 1, nr_groups, plain))
        return err_set(e, ERR_INPUT, "\"%.*s\" does not say which of %d kernels flow plain",
                       shown < 60 ? shown : 60, text, nr_groups);
    return 0;
}
