/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/library_private.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Bytes: a line of the cache, and what kernels may read behind an array. */
enum { ALIGN = 64, SLACK = 64 };

/* Words of C and C++, and what gcc defines. */
static bool is_taken(const char *name)
{
    static const char *const words[] = {
        "and",    "asm",     "auto",     "bool",      "break",    "case",  "catch",
        "char",   "class",   "const",    "default",   "delete",   "do",    "double",
        "else",   "enum",    "explicit", "export",    "extern",   "false", "float",
        "for",    "friend",  "goto",     "if",        "inline",   "int",   "linux",
        "long",   "module",  "mutable",  "namespace", "new",      "not",   "operator",
        "or",     "private", "public",   "register",  "return",   "short", "signed",
        "sizeof", "static",  "struct",   "switch",    "template", "this",  "throw",
        "true",   "try",     "typedef",  "typename",  "union",    "unix",  "unsigned",
        "using",  "virtual", "void",     "volatile",  "while",    "xor",
    };
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (!strcmp(name, words[i]))
            return true;
    return false;
}

void library_name(const char *text, char *out, size_t size)
{
    size_t n = 0;
    if (isdigit((unsigned char)*text))
        out[n++] = 'm';
    for (; *text && n + 1 < size; text++)
        out[n++] = isalnum((unsigned char)*text) ? *text : '_';
    out[n] = '\0';
    if (!n || is_taken(out))
        snprintf(out + n, size - n, "model");
}

char *library_path(const char *folder, const char *kind, const char *name)
{
    struct strbuf path = {0};
    const char *hole = strstr(kind, "%s");
    strbuf_addf(&path, "%s/%.*s%s%s", folder, (int)(hole - kind), kind, name, hole + 2);
    return strbuf_detach(&path);
}

/* ---- kernels ---- */

static int choose(struct library *l, int task, const struct space *s, struct candidate *c)
{
    const char *code = l->o->code[task];
    if (code && !candidate_parse(s, code, c, NULL) && candidate_valid(s, c, NULL))
        return 0;
    if (code) {
        l->stale[task] = true;
        l->r->nr_stale++;
    }
    if (!s->nr_sketches)
        return err_set(l->e, ERR_UNSUPPORTED, "task \"%s\" has no schedule",
                       l->o->tasks->task[task]->name);
    *c = s->sketch[0]->start;
    return 0;
}

static int build_kernel(struct library *l, struct builder *b, int i)
{
    const struct task *t = l->o->tasks->task[i];
    struct space space;
    struct candidate c;
    struct artifact *a = &l->kernel[i];
    struct strbuf symbol = {0}, path = {0};
    space_init(&space);
    int rc = l->o->backend->space(l->o->target, t, &space, l->e);
    rc = rc ? rc : choose(l, i, &space, &c);
    strbuf_addf(&symbol, KERNEL_SYMBOL, l->o->name, i);
    strbuf_addf(&path, "%s/" KERNEL_FILE, l->work, i);
    if (!rc)
        rc = l->o->backend->build_object(b, t, &space, &c, strbuf_text(&symbol), a, l->e);
    if (rc)
        err_prefix(l->e, "kernel \"%s\"", t->name);
    else
        rc = library_write_file(strbuf_text(&path), a->code, a->code_bytes, l->e);
    free(a->code);
    a->code = NULL;
    l->r->nr_kernels++;
    strbuf_release(&path);
    strbuf_release(&symbol);
    space_release(&space);
    return rc;
}

static int build_kernels(struct library *l)
{
    const struct plan *p = l->o->plan;
    if (!l->o->backend->build_object)
        return err_set(l->e, ERR_UNSUPPORTED, "kernels of backend \"%s\" cannot be linked",
                       l->o->backend->name);
    struct builder *b = l->o->backend->builder_new(l->o->target, l->e);
    int rc = b ? 0 : ERR_BACKEND;
    for (int i = 0; i < p->nr_calls && !rc; i++)
        if (!l->kernel[p->call[i].task].nr_buffers)
            rc = build_kernel(l, b, p->call[i].task);
    if (b)
        l->o->backend->builder_free(b);
    return rc;
}

/* ---- memory ---- */

static int add_item(struct library *l, int64_t bytes, int step)
{
    GROW(l->item, l->nr_items, l->cap_items);
    l->item[l->nr_items] = (struct memory_item){.bytes = bytes, .first = step, .last = step};
    l->r->apart_bytes += (bytes + ALIGN - 1) / ALIGN * ALIGN;
    return l->nr_items++;
}

static int64_t stored_size(const struct plan *p, int buffer)
{
    return layout_stored_size(&p->buffer[buffer].layout);
}

/* The caller's arrays: inputs, and outputs that are all of their memory and no other output's. */
static void place_outside(struct library *l)
{
    const struct plan *p = l->o->plan;
    const struct graph *g = p->graph;
    for (int i = 0; i < p->nr_buffers; i++)
        l->root[i] = (struct address){.place = PLACE_ARENA, .index = -1};
    for (int i = 0; i < p->nr_buffers; i++)
        for (int k = 0; k < g->nr_inputs; k++)
            if (p->buffer[i].is_outside && p->buffer[i].value == g->input[k])
                l->root[i] = (struct address){.place = PLACE_INPUT, .index = k};
    for (int k = 0; k < g->nr_outputs; k++) {
        int b = plan_output(p, g->output[k]);
        int64_t offset = 0;
        int root = b < 0 ? -1 : plan_root(p, b, &offset);
        if (root >= 0 && l->root[root].place == PLACE_ARENA && offset == 0 &&
            stored_size(p, root) == stored_size(p, b))
            l->root[root] = (struct address){.place = PLACE_OUTPUT, .index = k};
    }
}

