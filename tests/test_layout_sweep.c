/* SPDX-License-Identifier: Apache-2.0 */
/* The layout at every size a terminal may have: nothing overlaps, nothing leaves the screen. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>

#include "ui/layout.h"

enum { MAX_RECTS = PANE_NR + 6 };

static bool overlap(const struct rect *a, const struct rect *b)
{
    return a->y < b->y + b->rows && b->y < a->y + a->rows && a->x < b->x + b->cols &&
           b->x < a->x + a->cols;
}

static void check(const struct layout_in *in)
{
    struct screen_layout l;
    screen_layout(in, &l);
    const struct rect *r[MAX_RECTS];
    int nr = 0;
    r[nr++] = &l.line;
    r[nr++] = &l.header;
    r[nr++] = &l.overlay;
    r[nr++] = &l.status;
    r[nr++] = &l.keys;
    r[nr++] = &l.divider;
    for (int p = 0; p < PANE_NR; p++)
        r[nr++] = &l.pane[p];
    for (int i = 0; i < nr; i++) {
        if (r[i]->rows < 0 || r[i]->cols < 0 || r[i]->y < 0 || r[i]->x < 0 ||
            r[i]->y + r[i]->rows > in->rows || r[i]->x + r[i]->cols > in->cols)
            fail_msg("%dx%d: rectangle %d (%d,%d %dx%d) leaves the screen", in->rows, in->cols, i,
                     r[i]->y, r[i]->x, r[i]->rows, r[i]->cols);
        for (int k = 0; k < i; k++)
            if (rect_shown(r[i]) && rect_shown(r[k]) && overlap(r[i], r[k]))
                fail_msg("%dx%d: rectangles %d and %d overlap", in->rows, in->cols, k, i);
    }
    bool tiny = in->rows < LAYOUT_MIN_ROWS || in->cols < LAYOUT_MIN_COLS;
    assert_int_equal(l.tiny, tiny);
    if (tiny)
        return;
    assert_true(rect_shown(&l.status) && rect_shown(&l.keys) && rect_shown(&l.header));
    if (in->overlay) {
        assert_true(l.overlay.rows >= 5);
        return;
    }
    if (l.pane[in->active].rows < 2)
        fail_msg("%dx%d: the active pane %d has %d rows", in->rows, in->cols, in->active,
                 l.pane[in->active].rows);
    for (int p = 0; p < PANE_NR; p++)
        if (rect_shown(&l.pane[p]) && l.pane[p].rows < 2)
            fail_msg("%dx%d: pane %d shows its title only", in->rows, in->cols, p);
}

/* Every line between header and status belongs to a pane: no space is wasted. */
static void check_filled(const struct layout_in *in)
{
    struct screen_layout l;
    screen_layout(in, &l);
    if (l.tiny || in->overlay)
        return;
    long area = 0;
    for (int p = 0; p < PANE_NR; p++)
        area += (long)l.pane[p].rows * l.pane[p].cols;
    area += (long)l.divider.rows * l.divider.cols;
    long body = (long)(in->rows - l.header.rows - 2) * in->cols;
    if (area != body)
        fail_msg("%dx%d active %d: %ld cells of %ld are used", in->rows, in->cols, in->active, area,
                 body);
}

static void sweep(struct layout_in in)
{
    for (in.rows = 1; in.rows <= 200; in.rows++)
        for (in.cols = 1; in.cols <= 300; in.cols++) {
            check(&in);
            check_filled(&in);
        }
}

static void all_sizes(void **state)
{
    (void)state;
    static const int tasks[] = {0, 1, 5, 300};
    for (size_t t = 0; t < sizeof tasks / sizeof tasks[0]; t++)
        for (int active = 0; active < PANE_NR; active++)
            for (int mode = 0; mode < 3; mode++)
                sweep((struct layout_in){.nr_tasks = tasks[t],
                                         .active = (enum pane)active,
                                         .ladder = mode > 0,
                                         .refining = mode > 1,
                                         .nr_ladder = mode ? 3 + 20 * (mode - 1) : 0});
}

static void zoom_and_overlay(void **state)
{
    (void)state;
    for (int active = 0; active < PANE_NR; active++) {
        sweep((struct layout_in){.nr_tasks = 7, .active = (enum pane)active, .zoom = true});
        sweep((struct layout_in){.nr_tasks = 7, .active = (enum pane)active, .overlay = true});
    }
}

static void degrades_in_order(void **state)
{
    (void)state;
    struct screen_layout l;
    struct layout_in in = {.rows = 24, .cols = 80, .nr_tasks = 9, .ladder = true, .refining = true};
    screen_layout(&in, &l);
    assert_true(rect_shown(&l.pane[PANE_CURVE]) && rect_shown(&l.pane[PANE_LADDER]));
    assert_false(rect_shown(&l.pane[PANE_LEADERS]));
    in.rows = 15;
    screen_layout(&in, &l);
    assert_false(rect_shown(&l.pane[PANE_CURVE]));
    assert_true(rect_shown(&l.pane[PANE_LADDER]) && rect_shown(&l.pane[PANE_TASKS]));
    in.rows = 9;
    screen_layout(&in, &l);
    assert_true(l.tiny);
    in.rows = 40;
    in.cols = 120;
    screen_layout(&in, &l);
    for (int p = 0; p < PANE_NR; p++)
        assert_true(rect_shown(&l.pane[p]));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_sizes),
        cmocka_unit_test(zoom_and_overlay),
        cmocka_unit_test(degrades_in_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
