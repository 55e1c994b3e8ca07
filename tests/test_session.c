/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "engine/base/arena.h"
#include "engine/base/rng.h"
#include "sessions/feed.h"
#include "sessions/private.h"
#include "tests/story.h"

static char folder[32];
static char path[128];

static int setup(void **state)
{
    (void)state;
    strcpy(folder, "/tmp/squall-test-XXXXXX");
    if (!mkdtemp(folder))
        return -1;
    snprintf(path, sizeof path, "%s/s.squall", folder);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    char command[192];
    snprintf(command, sizeof command, "chmod -R u+w %s; rm -rf %s", folder, folder);
    return system(command) == 0 ? 0 : -1;
}

static const struct tune_options options = {
    .input = "net.onnx",
    .explore_strategy = "evolutionary",
    .refine_strategy = "droplet",
    .trials = 100,
    .explore = 8,
    .refine = 8,
    .seconds = 0.1,
    .seed = UINT64_C(0xfedcba9876543210),
    .jobs = 2,
    .fill_ns = 3000000,
    .build_timeout_ns = 10000000000,
    .run_timeout_ns = 5000000000,
};

static struct session *created(void)
{
    struct session *s = NULL;
    struct err e = ERR_INIT;
    if (session_create(path, &options, &s, &e) != 0)
        fail_msg("%s", e.msg);
    return s;
}

static struct session *opened(enum session_mode mode)
{
    struct session *s = NULL;
    struct err e = ERR_INIT;
    if (session_open(path, mode, &s, &e) != 0)
        fail_msg("%s", e.msg);
    return s;
}

static void started(struct session *s)
{
    struct err e = ERR_INIT;
    if (session_start(s, &e) != 0)
        fail_msg("%s", e.msg);
}

static void emit_all(struct session *s, const struct story *story)
{
    struct event_sink sink = session_sink(s);
    for (int i = 0; i < story->nr; i++)
        sink.emit(sink.ctx, &story->ev[i]);
}

static void close_well(struct session *s)
{
    struct err e = ERR_INIT;
    if (session_close(s, &e) != 0)
        fail_msg("%s", e.msg);
}

static void told(void)
{
    struct story *story = xcalloc(1, sizeof *story);
    struct session *s = created();
    story_tell(story);
    started(s);
    emit_all(s, story);
    close_well(s);
    free(story);
}

/* All rows of a query, "a|b|c\n". */
static char *query(const char *sql)
{
    sqlite3 *db;
    sqlite3_stmt *st;
    struct strbuf out = {0};
    assert_int_equal(sqlite3_open_v2(path, &db, SQLITE_OPEN_READWRITE, NULL), SQLITE_OK);
    if (sqlite3_prepare_v2(db, sql, -1, &st, NULL) != SQLITE_OK)
        fail_msg("%s: %s", sql, sqlite3_errmsg(db));
    while (sqlite3_step(st) == SQLITE_ROW) {
        for (int i = 0; i < sqlite3_column_count(st); i++)
            strbuf_addf(&out, "%s%s", i ? "|" : "",
                        sqlite3_column_text(st, i) ? (const char *)sqlite3_column_text(st, i) : "");
        strbuf_addc(&out, '\n');
    }
    sqlite3_finalize(st);
    sqlite3_close(db);
    return strbuf_detach(&out);
}

static void assert_query(const char *sql, const char *want)
{
    char *got = query(sql);
    assert_string_equal(got, want);
    free(got);
}

static void assert_says(const struct err *e, const char *text)
{
    if (!strstr(e->msg, text))
        fail_msg("says: %s\nnot:  %s", e->msg, text);
    assert_null(strchr(e->msg, '\n'));
}

static void assert_refused(enum session_mode mode, int code, const char *says)
{
    struct session *s = NULL;
    struct err e = ERR_INIT;
    assert_int_equal(session_open(path, mode, &s, &e), code);
    assert_int_equal(e.code, code);
    assert_says(&e, says);
    assert_null(s);
}

static void write_file(const char *name, const char *text, size_t len)
{
    FILE *f = fopen(name, "wb");
    assert_non_null(f);
    fwrite(text, 1, len, f);
    fclose(f);
}

