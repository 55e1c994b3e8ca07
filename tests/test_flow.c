/* SPDX-License-Identifier: Apache-2.0 */
/* Layouts of a session: chosen by measured costs, kept, found again, and not trusted. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/tune_fixture.h"
#include "ui/flow.h"
#include "ui/restore.h"

enum { LANES = 8 };

/* Two units whose group convolutions, of 17 channels a group, fill no blocks. */
static const char network[] =
    "local net = network { name = 'shuffled', input = {1, 3, 6, 6} }\n"
    "local function unit(x)\n"
    "  local y = x:conv{k = 68, groups = 4}:relu()\n"
    "  y = y:reshape{1, 4, 17, 6, 6}:transpose{1, 3, 2, 4, 5}:reshape{1, 68, 6, 6}\n"
    "  y = y:depthwise{kernel = 3, pad = 1}:conv{k = 24, groups = 4}\n"
    "  return (x + y):relu()\n"
    "end\n"
    "local x = unit(unit(net.input:conv{k = 24, kernel = 3, pad = 1}))\n"
    "return net:output(x:global_avgpool():flatten():dense{n = 7})\n";

struct world {
    char folder[64], model[96], session[96];
    struct fake fake;
    struct cli_options o;
};

static void world_init(struct world *w)
{
    *w = (struct world){0};
    strcpy(w->folder, "/tmp/squall_flow_XXXXXX");
    assert_non_null(mkdtemp(w->folder));
    snprintf(w->model, sizeof w->model, "%s/net.lua", w->folder);
    snprintf(w->session, sizeof w->session, "%s/s.squall", w->folder);
    FILE *f = fopen(w->model, "wb");
    assert_non_null(f);
    fputs(network, f);
    fclose(f);
    fake_init(&w->fake, NULL);
    w->fake.flat = true;
    w->fake.info.lanes = LANES;
    options_init(&w->o.tune);
    w->o.target = "llvm";
    w->o.threads = 1;
    w->o.json = true; /* says nothing */
    w->o.input[w->o.nr_inputs++] = w->model;
}

/* SQLite leaves files beside one that was only read. */
static void remove_session(const struct world *w)
{
    static const char *const ends[] = {"", "-wal", "-shm"};
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        char path[128];
        snprintf(path, sizeof path, "%s%s", w->session, ends[i]);
        unlink(path);
    }
}

static void world_release(struct world *w)
{
    fake_free(&w->fake);
    remove_session(w);
    unlink(w->model);
    assert_int_equal(rmdir(w->folder), 0);
}

static int count_like(const struct task_list *l, const char *prefix)
{
    int nr = 0;
    for (int i = 0; i < l->nr; i++)
        nr += strncmp(l->task[i]->name, prefix, strlen(prefix)) == 0;
    return nr;
}

static struct task_list tasks_of(const struct cli_options *o)
{
    struct task_list l = {0};
    struct err e = ERR_INIT;
    if (load_inputs(o, LANES, &l, &e))
        print_error("%s\n", e.msg);
    assert_int_equal(e.code, 0);
    return l;
}

/* The choice where kernels with such names take so many times longer. */
static struct strbuf surveyed(struct world *w, const char *slow, double times)
{
    struct strbuf flow = {0};
    struct err e = ERR_INIT;
    bool stuck = true;
    w->fake.slow = slow;
    w->fake.slow_times = times;
    assert_int_equal(flow_survey(&w->o, &w->fake.device, &flow, &stuck, &e), 0);
    assert_false(stuck);
    assert_int_equal(w->fake.artifacts, 0);
    assert_int_equal(w->fake.operands, 0);
    return flow;
}

/* Of cli.c, which stands for all commands. */
bool cli_wants_screen(const struct cli_options *o)
{
    (void)o;
    return false;
}

/* ---- the survey */

static void dear_conversions_make_kernels_plain(void **state)
{
    (void)state;
    struct world w;
    world_init(&w);
    struct task_list before = tasks_of(&w.o);
    struct strbuf flow = surveyed(&w, "pack", 100);
    assert_true(w.fake.builds > 0);
    assert_memory_equal(strbuf_text(&flow), "0 ", 2);
    w.o.flow = strbuf_text(&flow);
    struct task_list after = tasks_of(&w.o);
    assert_int_equal(count_like(&before, "pack") + count_like(&before, "unpack"), 3);
    assert_int_equal(count_like(&after, "pack") + count_like(&after, "unpack"), 0);
    assert_int_equal(count_like(&after, "depthwise"), 1);
    task_list_release(&before);
    task_list_release(&after);
    strbuf_release(&flow);
    world_release(&w);
}

/* In the survey the plain twin of a kernel has the second of its names. */
static void slow_plain_kernels_stay_in_blocks(void **state)
{
    (void)state;
    struct world w;
    world_init(&w);
    struct strbuf flow = surveyed(&w, "s1_2", 100);
    assert_true(w.fake.builds > 0);
    assert_string_equal(strbuf_text(&flow), "");
    strbuf_release(&flow);
    world_release(&w);
}

static void networks_without_regions_are_not_measured(void **state)
{
    (void)state;
    static const char *const inputs[] = {"tinynet", "resnet18", "conv2d:C=16,H=9,K=16"};
    struct world w;
    world_init(&w);
    for (size_t i = 0; i < sizeof inputs / sizeof *inputs; i++) {
        w.o.input[0] = inputs[i];
        struct strbuf flow = surveyed(&w, "pack", 100);
        assert_string_equal(strbuf_text(&flow), "");
        assert_int_equal(w.fake.builds, 0);
        strbuf_release(&flow);
    }
    world_release(&w);
}

