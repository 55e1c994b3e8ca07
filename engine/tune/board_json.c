/* SPDX-License-Identifier: Apache-2.0 */
/* The stable JSON of a board: fields may be added, none changes its name or unit. */
#include <jansson.h>
#include <math.h>
#include <string.h>

#include "engine/base/utf8.h"
#include "engine/tune/board.h"

/* null for what is not known. */
static json_t *real(double x)
{
    return isfinite(x) ? json_real(x) : json_null();
}

static json_t *trial_number(int64_t id)
{
    return id ? json_integer(id) : json_null();
}

static json_t *text(const char *s)
{
    json_t *j = json_string(s);
    if (j)
        return j;
    struct strbuf clean = {0};
    utf8_clean(s, strlen(s), &clean);
    j = json_string(strbuf_text(&clean));
    strbuf_release(&clean);
    return j;
}

static json_t *by_status(const int64_t *count)
{
    json_t *o = json_object();
    for (int i = TRIAL_PENDING + 1; i < TRIAL_NR_STATUS; i++)
        json_object_set_new(o, trial_status_name((enum trial_status)i), json_integer(count[i]));
    return o;
}

static double best_of_stages(const struct board_task *t)
{
    return !isnan(t->refined_ns)    ? t->refined_ns
           : !isnan(t->explored_ns) ? t->explored_ns
                                    : t->default_ns;
}

static json_t *interval(double lo, double hi)
{
    json_t *list = json_array();
    json_array_append_new(list, real(lo));
    json_array_append_new(list, real(hi));
    return list;
}

static json_t *task_json(const struct board_task *t)
{
    static const char *const names[] = {"default_interval", "explored_interval",
                                        "refined_interval"};
    double best = best_of_stages(t), gflops = board_gflops(t, best);
    json_t *o = json_object();
    json_object_set_new(o, "name", text(t->name));
    json_object_set_new(o, "workload", text(t->workload));
    json_object_set_new(o, "weight", real(t->weight));
    json_object_set_new(o, "default_ns", real(t->default_ns));
    json_object_set_new(o, "explored_ns", real(t->explored_ns));
    json_object_set_new(o, "refined_ns", real(t->refined_ns));
    json_object_set_new(o, "gflops", gflops > 0 ? real(gflops) : json_null());
    json_object_set_new(o, "trials", by_status(t->by_status));
    json_object_set_new(o, "phase", json_string(phase_name(t->phase)));
    json_object_set_new(o, "why", text(t->why));
    json_object_set_new(o, "kind", text(t->kind));
    json_object_set_new(o, "where", text(t->where));
    json_object_set_new(o, "space", real(t->space));
    json_object_set_new(o, "speedup", real(t->default_ns / best));
    json_object_set_new(o, "final", json_boolean(t->final));
    for (int i = 0; i < 3; i++)
        json_object_set_new(o, names[i], interval(t->lo[i], t->hi[i]));
    json_object_set_new(o, "default_trial", trial_number(t->default_trial));
    json_object_set_new(o, "explored_trial", trial_number(t->best_explored));
    json_object_set_new(o, "refined_trial", trial_number(t->best_refined));
    json_object_set_new(o, "best_trial", trial_number(t->best));
    json_object_set_new(o, "error", real(t->error));
    bool compared = t->final && t->verdict != FINAL_NONE;
    json_object_set_new(o, "order",
                        compared ? json_string(final_verdict_name(t->verdict)) : json_null());
    json_object_set_new(o, "p_value", compared ? real(t->p_value) : json_null());
    json_object_set_new(o, "gain", compared ? real(t->gain) : json_null());
    json_object_set_new(o, "gain_interval",
                        compared ? interval(t->gain_lo, t->gain_hi) : json_null());
    return o;
}

static json_t *session_json(const struct board *b)
{
    json_t *o = json_object();
    json_object_set_new(o, "state",
                        json_string(!b->ended     ? "running"
                                    : b->finished ? "finished"
                                                  : "interrupted"));
    json_object_set_new(o, "why", text(b->why));
    json_object_set_new(o, "input", text(b->session.u.session.input));
    json_object_set_new(o, "model", text(b->session.u.session.model));
    json_object_set_new(o, "target", text(b->session.u.session.target));
    json_object_set_new(o, "hardware", text(b->session.u.session.hardware));
    json_object_set_new(o, "compiler", text(b->session.u.session.compiler));
    json_object_set_new(o, "version", text(b->session.u.session.version));
    json_object_set_new(o, "strategy", text(b->session.u.session.strategy));
    json_object_set_new(o, "seed",
                        json_sprintf("%llu", (unsigned long long)b->session.u.session.seed));
    json_object_set_new(o, "explore", json_integer(b->session.u.session.explore));
    json_object_set_new(o, "refine", json_integer(b->session.u.session.refine));
    json_object_set_new(o, "weights_cold", json_boolean(b->session.u.session.cold));
    json_object_set_new(o, "threads", json_integer(b->session.u.session.threads));
    json_object_set_new(o, "peak_gflops", real(b->session.u.session.peak_gflops));
    json_object_set_new(o, "resumed", json_integer(b->session.u.session.resumed));
    json_object_set_new(o, "active_s", real((double)b->t_ns / 1e9));
    return o;
}

static json_t *model_json(const struct board *b)
{
    struct board_model m = board_model(b);
    json_t *o = json_object();
    json_object_set_new(o, "default_ns", real(m.default_ns));
    json_object_set_new(o, "explored_ns", real(m.explored_ns));
    json_object_set_new(o, "refined_ns", real(m.refined_ns));
    return o;
}

static json_t *usage_json(const struct board *b)
{
    json_t *o = json_object();
    json_object_set_new(o, "active_ns", json_integer(b->usage.u.usage.active_ns));
    json_object_set_new(o, "build_ns", json_integer(b->usage.u.usage.build_ns));
    json_object_set_new(o, "measure_ns", json_integer(b->usage.u.usage.measure_ns));
    json_object_set_new(o, "search_ns", json_integer(b->usage.u.usage.search_ns));
    json_object_set_new(o, "prepare_ns", json_integer(b->usage.u.usage.prepare_ns));
    json_object_set_new(o, "wait_ns", json_integer(b->usage.u.usage.wait_ns));
    json_object_set_new(o, "restarts", json_integer(b->usage.u.usage.restarts));
    bool canary = b->usage.u.usage.canary_ns > 0;
    json_object_set_new(o, "canary_ns", canary ? real(b->usage.u.usage.canary_ns) : json_null());
    json_object_set_new(o, "drift", canary ? real(b->usage.u.usage.drift) : json_null());
    return o;
}

static int append(const char *data, size_t len, void *out)
{
    strbuf_add(out, data, len);
    return 0;
}

void board_json(const struct board *b, struct strbuf *out)
{
    json_t *o = json_object(), *tasks = json_array();
    for (int i = 0; i < b->nr_tasks; i++)
        json_array_append_new(tasks, task_json(&b->task[i]));
    json_object_set_new(o, "session", session_json(b));
    json_object_set_new(o, "tasks", tasks);
    json_object_set_new(o, "model", model_json(b));
    json_object_set_new(o, "trials", json_integer(b->nr_ended));
    json_object_set_new(o, "trials_per_s", real(board_trials_per_s(b)));
    json_object_set_new(o, "by_status", by_status(b->by_status));
    json_object_set_new(o, "usage", usage_json(b));
    json_dump_callback(o, append, out, JSON_INDENT(2) | JSON_REAL_PRECISION(17));
    json_decref(o);
}