/* Where buffer `b` of the plan is while call `step` runs. */
static struct address locate(struct library *l, int b, int step)
{
    int64_t offset;
    int root = plan_root(l->o->plan, b, &offset);
    struct address *a = &l->root[root];
    if (a->place == PLACE_ARENA && a->index < 0)
        a->index =
            add_item(l, stored_size(l->o->plan, root) * (int64_t)sizeof(float) + SLACK, step);
    if (a->place == PLACE_ARENA)
        l->item[a->index].last = step;
    return (struct address){a->place, a->index, a->offset + offset};
}

static void place_call(struct library *l, int step)
{
    const struct plan_call *from = &l->o->plan->call[step];
    struct library_call *c = &l->call[step];
    const struct artifact *a = &l->kernel[from->task];
    c->task = from->task;
    c->nr = a->nr_buffers;
    for (int i = 0; i < a->nr_buffers; i++) {
        const struct buffer *b = &a->buf[i];
        if (b->role == BUF_CONST)
            continue; /* library_pack() */
        c->buf[i] = b->role == BUF_SCRATCH
                        ? (struct address){PLACE_ARENA, add_item(l, b->bytes + SLACK, step), 0}
                        : locate(l, from->operand[b->tensor], step);
    }
}

static void place_all(struct library *l)
{
    const struct plan *p = l->o->plan;
    place_outside(l);
    for (int i = 0; i < p->nr_calls; i++)
        place_call(l, i);
    for (int k = 0; k < p->graph->nr_outputs; k++) {
        int b = plan_output(p, p->graph->output[k]);
        if (b >= 0)
            l->output[k] = locate(l, b, p->nr_calls);
    }
    l->r->nr_calls = p->nr_calls;
    l->r->arena_bytes = memory_place(l->item, l->nr_items, ALIGN);
}

/* ---- files ---- */

static int make_folder(const char *path, struct err *e)
{
    struct stat st;
    if (mkdir(path, 0777) && errno != EEXIST)
        return err_set(e, ERR_IO, "cannot make the folder \"%s\": %s", path, strerror(errno));
    if (stat(path, &st) || !S_ISDIR(st.st_mode))
        return err_set(e, ERR_IO, "\"%s\" is no folder", path);
    return 0;
}

static int make_work(struct library *l)
{
    struct strbuf path = {0};
    int rc = make_folder(l->o->folder, l->e);
    strbuf_addf(&path, "%s/.squall-XXXXXX", l->o->folder);
    if (!rc && !mkdtemp(path.buf))
        rc = err_set(l->e, ERR_IO, "cannot write to the folder \"%s\": %s", l->o->folder,
                     strerror(errno));
    if (!rc)
        l->work = strbuf_detach(&path);
    strbuf_release(&path);
    return rc;
}

static void remove_work(struct library *l)
{
    DIR *d = l->work ? opendir(l->work) : NULL;
    const struct dirent *f;
    while (d && (f = readdir(d)))
        unlinkat(dirfd(d), f->d_name, 0);
    if (d)
        closedir(d);
    if (l->work)
        rmdir(l->work);
}

static int write_sources(struct library *l)
{
    static const char *const kind[] = {LIBRARY_HEADER, LIBRARY_SOURCE};
    int rc = 0;
    for (int i = 0; i < 2 && !rc; i++) {
        struct strbuf text = {0};
        char *path = library_path(l->work, kind[i], l->o->name);
        if (i)
            library_source(l, &text);
        else
            library_header(l, &text);
        rc = library_write_file(path, strbuf_text(&text), text.len, l->e);
        free(path);
        strbuf_release(&text);
    }
    return rc;
}

static int move_results(struct library *l)
{
    static const char *const kind[] = {LIBRARY_WEIGHTS, LIBRARY_HEADER, LIBRARY_SOURCE,
                                       LIBRARY_OBJECT, LIBRARY_SHARED};
    int rc = 0;
    for (size_t i = 0; i < sizeof kind / sizeof *kind && !rc; i++) {
        char *from = library_path(l->work, kind[i], l->o->name);
        char *to = library_path(l->o->folder, kind[i], l->o->name);
        if (i == 0 && l->r->weights_inside)
            unlink(to); /* of an earlier library */
        else if (rename(from, to))
            rc = err_set(l->e, ERR_IO, "cannot write \"%s\": %s", to, strerror(errno));
        free(from);
        free(to);
    }
    return rc;
}

int library_write(const struct library_options *o, struct library_report *r, struct err *e)
{
    const struct plan *p = o->plan;
    size_t nr_tasks = (size_t)o->tasks->nr;
    *r = (struct library_report){0};
    struct library l = {
        .o = o,
        .r = r,
        .e = e,
        .kernel = xcalloc(nr_tasks, sizeof *l.kernel),
        .stale = xcalloc(nr_tasks, sizeof *l.stale),
        .call = xcalloc((size_t)p->nr_calls, sizeof *l.call),
        .root = xcalloc((size_t)p->nr_buffers, sizeof *l.root),
        .output = xcalloc((size_t)p->graph->nr_outputs, sizeof *l.output),
    };
    int rc = make_work(&l);
    rc = rc ? rc : build_kernels(&l);
    if (!rc)
        place_all(&l);
    rc = rc ? rc : library_pack(&l);
    rc = rc ? rc : write_sources(&l);
    rc = rc ? rc : library_link(&l);
    rc = rc ? rc : move_results(&l);
    remove_work(&l);
    free(l.work);
    free(l.packed);
    free(l.item);
    free(l.output);
    free(l.root);
    free(l.call);
    free(l.stale);
    free(l.kernel);
    return rc;
}
