/* SPDX-License-Identifier: Apache-2.0 */
/* Keys on the view: what they select, open, ask and cause. No terminal. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/demo_events.h"
#include "tests/screen_fixture.h"
#include "ui/loop.h"
#include "ui/plot.h"
#include "ui/screen_text.h"
#include "ui/screen_view.h"

static void open_view(struct view *v, const struct board *b, bool live)
{
    view_init(v, GLYPHS_BLOCK);
    v->can_steer = live;
    v->now_ns = 1000000000000;
    view_arrange(v, b, 24, 80);
}

static enum action press(struct view *v, const struct board *b, int key)
{
    enum action a = view_key(v, b, key);
    view_arrange(v, b, 24, 80);
    return a;
}

/* A text of keys; 0x1b is Esc, \n Enter, \x03 Ctrl-C. The action of the last one. */
static enum action type(struct view *v, const struct board *b, const char *keys)
{
    enum action a = ACT_NONE;
    for (; *keys; keys++)
        a = press(v, b, *keys);
    return a;
}

static void keys_and_what_they_do(void **state)
{
    (void)state;
    static const struct {
        const char *keys;
        bool live;
        enum action act;
        enum pane active;
        bool zoom;
        enum overlay overlay;
        enum prompt prompt;
    } cases[] = {
        {"", true, ACT_NONE, PANE_TASKS, false, OVERLAY_NONE, PROMPT_NONE},
        {"\t", true, ACT_NONE, PANE_CURVE, false, OVERLAY_NONE, PROMPT_NONE},
        {"\t\t", true, ACT_NONE, PANE_LADDER, false, OVERLAY_NONE, PROMPT_NONE},
        {"\t\t\t", true, ACT_NONE, PANE_TASKS, false, OVERLAY_NONE, PROMPT_NONE},
        {"3", true, ACT_NONE, PANE_LEADERS, false, OVERLAY_NONE, PROMPT_NONE},
        {"33", true, ACT_NONE, PANE_LEADERS, true, OVERLAY_NONE, PROMPT_NONE},
        {"333", true, ACT_NONE, PANE_LEADERS, false, OVERLAY_NONE, PROMPT_NONE},
        {"2+", true, ACT_NONE, PANE_CURVE, true, OVERLAY_NONE, PROMPT_NONE},
        {"2+_", true, ACT_NONE, PANE_CURVE, false, OVERLAY_NONE, PROMPT_NONE},
        {"2+\x1b", true, ACT_NONE, PANE_CURVE, false, OVERLAY_NONE, PROMPT_NONE},
        {"?", true, ACT_NONE, PANE_TASKS, false, OVERLAY_HELP, PROMPT_NONE},
        {"h", true, ACT_NONE, PANE_TASKS, false, OVERLAY_HELP, PROMPT_NONE},
        {"4h", true, ACT_NONE, PANE_LADDER, false, OVERLAY_NONE, PROMPT_NONE},
        {"??", true, ACT_NONE, PANE_TASKS, false, OVERLAY_NONE, PROMPT_NONE},
        {"\n", true, ACT_NONE, PANE_TASKS, false, OVERLAY_TASK, PROMPT_NONE},
        {"\n?", true, ACT_NONE, PANE_TASKS, false, OVERLAY_HELP, PROMPT_NONE},
        {"\n?q", true, ACT_NONE, PANE_TASKS, false, OVERLAY_TASK, PROMPT_NONE},
        {"\n?\x1b\x1b", true, ACT_NONE, PANE_TASKS, false, OVERLAY_NONE, PROMPT_NONE},
        {"3\n", true, ACT_NONE, PANE_LEADERS, false, OVERLAY_TRIAL, PROMPT_NONE},
        {"2\n", true, ACT_NONE, PANE_CURVE, false, OVERLAY_NONE, PROMPT_NONE},
        /* Esc never leaves, a doubled key never confirms. */
        {"\x1b\x1b\x1b", true, ACT_NONE, PANE_TASKS, false, OVERLAY_NONE, PROMPT_NONE},
        {"q", true, ACT_NONE, PANE_TASKS, false, OVERLAY_NONE, PROMPT_STOP},
        {"qq", true, ACT_NONE, PANE_TASKS, false, OVERLAY_NONE, PROMPT_NONE},
        {"q\n", true, ACT_NONE, PANE_TASKS, false, OVERLAY_NONE, PROMPT_NONE},
        {"qn", true, ACT_NONE, PANE_TASKS, false, OVERLAY_NONE, PROMPT_NONE},
        {"qy", true, ACT_STOP, PANE_TASKS, false, OVERLAY_NONE, PROMPT_NONE},
        {"qyq", true, ACT_NONE, PANE_TASKS, false, OVERLAY_NONE, PROMPT_NONE},
        {"Q", true, ACT_NONE, PANE_TASKS, false, OVERLAY_NONE, PROMPT_ABANDON},
        {"QQ", true, ACT_NONE, PANE_TASKS, false, OVERLAY_NONE, PROMPT_NONE},
        {"Qy", true, ACT_ABANDON, PANE_TASKS, false, OVERLAY_NONE, PROMPT_NONE},
        {"s", true, ACT_NONE, PANE_TASKS, false, OVERLAY_NONE, PROMPT_SKIP},
        {"ss", true, ACT_NONE, PANE_TASKS, false, OVERLAY_NONE, PROMPT_NONE},
        {"sy", true, ACT_SKIP, PANE_TASKS, false, OVERLAY_NONE, PROMPT_NONE},
        {"gs", true, ACT_NONE, PANE_TASKS, false, OVERLAY_NONE, PROMPT_NONE}, /* it is done */
        {"]", true, ACT_BUDGET, PANE_TASKS, false, OVERLAY_NONE, PROMPT_NONE},
        {"b", true, ACT_NONE, PANE_TASKS, false, OVERLAY_NONE, PROMPT_BUDGET},
        {"brefine 9\x1b", true, ACT_NONE, PANE_TASKS, false, OVERLAY_NONE, PROMPT_NONE},
        {"brefine 9\n", true, ACT_BUDGET, PANE_TASKS, false, OVERLAY_NONE, PROMPT_NONE},
        {"brefine\n", true, ACT_NONE, PANE_TASKS, false, OVERLAY_NONE, PROMPT_NONE},
        {"b\n", true, ACT_NONE, PANE_TASKS, false, OVERLAY_NONE, PROMPT_NONE},
        {"b]\x03", true, ACT_STOP, PANE_TASKS, false, OVERLAY_NONE, PROMPT_NONE},
        {"p", true, ACT_PAUSE, PANE_TASKS, false, OVERLAY_NONE, PROMPT_NONE},
        {"\x03", true, ACT_STOP, PANE_TASKS, false, OVERLAY_NONE, PROMPT_NONE},
        {"\x03\x03", true, ACT_ABANDON, PANE_TASKS, false, OVERLAY_NONE, PROMPT_NONE},
        {"s\x03", true, ACT_STOP, PANE_TASKS, false, OVERLAY_NONE, PROMPT_NONE},
        {"/\x03", true, ACT_STOP, PANE_TASKS, false, OVERLAY_NONE, PROMPT_NONE},
        {"\x0c", true, ACT_REPAINT, PANE_TASKS, false, OVERLAY_NONE, PROMPT_NONE},
        {"q\x0c", true, ACT_REPAINT, PANE_TASKS, false, OVERLAY_NONE, PROMPT_STOP},
        {"\x1a", true, ACT_SUSPEND, PANE_TASKS, false, OVERLAY_NONE, PROMPT_NONE},
        {"P", true, ACT_WRITE, PANE_TASKS, false, OVERLAY_NONE, PROMPT_NONE},
        {"/q", true, ACT_NONE, PANE_TASKS, false, OVERLAY_NONE, PROMPT_FILTER},
        {"/q\n", true, ACT_NONE, PANE_TASKS, false, OVERLAY_NONE, PROMPT_NONE},
        /* Nothing to steer: nothing is asked, nothing is paused. */
        {"q", false, ACT_LEAVE, PANE_TASKS, false, OVERLAY_NONE, PROMPT_NONE},
        {"\nq", false, ACT_NONE, PANE_TASKS, false, OVERLAY_NONE, PROMPT_NONE},
        {"Q", false, ACT_LEAVE, PANE_TASKS, false, OVERLAY_NONE, PROMPT_NONE},
        {"\x03", false, ACT_LEAVE, PANE_TASKS, false, OVERLAY_NONE, PROMPT_NONE},
        {"p", false, ACT_NONE, PANE_TASKS, false, OVERLAY_NONE, PROMPT_NONE},
        {"]", false, ACT_NONE, PANE_TASKS, false, OVERLAY_NONE, PROMPT_NONE},
        {"b", false, ACT_NONE, PANE_TASKS, false, OVERLAY_NONE, PROMPT_NONE},
        {"s", false, ACT_NONE, PANE_TASKS, false, OVERLAY_NONE, PROMPT_NONE},
    };
    struct board b;
    fixture_board(&b, MOMENT_REFINING);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct view v;
        open_view(&v, &b, cases[i].live);
        enum action a = type(&v, &b, cases[i].keys);
        if (a != cases[i].act || v.active != cases[i].active || v.zoom != cases[i].zoom ||
            v.overlay != cases[i].overlay || v.prompt != cases[i].prompt)
            fail_msg("case %zu (\"%s\"): action %d, pane %d, zoom %d, overlay %d, prompt %d", i,
                     cases[i].keys, a, v.active, v.zoom, v.overlay, v.prompt);
        view_release(&v);
    }
    board_release(&b);
}

