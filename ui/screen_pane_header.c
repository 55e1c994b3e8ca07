/* SPDX-License-Identifier: Apache-2.0 */
/* Header, status line, key bar, and the one line of a screen that is too small. */
#include "ui/screen_draw.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "ui/format.h"
#include "ui/screen_text.h"
#include "ui/screen_words.h"

enum { STALL_NS = 10 }; /* seconds without an event that are worth a word */

static int width_of(const struct draw *d, const char *text)
{
    return text_width(text, d->t->set == GLYPHS_ASCII);
}

static const char *model_name(const struct board *b)
{
    const char *name = b->session.u.session.model;
    if (!b->has_session)
        return "";
    if (!*name)
        name = b->session.u.session.input;
    const char *slash = strrchr(name, '/');
    return slash && slash[1] ? slash + 1 : name;
}

static int64_t nr_failed(const struct board *b)
{
    int64_t n = 0;
    for (int s = 0; s < TRIAL_NR_STATUS; s++)
        if (trial_failed((enum trial_status)s))
            n += b->by_status[s];
    return n;
}

/* "12.31 -> 4.21 -> 3.98 ms  3.09x": default, explored, refined, as far as known. */
static void model_times(const struct draw *d, bool words, struct strbuf *out)
{
    struct board_model m = board_model(d->b);
    const double ns[3] = {m.default_ns, m.explored_ns, m.refined_ns};
    static const char *const name[3] = {"default ", "explored ", "refined "};
    double best = NAN, last = NAN;
    for (int i = 0; i < 3; i++)
        best = isfinite(ns[i]) ? (isfinite(best) ? fmin(best, ns[i]) : ns[i]) : best;
    if (!isfinite(best)) {
        int nr = 0;
        for (int i = 0; i < d->b->nr_tasks; i++)
            nr += isfinite(d->b->task[i].best_ns);
        if (d->b->nr_tasks > 1)
            strbuf_addf(out, "model: %d of %d tasks measured", nr, d->b->nr_tasks);
        return;
    }
    struct format_unit u = format_unit(best);
    char a[FORMAT_MAX];
    strbuf_adds(out, d->b->nr_tasks > 1 ? "model " : "");
    for (int i = 0; i < 3; i++) {
        if (!isfinite(ns[i]) || (isfinite(last) && ns[i] == last && i == 2 && d->b->nr_tasks > 1))
            continue;
        strbuf_addf(out, "%s%s%s%s%s", isfinite(last) ? " " : "", isfinite(last) ? d->t->g->arrow : "",
                    isfinite(last) ? " " : "", words ? name[i] : "", format_in(a, ns[i], &u));
        last = ns[i];
    }
    strbuf_addf(out, " %s", u.text);
    if (isfinite(m.default_ns) && last != m.default_ns)
        strbuf_addf(out, "  %s", format_speedup(a, m.default_ns, last));
}

/* Segments from the left, two blanks between them; the first that does not fit ends them. */
struct segments {
    const struct draw *d;
    int y, x, end;
};

static void segment(struct segments *s, enum role role, const char *text)
{
    int w = width_of(s->d, text);
    if (!*text)
        return;
    if (s->x + w > s->end) {
        s->end = s->x;
        return;
    }
    draw_text(s->d, s->y, s->x, w, role, text);
    s->x += w + 2;
}

static void state_text(const struct draw *d, struct strbuf *out)
{
    char a[FORMAT_MAX];
    struct word w = word_session(d->v, d->b);
    strbuf_addf(out, "%s %s  %s", w.glyph, w.text, format_elapsed(a, d->v->elapsed_ns));
}

static void counts(struct segments *s)
{
    const struct board *b = s->d->b;
    char text[96], a[FORMAT_MAX], c[FORMAT_MAX];
    int64_t budget = b->session.u.session.trials;
    if (budget > 0)
        snprintf(text, sizeof text, "%s/%s trials", format_count(a, (double)b->nr_ended),
                 format_count(c, (double)budget));
    else
        snprintf(text, sizeof text, "%s trials", format_count(a, (double)b->nr_ended));
    segment(s, ROLE_NORMAL, text);
    int64_t failed = nr_failed(b);
    snprintf(text, sizeof text, "%s failed", format_count(a, (double)failed));
    segment(s, failed ? ROLE_BAD : ROLE_NORMAL, text);
    double rate = board_trials_per_s(b);
    if (isfinite(rate) && rate > 0) {
        snprintf(text, sizeof text, "%.*f/s", rate < 9.95 ? 1 : 0, rate);
        segment(s, ROLE_NORMAL, text);
    }
    if (b->has_session) {
        snprintf(text, sizeof text, "seed %llu", (unsigned long long)b->session.u.session.seed);
        segment(s, ROLE_DIM, text);
    }
}

