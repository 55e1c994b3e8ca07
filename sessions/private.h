/* SPDX-License-Identifier: Apache-2.0 */
/* Inside of the session store: what its files share. Not for others. */
#ifndef SESSIONS_PRIVATE_H
#define SESSIONS_PRIVATE_H

#include <pthread.h>
#include <sqlite3.h>

#include "sessions/store.h"

enum {
    APPLICATION_ID = 0x53514c4c, /* "SQLL" */
    FORMAT_VERSION = 1, /* rises where an older squall would misread; not for a table more */
    QUEUE_EVENTS = 1024, /* 1.6 MB; at 60 trials a second, four seconds of a stalled disk */
    BATCH_EVENTS = 256,  /* of one transaction */
    BUSY_MS = 30000,     /* how long another program may hold the file */
};

extern const char *const schema_sql[]; /* statements; NULL ends them */

struct rows; /* prepared statements of the writer: rows.c */

/* What the cost model learned, on its way to the writer: trees.c */
struct kept {
    uint64_t data;
    int nr_trials;
    void *bytes; /* owned */
    size_t len;
    struct kept *next;
};

struct session {
    char *path;
    sqlite3 *db; /* the writer thread's, once that is running */
    bool writable;
    enum session_state before; /* state when it was claimed */
    struct rows *rows;
    int64_t next_seq; /* writer */
    bool ended;       /* writer: an EV_ENDED was stored in this run */

    struct queue *queue;
    pthread_t thread;
    bool started;
    int fd; /* eventfd: a commit failed */

    pthread_mutex_t lock;
    pthread_cond_t handled_more;
    /* under lock */
    int64_t emitted, handled; /* events of this run, through the sink and through the writer */
    int64_t committed;        /* seq */
    struct queue *watcher;
    struct err failure;
    struct kept *kept; /* newest first */

    /* history: one reader thread of its own */
    sqlite3 *past;
    sqlite3_stmt *find, *command, *resulted;
    sqlite3_stmt *learned; /* NULL where no earlier run kept trees */
    struct event usage;
};

/* Turns the result code of SQLite into one sentence about the session. */
int sql_error(const char *path, sqlite3 *db, int rc, struct err *e);

/* Opens and checks that it is a file, and a session of this format. `flags` of sqlite3_open_v2. */
int db_open(const char *path, int flags, sqlite3 **out, struct err *e);
int db_exec(const char *path, sqlite3 *db, const char *sql, struct err *e);
int db_prepare(const char *path, sqlite3 *db, const char *sql, sqlite3_stmt **out, struct err *e);
/* 1 where the file has the table. */
int db_has_table(const char *path, sqlite3 *db, const char *name, struct err *e);

/* meta.c */
int meta_set(struct session *s, const char *key, const char *value, struct err *e);
int meta_set_int(struct session *s, const char *key, int64_t value, struct err *e);
int meta_get(struct session *s, const char *key, struct strbuf *value, struct err *e);
int meta_set_options(struct session *s, const struct tune_options *o, struct err *e);
int64_t meta_int(struct session *s, const char *key, int64_t otherwise);

/* owner.c: which process runs the session. */
enum owner { OWNER_NONE, OWNER_SELF, OWNER_ALIVE, OWNER_GONE, OWNER_UNKNOWN };
enum owner owner_check(struct session *s);
int owner_claim(struct session *s, struct err *e);

/* rows.c: events to rows, inside the caller's transaction. rows_store() returns 1 when stored, 0
 * when the event was dropped because its trial has ended before, or an SQLite code negated. */
int rows_open(struct session *s, struct err *e);
void rows_close(struct session *s);
int rows_store(struct session *s, const struct event *ev);

/* trees.c. The sink's keep(); and for the writer: takes the list away, stores it inside the caller's
 * transaction, frees it. */
void trees_keep(void *ctx, uint64_t data, int nr_trials, const void *bytes, size_t len);
struct kept *trees_take(struct session *s);
int trees_store(struct session *s, const struct kept *list, struct err *e);
void trees_drop(struct kept *list);
/* history->learned, of s->past. */
int trees_prepare(struct session *s, struct err *e);
bool trees_learned(void *ctx, uint64_t data, struct strbuf *out);

#endif