/* The key again counts on, although the search has not come to the last one. */
static void a_budget_grows_and_shrinks_by_steps(void **state)
{
    (void)state;
    struct board b;
    struct view v;
    fixture_board(&b, MOMENT_REFINING);
    open_view(&v, &b, true);
    b.task[v.task].refine = 20;
    static const struct {
        const char *keys;
        enum action act;
        double value;
    } steps[] = {{"]", ACT_BUDGET, 36}, {"]", ACT_BUDGET, 52}, {"[", ACT_BUDGET, 36},
                 {"[", ACT_BUDGET, 20}, {"[", ACT_BUDGET, 4},  {"[", ACT_BUDGET, 0},
                 {"[", ACT_NONE, 0}};
    for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++) {
        assert_int_equal(type(&v, &b, steps[i].keys), steps[i].act);
        assert_int_equal(v.action_budget.verb, TUNE_REFINE);
        assert_int_equal(v.action_budget.task, v.task);
        assert_true(v.action_budget.value == steps[i].value);
    }
    view_release(&v);
    board_release(&b);
}

static void a_typed_budget_is_read(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int verb; /* -1: it is none */
        double value;
    } texts[] = {
        {"refine 96", TUNE_REFINE, 96},  {"explore  200 ", TUNE_EXPLORE, 200},
        {"trials 0", TUNE_TRIALS, 0},    {" time 1.5", TUNE_SECONDS, 1.5},
        {"refine", -1, 0},               {"refine x", -1, 0},
        {"refine 1.5", -1, 0},           {"refine -1", -1, 0},
        {"refine 5 6", -1, 0},           {"trials 1e300", -1, 0},
        {"time nan", -1, 0},             {"wish 3", -1, 0},
        {"", -1, 0},
    };
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        struct tune_command m;
        bool ok = view_parse_budget(texts[i].text, &m);
        if (ok != (texts[i].verb >= 0))
            fail_msg("\"%s\" is %s", texts[i].text, ok ? "read" : "not read");
        if (ok)
            assert_true((int)m.verb == texts[i].verb && m.value == texts[i].value && m.task == -1);
    }
}