/* Where the time went, on a tall screen: the shares tell whether building or measuring is short. */
static void resources(const struct draw *d, const struct rect *r, int y)
{
    const struct board *b = d->b;
    char text[160], a[FORMAT_MAX], c[FORMAT_MAX], e[FORMAT_MAX];
    struct segments s = {d, y, r->x + 1, r->x + r->cols - 1};
    double active = (double)b->usage.u.usage.active_ns;
    int jobs = b->session.u.session.jobs;
    if (active > 0) {
        snprintf(text, sizeof text, "measuring %s  building %s of %d  searching %s",
                 format_share(a, (double)b->usage.u.usage.measure_ns / active),
                 format_share(c, (double)b->usage.u.usage.build_ns / active / (jobs > 0 ? jobs : 1)),
                 jobs > 0 ? jobs : 1, format_share(e, (double)b->usage.u.usage.search_ns / active));
        segment(&s, ROLE_DIM, text);
    }
    segment(&s, ROLE_DIM, b->session.u.session.hardware);
    if (b->session.u.session.peak_gflops > 0) {
        snprintf(text, sizeof text, "peak %s GFLOP/s",
                 format_gflops(a, b->session.u.session.peak_gflops));
        segment(&s, ROLE_DIM, text);
    }
    double drift = b->usage.u.usage.canary_ns > 0 ? b->usage.u.usage.drift - 1 : NAN;
    if (fabs(drift) >= 0.01) {
        snprintf(text, sizeof text, "machine %.0f%% %s", 100 * fabs(drift),
                 drift > 0 ? "slower" : "faster");
        segment(&s, fabs(drift) >= 0.05 ? ROLE_WARN : ROLE_DIM, text);
    }
    if (b->session.u.session.cold)
        segment(&s, ROLE_DIM, "weights cold");
    segment(&s, ROLE_DIM, b->session.u.session.compiler);
}

static void header_right(const struct draw *d, struct segments *s, enum role role,
                         const struct strbuf *text)
{
    int w = width_of(d, strbuf_text(text));
    if (w > s->end - s->x)
        w = s->end - s->x;
    draw_text(d, s->y, s->end - w, w, role, strbuf_text(text));
    s->end -= w + 2;
}

void draw_header(const struct draw *d, const struct rect *r)
{
    const struct board *b = d->b;
    struct strbuf text = {0};
    struct segments s = {d, r->y, r->x + 1, r->x + r->cols - 1};
    struct segments t = {d, r->y + 1, r->x + 1, r->x + r->cols - 1};
    state_text(d, &text);
    header_right(d, &s, word_session(d->v, b).role, &text);
    strbuf_reset(&text);
    if (r->rows == 1) {
        model_times(d, false, &text);
        if (width_of(d, strbuf_text(&text)) + 10 < s.end - s.x)
            header_right(d, &s, ROLE_STRONG, &text);
        draw_text(d, s.y, s.x, s.end - s.x, ROLE_STRONG, *model_name(b) ? model_name(b) : "squall");
        strbuf_release(&text);
        return;
    }
    segment(&s, ROLE_STRONG, "squall");
    s.x += draw_text(d, s.y, s.x, s.end - s.x, ROLE_STRONG, model_name(b)) + 2;
    segment(&s, ROLE_NORMAL, b->session.u.session.target);
    model_times(d, r->cols >= 120, &text);
    /* The times of the model go before the counts where there is no room for both. */
    if (text.len)
        header_right(d, &t, ROLE_STRONG, &text);
    counts(&t);
    strbuf_release(&text);
    if (r->rows > 2)
        resources(d, r, r->y + 2);
}

/* What may be said, with the budgets in force. */
static void budget_question(const struct draw *d, int cols, char *text, size_t size)
{
    const struct event *s = &d->b->session;
    char trials[FORMAT_MAX], time[FORMAT_MAX];
    snprintf(time, sizeof time, "%.6g", s->u.session.seconds);
    format_count(trials, (double)s->u.session.trials);
    if (cols < 70)
        snprintf(text, size, " budget: %s_  refine N, explore N, trials N, time S", d->v->entry);
    else
        snprintf(text, size, " budget: %s_  now refine %lld, explore %lld, trials %s, time %s; Enter, Esc",
                 d->v->entry, (long long)s->u.session.refine, (long long)s->u.session.explore,
                 s->u.session.trials > 0 ? trials : "any", s->u.session.seconds > 0 ? time : "any");
}