static void what_was_committed_is_read_again(void **state)
{
    (void)state;
    struct story *story = xcalloc(1, sizeof *story);
    struct event ev;
    struct err e = ERR_INIT;
    struct feed *f;
    told();
    story_tell(story);
    assert_int_equal(feed_open(path, 0, &f, &e), 0);
    for (int i = 0; i < story->nr; i++) {
        /* The story's texts are UTF-8, so they come back as they are. */
        assert_int_equal(feed_next(f, &ev, &e), 1);
        assert_memory_equal(&ev, &story->ev[i], sizeof ev);
    }
    assert_int_equal(feed_next(f, &ev, &e), 0);
    feed_seek(f, 10);
    assert_int_equal(feed_next(f, &ev, &e), 1);
    assert_int_equal(ev.seq, 11);
    feed_free(f);

    struct session *s = opened(SESSION_READ);
    struct session_info info;
    struct tune_options o;
    assert_int_equal(session_info(s, &info, &e), 0);
    assert_int_equal(info.state, SESSION_INTERRUPTED);
    assert_string_equal(info.why, "stopped by a person");
    assert_int_equal(info.last_trial, STORY_TRIALS);
    assert_int_equal(info.last_seq, story->nr);
    assert_int_equal(info.pid, 0);
    assert_string_equal(info.version, SQUALL_VERSION);
    assert_int_equal(session_options(s, &o, &e), 0);
    assert_memory_equal(&o, &options, sizeof o);
    close_well(s);
    free(story);
}

static void history_answers_with_what_was_stored(void **state)
{
    (void)state;
    told();
    struct session *s = opened(SESSION_RESUME);
    struct history h;
    struct observation o;
    char code[EVENT_CODE];
    struct event ev;
    struct err e = ERR_INIT;
    assert_int_equal(session_history(s, &h, &e), 0);
    started(s);
    assert_int_equal(h.last_trial, STORY_TRIALS);
    assert_int_equal(h.resumed, 1);
    assert_true(h.active_seconds > 5);

    assert_true(h.find(h.ctx, 5, &o, code));
    assert_string_equal(code, "0:5.59/1");
    assert_int_equal(o.trial, 5);
    assert_int_equal(o.status, TRIAL_OK);
    assert_int_equal(o.origin, ORIGIN_NEIGHBOUR);
    assert_int_equal(o.parent, 2);
    assert_int_equal(o.dir, 1);
    assert_int_equal(o.nr_samples, 3);
    assert_true(o.cost_ns == 1.5e6 && o.sample_ns[2] == 1.5e6 + 1);
    assert_true(h.find(h.ctx, 3, &o, code));
    assert_int_equal(o.status, TRIAL_BUILD_ERROR);
    assert_true(isinf(o.cost_ns));
    assert_false(h.find(h.ctx, 10, &o, code));
    assert_true(h.command(h.ctx, 0, &ev));
    assert_string_equal(ev.u.command.verb, "skip-task");
    assert_false(h.command(h.ctx, 1, &ev));
    assert_int_equal(h.resulted(h.ctx, 0), 6);
    assert_int_equal(h.resulted(h.ctx, 1), 0);
    assert_non_null(h.usage);
    assert_int_equal(h.usage->u.usage.restarts, 1);
    close_well(s);
}

static void a_resumed_session_goes_on_in_the_same_numbers(void **state)
{
    (void)state;
    struct story *story = xcalloc(1, sizeof *story);
    struct session *s = created();
    /* Cut off after a trial was proposed and measured, but has not ended. */
    story_add(story, EV_SESSION, -1, 0);
    story_task(story, 0, "a", 1, 0);
    story_proposed(story, 0, 1, PHASE_EXPLORE, ORIGIN_SAMPLE, 0);
    story_add(story, EV_MEASURING, 0, 1);
    started(s);
    emit_all(s, story);
    close_well(s);
    assert_query("SELECT count(*) FROM trials", "0\n");
    assert_query("SELECT id, task, state FROM in_flight", "1|a|measuring\n");
    assert_query("SELECT value FROM meta WHERE key = 'state'", "interrupted\n");

    s = opened(SESSION_RESUME);
    struct history h;
    struct err e = ERR_INIT;
    struct observation o;
    char code[EVENT_CODE];
    assert_int_equal(session_history(s, &h, &e), 0);
    assert_int_equal(h.last_trial, 0);
    assert_false(h.find(h.ctx, 1, &o, code));
    story->nr = 0;
    story_proposed(story, 0, 1, PHASE_EXPLORE, ORIGIN_SAMPLE, 0);
    story_ended(story, 0, 1, TRIAL_OK, 100, "");
    started(s);
    emit_all(s, story);
    assert_int_equal(session_flush(s, &e), 0);
    assert_int_equal(session_committed(s), 7);

    /* A second end of the same trial is not stored, nor is a new proposal of it believed. */
    story->nr = 0;
    story_ended(story, 0, 1, TRIAL_CRASHED, NAN, "again");
    emit_all(s, story);
    close_well(s);
    assert_query("SELECT id, status, median_ns FROM trials", "1|ok|100.0\n");
    assert_query("SELECT count(*) FROM events WHERE kind = 'trial'", "1\n");
    assert_query("SELECT count(*), min(seq), max(seq) FROM events", "8|1|8\n");
    free(story);
}