static void every_command_has_a_letter_and_a_place(void **state)
{
    (void)state;
    size_t nr;
    const struct binding *t = keys_table(&nr);
    for (size_t i = 0; i < nr; i++) {
        assert_true(t[i].key[0] && t[i].in && t[i].help);
        /* What the key bar offers can be said with a letter, and reached in its place. */
        unsigned in = t[i].in & -t[i].in;
        assert_int_equal(keys_lookup(t[i].key[0], in), t[i].cmd);
    }
}

static void a_finished_session_is_left_at_once(void **state)
{
    (void)state;
    struct board b;
    struct view v;
    fixture_board(&b, MOMENT_FINISHED);
    open_view(&v, &b, true);
    assert_int_equal(type(&v, &b, "q"), ACT_LEAVE);
    assert_false(view_can(&v, &b, CMD_PAUSE));
    assert_false(view_can(&v, &b, CMD_SKIP));
    view_release(&v);
    board_release(&b);
}

/* The question was about one task; that the selection follows the search meanwhile is no answer. */
static void a_question_keeps_its_task(void **state)
{
    (void)state;
    struct board b;
    struct view v;
    fixture_board(&b, MOMENT_REFINING);
    open_view(&v, &b, true);
    assert_int_equal(v.task, 1);
    type(&v, &b, "s");
    b.current = 3;
    view_arrange(&v, &b, 24, 80);
    assert_int_equal(v.task, 3);
    assert_int_equal(type(&v, &b, "y"), ACT_SKIP);
    assert_int_equal(v.action_task, 1);
    view_release(&v);
    board_release(&b);
}

