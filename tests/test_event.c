/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "engine/base/rng.h"
#include "engine/base/utf8.h"
#include "engine/tune/event_fields.h"
#include "tests/story.h"

/* Doubles compare by their bits, NAN as NAN: the structs are compared through their own JSON, and
 * the doubles that JSON must keep exactly one by one. */
static void assert_round_trip(const struct event *ev)
{
    struct strbuf once = {0}, twice = {0};
    struct event back;
    struct err e = ERR_INIT;
    event_to_json(ev, &once);
    if (event_from_json(once.buf, once.len, &back, &e) != 0)
        fail_msg("%s: %s", e.msg, once.buf);
    event_to_json(&back, &twice);
    assert_string_equal(once.buf, twice.buf);
    assert_memory_equal(&back, ev, sizeof back);
    strbuf_release(&once);
    strbuf_release(&twice);
}

static void every_kind_survives(void **state)
{
    (void)state;
    struct story *s = calloc(1, sizeof *s);
    bool seen[EV_NR_KINDS] = {false};
    story_tell(s);
    for (int i = 0; i < s->nr; i++) {
        assert_round_trip(&s->ev[i]);
        seen[s->ev[i].kind] = true;
    }
    for (int k = 0; k < EV_NR_KINDS; k++)
        assert_true(seen[k]);
    free(s);
}

static void numbers_survive_to_the_last_bit(void **state)
{
    (void)state;
    struct story *s = calloc(1, sizeof *s);
    struct rng r;
    rng_seed(&r, 7);
    for (int round = 0; round < 200; round++) {
        s->nr = 0;
        struct event *ev = story_add(s, EV_TRIAL, 3, (int64_t)(rng_u64(&r) >> 1));
        ev->t_ns = (int64_t)rng_u64(&r);
        ev->u.trial.status = TRIAL_OK;
        ev->u.trial.nr_samples = ev->u.trial.nr_ref = TRIAL_MAX_SAMPLES;
        for (int i = 0; i < TRIAL_MAX_SAMPLES; i++) {
            ev->u.trial.sample_ns[i] = exp2(200 * rng_unit(&r) - 100);
            ev->u.trial.ref_ns[i] = rng_unit(&r) * 1e9;
        }
        ev->u.trial.cost_ns = INFINITY;
        ev->u.trial.median_ns = -INFINITY;
        ev->u.trial.error = 5e-324;
        assert_round_trip(ev);
    }
    free(s);
}

static void text_of_any_bytes_becomes_json(void **state)
{
    (void)state;
    struct story *s = calloc(1, sizeof *s);
    struct event back;
    struct err e = ERR_INIT;
    struct strbuf out = {0};
    struct event *ev = story_add(s, EV_NOTE, -1, 0);
    STORY_TEXT(ev->u.note.text, "quote \" tab \t bell \a bad \xff\xc3 good \xc3\xa9 cut \xe2\x82");
    event_to_json(ev, &out);
    assert_int_equal(event_from_json(out.buf, out.len, &back, &e), 0);
    assert_string_equal(back.u.note.text, "quote \" tab \t bell \a bad \xef\xbf\xbd\xef\xbf\xbd "
                                          "good \xc3\xa9 cut \xef\xbf\xbd\xef\xbf\xbd");
    strbuf_release(&out);
    free(s);
}

static void overlong_text_is_cut_between_characters(void **state)
{
    (void)state;
    struct strbuf json = {0};
    struct event ev;
    struct err e = ERR_INIT;
    strbuf_adds(&json, "{\"event\":\"task\",\"task\":0,\"trial\":0,\"weight\":1,\"name\":\"x");
    for (int i = 0; i < 100; i++)
        strbuf_adds(&json, "\xc3\xa9");
    strbuf_adds(&json, "\"}");
    assert_int_equal(event_from_json(json.buf, json.len, &ev, &e), 0);
    assert_int_equal(strlen(ev.u.task.name), EVENT_NAME - 1);
    uint32_t cp;
    for (size_t i = 0; ev.u.task.name[i];) {
        int nr = utf8_decode(ev.u.task.name + i, strlen(ev.u.task.name + i), &cp);
        assert_int_not_equal(nr, 0);
        i += (size_t)nr;
    }
    assert_true(isnan(ev.u.task.flops));
    strbuf_release(&json);
}