static void views_have_the_promised_columns(void **state)
{
    (void)state;
    told();
    assert_query("SELECT group_concat(name, ' ') FROM (SELECT name FROM pragma_table_info('trials')"
                 " LIMIT 13)",
                 "id task strategy phase sketch knobs status reason median_ns samples parent "
                 "started ended\n");
    assert_query("SELECT group_concat(name, ' ') FROM pragma_table_info('leaderboard')",
                 "task rank trial median_ns gflops speedup sketch knobs\n");
    assert_query("SELECT group_concat(name, ' ') FROM pragma_table_info('progress')",
                 "task trial trials time median_ns best_ns\n");
    assert_query("SELECT group_concat(name, ' ') FROM pragma_table_info('failures')",
                 "task status reason count example\n");
    assert_query("SELECT group_concat(name, ' ') FROM (SELECT name FROM pragma_table_info('tasks')"
                 " LIMIT 9)",
                 "name workload weight phase default_ns explored_ns refined_ns gflops trials\n");

    assert_query("SELECT id, task, strategy, phase, status, median_ns, samples, parent,"
                 " round(ended - started, 3), verdict, sample_ns FROM trials WHERE id IN (3, 5)",
                 "3|conv2d_64x56x56_3x3_64_relu|evolutionary|explore|build_error||0||0.05||[]\n"
                 "5|conv2d_64x56x56_3x3_64_relu|droplet|refine|ok|1500000.0|3|2|0.05|moved|"
                 "[1499999.0,1500000.0,1500001.0]\n");
    assert_query("SELECT json_extract(knobs, '$.tile[0]') FROM trials WHERE id = 5", "5\n");
    assert_query("SELECT ended_at FROM trials WHERE id = 1", "2025-06-15T15:06:40.900Z\n");
    assert_query("SELECT name, phase, default_ns, explored_ns, refined_ns, round(gflops, 1), trials"
                 " FROM tasks",
                 "conv2d_64x56x56_3x3_64_relu|done|4100000.0|2050000.0|1520000.0|152.1|6\n"
                 "matmul_512x512x512|explore|800000.0|400000.0||671.1|3\n");
    assert_query("SELECT task, rank, trial, round(speedup, 2) FROM leaderboard",
                 "conv2d_64x56x56_3x3_64_relu|1|6|2.75\nconv2d_64x56x56_3x3_64_relu|2|5|2.73\n"
                 "conv2d_64x56x56_3x3_64_relu|3|2|2.05\nconv2d_64x56x56_3x3_64_relu|4|1|1.03\n"
                 "matmul_512x512x512|1|8|2.0\nmatmul_512x512x512|2|7|1.0\n");
    assert_query("SELECT trial, trials, best_ns FROM progress WHERE task LIKE 'matmul%'",
                 "7|1|800000.0\n8|2|400000.0\n9|3|400000.0\n");
    assert_query("SELECT status, count, example FROM failures", "build_error|1|3\ncrashed|1|9\n");
}

/* As the board has it: until the next final its stages are trials again. */
static void a_task_that_goes_on_has_no_final_any_more(void **state)
{
    (void)state;
    told();
    struct session *s = opened(SESSION_RESUME);
    started(s);
    struct story *story = calloc(1, sizeof *story);
    story_phase(story, 0, PHASE_REFINE, "droplet");
    emit_all(s, story);
    close_well(s);
    free(story);
    assert_query("SELECT phase, default_ns, explored_ns, refined_ns FROM tasks LIMIT 1",
                 "refine|4000000.0|2000000.0|1500000.0\n");
    assert_query("SELECT result_after FROM task WHERE id = 0", "6\n");
}