static bool question(const struct draw *d, const struct rect *r)
{
    const struct view *v = d->v;
    char text[256];
    const char *name = v->prompt_task >= 0 && v->prompt_task < d->b->nr_tasks
                           ? d->b->task[v->prompt_task].name : "";
    switch (v->prompt) {
    case PROMPT_NONE:
        return false;
    case PROMPT_FILTER:
        snprintf(text, sizeof text, " tasks with: %s_  (%d of %d)  Enter keeps, Esc drops",
                 v->filter, v->nr_order, d->b->nr_tasks);
        break;
    case PROMPT_BUDGET:
        budget_question(d, r->cols, text, sizeof text);
        break;
    case PROMPT_SKIP:
        snprintf(text, sizeof text, " skip %s with what it has so far?  y yes  n no", name);
        break;
    case PROMPT_STOP:
        snprintf(text, sizeof text,
                 r->cols < 70 ? " stop, resumable?  y yes  n no"
                              : " stop after the running measurement? it can be resumed  "
                                "y yes  n no");
        break;
    case PROMPT_ABANDON:
        snprintf(text, sizeof text,
                 r->cols < 70 ? " abandon the measurement?  y yes  n no"
                              : " leave without the running measurement? it can be resumed  "
                                "y yes  n no");
        break;
    }
    draw_text(d, r->y, r->x, r->cols, ROLE_PROMPT, text);
    draw_paint(d, r->y, r->x, r->cols, ROLE_PROMPT);
    return true;
}

/* What happens now: the trial in the runner, or why there is none. */
static void activity(const struct draw *d, struct strbuf *out)
{
    const struct board *b = d->b;
    const struct view *v = d->v;
    int64_t silent = v->event_ns ? (v->now_ns - v->event_ns) / 1000000000 : 0;
    if (b->ended) {
        strbuf_addf(out, "%s%s%s  q leaves", b->finished ? "finished" : "interrupted",
                    b->why[0] ? ": " : "", b->why);
        return;
    }
    if (v->gone) {
        strbuf_adds(out, "the search ended with an error; q leaves and shows it");
        return;
    }
    if (!b->has_session) {
        strbuf_adds(out, "waiting for the first event of the session");
        return;
    }
    if (silent >= STALL_NS && !b->paused && !v->replay)
        strbuf_addf(out, "no event for %lld s  ", (long long)silent);
    const struct board_trial *t = board_trial(b, b->measuring);
    if (t && t->task >= 0 && t->task < b->nr_tasks) {
        strbuf_addf(out, "measuring #%lld of %s, ", (long long)t->id, b->task[t->task].name);
        words_origin(out, t);
    } else if (b->paused) {
        strbuf_adds(out, "paused: p goes on");
    } else if (!b->nr_tasks) {
        strbuf_adds(out, "reading the model");
    } else if (b->nr_trials > b->nr_ended) {
        long long nr = b->nr_trials - b->nr_ended;
        strbuf_addf(out, "building, %lld trial%s in flight", nr, nr == 1 ? "" : "s");
    }
}

/* All that is known of the cell under the ladder's cursor: a narrow cell shows only a part. */
static bool chosen_cell(const struct draw *d, struct strbuf *out)
{
    const struct view *v = d->v;
    const struct board_trial *t = board_trial(d->b, view_rung_trial(v));
    char a[FORMAT_MAX];
    if (v->active != PANE_LADDER || v->overlay || !t)
        return false;
    bool centre = t->id == v->ladder.centre;
    struct word w = word_rung(v, rung_state(t));
    double change = rung_change(&v->ladder, t);
    strbuf_addf(out, "#%lld ", (long long)t->id);
    strbuf_addf(out, "%s", centre ? "the incumbent" : w.text);
    if (isfinite(t->median_ns))
        strbuf_addf(out, "  %s", format_time(a, t->median_ns));
    if (isfinite(change) && !centre)
        strbuf_addf(out, "  %s", format_change(a, change));
    if (isfinite(t->p_value) && !centre)
        strbuf_addf(out, "  p %s", format_p(a, t->p_value));
    if (t->reason && *t->reason)
        strbuf_addf(out, ": %s", t->reason);
    else if (t->note && *t->note)
        strbuf_addf(out, "  %s", t->note);
    return true;
}

