/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include <locale.h>

#include "tests/story.h"
#include "ui/batch.h"
#include "ui/json_lines.h"
#include "ui/table.h"

static const char log_text[] =
    "[    0.1s] session net.onnx on llvm:cpu=test, test CPU, 2 cores, LLVM 19.1.7, 2 task"
    "s, seed 18364758544493064720\n"
    "[    0.2s] task    conv2d_64x56x56_3x3_64_relu  000000000000abc0  weight 3  12.3k ca"
    "ndidates\n"
    "[    0.3s] task    matmul_512x512x512  000000000000abc1  weight 1  12.3k candidates\n"
    "[    0.6s] phase   conv2d_64x56x56_3x3_64_relu  default  default\n"
    "[    0.9s] trial        1  conv2d_64x56x56_3x3_64_relu  default  default       ok   "
    "           4.000 ms (57.8 GFLOP/s)  best 4.000 ms\n"
    "[    1.0s] best         1  conv2d_64x56x56_3x3_64_relu  default   4.000 ms (57.8 GFL"
    "OP/s)  1.00x\n"
    "[    1.1s] phase   conv2d_64x56x56_3x3_64_relu  explore  evolutionary  budget 8\n"
    "[    1.6s] trial        2  conv2d_64x56x56_3x3_64_relu  explore  evolutionary  ok   "
    "           2.000 ms (116 GFLOP/s)  best 4.000 ms\n"
    "[    1.7s] best         2  conv2d_64x56x56_3x3_64_relu  explore   2.000 ms (116 GFLO"
    "P/s)  2.00x\n"
    "[    1.9s] trial        3  conv2d_64x56x56_3x3_64_relu  explore  evolutionary  build"
    "_error    out of registers:^J^[[31m\"ymm\" 17 of 16\n"
    "[    2.1s] trial        4  conv2d_64x56x56_3x3_64_relu  explore  evolutionary  cut  "
    "          first sample 4.5x the incumbent's\n"
    "[    2.2s] phase   conv2d_64x56x56_3x3_64_relu  refine   droplet  budget 8\n"
    "[    2.6s] trial        5  conv2d_64x56x56_3x3_64_relu  refine   droplet       ok   "
    "           1.500 ms (154 GFLOP/s)  best 2.000 ms\n"
    "[    2.8s] best         5  conv2d_64x56x56_3x3_64_relu  refine    1.500 ms (154 GFLO"
    "P/s)  2.67x\n"
    "[    3.2s] trial        6  conv2d_64x56x56_3x3_64_relu  refine   droplet       ok   "
    "           1.490 ms (155 GFLOP/s)  best 1.500 ms\n"
    "[    3.4s] phase   conv2d_64x56x56_3x3_64_relu  final\n"
    "[    3.5s] result  conv2d_64x56x56_3x3_64_relu  default 4.100 ms  explored 2.050 ms "
    " refined 1.520 ms  2.70x\n"
    "[    3.6s] phase   conv2d_64x56x56_3x3_64_relu  done\n"
    "[    3.7s] phase   matmul_512x512x512           default  default\n"
    "[    4.0s] trial        7  matmul_512x512x512           default  default       ok   "
    "           800.0 us (336 GFLOP/s)  best 800.0 us\n"
    "[    4.1s] best         7  matmul_512x512x512           default   800.0 us (336 GFLO"
    "P/s)  1.00x\n"
    "[    4.2s] phase   matmul_512x512x512           explore  evolutionary  budget 8\n"
    "[    4.6s] trial        8  matmul_512x512x512           explore  evolutionary  ok   "
    "           400.0 us (671 GFLOP/s)  best 800.0 us\n"
    "[    4.7s] best         8  matmul_512x512x512           explore   400.0 us (671 GFLO"
    "P/s)  2.00x\n"
    "[    4.9s] trial        9  matmul_512x512x512           explore  evolutionary  crash"
    "ed        signal 11 (Segmentation fault)\n"
    "[    5.0s] note    warning: the runner was restarted after a crash\n"
    "[    5.1s] command skip-task\n"
    "[    5.3s] ended   interrupted: stopped by a person\n";

static const char wide_table[] =
    "task                         weight   untuned  explored   refined  speedup  GFLOP/s "
    " trials  failed\n"
    "conv2d_64x56x56_3x3_64_relu       3  4.100 ms  2.050 ms  1.520 ms    2.70x      152 "
    "      6       1\n"
    "matmul_512x512x512                1  800.0 us  400.0 us         -    2.00x      671 "
    "      3       1\n"
    "all, by weight                       13.10 ms  6.550 ms  4.960 ms    2.64x      194 "
    "      9       2\n"
    "\n"
    "model  untuned 13.10 ms, explored 6.550 ms (2.00x), refined 4.960 ms (2.64x)\n"
    "trials 6 ok, 1 cut, 0 wrong_result, 1 crashed, 1 build_error\n"
    "\n"
    "failures\n"
    "      1  build_error    out of registers:^J^[[31m\"ymm\" 17 of 16  (trial 3)\n"
    "      1  crashed        signal 11 (Segmentation fault)  (trial 9)\n"
    "\n"
    "9 trials in 5.300 s, 1.70 a second\n"
    "time   building 25% of 1 builder, measuring 50%, searching 5%, waiting 10%\n";

static const char narrow_table[] =
    "task                       untuned  explored   refined  speedup  GFLOP/s  trials\n"
    "conv2d_64x56x56_3x3_64..  4.100 ms  2.050 ms  1.520 ms    2.70x      152       6\n"
    "matmul_512x512x512        800.0 us  400.0 us         -    2.00x      671       3\n"
    "all, by weight            13.10 ms  6.550 ms  4.960 ms    2.64x      194       9\n";

static struct story *story;