static void a_new_session_spares_what_exists(void **state)
{
    (void)state;
    struct session *s = NULL;
    struct err e = ERR_INIT;
    told();
    assert_int_equal(session_create(path, &options, &s, &e), ERR_SESSION);
    assert_says(&e, "exists already: go on with `squall resume`");
    assert_query("SELECT count(*) FROM trials", "9\n");

    err_clear(&e);
    assert_int_equal(session_create("/nowhere/at/all/s.squall", &options, &s, &e), ERR_IO);
    assert_says(&e,
                "cannot create session \"/nowhere/at/all/s.squall\": No such file or directory");

    /* What a kill during creation leaves is no obstacle. */
    unlink(path);
    write_file(path, "", 0);
    close_well(created());
}

static void files_that_are_no_session_are_refused(void **state)
{
    (void)state;
    sqlite3 *db;
    assert_refused(SESSION_READ, ERR_SESSION, "no session");
    write_file(path, "", 0);
    assert_refused(SESSION_RESUME, ERR_SESSION, "is empty");
    static const char text[] = "Dear diary, this is no database at all, but long enough to be one. "
                               "Dear diary, this is no database at all, but long enough to be one.";
    write_file(path, text, sizeof text);
    assert_refused(SESSION_READ, ERR_SESSION, "not an SQLite file");
    assert_refused(SESSION_RESUME, ERR_SESSION, "not an SQLite file");
    unlink(path);
    assert_int_equal(mkdir(path, 0755), 0);
    assert_refused(SESSION_READ, ERR_SESSION, "is a folder");
    assert_int_equal(rmdir(path), 0);
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    sqlite3_exec(db, "CREATE TABLE a(b)", NULL, NULL, NULL);
    sqlite3_close(db);
    assert_refused(SESSION_READ, ERR_SESSION, "is an SQLite file but not a squall session");
    unlink(path);

    told();
    free(query("PRAGMA user_version = 2"));
    assert_refused(SESSION_READ, ERR_SESSION, "written by a newer squall (format 2");
    free(query("PRAGMA user_version = 0"));
    assert_refused(SESSION_RESUME, ERR_SESSION, "has format 0");
    free(query("PRAGMA user_version = 1"));
    free(query("DROP TABLE meta"));
    struct session *s = opened(SESSION_READ);
    struct session_info info;
    struct err e = ERR_INIT;
    assert_int_equal(session_info(s, &info, &e), ERR_SESSION);
    assert_says(&e, "is damaged: no such table: meta");
    close_well(s);
}

static void a_truncated_file_is_refused(void **state)
{
    (void)state;
    told();
    assert_int_equal(truncate(path, 8192), 0);
    struct session *s = NULL;
    struct err e = ERR_INIT;
    struct feed *f = NULL;
    struct event ev;
    int rc = session_open(path, SESSION_RESUME, &s, &e);
    if (!rc)
        rc = feed_open(path, 0, &f, &e);
    if (!rc)
        while ((rc = feed_next(f, &ev, &e)) == 1)
            ;
    assert_true(rc < 0);
    assert_says(&e, "is damaged");
    feed_free(f);
    session_close(s, NULL);
}

static void a_damaged_event_names_its_place(void **state)
{
    (void)state;
    told();
    free(query("UPDATE events SET body = '{\"event\":\"trial\"' WHERE seq = 12"));
    struct feed *f;
    struct event ev;
    struct err e = ERR_INIT;
    int rc;
    assert_int_equal(feed_open(path, 0, &f, &e), 0);
    while ((rc = feed_next(f, &ev, &e)) == 1)
        ;
    assert_int_equal(rc, ERR_INPUT);
    assert_says(&e, "is damaged at event 12");
    feed_free(f);
}

