/* SPDX-License-Identifier: Apache-2.0 */
/* Opening, creating and closing; every way in which a file is refused. */
#include "sessions/store.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include "engine/base/arena.h"
#include "engine/base/clock.h"
#include "engine/base/utf8.h"
#include "sessions/private.h"

int sql_error(const char *path, sqlite3 *db, int rc, struct err *e)
{
    int os = db ? sqlite3_system_errno(db) : 0;
    switch (rc & 0xff) {
    case SQLITE_FULL:
        return err_set(
            e, ERR_IO,
            "no space left for session \"%s\": what was committed stays; make room and go "
            "on with `squall resume`",
            path);
    case SQLITE_IOERR:
        return err_set(
            e, ERR_IO,
            "cannot write session \"%s\": %s; what was committed stays, go on with `squall "
            "resume` when the cause is mended",
            path, os ? strerror(os) : sqlite3_errmsg(db));
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
        return err_set(e, ERR_SESSION,
                       "session \"%s\" is locked by another program: close it and try again", path);
    case SQLITE_NOTADB:
        return err_set(e, ERR_SESSION, "\"%s\" is not a squall session: not an SQLite file", path);
    case SQLITE_CORRUPT:
        return err_set(e, ERR_SESSION, "session \"%s\" is damaged: %s; try sqlite3's .recover",
                       path, db ? sqlite3_errmsg(db) : sqlite3_errstr(rc));
    case SQLITE_READONLY:
        return err_set(e, ERR_IO, "session \"%s\" is read-only: make it and its folder writable",
                       path);
    case SQLITE_CANTOPEN:
        return err_set(e, ERR_IO, "cannot open session \"%s\": %s", path,
                       os ? strerror(os) : "unable to open the file");
    case SQLITE_NOMEM:
        return err_set(e, ERR_NOMEM, "out of memory while reading session \"%s\"", path);
    }
    return err_set(e, ERR_SESSION, "session \"%s\": %s", path,
                   db ? sqlite3_errmsg(db) : sqlite3_errstr(rc));
}

int db_exec(const char *path, sqlite3 *db, const char *sql, struct err *e)
{
    int rc = sqlite3_exec(db, sql, NULL, NULL, NULL);
    return rc == SQLITE_OK ? 0 : sql_error(path, db, rc, e);
}

int db_prepare(const char *path, sqlite3 *db, const char *sql, sqlite3_stmt **out, struct err *e)
{
    int rc = sqlite3_prepare_v3(db, sql, -1, SQLITE_PREPARE_PERSISTENT, out, NULL);
    if (rc == SQLITE_OK)
        return 0;
    if ((rc & 0xff) == SQLITE_ERROR)
        return err_set(e, ERR_SESSION, "session \"%s\" is damaged: %s", path, sqlite3_errmsg(db));
    return sql_error(path, db, rc, e);
}

int db_has_table(const char *path, sqlite3 *db, const char *name, struct err *e)
{
    sqlite3_stmt *st;
    int rc = db_prepare(path, db, "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ?1",
                        &st, e);
    if (rc)
        return rc;
    sqlite3_bind_text(st, 1, name, -1, SQLITE_STATIC);
    rc = sqlite3_step(st) == SQLITE_ROW;
    sqlite3_finalize(st);
    return rc;
}

/* The value of a pragma that is a number. */
static int pragma(const char *path, sqlite3 *db, const char *sql, int64_t *out, struct err *e)
{
    sqlite3_stmt *st;
    int rc = sqlite3_prepare_v2(db, sql, -1, &st, NULL);
    if (rc == SQLITE_OK)
        rc = sqlite3_step(st);
    if (rc == SQLITE_ROW)
        *out = sqlite3_column_int64(st, 0);
    sqlite3_finalize(st);
    return rc == SQLITE_ROW || rc == SQLITE_DONE ? 0 : sql_error(path, db, rc, e);
}

static int check_format(const char *path, sqlite3 *db, struct err *e)
{
    int64_t pages = 0, id = 0, version = 0;
    int rc = pragma(path, db, "PRAGMA page_count", &pages, e);
    if (!rc)
        rc = pragma(path, db, "PRAGMA application_id", &id, e);
    if (!rc)
        rc = pragma(path, db, "PRAGMA user_version", &version, e);
    if (rc)
        return rc;
    if (!pages)
        return err_set(
            e, ERR_SESSION,
            "\"%s\" is empty, not a squall session: delete it and start with `squall tune`", path);
    if (id != APPLICATION_ID)
        return err_set(e, ERR_SESSION, "\"%s\" is an SQLite file but not a squall session", path);
    if (version > FORMAT_VERSION)
        return err_set(
            e, ERR_SESSION,
            "session \"%s\" was written by a newer squall (format %lld, this one reads %d): "
            "use that squall",
            path, (long long)version, FORMAT_VERSION);
    if (version < FORMAT_VERSION)
        return err_set(
            e, ERR_SESSION,
            "session \"%s\" has format %lld, this squall reads only %d: use the squall that "
            "wrote it",
            path, (long long)version, FORMAT_VERSION);
    return 0;
}

