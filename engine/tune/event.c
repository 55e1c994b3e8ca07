/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Events as JSON. One table (event_fields.c) says for every kind which fields it has, of which
 * type, and where they lie in the struct; writing and reading walk the same table, so they cannot
 * drift apart.
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
#include <stdio.h>
#include <string.h>

#include "engine/base/utf8.h"
#include "engine/tune/event_fields.h"

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

static json_t *field_to_json(const struct event_field *f, const char *at, const char *event)
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

static void put_fields(json_t *o, const struct event_field *f, int nr, const char *event)
{
    for (int i = 0; i < nr; i++)
        json_object_set_new_nocheck(o, f[i].name, field_to_json(&f[i], event + f[i].offset, event));
}

void event_to_json(const struct event *ev, struct strbuf *out)
{
    const char *base = (const char *)ev;
    json_t *o = json_object();
    json_object_set_new_nocheck(o, "event", json_string(event_kind_name(ev->kind)));
    put_fields(o, event_common, EVENT_NR_COMMON, base);
    const struct event_field *first;
    int nr = event_fields(ev->kind, &first);
    put_fields(o, first, nr, base);
    json_dump_callback(o, append, out, JSON_COMPACT | JSON_REAL_PRECISION(17));
    json_decref(o);
}

/* Reading. */

static int wrong(struct err *e, const struct event_field *f, const char *what)
{
    return err_set(e, ERR_INPUT, "event field \"%s\" must be %s", f->name, what);
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

static int seed_from_json(const struct event_field *f, const json_t *j, uint64_t *out,
                          struct err *e)
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

static int name_from_json(const struct event_field *f, const json_t *j, int32_t *out, struct err *e)
{
    if (!json_is_string(j))
        return wrong(e, f, "a name");
    for (int i = 0; i < f->names->nr; i++)
        if (!strcmp(json_string_value(j), f->names->name(i))) {
            *out = i;
            return 0;
        }
    return err_set(e, ERR_INPUT, "event field \"%s\" has the unknown value \"%.40s\"", f->name,
                   json_string_value(j));
}

static int reals_from_json(const struct event_field *f, const json_t *j, double *x, int32_t *nr,
                           struct err *e)
{
    if (!json_is_array(j))
        return wrong(e, f, "a list of numbers");
    size_t n = json_array_size(j);
    if (n > f->size)
        return err_set(e, ERR_INPUT, "event field \"%s\" has %zu numbers, more than %zu", f->name,
                       n, f->size);
    for (size_t i = 0; i < n; i++)
        if (!number_from_json(json_array_get(j, i), &x[i]))
            return wrong(e, f, "a list of numbers");
    *nr = (int32_t)n;
    return 0;
}

static int field_from_json(const struct event_field *f, const json_t *j, char *at, char *event,
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

static int fields_from_json(const struct event_field *list, int nr, const json_t *o,
                            struct event *ev, struct err *e)
{
    for (int i = 0; i < nr; i++) {
        const struct event_field *f = &list[i];
        char *at = (char *)ev + f->offset;
        const json_t *j = json_object_get(o, f->name);
        if (!j && f->must)
            return err_set(e, ERR_INPUT, "event \"%s\" lacks the field \"%s\"",
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

static int kind_fields_from_json(const json_t *o, struct event *ev, struct err *e)
{
    const struct event_field *first;
    int nr = event_fields(ev->kind, &first);
    return fields_from_json(first, nr, o, ev, e);
}

static int kind_from_json(const json_t *o, struct event *ev, struct err *e)
{
    const json_t *j = json_object_get(o, "event");
    if (!json_is_string(j))
        return err_set(e, ERR_INPUT, "event lacks its kind, the field \"event\"");
    for (int k = 0; k < EV_NR_KINDS; k++)
        if (!strcmp(json_string_value(j), event_kind_name((enum event_kind)k))) {
            ev->kind = (enum event_kind)k;
            return 0;
        }
    return err_set(e, ERR_INPUT, "event of the unknown kind \"%.40s\"", json_string_value(j));
}

int event_parse(const char *text, size_t len, struct event *ev, struct err *e)
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
        rc = fields_from_json(event_common, EVENT_NR_COMMON, o, ev, e);
    if (!rc)
        rc = kind_fields_from_json(o, ev, e);
    if (!rc && !event_plausible(ev))
        rc = err_set(e, ERR_INPUT, "event with the task %d, trial %lld, seq %lld", (int)ev->task,
                     (long long)ev->trial, (long long)ev->seq);
    json_decref(o);
    return rc;
}

int event_from_json(const char *text, size_t len, struct event *ev, struct err *e)
{
    return event_scan(text, len, ev) ? 0 : event_parse(text, len, ev, e);
}
