/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Golden screens: a board, a size, a glyph set, and the text that must stand on the screen.
 * SQUALL_UPDATE_GOLDEN=1 writes the files in tests/golden/ anew; look at the diff before committing.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/screen_fixture.h"
#include "ui/screen.h"
#include "ui/screen_view.h"

struct golden {
    const char *name;
    enum moment moment;
    int rows, cols;
    enum glyph_set set;
    const char *keys; /* pressed before the frame is taken; \n is Enter */
    bool live;        /* with a conductor */
};

static const struct golden goldens[] = {
    {"empty-24x80", MOMENT_EMPTY, 24, 80, GLYPHS_BLOCK, "", true},
    {"empty-10x40", MOMENT_EMPTY, 10, 40, GLYPHS_BLOCK, "", true},
    {"opened-24x80", MOMENT_OPENED, 24, 80, GLYPHS_BLOCK, "", true},
    {"exploring-24x80", MOMENT_EXPLORING, 24, 80, GLYPHS_BLOCK, "", true},
    {"exploring-40x120", MOMENT_EXPLORING, 40, 120, GLYPHS_BLOCK, "", true},
    {"exploring-15x60", MOMENT_EXPLORING, 15, 60, GLYPHS_BLOCK, "", true},
    {"exploring-10x40", MOMENT_EXPLORING, 10, 40, GLYPHS_BLOCK, "", true},
    {"exploring-24x80-ascii", MOMENT_EXPLORING, 24, 80, GLYPHS_ASCII, "", true},
    {"exploring-24x80-braille", MOMENT_EXPLORING, 24, 80, GLYPHS_BRAILLE, "", true},
    {"exploring-24x80-time", MOMENT_EXPLORING, 24, 80, GLYPHS_BLOCK, "t2+", true},
    {"refining-24x80", MOMENT_REFINING, 24, 80, GLYPHS_BLOCK, "", true},
    {"refining-40x120", MOMENT_REFINING, 40, 120, GLYPHS_BLOCK, "", true},
    {"refining-15x60", MOMENT_REFINING, 15, 60, GLYPHS_BLOCK, "", true},
    {"refining-10x40", MOMENT_REFINING, 10, 40, GLYPHS_BLOCK, "", true},
    {"refining-24x80-ascii", MOMENT_REFINING, 24, 80, GLYPHS_ASCII, "", true},
    {"refining-40x120-ascii", MOMENT_REFINING, 40, 120, GLYPHS_ASCII, "", true},
    {"refining-24x160-ladder", MOMENT_REFINING, 24, 160, GLYPHS_BLOCK, "44", true},
    {"refining-24x80-skip", MOMENT_REFINING, 24, 80, GLYPHS_BLOCK, "s", true},
    {"refining-24x80-quit", MOMENT_REFINING, 24, 80, GLYPHS_BLOCK, "q", true},
    {"refining-24x80-trial", MOMENT_REFINING, 24, 80, GLYPHS_BLOCK, "4l\n", true},
    {"finished-24x80", MOMENT_FINISHED, 24, 80, GLYPHS_BLOCK, "", true},
    {"finished-40x120", MOMENT_FINISHED, 40, 120, GLYPHS_BLOCK, "", true},
    {"finished-15x60", MOMENT_FINISHED, 15, 60, GLYPHS_BLOCK, "", true},
    {"finished-10x40", MOMENT_FINISHED, 10, 40, GLYPHS_BLOCK, "", true},
    {"finished-24x80-task", MOMENT_FINISHED, 24, 80, GLYPHS_BLOCK, "\n", false},
    {"finished-24x80-filter", MOMENT_FINISHED, 24, 80, GLYPHS_BLOCK, "/s2_\n>>>", false},
    {"failing-24x80", MOMENT_FAILING, 24, 80, GLYPHS_BLOCK, "5", true},
    {"failing-40x120", MOMENT_FAILING, 40, 120, GLYPHS_BLOCK, "", true},
    {"failing-15x60", MOMENT_FAILING, 15, 60, GLYPHS_BLOCK, "5", true},
    {"failing-10x40", MOMENT_FAILING, 10, 40, GLYPHS_BLOCK, "5", true},
    {"failing-24x80-trial", MOMENT_FAILING, 24, 80, GLYPHS_BLOCK, "5\n", true},
    {"help-24x80", MOMENT_EXPLORING, 24, 80, GLYPHS_BLOCK, "?", true},
    {"help-64x100", MOMENT_EXPLORING, 64, 100, GLYPHS_BLOCK, "4?", true},
    {"tiny-5x30", MOMENT_EXPLORING, 5, 30, GLYPHS_BLOCK, "", true},
    {"tiny-1x70", MOMENT_FINISHED, 1, 70, GLYPHS_BLOCK, "", true},
    {"tiny-9x39-quit", MOMENT_REFINING, 9, 39, GLYPHS_BLOCK, "q", true},
};