static void a_signal_ends_the_survey(void **state)
{
    (void)state;
    struct world w;
    struct strbuf flow = {0};
    struct err e = ERR_INIT;
    bool stuck = true;
    sigset_t set, before;
    world_init(&w);
    w.fake.block_measure = 1; /* waits for the second signal */
    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGTERM);
    sigprocmask(SIG_BLOCK, &set, &before);
    raise(SIGINT);
    raise(SIGTERM);
    assert_int_equal(flow_survey(&w.o, &w.fake.device, &flow, &stuck, &e), ERR_INTERRUPTED);
    assert_false(stuck);
    sigprocmask(SIG_SETMASK, &before, NULL);
    assert_int_equal(w.fake.artifacts, 0);
    assert_string_equal(strbuf_text(&flow), "");
    world_release(&w);
}

/* ---- kept with a session */

static void store(struct world *w, const char *flow)
{
    struct session *s = NULL;
    struct err e = ERR_INIT;
    struct strbuf inputs = {0};
    remove_session(w);
    assert_int_equal(session_create(w->session, &w->o.tune, &s, &e), 0);
    for (int i = 0; i < w->o.nr_inputs; i++)
        strbuf_addf(&inputs, "%s\n", w->o.input[i]);
    assert_int_equal(session_set(s, KEY_INPUTS, strbuf_text(&inputs), &e), 0);
    assert_int_equal(session_set(s, KEY_TARGET, "llvm", &e), 0);
    assert_int_equal(session_set(s, KEY_THREADS, "1", &e), 0);
    if (flow)
        assert_int_equal(session_set(s, KEY_LAYOUT, flow, &e), 0);
    strbuf_release(&inputs);
    session_close(s, NULL);
}

/* The tasks as whoever opens the session finds them. */
static int found_again(struct world *w, struct task_list *l, struct err *e)
{
    struct session *s = NULL;
    struct cli_options o = {0};
    struct strbuf text[RESTORE_TEXTS] = {{0}};
    assert_int_equal(session_open(w->session, SESSION_READ, &s, e), 0);
    int rc = restore_inputs(s, &o, text, e);
    rc = rc ? rc : load_inputs(&o, LANES, l, e);
    for (int i = 0; i < RESTORE_TEXTS; i++)
        strbuf_release(&text[i]);
    session_close(s, NULL);
    return rc;
}

static void assert_same_tasks(const struct task_list *a, const struct task_list *b)
{
    assert_int_equal(a->nr, b->nr);
    for (int i = 0; i < a->nr; i++) {
        assert_string_equal(a->task[i]->name, b->task[i]->name);
        assert_string_equal(a->task[i]->wl.id, b->task[i]->wl.id);
        assert_int_equal((int)a->task[i]->weight, (int)b->task[i]->weight);
    }
}

/* Of three inputs the named workload and the one without regions have no line. */
static void what_was_chosen_is_found_again(void **state)
{
    (void)state;
    struct world w;
    world_init(&w);
    w.o.nr_inputs = 3;
    w.o.input[0] = "conv2d:C=16,H=9,K=16";
    w.o.input[1] = "tinynet";
    w.o.input[2] = w.model;
    struct strbuf flow = surveyed(&w, "pack", 100);
    assert_memory_equal(strbuf_text(&flow), "2 ", 2);
    const char *const kept[] = {NULL, "plain", strbuf_text(&flow)};
    int nr[3];
    for (int i = 0; i < 3; i++) {
        struct task_list again = {0};
        struct err e = ERR_INIT;
        w.o.flow = kept[i];
        struct task_list l = tasks_of(&w.o);
        store(&w, kept[i]);
        assert_int_equal(found_again(&w, &again, &e), 0);
        assert_same_tasks(&l, &again);
        nr[i] = count_like(&l, "pack") + count_like(&l, "unpack");
        task_list_release(&l);
        task_list_release(&again);
    }
    assert_true(nr[0] > nr[2]);
    assert_int_equal(nr[1], 0);
    strbuf_release(&flow);
    world_release(&w);
}

static void hostile_layouts_are_refused_with_a_sentence(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "blocked", "Plain", "plain\n", "0", "0 ", "0 \n", "x 1:0", "1 12:3", "-1 12:3", "0 99:1",
        "0 0:0", "0 12:99999999999999999999", "99999999999999999999 1:0", "0 garbage", "0 12:",
        "\n", "\n\n0 12:1", "0 12:1\n0 12:1", "0 2147483647:0-2147483646", "0 12:5-\xff\xfe",
        "0  12:1", "\x01",
    };
    struct world w;
    world_init(&w);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct task_list l = {0};
        struct err e = ERR_INIT;
        store(&w, bad[i]);
        if (!found_again(&w, &l, &e))
            print_error("\"%s\" was taken\n", bad[i]);
        assert_true(e.code == ERR_SESSION || e.code == ERR_INPUT);
        assert_true(strlen(e.msg) > 20);
        assert_null(strchr(e.msg, '\n'));
        task_list_release(&l);
    }
    world_release(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(dear_conversions_make_kernels_plain),
        cmocka_unit_test(slow_plain_kernels_stay_in_blocks),
        cmocka_unit_test(networks_without_regions_are_not_measured),
        cmocka_unit_test(a_signal_ends_the_survey),
        cmocka_unit_test(what_was_chosen_is_found_again),
        cmocka_unit_test(hostile_layouts_are_refused_with_a_sentence),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
