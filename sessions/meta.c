/* SPDX-License-Identifier: Apache-2.0 */
/* The table meta: values by key, among them the options and the inputs, as JSON. */
#include "sessions/private.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/hash.h"
#include "engine/base/utf8.h"

int meta_set(struct session *s, const char *key, const char *value, struct err *e)
{
    sqlite3_stmt *st;
    int rc = db_prepare(s->path, s->db, "INSERT OR REPLACE INTO meta(key, value) VALUES(?1, ?2)",
                        &st, e);
    if (rc)
        return rc;
    sqlite3_bind_text(st, 1, key, -1, SQLITE_STATIC);
    sqlite3_bind_text(st, 2, value, -1, SQLITE_STATIC);
    int step = sqlite3_step(st);
    if (step != SQLITE_DONE)
        rc = sql_error(s->path, s->db, step, e);
    sqlite3_finalize(st);
    return rc;
}

int meta_set_int(struct session *s, const char *key, int64_t value, struct err *e)
{
    char text[24];
    snprintf(text, sizeof text, "%" PRId64, value);
    return meta_set(s, key, text, e);
}

int meta_get(struct session *s, const char *key, struct strbuf *value, struct err *e)
{
    sqlite3_stmt *st;
    int rc = db_prepare(s->path, s->db, "SELECT value FROM meta WHERE key = ?1", &st, e);
    if (rc)
        return rc;
    sqlite3_bind_text(st, 1, key, -1, SQLITE_STATIC);
    int step = sqlite3_step(st);
    const char *text = step == SQLITE_ROW ? (const char *)sqlite3_column_text(st, 0) : NULL;
    if (text)
        strbuf_adds(value, text);
    rc = step == SQLITE_ROW ? 1 : step == SQLITE_DONE ? 0 : sql_error(s->path, s->db, step, e);
    sqlite3_finalize(st);
    return rc;
}

int64_t meta_int(struct session *s, const char *key, int64_t otherwise)
{
    struct strbuf value = {0};
    int64_t n = otherwise;
    if (meta_get(s, key, &value, NULL) == 1)
        n = strtoll(strbuf_text(&value), NULL, 10);
    strbuf_release(&value);
    return n;
}

/* Keys of people get a prefix, so that none can be one of the store's own. */
int session_set(struct session *s, const char *key, const char *value, struct err *e)
{
    struct strbuf name = {0};
    strbuf_addf(&name, "option.%s", key);
    int rc = meta_set(s, strbuf_text(&name), value, e);
    strbuf_release(&name);
    return rc;
}

int session_get(struct session *s, const char *key, struct strbuf *value, struct err *e)
{
    struct strbuf name = {0};
    strbuf_addf(&name, "option.%s", key);
    int rc = meta_get(s, strbuf_text(&name), value, e);
    strbuf_release(&name);
    return rc;
}

static int set_json(struct session *s, const char *key, json_t *j, struct err *e)
{
    char *text = j ? json_dumps(j, JSON_COMPACT | JSON_REAL_PRECISION(17)) : NULL;
    int rc = text ? meta_set(s, key, text, e)
                  : err_set(e, ERR_INPUT, "session \"%s\": \"%s\" is not UTF-8", s->path, key);
    free(text);
    json_decref(j);
    return rc;
}

static int get_json(struct session *s, const char *key, json_t **out, struct err *e)
{
    struct strbuf text = {0};
    json_error_t why;
    int rc = meta_get(s, key, &text, e);
    if (rc >= 0) {
        *out = rc ? json_loads(strbuf_text(&text), 0, &why) : NULL;
        rc = *out ? 0 : err_set(e, ERR_SESSION, "session \"%s\" is damaged: no %s", s->path, key);
    }
    strbuf_release(&text);
    return rc;
}

int meta_set_options(struct session *s, const struct tune_options *o, struct err *e)
{
    char seed[24];
    snprintf(seed, sizeof seed, "%" PRIu64, o->seed);
    return set_json(
        s, "options",
        json_pack("{s:s, s:s, s:s, s:I, s:I, s:I, s:f, s:s, s:i, s:I, s:I, s:I, s:b, s:b}", "input", o->input,
                  "explore_strategy", o->explore_strategy, "refine_strategy", o->refine_strategy,
                  "trials", (json_int_t)o->trials, "explore", (json_int_t)o->explore, "refine",
                  (json_int_t)o->refine, "seconds", o->seconds, "seed", seed, "jobs", o->jobs,
                  "fill_ns", (json_int_t)o->fill_ns, "build_timeout_ns",
                  (json_int_t)o->build_timeout_ns, "run_timeout_ns", (json_int_t)o->run_timeout_ns,
                  "cold", o->cold, "cost_model", o->cost_model),
        e);
}