/* Runs `body` in a child and returns its exit status, or 128 + signal. */
static int in_child(void (*body)(void))
{
    pid_t pid = fork();
    if (!pid) {
        body();
        _exit(0);
    }
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static void says_or_exit(int rc, const struct err *e, const char *text)
{
    if (!rc || !strstr(e->msg, text)) {
        fprintf(stderr, "%s\n", rc ? e->msg : "no error");
        _exit(1);
    }
}

/* As nobody, for root may write anywhere. */
static void write_where_one_may_not(void)
{
    struct session *s = NULL;
    struct err e = ERR_INIT;
    if (geteuid() == 0 && setuid(65534) != 0)
        _exit(2);
    chmod(path, 0444);
    int rc = session_open(path, SESSION_RESUME, &s, &e);
    says_or_exit(rc, &e, "read-only");
    err_clear(&e);
    char other[160];
    snprintf(other, sizeof other, "%s/other.squall", folder);
    rc = session_create(other, &options, &s, &e);
    says_or_exit(rc, &e, "cannot create session");
    /* Looking at it needs neither. */
    err_clear(&e);
    rc = session_open(path, SESSION_READ, &s, &e);
    struct session_info info;
    if (rc || session_info(s, &info, &e) != 0 || info.last_trial != STORY_TRIALS) {
        fprintf(stderr, "%s\n", e.msg);
        _exit(3);
    }
    session_close(s, NULL);
}

static void resume_in_a_folder_one_may_not_write(void)
{
    struct session *s = NULL;
    struct err e = ERR_INIT;
    if (geteuid() == 0 && setuid(65534) != 0)
        _exit(2);
    int rc = session_open(path, SESSION_RESUME, &s, &e);
    says_or_exit(rc, &e, "its folder is not writable");
}

static void places_without_permission_are_refused(void **state)
{
    (void)state;
    told();
    chmod(path, 0444);
    chmod(folder, 0555);
    assert_int_equal(in_child(write_where_one_may_not), 0);
    chmod(path, 0666);
    assert_int_equal(in_child(resume_in_a_folder_one_may_not_write), 0);
    chmod(folder, 0755);
}

static void a_running_session_is_refused(void **state)
{
    (void)state;
    int ready[2];
    assert_int_equal(pipe(ready), 0);
    pid_t pid = fork();
    if (!pid) {
        struct session *s = NULL;
        if (session_create(path, &options, &s, NULL) != 0 || write(ready[1], "x", 1) != 1)
            _exit(1);
        pause();
    }
    char c;
    assert_int_equal(read(ready[0], &c, 1), 1);
    char says[64];
    snprintf(says, sizeof says, "in use by a running squall (process %d)", (int)pid);
    assert_refused(SESSION_RESUME, ERR_SESSION, says);
    assert_refused(SESSION_TAKE_OVER, ERR_SESSION, says);

    struct session *s = opened(SESSION_READ);
    struct session_info info;
    assert_int_equal(session_info(s, &info, NULL), 0);
    assert_int_equal(info.state, SESSION_RUNNING);
    assert_int_equal(info.pid, pid);

    /* kill -9: the state says running, but the process is gone. */
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    assert_int_equal(session_info(s, &info, NULL), 0);
    assert_int_equal(info.state, SESSION_INTERRUPTED);
    assert_string_equal(info.why, "its process is gone");
    close_well(s);
    assert_query("SELECT value FROM meta WHERE key = 'state'", "running\n");
    s = opened(SESSION_RESUME);

    /* Nor may this very process open it twice. */
    snprintf(says, sizeof says, "in use by a running squall (process %d)", (int)getpid());
    assert_refused(SESSION_RESUME, ERR_SESSION, says);
    close_well(s);
    close(ready[0]);
    close(ready[1]);
}

static void a_process_number_used_again_is_not_the_runner(void **state)
{
    (void)state;
    struct session *s = created();
    struct err e = ERR_INIT;
    assert_int_equal(meta_set_int(s, "pid_start", 1, &e), 0);
    s->ended = true; /* leaves the state as it is, as a kill does */
    close_well(s);
    assert_query("SELECT value FROM meta WHERE key = 'state'", "running\n");
    close_well(opened(SESSION_RESUME));
}

static void a_session_of_another_host_is_taken_over_only_when_told(void **state)
{
    (void)state;
    struct session *s = created();
    assert_int_equal(meta_set(s, "host", "elsewhere", NULL), 0);
    s->ended = true;
    close_well(s);
    assert_refused(SESSION_RESUME, ERR_SESSION, "on host \"elsewhere\"");
    close_well(opened(SESSION_TAKE_OVER));
}

static void a_changed_input_is_noticed(void **state)
{
    (void)state;
    char input[160];
    struct err e = ERR_INIT;
    struct strbuf text = {0};
    snprintf(input, sizeof input, "%s/net.onnx", folder);
    write_file(input, "model", 5);
    struct session *s = created();
    assert_int_equal(session_add_input(s, input, &e), 0);
    assert_int_equal(session_set(s, "target", "llvm", &e), 0);
    close_well(s);

    s = opened(SESSION_RESUME);
    assert_int_equal(session_check_inputs(s, &e), 0);
    assert_int_equal(session_input(s, 0, &text, &e), 1);
    assert_string_equal(strbuf_text(&text), input);
    assert_int_equal(session_input(s, 1, &text, &e), 0);
    strbuf_reset(&text);
    assert_int_equal(session_get(s, "target", &text, &e), 1);
    assert_string_equal(strbuf_text(&text), "llvm");
    assert_int_equal(session_get(s, "nothing", &text, &e), 0);
    write_file(input, "mOdel", 5);
    assert_int_equal(session_check_inputs(s, &e), ERR_INPUT);
    assert_says(&e, "has changed since session");
    err_clear(&e);
    unlink(input);
    assert_int_equal(session_check_inputs(s, &e), ERR_INPUT);
    assert_says(&e, "cannot read input");
    close_well(s);
    strbuf_release(&text);
}

/* Trees of no sense: the session does not look into them. */
static void keep(struct session *s, uint64_t data)
{
    struct event_sink sink = session_sink(s);
    char body[64];
    int len = snprintf(body, sizeof body, "learned from %llx", (unsigned long long)data);
    sink.keep(sink.ctx, data, 40, body, (size_t)len);
}

static void assert_learned(const struct history *h, uint64_t data)
{
    struct strbuf got = {0};
    char want[64];
    snprintf(want, sizeof want, "learned from %llx", (unsigned long long)data);
    assert_true(h->learned(h->ctx, data, &got));
    assert_string_equal(strbuf_text(&got), want);
    strbuf_release(&got);
}

static void what_was_learned_is_found_again(void **state)
{
    (void)state;
    static const uint64_t some[] = {1, UINT64_MAX, UINT64_C(0x8000000000000000)};
    told(); /* as an older squall wrote it: without a table for it */
    for (int run = 0; run < 4; run++) {
        struct session *s = opened(SESSION_RESUME);
        struct history h;
        struct strbuf none = {0};
        assert_int_equal(session_history(s, &h, NULL), 0);
        started(s);
        for (int i = 0; i < run; i++)
            assert_learned(&h, some[i]);
        for (int i = run; i < 3; i++)
            assert_false(h.learned(h.ctx, some[i], &none));
        assert_int_equal(none.len, 0);
        if (run < 3)
            keep(s, some[run]); /* and no event follows */
        close_well(s);
        char want[8];
        snprintf(want, sizeof want, "%d|40\n", run < 3 ? run + 1 : 3);
        assert_query("SELECT count(*), max(trials) FROM trees", want);
    }
}

/* One trial after the other, each with what its number says, until the process dies. */
static void write_trials(enum session_mode mode)
{
    struct story *story = xcalloc(1, sizeof *story);
    struct session *s = NULL;
    struct history h = {0};
    struct err e = ERR_INIT;
    int rc = mode == SESSION_READ ? session_create(path, &options, &s, &e)
                                  : session_open(path, mode, &s, &e);
    if (!rc)
        rc = session_history(s, &h, &e);
    if (!rc)
        rc = session_start(s, &e);
    if (rc) {
        fprintf(stderr, "%s\n", e.msg);
        _exit(1);
    }
    for (int64_t id = h.last_trial + 1;; id++) {
        story->nr = 0;
        story_proposed(story, 0, id, PHASE_EXPLORE, ORIGIN_SAMPLE, 0);
        story_proposed(story, 0, id + 1, PHASE_EXPLORE, ORIGIN_SAMPLE, 0);
        story_ended(story, 0, id, TRIAL_OK, 1.25 * (double)id, "");
        if (id % 3 == 0)
            keep(s, (uint64_t)id);
        emit_all(s, story);
        if (id % 7 == 0)
            session_flush(s, NULL);
    }
}

static int64_t check_trials(void)
{
    assert_query("PRAGMA integrity_check", "ok\n");
    char *count = query("SELECT count(*) FROM trials");
    int64_t nr = strtoll(count, NULL, 10);
    free(count);
    char want[128];
    snprintf(want, sizeof want, "%lld|%lld\n", (long long)nr, (long long)nr);
    assert_query("SELECT count(*), count(DISTINCT trial) FROM events WHERE kind = 'trial'", want);
    assert_query("SELECT coalesce(max(id), 0) = count(*) AND total(median_ns <> 1.25 * id) = 0"
                 " FROM trials",
                 "1\n");
    assert_query("SELECT coalesce(max(seq), 0) = count(*) FROM events", "1\n");
    return nr;
}

static void kill_9_loses_nothing_that_was_committed(void **state)
{
    (void)state;
    struct rng r;
    rng_seed(&r, 3);
    int64_t before = 0;
    for (int round = 0; round < 20; round++) {
        pid_t pid = fork();
        if (!pid)
            write_trials(round ? SESSION_RESUME : SESSION_READ);
        usleep((useconds_t)(5000 + rng_below(&r, 40000)));
        if (!round)
            usleep(300000); /* the file is there */
        assert_int_equal(waitpid(pid, NULL, WNOHANG), 0);
        kill(pid, SIGKILL);
        waitpid(pid, NULL, 0);
        int64_t nr = check_trials();
        assert_true(nr >= before);
        if (nr >= 3) /* nothing without what it depends on */
            assert_query("SELECT count(*) FROM trials LEFT JOIN trees ON data = id"
                         " WHERE id % 3 = 0 AND data IS NULL",
                         "0\n");
        before = nr;
    }
    assert_true(before >= 3);
    struct session *s = opened(SESSION_RESUME);
    struct history h;
    struct observation o;
    char code[EVENT_CODE];
    assert_int_equal(session_history(s, &h, NULL), 0);
    assert_int_equal(h.last_trial, before);
    assert_true(h.resumed > 1 && h.resumed <= 20); /* some died before they had claimed it */
    for (int64_t id = 1; id <= before; id++) {
        assert_true(h.find(h.ctx, id, &o, code));
        assert_true(o.sample_ns[1] == 1.25 * (double)id);
    }
    close_well(s);
}

/* A killed creation leaves what the next one takes, or a whole session. */
static void kill_9_during_creation_leaves_no_half_session(void **state)
{
    (void)state;
    struct rng r;
    rng_seed(&r, 5);
    for (int round = 0; round < 20; round++) {
        pid_t pid = fork();
        if (!pid)
            write_trials(SESSION_READ);
        usleep((useconds_t)rng_below(&r, 12000));
        kill(pid, SIGKILL);
        waitpid(pid, NULL, 0);
        struct session *s = NULL;
        struct err e = ERR_INIT;
        if (session_open(path, SESSION_RESUME, &s, &e) == 0) {
            struct tune_options o;
            assert_int_equal(session_options(s, &o, &e), 0);
            session_close(s, NULL);
        } else {
            assert_true(strstr(e.msg, "no such file") || strstr(e.msg, "is empty"));
            close_well(created());
        }
        char command[160];
        snprintf(command, sizeof command, "rm -f %s*", path);
        assert_int_equal(system(command), 0);
    }
}

static void write_until_it_fails(struct session *s, const char *says)
{
    struct story *story = xcalloc(1, sizeof *story);
    struct err e = ERR_INIT;
    int64_t id = 1;
    while (!session_failed(s, NULL)) {
        story->nr = 0;
        story_proposed(story, 0, id, PHASE_EXPLORE, ORIGIN_SAMPLE, 0);
        story_ended(story, 0, id, TRIAL_OK, 1.25 * (double)id, "");
        emit_all(s, story);
        session_flush(s, NULL);
        if (++id > 100000)
            _exit(4);
    }
    struct pollfd p = {session_fd(s), POLLIN, 0};
    if (poll(&p, 1, 0) != 1)
        _exit(5);
    /* What comes later is dropped without blocking, however much it is. */
    for (int i = 0; i < 3000; i++)
        emit_all(s, story);
    int rc = session_failed(s, &e);
    says_or_exit(rc, &e, says);
    if (rc != ERR_IO || strchr(e.msg, '\n'))
        _exit(6);
    if (session_close(s, NULL) != ERR_IO)
        _exit(7);
    free(story);
}

static void fill_the_pages(void)
{
    struct session *s = NULL;
    if (session_create(path, &options, &s, NULL) != 0 || session_start(s, NULL) != 0)
        _exit(2);
    session_flush(s, NULL);
    sqlite3_exec(s->db, "PRAGMA max_page_count = 60", NULL, NULL, NULL);
    write_until_it_fails(s, "no space left for session");
}

static void fill_the_disk(void)
{
    struct session *s = NULL;
    struct rlimit limit = {200000, 200000};
    signal(SIGXFSZ, SIG_IGN);
    if (setrlimit(RLIMIT_FSIZE, &limit) != 0)
        _exit(2);
    if (session_create(path, &options, &s, NULL) != 0 || session_start(s, NULL) != 0)
        _exit(3);
    write_until_it_fails(s, "what was committed stays");
}

static void a_full_disk_is_said_and_loses_nothing(void **state)
{
    (void)state;
    void (*const fill[])(void) = {fill_the_pages, fill_the_disk};
    for (int i = 0; i < 2; i++) {
        assert_int_equal(in_child(fill[i]), 0);
        assert_true(check_trials() > 10);
        close_well(opened(SESSION_RESUME));
        assert_true(check_trials() > 10);
        char command[160];
        snprintf(command, sizeof command, "rm -f %s*", path);
        assert_int_equal(system(command), 0);
    }
}

/* A watcher that polls would never sleep, and take a core from what is measured. */
static void a_feed_that_has_no_more_is_silent(void **state)
{
    (void)state;
    struct story *story = xcalloc(1, sizeof *story);
    struct session *s = created();
    struct event_sink sink = session_sink(s);
    struct feed *live;
    struct event ev;
    struct err e = ERR_INIT;
    started(s);
    assert_int_equal(feed_live(s, 0, &live, &e), 0);
    struct pollfd p = {.fd = feed_fd(live), .events = POLLIN};
    story_add(story, EV_NOTE, -1, 0);
    for (int round = 0; round < 3; round++) {
        sink.emit(sink.ctx, &story->ev[0]);
        assert_int_equal(session_flush(s, &e), 0);
        assert_int_equal(poll(&p, 1, 10000), 1);
        assert_int_equal(feed_next(live, &ev, &e), 1);
        assert_int_equal(feed_next(live, &ev, &e), 0);
        assert_int_equal(poll(&p, 1, 0), 0);
    }
    feed_free(live);
    close_well(s);
    free(story);
}

static void a_watcher_that_sleeps_misses_nothing(void **state)
{
    (void)state;
    enum { EVENTS = 10000 };
    struct story *story = xcalloc(1, sizeof *story);
    struct session *s = created();
    struct event_sink sink = session_sink(s);
    struct feed *live, *file;
    struct event ev;
    struct err e = ERR_INIT;
    started(s);
    assert_int_equal(feed_live(s, 0, &live, &e), 0);
    assert_int_equal(feed_open(path, 0, &file, &e), 0);
    story_add(story, EV_NOTE, -1, 0);
    int seen = 0;
    for (int i = 1; i <= EVENTS; i++) {
        story->ev[0].u.note.level = i;
        sink.emit(sink.ctx, &story->ev[0]);
        /* Looks for a while, then not at all, then again. */
        if (i < 500 || i > 9000)
            while (feed_next(live, &ev, &e) == 1)
                assert_int_equal(ev.u.note.level, ++seen);
    }
    assert_int_equal(session_flush(s, &e), 0);
    while (feed_next(live, &ev, &e) == 1)
        assert_int_equal(ev.u.note.level, ++seen);
    assert_int_equal(seen, EVENTS);
    assert_int_equal(ev.seq, EVENTS);
    seen = 0;
    while (feed_next(file, &ev, &e) == 1)
        assert_int_equal(ev.u.note.level, ++seen);
    assert_int_equal(seen, EVENTS);
    sink.emit(sink.ctx, &story->ev[0]);
    assert_int_equal(session_flush(s, &e), 0);
    assert_int_equal(feed_next(file, &ev, &e), 1);
    assert_int_equal(feed_next(live, &ev, &e), 1);
    feed_free(live);
    feed_free(file);
    close_well(s);
    free(story);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(what_was_committed_is_read_again),
        TEST(history_answers_with_what_was_stored),
        TEST(a_resumed_session_goes_on_in_the_same_numbers),
        TEST(views_have_the_promised_columns),
        TEST(a_task_that_goes_on_has_no_final_any_more),
        TEST(a_new_session_spares_what_exists),
        TEST(files_that_are_no_session_are_refused),
        TEST(a_truncated_file_is_refused),
        TEST(a_damaged_event_names_its_place),
        TEST(places_without_permission_are_refused),
        TEST(a_running_session_is_refused),
        TEST(a_process_number_used_again_is_not_the_runner),
        TEST(a_session_of_another_host_is_taken_over_only_when_told),
        TEST(a_changed_input_is_noticed),
        TEST(what_was_learned_is_found_again),
        TEST(kill_9_loses_nothing_that_was_committed),
        TEST(kill_9_during_creation_leaves_no_half_session),
        TEST(a_full_disk_is_said_and_loses_nothing),
        TEST(a_feed_that_has_no_more_is_silent),
        TEST(a_watcher_that_sleeps_misses_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
