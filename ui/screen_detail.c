/* SPDX-License-Identifier: Apache-2.0 */
#include "ui/screen_detail.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "ui/format.h"
#include "ui/screen_words.h"

enum { LABEL = 12 };

/* One labelled line, broken where it is too long. */
__attribute__((format(printf, 4, 5)))
static void field(struct page *l, int cols, const char *label, const char *fmt, ...)
{
    struct strbuf text = {0};
    va_list ap;
    va_start(ap, fmt);
    strbuf_vaddf(&text, fmt, ap);
    va_end(ap);
    page_wrap(l, ROLE_NORMAL, label, LABEL, cols, strbuf_text(&text));
    strbuf_release(&text);
}

static double trial_ns(const struct board_trial *t)
{
    return isfinite(t->median_ns) ? t->median_ns : t->cost_ns;
}

static const struct board_task *task_of(const struct board *b, int32_t task)
{
    return task >= 0 && task < b->nr_tasks ? &b->task[task] : NULL;
}


/* The keys that mean the command in this place: a pane may have taken one for itself. */
static void help_line(struct page *l, int cols, const struct binding *k, unsigned here)
{
    char keys[64] = "", name[KEY_NAME];
    for (int i = 0; i < 4 && k->key[i]; i++) {
        size_t n = strlen(keys);
        if (keys_lookup(k->key[i], here) == k->cmd)
            snprintf(keys + n, sizeof keys - n, "%s%s", n ? " " : "", keys_name(k->key[i], name));
    }
    page_wrap(l, ROLE_NORMAL, keys, 13, cols, k->help);
}

static void build_help(struct view *v, int cols)
{
    static const char *const panes[PANE_NR] = {"tasks", "best so far", "leaderboard", "ladder",
                                               "failures and notes"};
    struct page *l = &v->page;
    unsigned here = v->below_help ? IN_OVERLAY : 1u << v->active;
    size_t nr;
    const struct binding *table = keys_table(&nr);
    page_add(l, ROLE_STRONG, "Keys in %s", v->below_help ? "the details" : panes[v->active]);
    for (size_t i = 0; i < nr; i++)
        if (table[i].in & here && keys_lookup(table[i].key[0], here) == table[i].cmd)
            help_line(l, cols, &table[i], here);
    if (!v->below_help) {
        page_add(l, ROLE_NORMAL, "%s", "");
        page_add(l, ROLE_STRONG, "Keys of other panes");
        for (size_t i = 0; i < nr; i++)
            if (!(table[i].in & here) && table[i].in & IN_PANES)
                help_line(l, cols, &table[i], table[i].in);
    }
    page_add(l, ROLE_NORMAL, "%s", "");
    page_add(l, ROLE_STRONG, "Words");
    page_wrap(l, ROLE_NORMAL, "speedup", 13, cols,
               "how many times faster than the untuned schedule, measured in this session");
    char best[16];
    snprintf(best, sizeof best, "%s", v->g->best);
    page_wrap(l, ROLE_NORMAL, best, 13, cols,
              "the incumbent: the best that comparison has confirmed; what stands above it in the "
              "leaderboard was measured once and may be luck");
    page_wrap(l, ROLE_NORMAL, "ladder", 13, cols,
               "the incumbent's value of each knob, and what was measured one step below and above "
               "it; change of time in percent, negative is faster; p is the chance that a "
               "candidate no faster than the incumbent looks this good");
    page_wrap(l, ROLE_NORMAL, "noise", 13, cols,
              "measured in turn with the incumbent and not told apart from it, or by less than "
              "half a percent, for which no move is worth it");
    page_wrap(l, ROLE_NORMAL, "cut", 13, cols,
               "its first sample was so far above the incumbent that measuring ended there");
}

/* The strategy's sentence says gain and p; where it left none, they stand alone. */
static void judged(struct page *l, int cols, const struct board_trial *t)
{
    char a[FORMAT_MAX], p[FORMAT_MAX];
    const char *verdict = verdict_name((enum verdict)t->verdict);
    if (t->text && *t->text)
        field(l, cols, "judged", "%s: %s", verdict, t->text);
    else
        field(l, cols, "judged", "%s%s%s%s%s", verdict, isfinite(t->gain) ? ", time " : "",
              isfinite(t->gain) ? format_change(a, -t->gain) : "",
              isfinite(t->p_value) ? ", p " : "",
              isfinite(t->p_value) ? format_p(p, t->p_value) : "");
}