static void hostile_json_is_refused(void **state)
{
    (void)state;
#define HEAD(kind) "{\"event\":\"" kind "\",\"task\":0,\"trial\":1"
    static const struct {
        const char *json, *says;
    } cases[] = {
        {"", "not JSON"},
        {"null", "not JSON"},
        {"[]", "not a JSON object"},
        {"{}", "lacks its kind"},
        {"{\"event\":3}", "lacks its kind"},
        {"{\"event\":\"party\"}", "unknown kind \"party\""},
        {"{\"event\":\"note\",\"task\":0,\"trial\":0,\"text\":\"a\"} x", "not JSON"},
        {"{\"event\":\"note\",\"trial\":0,\"text\":\"a\"}", "lacks the field \"task\""},
        {"{\"event\":\"note\",\"task\":-2,\"trial\":0,\"text\":\"a\"}", "task -2"},
        {"{\"event\":\"note\",\"task\":0,\"trial\":-1,\"text\":\"a\"}", "trial -1"},
        {"{\"event\":\"note\",\"task\":4294967296,\"trial\":0,\"text\":\"a\"}", "32-bit"},
        {"{\"event\":\"note\",\"task\":1.5,\"trial\":0,\"text\":\"a\"}", "32-bit"},
        {HEAD("note") ",\"text\":7}", "\"text\" must be a text"},
        {HEAD("note") ",\"text\":\"a\\u0000b\"}", "not JSON"},
        {HEAD("note") ",\"text\":\"\xff\"}", "not JSON"},
        {HEAD("note") "}", "lacks the field \"text\""},
        {HEAD("trial") "}", "lacks the field \"status\""},
        {HEAD("trial") ",\"status\":\"splendid\"}", "unknown value \"splendid\""},
        {HEAD("trial") ",\"status\":1}", "\"status\" must be a name"},
        {HEAD("trial") ",\"status\":\"ok\",\"cost_ns\":\"fast\"}", "\"cost_ns\" must be a number"},
        {HEAD("trial") ",\"status\":\"ok\",\"cost_ns\":1e999}", "not JSON"},
        {HEAD("trial") ",\"status\":\"ok\",\"checked\":1}", "\"checked\" must be true or false"},
        {HEAD("trial") ",\"status\":\"ok\",\"sample_ns\":3}", "\"sample_ns\" must be a list"},
        {HEAD("trial") ",\"status\":\"ok\",\"sample_ns\":[1,\"a\"]}",
         "\"sample_ns\" must be a list"},
        {HEAD("trial") ",\"status\":\"ok\",\"ref_ns\":[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,"
                       "1,1,1,1,1,1,1,1,1,1,1]}",
         "more than 32"},
        {HEAD("trial") ",\"status\":\"ok\",\"build_ns\":99999999999999999999}", "not JSON"},
        {HEAD("session") ",\"seed\":-1}", "unsigned 64-bit"},
        {HEAD("session") ",\"seed\":\"18446744073709551616\"}", "unsigned 64-bit"},
        {HEAD("session") ",\"seed\":\"\"}", "unsigned 64-bit"},
        {HEAD("knob") ",\"sketch\":0,\"knob\":0,\"name\":\"a\",\"kind\":\"dial\"}",
         "value \"dial\""},
        {HEAD("ended") "}", "lacks the field \"finished\""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct event ev;
        struct err e = ERR_INIT;
        assert_int_equal(event_from_json(cases[i].json, strlen(cases[i].json), &ev, &e), ERR_INPUT);
        if (!strstr(e.msg, cases[i].says))
            fail_msg("%s\nsays: %s\nnot:  %s", cases[i].json, e.msg, cases[i].says);
    }
}

static bool same(const struct event *a, const struct event *b)
{
    return memcmp(a, b, sizeof *a) == 0;
}

/* Both readers are of one opinion: what the fast one reads, the other reads as the same bits. */
static bool read_both_ways(const char *text, size_t len)
{
    static struct event fast, slow;
    if (!event_scan(text, len, &fast))
        return event_parse(text, len, &slow, NULL) == 0;
    if (event_parse(text, len, &slow, NULL) != 0)
        fail_msg("only the scanner reads %.*s", (int)len, text);
    if (!same(&fast, &slow))
        fail_msg("read differently: %.*s", (int)len, text);
    return true;
}

static void what_was_written_is_read_fast(void **state)
{
    (void)state;
    struct story *s = calloc(1, sizeof *s);
    static struct event back;
    story_tell(s);
    for (int i = 0; i < s->nr; i++) {
        struct strbuf json = {0};
        event_to_json(&s->ev[i], &json);
        /* The parser's: a seed above 2^63, and an escape in a reason. */
        if (s->ev[i].kind != EV_SESSION && s->ev[i].trial != 3)
            if (!event_scan(json.buf, json.len, &back))
                fail_msg("%s", json.buf);
        assert_true(read_both_ways(json.buf, json.len));
        strbuf_release(&json);
    }
    free(s);
}

/* Sessions of a version that did not know the last fields are opened as fast. */
static void what_an_older_version_wrote_is_read_fast(void **state)
{
    (void)state;
    struct story *s = calloc(1, sizeof *s);
    static struct event back;
    struct event *ev = story_add(s, EV_TRIAL, 0, 1);
    ev->u.trial.status = TRIAL_OK;
    ev->u.trial.drift = 1.5;
    struct strbuf json = {0};
    event_to_json(ev, &json);
    char *tail = strstr(json.buf, ",\"canary_ns\"");
    assert_non_null(tail);
    strcpy(tail, "}");
    assert_true(event_scan(json.buf, strlen(json.buf), &back));
    assert_true(isnan(back.u.trial.canary_ns) && isnan(back.u.trial.drift));
    assert_true(read_both_ways(json.buf, strlen(json.buf)));
    static const char no_text[] = "{\"event\":\"note\",\"task\":0,\"trial\":0,\"level\":1}";
    assert_false(read_both_ways(no_text, sizeof no_text - 1));
    strbuf_release(&json);
    free(s);
}

/* Any prefix of a stored event, and any event with a few bytes changed, is read or refused, by both
 * readers alike. */
static void broken_json_does_no_harm(void **state)
{
    (void)state;
    static const char likely[] = "0123456789.eE+-,:[]{}\"\\nul ttfalsr";
    struct story *s = calloc(1, sizeof *s);
    struct event back;
    struct rng r;
    rng_seed(&r, 11);
    story_tell(s);
    for (int i = 0; i < s->nr; i++) {
        struct strbuf json = {0};
        event_to_json(&s->ev[i], &json);
        for (size_t len = 0; len < json.len; len++)
            assert_int_equal(event_from_json(json.buf, len, &back, NULL), ERR_INPUT);
        char *was = strdup(json.buf);
        for (int k = 0; k < 1000; k++) {
            for (uint64_t n = rng_below(&r, 3) + 1; n > 0; n--)
                json.buf[rng_below(&r, json.len)] = rng_below(&r, 2)
                                                        ? (char)rng_below(&r, 256)
                                                        : likely[rng_below(&r, sizeof likely - 1)];
            read_both_ways(json.buf, json.len);
            memcpy(json.buf, was, json.len);
        }
        free(was);
        strbuf_release(&json);
    }
    free(s);
}

/* Numbers in every way of writing, at the borders of what is exact. */
static void numbers_are_read_alike(void **state)
{
    (void)state;
    static const char *const numbers[] = {
        "0",
        "-0",
        "0.0",
        "-0.0",
        "00",
        "01",
        "-",
        "1.",
        ".5",
        "1e5",
        "1E+05",
        "1e",
        "1e+",
        "1.5e-3",
        "123456789012345",
        "1234567890123456",
        "999999999999999.9",
        "0.1",
        "0.3",
        "1e22",
        "1e23",
        "0.0000000000000000000001",
        "0.00000000000000000000001",
        "9007199254740993",
        "9223372036854775807",
        "9223372036854775808",
        "1e308",
        "1e309",
        "4.9e-324",
        "1e-400",
        "123456.78901234567",
        "1.7976931348623157e308",
        "null",
        "nul",
        "\"inf\"",
        "\"-inf\"",
        "true",
        "1.00000000000000000000000000000000000000000000000000001",
        "+1",
        " 1",
        "1 ",
    };
    struct rng r;
    rng_seed(&r, 29);
    for (int i = 0; i < 20000; i++) {
        char number[64];
        int fixed = (int)(sizeof numbers / sizeof *numbers);
        if (i < fixed)
            strcpy(number, numbers[i]);
        else if (i % 2)
            snprintf(number, sizeof number, "%.*g", (int)rng_below(&r, 18) + 1,
                     exp2(100 * rng_unit(&r) - 50) * (rng_unit(&r) - 0.5));
        else
            snprintf(number, sizeof number, "%.*f", (int)rng_below(&r, 25), 1e6 * rng_unit(&r));
        char json[256];
        int len = snprintf(json, sizeof json,
                           "{\"event\":\"incumbent\",\"seq\":1,\"wall_ns\":2,\"t_ns\":3,\"task\":0,"
                           "\"trial\":4,\"phase\":\"refine\",\"cost_ns\":%s,\"centre\":true}",
                           number);
        read_both_ways(json, (size_t)len);
        len = snprintf(json, sizeof json,
                       "{\"event\":\"ended\",\"seq\":%s,\"wall_ns\":%s,\"t_ns\":%s,\"task\":0,"
                       "\"trial\":4,\"finished\":true,\"why\":\"\"}",
                       number, i % 3 ? "7" : number, number);
        read_both_ways(json, (size_t)len);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_kind_survives),
        cmocka_unit_test(numbers_survive_to_the_last_bit),
        cmocka_unit_test(text_of_any_bytes_becomes_json),
        cmocka_unit_test(overlong_text_is_cut_between_characters),
        cmocka_unit_test(hostile_json_is_refused),
        cmocka_unit_test(what_was_written_is_read_fast),
        cmocka_unit_test(what_an_older_version_wrote_is_read_fast),
        cmocka_unit_test(broken_json_does_no_harm),
        cmocka_unit_test(numbers_are_read_alike),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
