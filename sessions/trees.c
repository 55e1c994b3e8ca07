/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the cost model learned: the table `trees`, a row whenever something came into use, by the
 * name of the data that it was learned from (engine/search/cost_model.h). Only sessions that
 * learned something have the table; one of an older squall gets it when it is resumed and learns
 * again.
 *
 * The rows only spare time, so what is in doubt is left out: a resumed session learns again what is
 * not found, and what it finds is read by engine/search/trees.c as from a stranger.
 *
 * ORDER. The conductor hands trees over before the first event that depends on them. The writer
 * looks for trees after it took its events, and stores them in the same transaction: so no event is
 * in the file without the trees that it depends on.
 */
#include <stdlib.h>
#include <string.h>

#include "engine/base/arena.h"
#include "sessions/private.h"

enum { MOST_BYTES = 16 << 20 }; /* of a row: some 50 KB are usual */

static const char create[] =
    "CREATE TABLE IF NOT EXISTS trees(data INTEGER PRIMARY KEY, trials INTEGER NOT NULL,\n"
    "  body BLOB NOT NULL);";

/* ---- to the file */

void trees_keep(void *ctx, uint64_t data, int nr_trials, const void *bytes, size_t len)
{
    struct session *s = ctx;
    struct kept *k = xmalloc(sizeof *k);
    *k = (struct kept){data, nr_trials, xmalloc(len), len, NULL};
    memcpy(k->bytes, bytes, len);
    pthread_mutex_lock(&s->lock);
    k->next = s->kept;
    s->kept = k;
    pthread_mutex_unlock(&s->lock);
}

struct kept *trees_take(struct session *s)
{
    pthread_mutex_lock(&s->lock);
    struct kept *list = s->kept;
    s->kept = NULL;
    pthread_mutex_unlock(&s->lock);
    return list;
}

void trees_drop(struct kept *list)
{
    while (list) {
        struct kept *next = list->next;
        free(list->bytes);
        free(list);
        list = next;
    }
}

static int insert(struct session *s, sqlite3_stmt *st, const struct kept *k, struct err *e)
{
    sqlite3_bind_int64(st, 1, (int64_t)k->data);
    sqlite3_bind_int(st, 2, k->nr_trials);
    sqlite3_bind_blob64(st, 3, k->bytes, k->len, SQLITE_STATIC);
    int rc = sqlite3_step(st);
    sqlite3_reset(st);
    return rc == SQLITE_DONE ? 0 : sql_error(s->path, s->db, rc, e);
}

int trees_store(struct session *s, const struct kept *list, struct err *e)
{
    sqlite3_stmt *st = NULL;
    if (!list)
        return 0;
    int rc = db_exec(s->path, s->db, create, e);
    if (!rc)
        rc = db_prepare(s->path, s->db,
                        "INSERT OR REPLACE INTO trees(data, trials, body) VALUES(?1, ?2, ?3)", &st,
                        e);
    for (const struct kept *k = list; k && !rc; k = k->next)
        rc = insert(s, st, k, e);
    sqlite3_finalize(st);
    return rc;
}

/* ---- from the file */

int trees_prepare(struct session *s, struct err *e)
{
    int rc = db_has_table(s->path, s->past, "trees", e);
    if (rc <= 0)
        return rc;
    return db_prepare(s->path, s->past, "SELECT body FROM trees WHERE data = ?1", &s->learned, e);
}

bool trees_learned(void *ctx, uint64_t data, struct strbuf *out)
{
    struct session *s = ctx;
    if (!s->learned)
        return false;
    sqlite3_bind_int64(s->learned, 1, (int64_t)data);
    bool found = sqlite3_step(s->learned) == SQLITE_ROW;
    const void *body = found ? sqlite3_column_blob(s->learned, 0) : NULL;
    int len = body ? sqlite3_column_bytes(s->learned, 0) : 0;
    if (len > 0 && len <= MOST_BYTES)
        strbuf_add(out, body, (size_t)len);
    sqlite3_reset(s->learned);
    return found;
}