static int setup(void **state)
{
    (void)state;
    story = calloc(1, sizeof *story);
    return story ? 0 : -1;
}

static int teardown(void **state)
{
    (void)state;
    free(story);
    return 0;
}

static void tell(struct board *b, struct strbuf *out)
{
    for (int i = 0; i < story->nr; i++) {
        board_apply(b, &story->ev[i]);
        if (out)
            batch_line(b, &story->ev[i], out);
    }
}

/* No line is wider than the limit, and every byte can be printed. */
static void assert_fits(const char *text, int cols)
{
    while (*text) {
        size_t len = strcspn(text, "\n");
        char line[4096];
        assert_true(len < sizeof line);
        memcpy(line, text, len);
        line[len] = '\0';
        for (size_t i = 0; i < len; i++)
            assert_true((unsigned char)line[i] >= 0x20 && line[i] != 0x7f);
        if (print_width(line) > cols)
            fail_msg("wider than %d: %s", cols, line);
        text += len + (text[len] == '\n');
    }
}

static void lines_are_stable(void **state)
{
    (void)state;
    struct board b;
    struct strbuf out = {0};
    board_init(&b);
    story_tell(story);
    tell(&b, &out);
    assert_string_equal(strbuf_text(&out), log_text);
    assert_fits(strbuf_text(&out), 1000);
    strbuf_release(&out);
    board_release(&b);
}

static void the_table_fits_the_terminal(void **state)
{
    (void)state;
    struct board b;
    struct strbuf out = {0};
    board_init(&b);
    story_tell(story);
    tell(&b, NULL);
    batch_table(&b, 120, &out);
    assert_string_equal(strbuf_text(&out), wide_table);
    strbuf_reset(&out);
    batch_tasks(&b, NULL, 80, &out);
    assert_string_equal(strbuf_text(&out), narrow_table);
    for (int cols = 80; cols <= 200; cols++) {
        strbuf_reset(&out);
        batch_table(&b, cols, &out);
        assert_fits(strbuf_text(&out), cols);
    }
    strbuf_reset(&out);
    batch_tasks(&b, "matmul*", 120, &out);
    assert_non_null(strstr(strbuf_text(&out), "matmul_512"));
    assert_null(strstr(strbuf_text(&out), "conv2d"));
    assert_null(strstr(strbuf_text(&out), "all, by weight"));
    strbuf_release(&out);
    board_release(&b);
}

/* A name of wide characters, escapes and bytes that are no text keeps the columns and the terminal.
 */
static void hostile_names_keep_the_columns(void **state)
{
    (void)state;
    static const char *const names[] = {
        /* Three Han characters of two columns each, again and again. */
        "\xe5\x8d\xb7\xe7\xa9\x8d\xe5\xb1\xa4_\xe5\x8d\xb7\xe7\xa9\x8d_64x56x56_3x3_64_relu",
        "a\x1b[2Jb\rc\nd\te",
        "bad \xff\xfe bytes \xe5\x8d",
        "right-to-left \xe2\x80\xae txt",
        "",
    };
    struct board b;
    struct strbuf out = {0};
    board_init(&b);
    for (int i = 0; i < 5; i++)
        story_task(story, i, names[i], 1, 1e9);
    for (int i = 0; i < 5; i++) {
        story_proposed(story, i, i + 1, PHASE_DEFAULT, ORIGIN_DEFAULT, 0);
        story_ended(story, i, i + 1, i % 2 ? TRIAL_CRASHED : TRIAL_OK, i % 2 ? NAN : 1e6,
                    i % 2 ? names[i] : "");
    }
    tell(&b, &out);
    assert_fits(strbuf_text(&out), 1000);
    for (int cols = 80; cols < 130; cols++) {
        strbuf_reset(&out);
        batch_table(&b, cols, &out);
        assert_fits(strbuf_text(&out), cols);
    }
    strbuf_release(&out);
    board_release(&b);
}

static void nothing_found_is_said_without_numbers(void **state)
{
    (void)state;
    struct board b;
    struct strbuf out = {0};
    board_init(&b);
    batch_table(&b, 80, &out);
    assert_non_null(strstr(strbuf_text(&out), "0 trials"));
    story_task(story, 0, "a", 1, 0);
    tell(&b, NULL);
    strbuf_reset(&out);
    batch_table(&b, 80, &out);
    assert_null(strstr(strbuf_text(&out), "nan"));
    assert_non_null(strstr(strbuf_text(&out), "model  untuned -, explored - (-), refined - (-)"));
    strbuf_release(&out);
    board_release(&b);
}

static void json_lines_are_events(void **state)
{
    (void)state;
    struct strbuf out = {0};
    struct event back;
    story_tell(story);
    for (int i = 0; i < story->nr; i++) {
        strbuf_reset(&out);
        json_line(&story->ev[i], &out);
        assert_int_equal(strcspn(out.buf, "\n"), out.len - 1);
        assert_int_equal(event_from_json(out.buf, out.len, &back, NULL), 0);
        assert_memory_equal(&back, &story->ev[i], sizeof back);
    }
    strbuf_reset(&out);
    json_line(&story->ev[story->nr - 1], &out);
    assert_string_equal(out.buf, "{\"event\":\"ended\",\"seq\":53,\"wall_ns\":1750000005300000000,"
                                 "\"t_ns\":5300000000,\"task\":-1,\"trial\":0,\"finished\":false,"
                                 "\"why\":\"stopped by a person\"}\n");
    strbuf_release(&out);
}

int main(void)
{
    setlocale(LC_CTYPE, "C.UTF-8");
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(lines_are_stable),
        TEST(the_table_fits_the_terminal),
        TEST(hostile_names_keep_the_columns),
        TEST(nothing_found_is_said_without_numbers),
        TEST(json_lines_are_events),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