static void the_cursor_stays_with_its_trial(void **state)
{
    (void)state;
    struct board b;
    struct view v;
    fixture_board(&b, MOMENT_REFINING);
    open_view(&v, &b, true);
    type(&v, &b, "3jj");
    struct board_task *t = &b.task[1];
    int64_t selected = t->leader[2];
    assert_int_equal(v.trial, selected);
    /* A new best pushes everything down. */
    memmove(&t->leader[1], &t->leader[0], sizeof t->leader[0] * 8);
    t->leader[0] = t->leader[9];
    view_arrange(&v, &b, 24, 80);
    assert_int_equal(view_cursor(&v, &b, PANE_LEADERS), 3);
    type(&v, &b, "\n");
    assert_int_equal(v.overlay_trial, selected);
    view_release(&v);
    board_release(&b);
}

static void rows_do_not_move_under_the_finger(void **state)
{
    (void)state;
    struct board b;
    struct view v;
    fixture_board(&b, MOMENT_FINISHED);
    open_view(&v, &b, true);
    while (v.sort != TC_BEST)
        type(&v, &b, ">");
    int first = v.order[0];
    type(&v, &b, "gj");
    b.task[first].best_ns = 1e12;
    view_arrange(&v, &b, 24, 80);
    assert_int_equal(v.order[0], first);
    v.now_ns += 5000000000;
    view_arrange(&v, &b, 24, 80);
    assert_int_not_equal(v.order[0], first);
    view_release(&v);
    board_release(&b);
}

static void sort_goes_through_what_is_shown(void **state)
{
    (void)state;
    struct board b;
    struct view v;
    fixture_board(&b, MOMENT_FINISHED);
    open_view(&v, &b, true);
    for (int i = 0; i < 2 * TC_NR; i++) {
        type(&v, &b, ">");
        assert_true(v.sort == TC_NUMBER || v.task_at[v.sort].width);
    }
    view_release(&v);
    board_release(&b);
}

static void filter(void **state)
{
    (void)state;
    struct board b;
    struct view v;
    fixture_board(&b, MOMENT_FINISHED);
    open_view(&v, &b, true);
    assert_int_equal(v.nr_order, 6);
    type(&v, &b, "/S2_");
    assert_int_equal(v.nr_order, 4);
    press(&v, &b, UK_BACKSPACE);
    press(&v, &b, UK_CTRL('u'));
    assert_int_equal(v.nr_order, 6);
    type(&v, &b, "3x3\x1b");
    assert_int_equal(v.nr_order, 6);
    type(&v, &b, "/7x7\n");
    assert_int_equal(v.nr_order, 1);
    assert_int_equal(v.task, 0);
    assert_false(v.follow);
    type(&v, &b, "\x1b");
    assert_int_equal(v.nr_order, 6);
    type(&v, &b, "/nothing\n");
    assert_int_equal(v.nr_order, 0);
    type(&v, &b, "jkgGnN\n3\x1b");
    assert_int_equal(v.nr_order, 6);
    view_release(&v);
    board_release(&b);
}

static void follow(void **state)
{
    (void)state;
    struct board b;
    struct view v;
    fixture_board(&b, MOMENT_REFINING);
    open_view(&v, &b, true);
    assert_int_equal(v.task, b.current);
    type(&v, &b, "G");
    assert_int_equal(v.task, b.nr_tasks - 1);
    type(&v, &b, "n");
    assert_int_equal(v.task, 0);
    type(&v, &b, "N");
    assert_int_equal(v.task, b.nr_tasks - 1);
    type(&v, &b, "F");
    assert_int_equal(v.task, b.current);
    assert_true(v.follow);
    /* Whoever walks in a task's leaders or ladder does not want to be taken to another task. */
    type(&v, &b, "3j");
    assert_false(v.follow);
    type(&v, &b, "F4j");
    assert_false(v.follow);
    type(&v, &b, "F4");
    press(&v, &b, UK_RIGHT);
    assert_false(v.follow);
    view_release(&v);
    board_release(&b);
}