static void trial_times(struct page *l, int cols, const struct board *b,
                        const struct board_trial *t)
{
    char a[FORMAT_MAX], c[FORMAT_MAX], d[FORMAT_MAX];
    const struct board_task *task = task_of(b, t->task);
    double ns = trial_ns(t);
    if (isfinite(ns)) {
        field(l, cols, "time", "%s median, %s lower quartile", format_time(a, t->median_ns),
              format_time(c, t->cost_ns));
        if (task && task->flops > 0)
            field(l, cols, "speed", "%s GFLOP/s, %s against the default",
                  format_gflops(a, board_gflops(task, ns)),
                  format_speedup(c, task->default_ns, ns));
    }
    if (t->verdict != 255)
        judged(l, cols, t);
    if (t->ended_ns > 0)
        field(l, cols, "measured", "from %s to %s of the session%s",
              format_elapsed(c, t->started_ns), format_elapsed(d, t->ended_ns),
              t->checked ? ", output compared with the reference" : "");
}

/* One sentence a step, from the trial back to where its line begins. */
static void why_this_trial(struct page *l, int cols, const struct view *v, const struct board *b,
                           const struct board_trial *t)
{
    page_add(l, ROLE_NORMAL, "%s", "");
    page_add(l, ROLE_STRONG, "Why this trial");
    for (int depth = 0; t && depth < 64; depth++) {
        struct strbuf s = {0};
        char head[24], a[FORMAT_MAX], c[FORMAT_MAX];
        words_origin(&s, t);
        if (isfinite(trial_ns(t)))
            strbuf_addf(&s, ", %s", format_time(a, trial_ns(t)));
        if (isfinite(t->gain))
            strbuf_addf(&s, " (%s)", format_change(a, -t->gain));
        if (isfinite(t->p_value))
            strbuf_addf(&s, ", p %s", format_p(c, t->p_value));
        if (t->verdict != 255)
            strbuf_addf(&s, ", %s", verdict_name((enum verdict)t->verdict));
        else if (t->status != TRIAL_OK)
            strbuf_addf(&s, ", %s", word_trial(v, t).text);
        snprintf(head, sizeof head, "#%lld", (long long)t->id);
        page_wrap(l, ROLE_NORMAL, head, 8, cols, strbuf_text(&s));
        strbuf_release(&s);
        /* A parent is older than its child: a chain that says otherwise is not followed. */
        t = t->parent > 0 && t->parent < t->id ? board_trial(b, t->parent) : NULL;
    }
}

static void build_trial(struct view *v, const struct board *b, int cols)
{
    struct page *l = &v->page;
    const struct board_trial *t = board_trial(b, v->overlay_trial);
    if (!t) {
        page_add(l, ROLE_NORMAL, "trial #%lld is not known", (long long)v->overlay_trial);
        return;
    }
    const struct board_task *task = task_of(b, t->task);
    struct word w = word_trial(v, t);
    field(l, cols, "state", "%s %s%s%s", w.glyph, w.text, t->reason && *t->reason ? ": " : "",
          t->reason ? t->reason : "");
    field(l, cols, "task", "%s", task ? task->name : "-");
    field(l, cols, "phase", "%s", word_phase((enum phase)t->phase));
    struct strbuf s = {0};
    words_origin(&s, t);
    field(l, cols, "origin", "%s", strbuf_text(&s));
    trial_times(l, cols, b, t);
    field(l, cols, "sketch", "%s", t->sketch ? t->sketch : "");
    strbuf_reset(&s);
    format_knobs(&s, t->knobs ? t->knobs : "", NULL);
    field(l, cols, "knobs", "%s", strbuf_text(&s));
    field(l, cols, "code", "%s", t->code ? t->code : "");
    strbuf_release(&s);
    why_this_trial(l, cols, v, b, t);
}


