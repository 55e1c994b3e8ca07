/* SPDX-License-Identifier: Apache-2.0 */
#include "sessions/feed.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine/base/arena.h"
#include "sessions/private.h"

enum {
    CHUNK = 256,        /* events read at a time */
    WATCH_EVENTS = 4096 /* 6 MB: a second of a screen that does not look */
};

struct feed {
    char *path;
    sqlite3 *db;
    sqlite3_stmt *after;
    int64_t seq; /* of the last event given out */
    struct event *chunk;
    int next, nr;
    struct session *live;
    struct queue *queue;
    bool waiting; /* `held` came off the queue and is not given out yet */
    struct event held;
};

int feed_open(const char *path, int64_t seq, struct feed **out, struct err *e)
{
    struct feed *f = xcalloc(1, sizeof *f);
    f->path = xstrdup(path);
    f->seq = seq;
    f->chunk = xmalloc(CHUNK * sizeof *f->chunk);
    int rc = db_open(path, SQLITE_OPEN_READONLY, &f->db, e);
    if (!rc)
        rc = db_prepare(path, f->db,
                        "SELECT seq, body FROM events WHERE seq > ?1 ORDER BY seq LIMIT ?2",
                        &f->after, e);
    if (rc) {
        feed_free(f);
        return rc;
    }
    *out = f;
    return 0;
}

int feed_live(struct session *s, int64_t seq, struct feed **out, struct err *e)
{
    int rc = feed_open(session_path(s), seq, out, e);
    if (rc)
        return rc;
    (*out)->live = s;
    (*out)->queue = queue_new(sizeof(struct event), WATCH_EVENTS);
    session_watch(s, (*out)->queue);
    return 0;
}

void feed_free(struct feed *f)
{
    if (!f)
        return;
    if (f->live)
        session_watch(f->live, NULL);
    if (f->queue)
        queue_free(f->queue);
    sqlite3_finalize(f->after);
    sqlite3_close(f->db);
    free(f->chunk);
    free(f->path);
    free(f);
}

int feed_fd(struct feed *f)
{
    return f->queue ? queue_fd(f->queue) : -1;
}

void feed_seek(struct feed *f, int64_t seq)
{
    f->seq = seq;
    f->next = f->nr = 0;
}

static int read_chunk(struct feed *f, struct err *e)
{
    f->next = f->nr = 0;
    sqlite3_bind_int64(f->after, 1, f->seq);
    sqlite3_bind_int(f->after, 2, CHUNK);
    int step, rc = 0;
    while (!rc && (step = sqlite3_step(f->after)) != SQLITE_DONE) {
        if (step != SQLITE_ROW) {
            rc = sql_error(f->path, f->db, step, e);
            break;
        }
        struct event *ev = &f->chunk[f->nr];
        const char *body = (const char *)sqlite3_column_text(f->after, 1);
        long long seq = sqlite3_column_int64(f->after, 0);
        rc = event_from_json(body ? body : "", body ? strlen(body) : 0, ev, e);
        if (rc)
            err_prefix(e, "session \"%s\" is damaged at event %lld", f->path, seq);
        ev->seq = seq;
        f->nr += !rc;
    }
    sqlite3_reset(f->after);
    return rc;
}

static int from_file(struct feed *f, struct event *ev, struct err *e)
{
    if (f->next == f->nr) {
        int rc = read_chunk(f, e);
        if (rc)
            return rc;
    }
    if (f->next == f->nr)
        return 0;
    *ev = f->chunk[f->next++];
    f->seq = ev->seq;
    return 1;
}

/* The descriptor falls silent before the last look: what comes after that wakes again. */
static bool take(struct feed *f)
{
    uint64_t count;
    if (queue_try_pop(f->queue, &f->held))
        return true;
    if (read(queue_fd(f->queue), &count, sizeof count) < 0) {
        /* it was silent already */
    }
    return queue_try_pop(f->queue, &f->held);
}

int feed_next(struct feed *f, struct event *ev, struct err *e)
{
    if (!f->live || f->next < f->nr)
        return from_file(f, ev, e);
    for (;;) {
        if (!f->waiting)
            f->waiting = take(f);
        if (!f->waiting)
            /* The writer passes a full queue by; what it could not hand over is committed. */
            return f->seq < session_committed(f->live) ? from_file(f, ev, e) : 0;
        if (f->held.seq > f->seq + 1)
            return from_file(f, ev, e);
        f->waiting = false;
        if (f->held.seq <= f->seq)
            continue;
        *ev = f->held;
        f->seq = ev->seq;
        return 1;
    }
}