static void shoot(const struct golden *g, const struct board *b, struct strbuf *out)
{
    struct view v;
    struct err e = ERR_INIT;
    view_init(&v, g->set);
    v.can_steer = g->live;
    v.replay = !g->live;
    v.now_ns = v.event_ns = INT64_C(1000000000000);
    v.elapsed_ns = b->t_ns;
    view_arrange(&v, b, g->rows, g->cols);
    for (const char *k = g->keys; *k; k++) {
        view_key(&v, b, *k);
        view_arrange(&v, b, g->rows, g->cols);
    }
    if (screen_shot(&v, b, g->rows, g->cols, out, &e) < 0)
        fail_msg("%s", e.msg);
    view_release(&v);
}

static char *read_golden(const char *path)
{
    FILE *f = fopen(path, "r");
    struct strbuf text = {0};
    char buf[4096];
    size_t n;
    if (!f)
        return NULL;
    while ((n = fread(buf, 1, sizeof buf, f)) > 0)
        strbuf_add(&text, buf, n);
    fclose(f);
    return strbuf_detach(&text);
}

static void golden_screens(void **state)
{
    (void)state;
    bool update = getenv("SQUALL_UPDATE_GOLDEN") != NULL;
    int wrong = 0;
    for (size_t i = 0; i < sizeof goldens / sizeof goldens[0]; i++) {
        const struct golden *g = &goldens[i];
        struct board b;
        struct strbuf out = {0};
        char path[512];
        fixture_board(&b, g->moment);
        shoot(g, &b, &out);
        snprintf(path, sizeof path, "%s/%s.txt", SQUALL_GOLDEN, g->name);
        if (update) {
            FILE *f = fopen(path, "w");
            assert_non_null(f);
            fputs(strbuf_text(&out), f);
            fclose(f);
        }
        char *want = read_golden(path);
        if (!want || strcmp(want, strbuf_text(&out)) != 0) {
            printf("%s differs; the screen is now:\n%s", path, strbuf_text(&out));
            wrong++;
        }
        free(want);
        strbuf_release(&out);
        board_release(&b);
    }
    assert_int_equal(wrong, 0);
}

/* Whatever the size and whatever is open, a frame is drawn and lies on the screen. */
static void frames_of_all_sizes(void **state)
{
    (void)state;
    static const char *const keys[] = {"", "3", "44ll", "5+", "\n", "?", "s", "/x"};
    static const int sizes[] = {1, 2, 5, 9, 10, 11, 13, 20, 23, 31, 47};
    enum { NR = sizeof sizes / sizeof sizes[0] };
    struct board b;
    fixture_board(&b, MOMENT_REFINING);
    for (size_t k = 0; k < sizeof keys / sizeof keys[0]; k++)
        for (int y = 0; y < NR; y++)
            for (int x = 0; x < NR; x++) {
                struct golden g = {"", MOMENT_REFINING, sizes[y], 5 * sizes[x],
                                   k % 2 ? GLYPHS_BRAILLE : GLYPHS_ASCII, keys[k], true};
                struct strbuf out = {0};
                shoot(&g, &b, &out);
                int lines = 0;
                for (const char *p = strbuf_text(&out); *p; p++)
                    lines += *p == '\n';
                assert_int_equal(lines, sizes[y]);
                strbuf_release(&out);
            }
    board_release(&b);
}

/* Names come from files: none may move the cursor, switch colours or turn the line around. */
static void hostile_names(void **state)
{
    (void)state;
    struct board b;
    fixture_board(&b, MOMENT_EXPLORING);
    snprintf(b.task[2].name, sizeof b.task[2].name, "a\033[31mb\tc\n\xff\xe2\x80\xae"
             "d\xc2\x9b" "e\xe4\xb8\xad\xe4\xb8\xad");
    struct golden g = {"", MOMENT_EXPLORING, 24, 100, GLYPHS_BLOCK, "", true};
    struct strbuf out = {0};
    shoot(&g, &b, &out);
    const char *text = strbuf_text(&out);
    for (const char *p = text; *p; p++)
        assert_true(*p == '\n' || (unsigned char)*p >= 32);
    assert_non_null(strstr(text, "a^[[31mb^Ic^J??d?e\xe4\xb8\xad\xe4\xb8\xad"));
    strbuf_release(&out);
    g.set = GLYPHS_ASCII;
    shoot(&g, &b, &out);
    for (const char *p = strbuf_text(&out); *p; p++)
        assert_true(*p == '\n' || ((unsigned char)*p >= 32 && (unsigned char)*p < 127));
    strbuf_release(&out);
    board_release(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(golden_screens),
        cmocka_unit_test(frames_of_all_sizes),
        cmocka_unit_test(hostile_names),
    };
    /* Widths are the locale's; UTF-8 is there without any language installed. */
    if (!setlocale(LC_ALL, "C.UTF-8"))
        setlocale(LC_ALL, "en_US.UTF-8");
    return cmocka_run_group_tests(tests, NULL, NULL);
}