static void stage(struct page *l, int cols, const struct board_task *t, const char *label,
                  double ns, int i, int64_t trial)
{
    char a[FORMAT_MAX], c[FORMAT_MAX], lo[FORMAT_MAX], hi[FORMAT_MAX];
    struct strbuf s = {0};
    strbuf_addf(&s, "%s", format_time(a, ns));
    if (isfinite(ns)) {
        if (t->final && isfinite(t->lo[i]) && isfinite(t->hi[i]))
            strbuf_addf(&s, "  95%% in %s .. %s", format_time(lo, t->lo[i]),
                        format_time(hi, t->hi[i]));
        if (i > 0)
            strbuf_addf(&s, "  %s", format_speedup(c, t->default_ns, ns));
        if (t->flops > 0)
            strbuf_addf(&s, "  %s GFLOP/s", format_gflops(c, board_gflops(t, ns)));
        if (trial > 0)
            strbuf_addf(&s, "  #%lld", (long long)trial);
    }
    field(l, cols, label, "%s", strbuf_text(&s));
    strbuf_release(&s);
}

static void task_counts(struct page *l, int cols, const struct board_task *t)
{
    struct strbuf s = {0};
    for (int i = TRIAL_OK; i < TRIAL_NR_STATUS; i++)
        if (t->by_status[i])
            strbuf_addf(&s, "%s%lld %s", s.len ? ", " : "", (long long)t->by_status[i],
                        trial_status_name((enum trial_status)i));
    field(l, cols, "trials", "%lld: %s", (long long)t->nr_trials,
          s.len ? strbuf_text(&s) : "none yet");
    strbuf_release(&s);
}

static void build_task(struct view *v, const struct board *b, int cols)
{
    struct page *l = &v->page;
    const struct board_task *t = task_of(b, v->overlay_task);
    if (!t) {
        page_add(l, ROLE_NORMAL, "no such task");
        return;
    }
    char a[FORMAT_MAX], c[FORMAT_MAX];
    struct word w = word_task(v, t);
    field(l, cols, "state", "%s %s%s%s", w.glyph, w.text, t->why[0] ? ": " : "", t->why);
    field(l, cols, "kind", "%s", t->kind);
    field(l, cols, "where", "%s", t->where);
    field(l, cols, "weight", "the model runs it %s time%s", format_count(a, t->weight),
          t->weight == 1 ? "" : "s");
    field(l, cols, "work", "%s, %s moved at least", format_flop(a, t->flops),
          format_bytes(c, t->bytes));
    field(l, cols, "space", "%s candidates in %d sketch%s", format_space(a, t->space),
          (int)t->nr_sketches, t->nr_sketches == 1 ? "" : "es");
    field(l, cols, "workload", "%s", t->workload);
    if (t->strategy[0])
        field(l, cols, "strategy", "%s, %lld of %lld trials", t->strategy, (long long)t->nr_phase,
              (long long)t->budget);
    task_counts(l, cols, t);
    page_add(l, ROLE_NORMAL, "%s", "");
    page_add(l, ROLE_STRONG, t->final ? "Result, measured interleaved" : "So far");
    stage(l, cols, t, "default", t->default_ns, 0, t->default_trial);
    stage(l, cols, t, "explored", t->explored_ns, 1, t->best_explored);
    stage(l, cols, t, "refined", t->refined_ns, 2, t->best_refined);
    if (t->final && t->verdict != FINAL_NONE)
        field(l, cols, "order", "%s", t->order);
    if (t->final && isfinite(t->error))
        field(l, cols, "error", "%.3g of the tolerance", t->error);
    if (board_trial(b, t->best))
        why_this_trial(l, cols, v, b, board_trial(b, t->best));
}

void detail_build(struct view *v, const struct board *b, int cols)
{
    page_reset(&v->page);
    switch (v->overlay) {
    case OVERLAY_HELP:
        build_help(v, cols);
        break;
    case OVERLAY_TASK:
        build_task(v, b, cols);
        break;
    case OVERLAY_TRIAL:
        build_trial(v, b, cols);
        break;
    case OVERLAY_TEXT:
        page_wrap(&v->page, ROLE_NORMAL, "", 0, cols, v->overlay_text);
        break;
    case OVERLAY_NONE:
        break;
    }
}

void detail_title(const struct view *v, const struct board *b, struct strbuf *out)
{
    const struct board_task *t = task_of(b, v->overlay_task);
    switch (v->overlay) {
    case OVERLAY_HELP:
        strbuf_adds(out, "Help");
        break;
    case OVERLAY_TASK:
        strbuf_addf(out, "Task %d  %s", (int)v->overlay_task + 1, t ? t->name : "");
        break;
    case OVERLAY_TRIAL:
        strbuf_addf(out, "Trial #%lld", (long long)v->overlay_trial);
        break;
    default:
        strbuf_adds(out, "Note");
        break;
    }
}