void draw_status(const struct draw *d, const struct rect *r)
{
    const struct view *v = d->v;
    if (question(d, r))
        return;
    struct segments s = {d, r->y, r->x + 1, r->x + r->cols - 1};
    char held[64];
    if (v->frozen) {
        snprintf(held, sizeof held, "view frozen, %lld events wait; Z thaws",
                 (long long)v->nr_held);
        segment(&s, ROLE_WARN, held);
    }
    if (v->filter[0]) {
        snprintf(held, sizeof held, "/%.20s", v->filter);
        segment(&s, ROLE_WARN, held);
    }
    struct strbuf text = {0};
    bool said = v->message[0] && v->now_ns < v->message_until_ns;
    if (!said && !chosen_cell(d, &text))
        activity(d, &text);
    draw_text(d, s.y, s.x, s.end - s.x, said ? ROLE_STRONG : ROLE_NORMAL,
              said ? v->message : strbuf_text(&text));
    strbuf_release(&text);
}

static const char *bar_word(const struct draw *d, const struct binding *k)
{
    if (k->cmd == CMD_PAUSE && d->b->paused)
        return "go";
    if (k->cmd == CMD_FREEZE && d->v->frozen)
        return "thaw";
    if (k->cmd == CMD_QUIT && d->v->overlay)
        return "close";
    return k->bar;
}

/* Both ways to say a command, letter and F-key, and only commands that do something now. */
void draw_keys(const struct draw *d, const struct rect *r)
{
    const struct view *v = d->v;
    unsigned here = v->overlay ? IN_OVERLAY : 1u << v->active;
    static const enum command first[] = {CMD_HELP,   CMD_QUIT, CMD_PAUSE,  CMD_SKIP,
                                         CMD_DETAIL, CMD_SORT_NEXT, CMD_FILTER, CMD_ZOOM,
                                         CMD_UNZOOM, CMD_BACK, CMD_FOLLOW, CMD_AXIS, CMD_FREEZE,
                                         CMD_BUDGET};
    int x = r->x + 1, end = r->x + r->cols;
    for (size_t i = 0; i < sizeof first / sizeof first[0]; i++) {
        const struct binding *k = keys_binding(first[i], here);
        if (!k || !k->bar || !view_can(v, d->b, k->cmd) || v->prompt)
            continue;
        char a[KEY_NAME], f[KEY_NAME] = "", key[2 * KEY_NAME + 2];
        for (int n = 1; n < 4 && k->key[n]; n++)
            if (k->key[n] > UK_F0 && k->key[n] <= UK_F12)
                keys_name(k->key[n], f);
        snprintf(key, sizeof key, "%s%s%s", keys_name(k->key[0], a), *f ? " " : "", f);
        const char *word = bar_word(d, k);
        int w = (int)(strlen(key) + 1 + strlen(word));
        if (x + w > end)
            continue;
        draw_text(d, r->y, x, w, ROLE_KEY, key);
        draw_text(d, r->y, x + (int)strlen(key) + 1, w, ROLE_NORMAL, word);
        x += w + 2;
    }
}

void draw_tiny(const struct draw *d, const struct rect *r)
{
    if (r->rows > 0 && d->v->prompt && question(d, &(struct rect){0, 0, 1, r->cols}))
        return;
    struct strbuf text = {0};
    char a[FORMAT_MAX];
    struct board_model m = board_model(d->b);
    double best = isfinite(m.refined_ns) ? m.refined_ns : m.explored_ns;
    const struct board_task *t = view_task(d->v, d->b);
    if (!isfinite(best) && t)
        best = t->best_ns;
    strbuf_addf(&text, "%s / %lld / %s", format_time(a, best), (long long)d->b->nr_ended,
                word_session(d->v, d->b).text);
    int x = draw_text(d, 0, 0, r->cols, ROLE_STRONG, strbuf_text(&text));
    strbuf_reset(&text);
    strbuf_addf(&text, "needs %dx%d, is %dx%d; q quits", LAYOUT_MIN_COLS, LAYOUT_MIN_ROWS, r->cols,
                r->rows);
    if (r->rows > 1)
        draw_text(d, 1, 0, r->cols, ROLE_NORMAL, strbuf_text(&text));
    else if (x + 2 < r->cols)
        draw_text(d, 0, x + 2, r->cols - x - 2, ROLE_NORMAL, strbuf_text(&text));
    strbuf_release(&text);
}
