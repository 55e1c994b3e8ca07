/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Events as JSON. One table says for every kind which fields it has, of which type, and where they
 * lie in the struct; writing and reading walk the same table, so they cannot drift apart.
 *
 * Text that is read is not trusted: wrong types, numbers out of range, unknown names and overlong
 * arrays are refused with a sentence; a missing field gets 0, "" or NAN unless the event means
 * nothing without it (`must`), so that a field can be added without a new format. Texts longer than
 * their place are cut between characters. JSON has neither NAN nor infinity: NAN is null, infinity
 * is the text "inf" or "-inf".
 */
#include "engine/tune/event.h"

#include <jansson.h>
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "engine/base/utf8.h"

const char *event_kind_name(enum event_kind k)
{
    static const char *const names[] = {
#define EVENT_NAME_OF(name, text) text,
        EVENT_LIST(EVENT_NAME_OF)
#undef EVENT_NAME_OF
    };
    return (unsigned)k < EV_NR_KINDS ? names[k] : "unknown";
}

const char *phase_name(enum phase p)
{
    static const char *const names[] = {"waiting", "default", "explore", "refine", "final", "done"};
    return (unsigned)p <= PHASE_DONE ? names[p] : "unknown";
}

static const char *name_of_phase(int v)
{
    return phase_name((enum phase)v);
}

static const char *name_of_status(int v)
{
    return trial_status_name((enum trial_status)v);
}

static const char *name_of_origin(int v)
{
    return origin_name((enum origin)v);
}

static const char *name_of_verdict(int v)
{
    return verdict_name((enum verdict)v);
}

static const char *name_of_knob_kind(int v)
{
    static const char *const names[] = {"split", "ordinal", "choice", "flag", "permutation"};
    return names[v];
}

struct names {
    const char *(*name)(int);
    int nr;
};

static const struct names phases = {name_of_phase, PHASE_DONE + 1};
static const struct names statuses = {name_of_status, TRIAL_NR_STATUS};
static const struct names origins = {name_of_origin, ORIGIN_FINAL + 1};
static const struct names verdicts = {name_of_verdict, VERDICT_MOVED + 1};
static const struct names knob_kinds = {name_of_knob_kind, KNOB_PERMUTATION + 1};

enum type { T_TEXT, T_I32, T_I64, T_U64, T_REAL, T_BOOL, T_NAME, T_REALS };

struct field {
    enum event_kind kind;
    enum type type;
    bool must;
    const char *name;
    size_t offset;
    size_t size;               /* T_TEXT: bytes; T_REALS: elements */
    const struct names *names; /* T_NAME */
    size_t count_offset;       /* T_REALS: where their number is (int32_t) */
};