static void ladder_of_a_neighbourhood(void **state)
{
    (void)state;
    struct board b;
    struct view v;
    fixture_board(&b, MOMENT_REFINING);
    open_view(&v, &b, true);
    const struct ladder *l = &v.ladder;
    assert_int_equal(l->centre, b.task[1].centre);
    assert_int_equal(l->nr, 6);
    assert_int_equal(l->nr_trials, b.task[1].nr_ring);
    int trials = 0;
    for (int i = 0; i < l->nr; i++) {
        assert_true(l->rung[i].value[0]);
        for (int s = 0; s < 2; s++) {
            const struct rung_side *e = &l->rung[i].side[s];
            trials += e->nr;
            for (int c = 0; c < e->nr_cells; c++) {
                const struct board_trial *t = board_trial(&b, e->cell[c]);
                assert_int_equal(t->knob, l->rung[i].knob);
                assert_true(s ? t->dir >= 0 : t->dir < 0);
            }
        }
    }
    assert_int_equal(trials, l->nr_trials);
    /* The best of a side comes first. */
    const struct rung_side *up = &l->rung[0].side[1];
    assert_true(up->nr_cells > 1);
    assert_true(rung_change(l, board_trial(&b, up->cell[0])) <=
                rung_change(l, board_trial(&b, up->cell[1])));
    type(&v, &b, "4l\n");
    assert_int_equal(v.overlay_trial, up->cell[0]);
    view_release(&v);
    board_release(&b);
}

static void failures_are_grouped(void **state)
{
    (void)state;
    struct board b;
    struct view v;
    fixture_board(&b, MOMENT_FAILING);
    open_view(&v, &b, true);
    assert_int_equal(v.index.nr_groups, 4);
    int64_t sum = 0, before = INT64_MAX;
    for (int i = 0; i < 4; i++) {
        struct note_row n = view_note(&v, &b, i);
        assert_non_null(n.group);
        assert_true(n.group->count <= before);
        before = n.group->count;
        sum += n.group->count;
    }
    assert_int_equal(sum, 30);
    assert_int_equal(v.index.nr_failed, 30);
    assert_int_equal(index_ordinal(&v.index, v.index.member[6]), 7);
    view_release(&v);
    board_release(&b);
}

/* Event by event or all at once, the counts are the same. */
static void index_is_incremental(void **state)
{
    (void)state;
    const struct demo_options o = {.seed = 3, .nr_tasks = 3, .explore = 24, .refine = 20,
                                   .failing = 0.2};
    struct demo d;
    struct board b;
    struct index once, step;
    demo_init(&d, &o);
    board_init(&b);
    index_init(&once);
    index_init(&step);
    for (int i = 0; i < d.nr; i++) {
        board_apply(&b, &d.event[i]);
        index_update(&step, &b, i % 5 ? 1 : 2);
    }
    index_update(&step, &b, 2);
    index_update(&once, &b, 2);
    assert_true(once.nr_members > 30);
    assert_true(once.nr_failed > 2);
    assert_true(once.nr_groups > 1);
    assert_int_equal(once.nr_members, step.nr_members);
    assert_int_equal(once.nr_failed, step.nr_failed);
    assert_int_equal(once.nr_groups, step.nr_groups);
    assert_int_equal(once.first_refine, step.first_refine);
    assert_int_equal(step.nr_pending, 0);
    for (int i = 0; i < once.nr_groups; i++)
        assert_int_equal(once.group[i].count, step.group[i].count);
    index_release(&once);
    index_release(&step);
    board_release(&b);
    demo_release(&d);
}