int session_options(struct session *s, struct tune_options *out, struct err *e)
{
    json_t *j = NULL;
    int rc = get_json(s, "options", &j, e);
    if (rc)
        return rc;
    const char *input, *explore, *refine, *seed;
    json_int_t trials, nr_explore, nr_refine, fill, build, run;
    int jobs, cold = 0, model = 0; /* older sessions had neither */
    *out = (struct tune_options){0};
    if (json_unpack(j, "{s:s, s:s, s:s, s:I, s:I, s:I, s:F, s:s, s:i, s:I, s:I, s:I, s?b, s?b}", "input",
                    &input, "explore_strategy", &explore, "refine_strategy", &refine, "trials",
                    &trials, "explore", &nr_explore, "refine", &nr_refine, "seconds", &out->seconds,
                    "seed", &seed, "jobs", &jobs, "fill_ns", &fill, "build_timeout_ns", &build,
                    "run_timeout_ns", &run, "cold", &cold, "cost_model", &model) != 0) {
        json_decref(j);
        return err_set(e, ERR_SESSION, "session \"%s\" is damaged: its options cannot be read",
                       s->path);
    }
    utf8_copy(out->input, sizeof out->input, input);
    utf8_copy(out->explore_strategy, sizeof out->explore_strategy, explore);
    utf8_copy(out->refine_strategy, sizeof out->refine_strategy, refine);
    out->trials = trials;
    out->explore = nr_explore;
    out->refine = nr_refine;
    out->seed = strtoull(seed, NULL, 10);
    out->jobs = jobs;
    out->fill_ns = fill;
    out->build_timeout_ns = build;
    out->run_timeout_ns = run;
    out->cold = cold;
    out->cost_model = model;
    json_decref(j);
    return 0;
}

/* Hash of a file's contents, 16 hexadecimal digits: to notice a change, not to withstand an attack.
 */
static int hash_file(const char *path, char hash[17], struct err *e)
{
    FILE *f = fopen(path, "rbe");
    if (!f)
        return err_set(e, ERR_INPUT, "cannot read input \"%s\": %s", path, strerror(errno));
    static const size_t chunk = 64 * 1024;
    char *buf = malloc(chunk);
    uint64_t h = HASH64_INIT;
    size_t n;
    while (buf && (n = fread(buf, 1, chunk, f)) > 0)
        h = hash64(h, buf, n);
    int rc = !buf ? err_set(e, ERR_NOMEM, "out of memory")
             : ferror(f)
                 ? err_set(e, ERR_INPUT, "cannot read input \"%s\": %s", path, strerror(errno))
                 : 0;
    free(buf);
    fclose(f);
    snprintf(hash, 17, "%016" PRIx64, h);
    return rc;
}

static int get_inputs(struct session *s, json_t **out, struct err *e)
{
    struct strbuf text = {0};
    int rc = meta_get(s, "inputs", &text, e);
    strbuf_release(&text);
    if (rc < 0)
        return rc;
    if (!rc) {
        *out = json_array();
        return 0;
    }
    rc = get_json(s, "inputs", out, e);
    if (!rc && !json_is_array(*out)) {
        json_decref(*out);
        rc = err_set(e, ERR_SESSION, "session \"%s\" is damaged: its inputs cannot be read",
                     s->path);
    }
    return rc;
}

int session_add_input(struct session *s, const char *path, struct err *e)
{
    char hash[17], full[PATH_MAX];
    int rc = hash_file(path, hash, e);
    if (rc)
        return rc;
    if (!realpath(path, full))
        return err_set(e, ERR_INPUT, "cannot find input \"%s\": %s", path, strerror(errno));
    json_t *list = NULL;
    rc = get_inputs(s, &list, e);
    if (rc)
        return rc;
    json_array_append_new(list, json_pack("{s:s, s:s}", "path", full, "hash", hash));
    return set_json(s, "inputs", list, e);
}

int session_check_inputs(struct session *s, struct err *e)
{
    json_t *list = NULL;
    int rc = get_inputs(s, &list, e);
    if (rc)
        return rc;
    for (size_t i = 0; !rc && i < json_array_size(list); i++) {
        const char *path, *hash;
        char now[17];
        if (json_unpack(json_array_get(list, i), "{s:s, s:s}", "path", &path, "hash", &hash) != 0)
            rc = err_set(e, ERR_SESSION, "session \"%s\" is damaged: its inputs cannot be read",
                         s->path);
        else if (!(rc = hash_file(path, now, e)) && strcmp(now, hash) != 0)
            rc = err_set(
                e, ERR_INPUT,
                "input \"%s\" has changed since session \"%s\" began: bring the old file back, "
                "or tune the new one in a new session",
                path, s->path);
    }
    json_decref(list);
    return rc;
}

int session_input(struct session *s, int i, struct strbuf *path, struct err *e)
{
    json_t *list = NULL;
    int rc = get_inputs(s, &list, e);
    if (rc)
        return rc;
    const char *text = json_string_value(json_object_get(json_array_get(list, (size_t)i), "path"));
    if (text)
        strbuf_adds(path, text);
    json_decref(list);
    return text ? 1 : 0;
}