#define AT(part, m) offsetof(struct event, u.part.m)
#define SIZE_OF(part, m) sizeof(((struct event *)0)->u.part.m)
#define TEXT(k, part, m) {k, T_TEXT, false, #m, AT(part, m), SIZE_OF(part, m), NULL, 0}
#define TEXT_MUST(k, part, m) {k, T_TEXT, true, #m, AT(part, m), SIZE_OF(part, m), NULL, 0}
#define NUMBER(k, part, m, type) {k, type, false, #m, AT(part, m), SIZE_OF(part, m), NULL, 0}
#define NUMBER_MUST(k, part, m, type) {k, type, true, #m, AT(part, m), SIZE_OF(part, m), NULL, 0}
#define NAME(k, part, m, names) {k, T_NAME, true, #m, AT(part, m), SIZE_OF(part, m), &names, 0}
#define REALS(k, part, m, nr)                                                                      \
    {k, T_REALS, false, #m, AT(part, m), SIZE_OF(part, m) / sizeof(double), NULL, AT(part, nr)}

static const struct field fields[] = {
    TEXT(EV_SESSION, session, input),
    TEXT(EV_SESSION, session, model),
    TEXT(EV_SESSION, session, target),
    TEXT(EV_SESSION, session, hardware),
    TEXT(EV_SESSION, session, compiler),
    TEXT(EV_SESSION, session, version),
    TEXT(EV_SESSION, session, strategy),
    NUMBER(EV_SESSION, session, trials, T_I64),
    NUMBER(EV_SESSION, session, explore, T_I64),
    NUMBER(EV_SESSION, session, refine, T_I64),
    NUMBER(EV_SESSION, session, seconds, T_REAL),
    NUMBER(EV_SESSION, session, peak_gflops, T_REAL),
    NUMBER(EV_SESSION, session, seed, T_U64),
    NUMBER(EV_SESSION, session, jobs, T_I32),
    NUMBER(EV_SESSION, session, threads, T_I32),
    NUMBER(EV_SESSION, session, nr_tasks, T_I32),
    NUMBER(EV_SESSION, session, resumed, T_I32),

    TEXT_MUST(EV_TASK, task, name),
    TEXT(EV_TASK, task, workload),
    TEXT(EV_TASK, task, where),
    TEXT(EV_TASK, task, kind),
    NUMBER_MUST(EV_TASK, task, weight, T_REAL),
    NUMBER(EV_TASK, task, flops, T_REAL),
    NUMBER(EV_TASK, task, bytes, T_REAL),
    NUMBER(EV_TASK, task, space, T_REAL),
    NUMBER(EV_TASK, task, nr_sketches, T_I32),

    NUMBER_MUST(EV_KNOB, knob, sketch, T_I32),
    NUMBER_MUST(EV_KNOB, knob, knob, T_I32),
    NAME(EV_KNOB, knob, kind, knob_kinds),
    NUMBER(EV_KNOB, knob, extent, T_I64),
    TEXT(EV_KNOB, knob, sketch_name),
    TEXT_MUST(EV_KNOB, knob, name),
    TEXT(EV_KNOB, knob, values),

    NAME(EV_PHASE, phase, phase, phases),
    TEXT(EV_PHASE, phase, strategy),
    TEXT(EV_PHASE, phase, why),
    NUMBER(EV_PHASE, phase, budget, T_I64),

    TEXT_MUST(EV_PROPOSED, proposed, code),
    TEXT(EV_PROPOSED, proposed, sketch),
    TEXT(EV_PROPOSED, proposed, knobs),
    TEXT(EV_PROPOSED, proposed, strategy),
    TEXT(EV_PROPOSED, proposed, note),
    NAME(EV_PROPOSED, proposed, phase, phases),
    NAME(EV_PROPOSED, proposed, origin, origins),
    NUMBER(EV_PROPOSED, proposed, parent, T_I64),
    NUMBER(EV_PROPOSED, proposed, knob, T_I32),
    NUMBER(EV_PROPOSED, proposed, dir, T_I32),
    NUMBER(EV_PROPOSED, proposed, compare, T_BOOL),

    NAME(EV_TRIAL, trial, status, statuses),
    TEXT(EV_TRIAL, trial, reason),
    NUMBER(EV_TRIAL, trial, cost_ns, T_REAL),
    NUMBER(EV_TRIAL, trial, median_ns, T_REAL),
    REALS(EV_TRIAL, trial, sample_ns, nr_samples),
    REALS(EV_TRIAL, trial, ref_ns, nr_ref),
    NUMBER(EV_TRIAL, trial, checked, T_BOOL),
    NUMBER(EV_TRIAL, trial, error, T_REAL),
    NUMBER(EV_TRIAL, trial, build_ns, T_I64),
    NUMBER(EV_TRIAL, trial, measure_ns, T_I64),
    NUMBER(EV_TRIAL, trial, code_bytes, T_I64),
    NUMBER(EV_TRIAL, trial, started_ns, T_I64),
    NUMBER(EV_TRIAL, trial, ended_ns, T_I64),

    NAME(EV_INCUMBENT, incumbent, phase, phases),
    NUMBER(EV_INCUMBENT, incumbent, cost_ns, T_REAL),
    NUMBER(EV_INCUMBENT, incumbent, centre, T_BOOL),

    NUMBER(EV_DECISION, decision, incumbent, T_I64),
    NAME(EV_DECISION, decision, verdict, verdicts),
    NUMBER(EV_DECISION, decision, p_value, T_REAL),
    NUMBER(EV_DECISION, decision, gain, T_REAL),
    TEXT(EV_DECISION, decision, text),

    NUMBER(EV_RESULT, result, default_ns, T_REAL),
    NUMBER(EV_RESULT, result, default_lo, T_REAL),
    NUMBER(EV_RESULT, result, default_hi, T_REAL),
    NUMBER(EV_RESULT, result, explored_ns, T_REAL),
    NUMBER(EV_RESULT, result, explored_lo, T_REAL),
    NUMBER(EV_RESULT, result, explored_hi, T_REAL),
    NUMBER(EV_RESULT, result, refined_ns, T_REAL),
    NUMBER(EV_RESULT, result, refined_lo, T_REAL),
    NUMBER(EV_RESULT, result, refined_hi, T_REAL),
    NUMBER(EV_RESULT, result, default_trial, T_I64),
    NUMBER(EV_RESULT, result, explored_trial, T_I64),
    NUMBER(EV_RESULT, result, refined_trial, T_I64),
    NUMBER(EV_RESULT, result, error, T_REAL),
    TEXT(EV_RESULT, result, why),

    TEXT_MUST(EV_COMMAND, command, verb),
    TEXT(EV_COMMAND, command, text),
    NUMBER(EV_COMMAND, command, after, T_I64),

    NUMBER(EV_NOTE, note, level, T_I32),
    TEXT_MUST(EV_NOTE, note, text),

    NUMBER(EV_USAGE, usage, active_ns, T_I64),
    NUMBER(EV_USAGE, usage, build_ns, T_I64),
    NUMBER(EV_USAGE, usage, measure_ns, T_I64),
    NUMBER(EV_USAGE, usage, search_ns, T_I64),
    NUMBER(EV_USAGE, usage, prepare_ns, T_I64),
    NUMBER(EV_USAGE, usage, wait_ns, T_I64),
    NUMBER(EV_USAGE, usage, trials, T_I64),
    NUMBER(EV_USAGE, usage, restarts, T_I64),

    NUMBER_MUST(EV_ENDED, ended, finished, T_BOOL),
    TEXT(EV_ENDED, ended, why),
};

enum { NR_FIELDS = sizeof fields / sizeof *fields };

/* The fields that every event has. */
static const struct field common[] = {
    {EV_SESSION, T_I64, false, "seq", offsetof(struct event, seq), 8, NULL, 0},
    {EV_SESSION, T_I64, false, "wall_ns", offsetof(struct event, wall_ns), 8, NULL, 0},
    {EV_SESSION, T_I64, false, "t_ns", offsetof(struct event, t_ns), 8, NULL, 0},
    {EV_SESSION, T_I32, true, "task", offsetof(struct event, task), 4, NULL, 0},
    {EV_SESSION, T_I64, true, "trial", offsetof(struct event, trial), 8, NULL, 0},
};

enum { NR_COMMON = sizeof common / sizeof *common };

/* Writing. */

static json_t *json_text(const char *text, size_t size)
{
    size_t len = strnlen(text, size);
    json_t *j = json_stringn(text, len);
    if (j)
        return j;
    struct strbuf clean = {0};
    utf8_clean(text, len, &clean);
    j = json_string(strbuf_text(&clean));
    strbuf_release(&clean);
    return j;
}

static json_t *json_number(double x)
{
    if (isnan(x))
        return json_null();
    if (isinf(x))
        return json_string(x > 0 ? "inf" : "-inf");
    return json_real(x);
}

static json_t *json_reals(const double *x, int32_t nr, size_t cap)
{
    json_t *list = json_array();
    for (int32_t i = 0; i < nr && (size_t)i < cap; i++)
        json_array_append_new(list, json_number(x[i]));
    return list;
}

static json_t *field_to_json(const struct field *f, const char *at, const char *event)
{
    switch (f->type) {
    case T_TEXT:
        return json_text(at, f->size);
    case T_I32:
        return json_integer(*(const int32_t *)(const void *)at);
    case T_I64:
        return json_integer(*(const int64_t *)(const void *)at);
    case T_U64: {
        /* JSON readers, this one's too, stop at 2^63: larger ones go as text. */
        uint64_t v = *(const uint64_t *)(const void *)at;
        return v <= INT64_MAX ? json_integer((json_int_t)v)
                              : json_sprintf("%llu", (unsigned long long)v);
    }
    case T_REAL:
        return json_number(*(const double *)(const void *)at);
    case T_BOOL:
        return json_boolean(*(const bool *)(const void *)at);
    case T_NAME: {
        int32_t v = *(const int32_t *)(const void *)at;
        return json_string(v >= 0 && v < f->names->nr ? f->names->name(v) : f->names->name(0));
    }
    case T_REALS:
        return json_reals((const double *)(const void *)at,
                          *(const int32_t *)(const void *)(event + f->count_offset), f->size);
    }
    return json_null();
}

static int append(const char *data, size_t len, void *out)
{
    strbuf_add(out, data, len);
    return 0;
}

void event_to_json(const struct event *ev, struct strbuf *out)
{
    const char *base = (const char *)ev;
    json_t *o = json_object();
    json_object_set_new_nocheck(o, "event", json_string(event_kind_name(ev->kind)));
    for (int i = 0; i < NR_COMMON; i++)
        json_object_set_new_nocheck(o, common[i].name,
                                    field_to_json(&common[i], base + common[i].offset, base));
    for (int i = 0; i < NR_FIELDS; i++)
        if (fields[i].kind == ev->kind)
            json_object_set_new_nocheck(o, fields[i].name,
                                        field_to_json(&fields[i], base + fields[i].offset, base));
    json_dump_callback(o, append, out, JSON_COMPACT | JSON_REAL_PRECISION(17));
    json_decref(o);
}

/* Reading. */

static int wrong(struct err *e, const struct field *f, const char *what)
{
    return err_set(e, ERR_INPUT, "event field '%s' must be %s", f->name, what);
}

static bool number_from_json(const json_t *j, double *out)
{
    if (json_is_null(j))
        *out = NAN;
    else if (json_is_number(j))
        *out = json_number_value(j);
    else if (json_is_string(j) && !strcmp(json_string_value(j), "inf"))
        *out = INFINITY;
    else if (json_is_string(j) && !strcmp(json_string_value(j), "-inf"))
        *out = -INFINITY;
    else
        return false;
    return true;
}

static int seed_from_json(const struct field *f, const json_t *j, uint64_t *out, struct err *e)
{
    if (json_is_integer(j) && json_integer_value(j) >= 0) {
        *out = (uint64_t)json_integer_value(j);
        return 0;
    }
    const char *text = json_is_string(j) ? json_string_value(j) : "";
    uint64_t v = 0;
    for (const char *p = text; *p; p++) {
        if (*p < '0' || *p > '9' || v > (UINT64_MAX - (uint64_t)(*p - '0')) / 10)
            return wrong(e, f, "an unsigned 64-bit integer");
        v = v * 10 + (uint64_t)(*p - '0');
    }
    if (!*text)
        return wrong(e, f, "an unsigned 64-bit integer");
    *out = v;
    return 0;
}

static int name_from_json(const struct field *f, const json_t *j, int32_t *out, struct err *e)
{
    if (!json_is_string(j))
        return wrong(e, f, "a name");
    for (int i = 0; i < f->names->nr; i++)
        if (!strcmp(json_string_value(j), f->names->name(i))) {
            *out = i;
            return 0;
        }
    return err_set(e, ERR_INPUT, "event field '%s' has the unknown value '%.40s'", f->name,
                   json_string_value(j));
}

static int reals_from_json(const struct field *f, const json_t *j, double *x, int32_t *nr,
                           struct err *e)
{
    if (!json_is_array(j))
        return wrong(e, f, "a list of numbers");
    size_t n = json_array_size(j);
    if (n > f->size)
        return err_set(e, ERR_INPUT, "event field '%s' has %zu numbers, more than %zu", f->name, n,
                       f->size);
    for (size_t i = 0; i < n; i++)
        if (!number_from_json(json_array_get(j, i), &x[i]))
            return wrong(e, f, "a list of numbers");
    *nr = (int32_t)n;
    return 0;
}

static int field_from_json(const struct field *f, const json_t *j, char *at, char *event,
                           struct err *e)
{
    switch (f->type) {
    case T_TEXT:
        if (!json_is_string(j))
            return wrong(e, f, "a text");
        utf8_copy(at, f->size, json_string_value(j));
        return 0;
    case T_I32:
        if (!json_is_integer(j) || json_integer_value(j) < INT32_MIN ||
            json_integer_value(j) > INT32_MAX)
            return wrong(e, f, "a 32-bit integer");
        *(int32_t *)(void *)at = (int32_t)json_integer_value(j);
        return 0;
    case T_I64:
        if (!json_is_integer(j))
            return wrong(e, f, "an integer");
        *(int64_t *)(void *)at = json_integer_value(j);
        return 0;
    case T_U64:
        return seed_from_json(f, j, (uint64_t *)(void *)at, e);
    case T_REAL:
        return number_from_json(j, (double *)(void *)at) ? 0 : wrong(e, f, "a number or null");
    case T_BOOL:
        if (!json_is_boolean(j))
            return wrong(e, f, "true or false");
        *(bool *)(void *)at = json_is_true(j);
        return 0;
    case T_NAME:
        return name_from_json(f, j, (int32_t *)(void *)at, e);
    case T_REALS:
        return reals_from_json(f, j, (double *)(void *)at,
                               (int32_t *)(void *)(event + f->count_offset), e);
    }
    return 0;
}

static int fields_from_json(const struct field *list, int nr, const json_t *o, struct event *ev,
                            struct err *e)
{
    for (int i = 0; i < nr; i++) {
        const struct field *f = &list[i];
        if (list == fields && f->kind != ev->kind)
            continue;
        char *at = (char *)ev + f->offset;
        const json_t *j = json_object_get(o, f->name);
        if (!j && f->must)
            return err_set(e, ERR_INPUT, "event '%s' lacks the field '%s'",
                           event_kind_name(ev->kind), f->name);
        if (j) {
            int rc = field_from_json(f, j, at, (char *)ev, e);
            if (rc)
                return rc;
        } else if (f->type == T_REAL) {
            *(double *)(void *)at = NAN;
        }
    }
    return 0;
}

static int kind_from_json(const json_t *o, struct event *ev, struct err *e)
{
    const json_t *j = json_object_get(o, "event");
    if (!json_is_string(j))
        return err_set(e, ERR_INPUT, "event lacks its kind, the field 'event'");
    for (int k = 0; k < EV_NR_KINDS; k++)
        if (!strcmp(json_string_value(j), event_kind_name((enum event_kind)k))) {
            ev->kind = (enum event_kind)k;
            return 0;
        }
    return err_set(e, ERR_INPUT, "event of the unknown kind '%.40s'", json_string_value(j));
}

int event_from_json(const char *text, size_t len, struct event *ev, struct err *e)
{
    memset(ev, 0, sizeof *ev);
    json_error_t why;
    json_t *o = json_loadb(text, len, 0, &why);
    if (!o)
        return err_set(e, ERR_INPUT, "event is not JSON: %s", why.text);
    int rc = 0;
    if (!json_is_object(o))
        rc = err_set(e, ERR_INPUT, "event is not a JSON object");
    if (!rc)
        rc = kind_from_json(o, ev, e);
    if (!rc)
        rc = fields_from_json(common, NR_COMMON, o, ev, e);
    if (!rc)
        rc = fields_from_json(fields, NR_FIELDS, o, ev, e);
    if (!rc && (ev->task < -1 || ev->trial < 0 || ev->seq < 0))
        rc = err_set(e, ERR_INPUT, "event with the task %d, trial %lld, seq %lld", (int)ev->task,
                     (long long)ev->trial, (long long)ev->seq);
    json_decref(o);
    return rc;
}