static void spool_gives_back_what_it_took(void **state)
{
    (void)state;
    struct spool s = {0};
    struct event ev, back;
    for (int i = 0; i < 3 * EV_NR_KINDS; i++) {
        memset(&ev, 0, sizeof ev);
        ev.kind = (enum event_kind)(i % EV_NR_KINDS);
        ev.seq = i;
        if (ev.kind == EV_PROPOSED)
            strcpy(ev.u.proposed.note, "a step");
        if (ev.kind == EV_NOTE)
            memset(ev.u.note.text, 'x', sizeof ev.u.note.text - 1);
        assert_true(spool_push(&s, &ev));
    }
    for (int i = 0; i < 3 * EV_NR_KINDS; i++) {
        assert_true(spool_pop(&s, &back));
        assert_int_equal(back.seq, i);
        if (back.kind == EV_PROPOSED)
            assert_string_equal(back.u.proposed.note, "a step");
        if (back.kind == EV_NOTE)
            assert_int_equal(strlen(back.u.note.text), EVENT_TEXT - 1);
    }
    assert_false(spool_pop(&s, &back));
    assert_null(s.buf);
}

static void text_that_fits(void **state)
{
    (void)state;
    wchar_t w[16];
    int len;
    assert_int_equal(text_fit("abcdef", 0, 4, false, "~", w, 15, &len), 4);
    assert_true(!wcscmp(w, L"abc~"));
    assert_int_equal(text_fit("abcd", 0, 4, false, "~", w, 15, &len), 4);
    assert_true(!wcscmp(w, L"abcd"));
    assert_int_equal(text_fit("abcdef", 3, 9, false, "~", w, 15, &len), 3);
    assert_true(!wcscmp(w, L"def"));
    /* A wide character does not hang over the edge. */
    assert_int_equal(text_fit("a\xe4\xb8\xad\xe4\xb8\xad", 0, 4, false, "~", w, 15, &len), 4);
    assert_true(!wcscmp(w, L"a\u4e2d~"));
    assert_int_equal(text_width("\xe4\xb8\xad\x01", false), 4);
    const char *p = "\xc0\x80";
    assert_int_equal(text_decode(&p), 0xfffd);
}

static void plots_of_all_sizes(void **state)
{
    (void)state;
    static const struct plot_point points[] = {{1, 9e6}, {3, 5e6}, {20, 1.1e6}, {40, 1e6}};
    static const double failed[] = {2, 39, 50, 1e9};
    enum { MAX = 70 };
    struct plot_cell *cell = calloc(MAX * MAX, sizeof *cell);
    for (int set = GLYPHS_ASCII; set <= GLYPHS_BRAILLE; set++)
        for (int rows = 0; rows < MAX; rows += 1 + rows / 8)
            for (int cols = 0; cols < MAX; cols++)
                for (int nr = 0; nr <= 4; nr++) {
                    struct plot_in in = {rows, cols, (enum glyph_set)set, points, nr, 45,
                                         nr > 2 ? 21 : NAN, failed, 4, nr % 2 == 0};
                    bool drawn = plot_render(&in, cell);
                    assert_true(!drawn || (nr && rows >= 4));
                    for (int i = 0; set == GLYPHS_ASCII && i < rows * cols; i++)
                        assert_true(cell[i].ch < 127);
                }
    free(cell);
    struct plot_in in = {.point = points, .nr_points = 4};
    assert_true(plot_is_log(&in));
    in.nr_points = 2;
    assert_false(plot_is_log(&in));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keys_and_what_they_do),
        cmocka_unit_test(a_budget_grows_and_shrinks_by_steps),
        cmocka_unit_test(a_typed_budget_is_read),
        cmocka_unit_test(every_command_has_a_letter_and_a_place),
        cmocka_unit_test(a_finished_session_is_left_at_once),
        cmocka_unit_test(a_question_keeps_its_task),
        cmocka_unit_test(the_cursor_stays_with_its_trial),
        cmocka_unit_test(rows_do_not_move_under_the_finger),
        cmocka_unit_test(sort_goes_through_what_is_shown),
        cmocka_unit_test(filter),
        cmocka_unit_test(follow),
        cmocka_unit_test(ladder_of_a_neighbourhood),
        cmocka_unit_test(failures_are_grouped),
        cmocka_unit_test(index_is_incremental),
        cmocka_unit_test(spool_gives_back_what_it_took),
        cmocka_unit_test(text_that_fits),
        cmocka_unit_test(plots_of_all_sizes),
    };
    if (!setlocale(LC_ALL, "C.UTF-8"))
        setlocale(LC_ALL, "en_US.UTF-8");
    return cmocka_run_group_tests(tests, NULL, NULL);
}
