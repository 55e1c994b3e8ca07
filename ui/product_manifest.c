/* SPDX-License-Identifier: Apache-2.0 */
#include "ui/product_manifest.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine/base/hash.h"
#include "ui/cli.h"

/* Says that a JSON file is a manifest. */
#define MARK "squall"

int manifest_hash(const char *input, char **out, struct err *e)
{
    if (!input_is_file(input)) {
        *out = xstrdup("");
        return 0;
    }
    FILE *f = fopen(input, "rb");
    uint64_t h = HASH64_INIT;
    char buf[65536], text[17];
    size_t n;
    while (f && (n = fread(buf, 1, sizeof buf, f)) > 0)
        h = hash64(h, buf, n);
    bool bad = !f || ferror(f);
    int why = errno;
    if (f)
        fclose(f);
    if (bad)
        return err_set(e, ERR_IO, "cannot read \"%s\": %s", input, strerror(why));
    snprintf(text, sizeof text, "%016" PRIx64, h);
    *out = xstrdup(text);
    return 0;
}

void product_clear(struct product *p)
{
    free(p->name);
    free(p->input);
    free(p->shapes);
    free(p->plain);
    free(p->input_hash);
    free(p->session);
    free(p->target);
    free(p->compiler);
    free(p->tuned_with);
    *p = (struct product){0};
}

/* ---- writing ---- */

void product_json(const struct product *p, struct strbuf *out)
{
    const struct library_report *r = &p->report;
    json_t *j = json_pack(
        "{s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:i, s:i, s:s, s:b, s:b, s:{s:i, s:i, s:i, s:i}, s:i, "
        "s:I, s:I, s:I, s:b}",
        MARK, SQUALL_VERSION, "name", p->name, "input", p->input, "shapes", p->shapes,
        "input_hash", p->input_hash,
        "session", p->session, "target", p->target, "compiler", p->compiler, "threads", p->threads,
        "block", p->block, "plain", p->plain, "seed_weights", p->seed_weights, "logits", p->logits, "kernels",
        "refined", p->nr_refined, "explored", p->nr_explored, "default", p->nr_default, "stale",
        r->nr_stale, "calls", r->nr_calls, "arena_bytes", (json_int_t)r->arena_bytes, "apart_bytes",
        (json_int_t)r->apart_bytes, "weights_bytes", (json_int_t)r->weights_bytes, "weights_inside",
        r->weights_inside);
    char *text = j ? json_dumps(j, JSON_INDENT(2)) : NULL;
    strbuf_addf(out, "%s\n", text ? text : "{}"); /* a name that is no UTF-8 */
    free(text);
    json_decref(j);
}

static char *manifest_path(const char *folder, const char *name)
{
    return library_path(folder, "%s.json", name);
}

int manifest_write(const char *folder, const struct product *p, struct err *e)
{
    struct strbuf text = {0};
    char *path = manifest_path(folder, p->name);
    product_json(p, &text);
    FILE *f = fopen(path, "wb");
    bool ok = f && fwrite(strbuf_text(&text), 1, text.len, f) == text.len;
    int why = errno;
    if (f && fclose(f)) {
        ok = false;
        why = errno;
    }
    int rc = ok ? 0 : err_set(e, ERR_IO, "cannot write \"%s\": %s", path, strerror(why));
    free(path);
    strbuf_release(&text);
    return rc;
}

/* ---- reading ---- */

/* The only manifest of a folder; the caller frees. */
static json_t *find_manifest(const char *folder, struct err *e)
{
    json_t *found = NULL;
    int nr = 0;
    DIR *d = opendir(folder);
    if (!d) {
        err_set(e, ERR_IO, "cannot open the folder \"%s\": %s", folder, strerror(errno));
        return NULL;
    }
    const struct dirent *f;
    while ((f = readdir(d))) {
        size_t n = strlen(f->d_name);
        if (n < 6 || strcmp(f->d_name + n - 5, ".json") != 0)
            continue;
        struct strbuf path = {0};
        strbuf_addf(&path, "%s/%s", folder, f->d_name);
        json_t *j = json_load_file(strbuf_text(&path), 0, NULL);
        strbuf_release(&path);
        if (!json_object_get(j, MARK) || nr++) {
            json_decref(j);
            continue;
        }
        found = j;
    }
    closedir(d);
    if (nr == 1)
        return found;
    json_decref(found);
    err_set(e, ERR_INPUT,
            nr ? "folder \"%s\" has several compiled models: give each its own"
               : "folder \"%s\" has no compiled model: make one with squall compile",
            folder);
    return NULL;
}

static int unpack(json_t *j, struct product *p)
{
    const char *name, *input, *shapes, *hash, *session, *target, *compiler;
    const char *plain = ""; /* older ones have none */
    int seed, logits, inside;
    json_int_t arena, apart, weights;
    struct library_report *r = &p->report;
    if (json_unpack(j,
                    "{s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:i, s:i, s?s, s:b, s:b, "
                    "s:{s:i, s:i, s:i, s:i}, s:i, s:I, s:I, s:I, s:b}",
                    "name", &name, "input", &input, "shapes", &shapes, "input_hash", &hash, "session", &session,
                    "target", &target, "compiler", &compiler, "threads", &p->threads, "block",
                    &p->block, "plain", &plain, "seed_weights", &seed, "logits", &logits, "kernels", "refined",
                    &p->nr_refined, "explored", &p->nr_explored, "default", &p->nr_default, "stale",
                    &r->nr_stale, "calls", &r->nr_calls, "arena_bytes", &arena, "apart_bytes",
                    &apart, "weights_bytes", &weights, "weights_inside", &inside))
        return -1;
    p->name = xstrdup(name);
    p->input = xstrdup(input);
    p->shapes = xstrdup(shapes);
    p->plain = xstrdup(plain);
    p->input_hash = xstrdup(hash);
    p->session = xstrdup(session);
    p->target = xstrdup(target);
    p->compiler = xstrdup(compiler);
    p->seed_weights = seed;
    p->logits = logits;
    r->arena_bytes = arena;
    r->apart_bytes = apart;
    r->weights_bytes = weights;
    r->weights_inside = inside;
    r->nr_kernels = p->nr_refined + p->nr_explored + p->nr_default;
    return p->threads > 0 && p->block > 0 ? 0 : -1;
}

int product_read(const char *folder, struct product *out, struct err *e)
{
    *out = (struct product){0};
    json_t *j = find_manifest(folder, e);
    if (!j)
        return e->code;
    char *hash = NULL;
    int rc = unpack(j, out) ? err_set(e, ERR_INPUT,
                                      "the manifest in \"%s\" is damaged: compile "
                                      "the model again",
                                      folder)
                            : manifest_hash(out->input, &hash, e);
    json_decref(j);
    if (!rc && strcmp(hash, out->input_hash) != 0)
        rc = err_set(e, ERR_INPUT,
                     "\"%s\" has changed since the model in \"%s\" was compiled: "
                     "compile it again",
                     out->input, folder);
    free(hash);
    if (rc)
        product_clear(out);
    return rc;
}
