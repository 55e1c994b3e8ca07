/* SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>

#include "engine/base/clock.h"
#include "ui/format.h"

static void times(void **state)
{
    (void)state;
    static const struct {
        double ns;
        const char *text;
    } cases[] = {
        {0.5, "0.500 ns"},       {1, "1.000 ns"},         {999.94, "999.9 ns"},
        {999.96, "1.000 us"},    {4213, "4.213 us"},      {12345, "12.35 us"},
        {999949, "999.9 us"},    {999960, "1.000 ms"},    {4.2134e6, "4.213 ms"},
        {99.994e6, "99.99 ms"},  {99.996e6, "100.0 ms"},  {3.2e9, "3.200 s"},
        {7200e9, "7200 s"},      {NAN, "-"},              {INFINITY, "-"},
    };
    char buf[FORMAT_MAX];
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        assert_string_equal(format_time(buf, cases[i].ns), cases[i].text);
}

static void one_unit_for_a_column(void **state)
{
    (void)state;
    char buf[FORMAT_MAX];
    struct format_unit u = format_unit(4.2134e6);
    assert_string_equal(u.text, "ms");
    assert_string_equal(format_in(buf, 4.2134e6, &u), "4.213");
    assert_string_equal(format_in(buf, 123.45678e6, &u), "123.457");
    assert_string_equal(format_in(buf, 987e3, &u), "0.987");
    assert_string_equal(format_in(buf, NAN, &u), "-");
}

static void spans_and_counts(void **state)
{
    (void)state;
    char buf[FORMAT_MAX];
    assert_string_equal(format_elapsed(buf, -5), "0:00");
    assert_string_equal(format_elapsed(buf, INT64_C(7900000000)), "0:07");
    assert_string_equal(format_elapsed(buf, INT64_C(754000000000)), "12:34");
    assert_string_equal(format_elapsed(buf, INT64_C(3723000000000)), "1:02:03");
    assert_string_equal(format_elapsed(buf, INT64_C(273900000000000)), "3d 04:05");
    assert_string_equal(format_count(buf, 0), "0");
    assert_string_equal(format_count(buf, 9999), "9999");
    assert_string_equal(format_count(buf, 12345), "12.3k");
    assert_string_equal(format_count(buf, 999999), "1.00M");
    assert_string_equal(format_count(buf, 4.56e6), "4.56M");
    assert_string_equal(format_count(buf, 1.2e15), "1.2e+15");
    assert_string_equal(format_count(buf, 0.5), "0.5");
}

static void ratios(void **state)
{
    (void)state;
    char buf[FORMAT_MAX];
    assert_string_equal(format_speedup(buf, 12.31, 3.98), "3.09x");
    assert_string_equal(format_speedup(buf, 100, 1), "100x");
    assert_string_equal(format_speedup(buf, NAN, 1), "-");
    assert_string_equal(format_speedup(buf, 1, 0), "-");
    assert_string_equal(format_change(buf, -0.032), "-3.2%");
    assert_string_equal(format_change(buf, 0.18), "+18%");
    assert_string_equal(format_change(buf, 0.0001), "0.0%");
    assert_string_equal(format_change(buf, 80), ">999%");
    assert_string_equal(format_share(buf, 0.42), "42%");
    assert_string_equal(format_share(buf, 0.004), "0.4%");
    assert_string_equal(format_p(buf, 0.31), ".31");
    assert_string_equal(format_p(buf, 0.0042), ".004");
    assert_string_equal(format_p(buf, 0.0000001), "<.001");
    assert_string_equal(format_p(buf, 1), "1.00");
    assert_string_equal(format_gflops(buf, 45.27), "45.3");
    assert_string_equal(format_gflops(buf, 0), "-");
    assert_string_equal(format_bytes(buf, 512), "512 B");
    assert_string_equal(format_bytes(buf, 1572864), "1.5 MiB");
    assert_string_equal(format_flop(buf, 50), "50 FLOP");
    assert_string_equal(format_flop(buf, 999.9), "1.00 kFLOP");
    assert_string_equal(format_flop(buf, 884736), "885 kFLOP");
    assert_string_equal(format_flop(buf, 3.628e9), "3.63 GFLOP");
    assert_string_equal(format_space(buf, 9604), "9604");
    assert_string_equal(format_space(buf, 99999), "100k");
    assert_string_equal(format_space(buf, 100000), "100k or more");
    char text[CLOCK_TEXT];
    assert_string_equal(clock_text(text, 72.48), "72.48 ns");
    assert_string_equal(clock_text(text, 999.97), "1 us");
    assert_string_equal(clock_text(text, 59551234), "59.55 ms");
    assert_string_equal(clock_text(text, 2.5e13), "2.5e+04 s");
}

static void check_knobs(const char *json, const char *base, const char *want)
{
    struct strbuf out = {0};
    format_knobs(&out, json, base);
    assert_string_equal(strbuf_text(&out), want);
    strbuf_release(&out);
}

static void knobs(void **state)
{
    (void)state;
    static const char json[] = "{\"tile_oc\":[4,8,2,16],\"unroll\":512,\"pack\":true}";
    check_knobs(json, NULL, "tile_oc 4,8,2,16  unroll 512  pack on");
    check_knobs(json, "{\"tile_oc\":[4,8,2,16],\"unroll\":64,\"pack\":false}",
                "unroll 512  pack on");
    check_knobs(json, json, "");
    check_knobs("{ \"a\": [1, 2], \"s\": \"x,y\" }", NULL, "a 1,2  s x,y");
    check_knobs("", NULL, "");
    check_knobs("anything", NULL, "anything");
    char buf[16];
    assert_true(format_knob(json, "tile_oc", buf, sizeof buf));
    assert_string_equal(buf, "4,8,2,16");
    assert_true(format_knob(json, "pack", buf, sizeof buf));
    assert_string_equal(buf, "on");
    assert_false(format_knob(json, "tile", buf, sizeof buf));
    assert_false(format_knob(json, "tile_oc2", buf, sizeof buf));
}

/* Stored text is not trusted: whatever it is, reading ends. */
static void broken_knobs(void **state)
{
    (void)state;
    static const char *const texts[] = {"{",      "{\"",       "{\"a",      "{\"a\"",   "{\"a\":",
                                        "{\"a\":[", "{\"a\":[1,", "{\"a\":\"", "{\"a\\", "{,,,}",
                                        "{\"a\":1", "{1:2}"};
    char buf[16];
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        struct strbuf out = {0};
        format_knobs(&out, texts[i], texts[i]);
        strbuf_release(&out);
        format_knob(texts[i], "a", buf, sizeof buf);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(times),  cmocka_unit_test(one_unit_for_a_column),
        cmocka_unit_test(spans_and_counts), cmocka_unit_test(ratios),
        cmocka_unit_test(knobs),  cmocka_unit_test(broken_knobs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