static int db_connect(const char *name, const char *path, int flags, sqlite3 **out, struct err *e)
{
    sqlite3 *db = NULL;
    int rc = sqlite3_open_v2(name, &db, flags | SQLITE_OPEN_EXRESCODE, NULL);
    if (rc != SQLITE_OK) {
        rc = sql_error(path, db, rc, e);
        sqlite3_close(db);
        return rc;
    }
    sqlite3_busy_timeout(db, BUSY_MS);
    /* A session may come from a stranger: its views must not reach functions with side effects. */
    sqlite3_db_config(db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
    sqlite3_db_config(db, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
    *out = db;
    return 0;
}

/* Is there a log that holds what the file does not? */
static bool has_log(const char *path)
{
    struct strbuf wal = {0};
    struct stat st;
    strbuf_addf(&wal, "%s-wal", path);
    bool has = stat(strbuf_text(&wal), &st) == 0 && st.st_size > 0;
    strbuf_release(&wal);
    return has;
}

/* "file:<path>?immutable=1" with what a URI reserves escaped. */
static void immutable_uri(const char *path, struct strbuf *out)
{
    strbuf_adds(out, "file:");
    for (const char *p = path; *p; p++) {
        if (*p == '%' || *p == '?' || *p == '#')
            strbuf_addf(out, "%%%02x", *p);
        else
            strbuf_addc(out, *p);
    }
    strbuf_adds(out, "?immutable=1");
}

/* What the system can say before SQLite is asked; its own words are less clear. */
static int check_place(const char *path, bool write, struct err *e)
{
    struct stat st;
    if (stat(path, &st) != 0)
        return errno == ENOENT
                   ? err_set(e, ERR_SESSION, "no session \"%s\": no such file", path)
                   : err_set(e, ERR_IO, "cannot open session \"%s\": %s", path, strerror(errno));
    if (S_ISDIR(st.st_mode))
        return err_set(e, ERR_SESSION, "\"%s\" is a folder, not a squall session", path);
    if (!S_ISREG(st.st_mode))
        return err_set(e, ERR_SESSION, "\"%s\" is not a file, so not a squall session", path);
    if (access(path, R_OK) != 0)
        return err_set(e, ERR_IO, "cannot read session \"%s\": %s", path, strerror(errno));
    if (!write)
        return 0;
    if (access(path, W_OK) != 0)
        return err_set(
            e, ERR_IO,
            "cannot resume session \"%s\": the file is read-only (%s); make it writable, or "
            "look at it with `squall show`",
            path, strerror(errno));
    char *folder = xstrdup(path);
    char *slash = strrchr(folder, '/');
    if (slash)
        slash[slash == folder] = '\0';
    bool ok = access(slash ? folder : ".", W_OK) == 0;
    int os = errno;
    if (!ok)
        err_set(
            e, ERR_IO,
            "cannot resume session \"%s\": its folder is not writable (%s), and SQLite keeps its "
            "log beside the file",
            path, strerror(os));
    free(folder);
    return ok ? 0 : ERR_IO;
}

int db_open(const char *path, int flags, sqlite3 **out, struct err *e)
{
    struct err first = ERR_INIT;
    sqlite3 *db = NULL;
    int rc = check_place(path, !(flags & SQLITE_OPEN_READONLY), e);
    if (rc)
        return rc;
    rc = db_connect(path, path, flags, &db, &first);
    if (!rc)
        rc = check_format(path, db, &first);
    /* WAL wants a -shm file beside it even to read. Where none can be made, a file without a log is
     * all there is, and can be read as it stands. */
    if (rc == ERR_IO && (flags & SQLITE_OPEN_READONLY) && !has_log(path)) {
        struct strbuf uri = {0};
        immutable_uri(path, &uri);
        sqlite3_close(db);
        db = NULL;
        err_clear(&first);
        rc = db_connect(strbuf_text(&uri), path, flags | SQLITE_OPEN_URI, &db, &first);
        if (!rc)
            rc = check_format(path, db, &first);
        strbuf_release(&uri);
    }
    if (rc) {
        sqlite3_close(db);
        return err_set(e, rc, "%s", first.msg);
    }
    *out = db;
    return 0;
}

static struct session *session_new(const char *path)
{
    struct session *s = xcalloc(1, sizeof *s);
    s->path = xstrdup(path);
    s->fd = -1;
    pthread_mutex_init(&s->lock, NULL);
    pthread_cond_init(&s->handled_more, NULL);
    return s;
}

static void session_free(struct session *s)
{
    rows_close(s);
    trees_drop(s->kept);
    sqlite3_finalize(s->find);
    sqlite3_finalize(s->command);
    sqlite3_finalize(s->resulted);
    sqlite3_finalize(s->learned);
    sqlite3_close(s->past);
    sqlite3_close(s->db);
    if (s->queue)
        queue_free(s->queue);
    if (s->fd >= 0)
        close(s->fd);
    pthread_cond_destroy(&s->handled_more);
    pthread_mutex_destroy(&s->lock);
    free(s->path);
    free(s);
}

static int exists_error(const char *path, struct err *e)
{
    return err_set(
        e, ERR_SESSION,
        "session \"%s\" exists already: go on with `squall resume`, or choose another file "
        "with --session",
        path);
}

/*
 * Makes the empty file, so that the system says why it cannot. A file of no bytes is what a kill
 * during creation leaves; it holds nothing and is taken.
 */
static int create_file(const char *path, struct err *e)
{
    int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    if (fd >= 0) {
        close(fd);
        return 0;
    }
    struct stat st;
    if (errno != EEXIST)
        return err_set(e, ERR_IO, "cannot create session \"%s\": %s", path, strerror(errno));
    if (stat(path, &st) == 0 && S_ISREG(st.st_mode) && st.st_size == 0)
        return 0;
    return exists_error(path, e);
}

static int create_schema(struct session *s, const struct tune_options *o, struct err *e)
{
    char format[96];
    snprintf(format, sizeof format, "PRAGMA application_id = %d; PRAGMA user_version = %d",
             APPLICATION_ID, FORMAT_VERSION);
    /* One transaction, in a rollback journal still: a kill in here leaves an empty file, not half a
     * session. WAL is for what follows. */
    int rc = db_exec(s->path, s->db, "BEGIN EXCLUSIVE", e);
    if (!rc)
        rc = db_exec(s->path, s->db, format, e);
    for (int i = 0; !rc && schema_sql[i]; i++)
        rc = db_exec(s->path, s->db, schema_sql[i], e);
    if (!rc)
        rc = meta_set(s, "version", SQUALL_VERSION, e);
    if (!rc)
        rc = meta_set_int(s, "created_ns", clock_wall_ns(), e);
    if (!rc)
        rc = meta_set_options(s, o, e);
    if (!rc)
        rc = owner_claim(s, e);
    if (!rc)
        rc = db_exec(s->path, s->db, "COMMIT", e);
    if (!rc)
        rc = db_exec(s->path, s->db, "PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL;", e);
    return rc;
}

int session_create(const char *path, const struct tune_options *o, struct session **out,
                   struct err *e)
{
    int rc = create_file(path, e);
    if (rc)
        return rc;
    struct session *s = session_new(path);
    s->writable = true;
    s->before = SESSION_INTERRUPTED;
    s->next_seq = 1;
    rc = db_connect(path, path, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, &s->db, e);
    if (!rc)
        rc = create_schema(s, o, e);
    if (!rc) {
        *out = s;
        return 0;
    }
    session_free(s);
    /* Nothing of worth is in it yet, and left behind it would be in the way of the next try. */
    unlink(path);
    return rc;
}

static int claim(struct session *s, enum session_mode mode, struct err *e)
{
    /* Whoever gets the write lock decides: two that resume at once cannot both win. */
    int rc = db_exec(s->path, s->db, "PRAGMA synchronous = NORMAL; BEGIN IMMEDIATE", e);
    if (rc)
        return rc;
    struct session_info info;
    rc = session_info(s, &info, e);
    if (rc)
        return rc;
    enum owner owner = owner_check(s);
    if (owner == OWNER_SELF || owner == OWNER_ALIVE)
        return err_set(
            e, ERR_SESSION,
            "session \"%s\" is in use by a running squall (process %lld): `squall attach` "
            "watches it",
            s->path, (long long)info.pid);
    if (owner == OWNER_UNKNOWN && mode != SESSION_TAKE_OVER)
        return err_set(
            e, ERR_SESSION,
            "session \"%s\" is in use by process %lld on host \"%s\": stop it there; if it is "
            "gone, take the session over with --take-over",
            s->path, (long long)info.pid, info.host);
    s->before = info.state;
    s->next_seq = info.last_seq + 1;
    s->committed = info.last_seq;
    rc = meta_set_int(s, "resumed", info.resumed + 1, e);
    if (!rc)
        rc = owner_claim(s, e);
    if (!rc)
        rc = db_exec(s->path, s->db, "COMMIT", e);
    return rc;
}

int session_open(const char *path, enum session_mode mode, struct session **out, struct err *e)
{
    struct session *s = session_new(path);
    int rc = db_open(path, mode == SESSION_READ ? SQLITE_OPEN_READONLY : SQLITE_OPEN_READWRITE,
                     &s->db, e);
    if (!rc && mode != SESSION_READ)
        rc = claim(s, mode, e);
    if (rc) {
        session_free(s);
        return rc;
    }
    s->writable = mode != SESSION_READ;
    *out = s;
    return 0;
}

int session_close(struct session *s, struct err *e)
{
    if (!s)
        return 0;
    if (s->started) {
        queue_close(s->queue);
        pthread_join(s->thread, NULL);
    }
    int rc = session_failed(s, e);
    if (s->writable && !s->ended) {
        /* Best effort: with a full disk the dead process tells the same. */
        meta_set(s, "state",
                 session_state_name(s->before == SESSION_FINISHED && !rc ? SESSION_FINISHED
                                                                         : SESSION_INTERRUPTED),
                 NULL);
        if (rc)
            meta_set(s, "why", s->failure.msg, NULL);
        else if (s->before != SESSION_FINISHED)
            meta_set(s, "why", "closed before its end", NULL);
    }
    session_free(s);
    return rc;
}

const char *session_path(const struct session *s)
{
    return s->path;
}

const char *session_state_name(enum session_state s)
{
    static const char *const names[] = {"running", "interrupted", "finished"};
    return names[s];
}

static int last_numbers(struct session *s, struct session_info *out, struct err *e)
{
    sqlite3_stmt *st;
    int rc = db_prepare(s->path, s->db,
                        "SELECT (SELECT coalesce(max(seq), 0) FROM events),"
                        " coalesce((SELECT id FROM trial WHERE ended_seq IS NOT NULL"
                        " ORDER BY id DESC LIMIT 1), 0)",
                        &st, e);
    if (rc)
        return rc;
    int step = sqlite3_step(st);
    if (step == SQLITE_ROW) {
        out->last_seq = sqlite3_column_int64(st, 0);
        out->last_trial = sqlite3_column_int64(st, 1);
    } else {
        rc = sql_error(s->path, s->db, step, e);
    }
    sqlite3_finalize(st);
    return rc;
}

static int info_text(struct session *s, const char *key, char *to, size_t size, struct err *e)
{
    struct strbuf value = {0};
    int rc = meta_get(s, key, &value, e);
    utf8_copy(to, size, strbuf_text(&value));
    strbuf_release(&value);
    return rc < 0 ? rc : 0;
}

int session_info(struct session *s, struct session_info *out, struct err *e)
{
    *out = (struct session_info){0};
    char state[16];
    int rc = info_text(s, "state", state, sizeof state, e);
    if (!rc)
        rc = info_text(s, "why", out->why, sizeof out->why, e);
    if (!rc)
        rc = info_text(s, "host", out->host, sizeof out->host, e);
    if (!rc)
        rc = info_text(s, "version", out->version, sizeof out->version, e);
    if (!rc)
        rc = last_numbers(s, out, e);
    if (rc)
        return rc;
    out->created_ns = meta_int(s, "created_ns", 0);
    out->resumed = (int)meta_int(s, "resumed", 0);
    out->pid = meta_int(s, "pid", 0);
    out->state = !strcmp(state, "finished")  ? SESSION_FINISHED
                 : !strcmp(state, "running") ? SESSION_RUNNING
                                             : SESSION_INTERRUPTED;
    if (out->state == SESSION_RUNNING && owner_check(s) == OWNER_GONE) {
        out->state = SESSION_INTERRUPTED;
        strcpy(out->why, "its process is gone");
    }
    if (s->writable)
        out->state = s->before;
    if (out->state != SESSION_RUNNING)
        out->pid = 0;
    return 0;
}
