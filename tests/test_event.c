/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "engine/base/rng.h"
#include "engine/base/utf8.h"
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
        {"{\"event\":\"party\"}", "unknown kind 'party'"},
        {"{\"event\":\"note\",\"task\":0,\"trial\":0,\"text\":\"a\"} x", "not JSON"},
        {"{\"event\":\"note\",\"trial\":0,\"text\":\"a\"}", "lacks the field 'task'"},
        {"{\"event\":\"note\",\"task\":-2,\"trial\":0,\"text\":\"a\"}", "task -2"},
        {"{\"event\":\"note\",\"task\":0,\"trial\":-1,\"text\":\"a\"}", "trial -1"},
        {"{\"event\":\"note\",\"task\":4294967296,\"trial\":0,\"text\":\"a\"}", "32-bit"},
        {"{\"event\":\"note\",\"task\":1.5,\"trial\":0,\"text\":\"a\"}", "32-bit"},
        {HEAD("note") ",\"text\":7}", "'text' must be a text"},
        {HEAD("note") ",\"text\":\"a\\u0000b\"}", "not JSON"},
        {HEAD("note") ",\"text\":\"\xff\"}", "not JSON"},
        {HEAD("note") "}", "lacks the field 'text'"},
        {HEAD("trial") "}", "lacks the field 'status'"},
        {HEAD("trial") ",\"status\":\"splendid\"}", "unknown value 'splendid'"},
        {HEAD("trial") ",\"status\":1}", "'status' must be a name"},
        {HEAD("trial") ",\"status\":\"ok\",\"cost_ns\":\"fast\"}", "'cost_ns' must be a number"},
        {HEAD("trial") ",\"status\":\"ok\",\"cost_ns\":1e999}", "not JSON"},
        {HEAD("trial") ",\"status\":\"ok\",\"checked\":1}", "'checked' must be true or false"},
        {HEAD("trial") ",\"status\":\"ok\",\"sample_ns\":3}", "'sample_ns' must be a list"},
        {HEAD("trial") ",\"status\":\"ok\",\"sample_ns\":[1,\"a\"]}", "'sample_ns' must be a list"},
        {HEAD("trial") ",\"status\":\"ok\",\"ref_ns\":[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,"
                       "1,1,1,1,1,1,1,1,1,1,1]}",
         "more than 32"},
        {HEAD("trial") ",\"status\":\"ok\",\"build_ns\":99999999999999999999}", "not JSON"},
        {HEAD("session") ",\"seed\":-1}", "unsigned 64-bit"},
        {HEAD("session") ",\"seed\":\"18446744073709551616\"}", "unsigned 64-bit"},
        {HEAD("session") ",\"seed\":\"\"}", "unsigned 64-bit"},
        {HEAD("knob") ",\"sketch\":0,\"knob\":0,\"name\":\"a\",\"kind\":\"dial\"}", "value 'dial'"},
        {HEAD("ended") "}", "lacks the field 'finished'"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct event ev;
        struct err e = ERR_INIT;
        assert_int_equal(event_from_json(cases[i].json, strlen(cases[i].json), &ev, &e), ERR_INPUT);
        if (!strstr(e.msg, cases[i].says))
            fail_msg("%s\nsays: %s\nnot:  %s", cases[i].json, e.msg, cases[i].says);
    }
}

/* Any prefix of a stored event, and any event with one byte changed, is read or refused, no more. */
static void broken_json_does_no_harm(void **state)
{
    (void)state;
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
        for (int k = 0; k < 300; k++) {
            size_t at = rng_below(&r, json.len);
            char was = json.buf[at];
            json.buf[at] = (char)rng_below(&r, 256);
            if (event_from_json(json.buf, json.len, &back, NULL) == 0)
                assert_true(back.kind < EV_NR_KINDS);
            json.buf[at] = was;
        }
        strbuf_release(&json);
    }
    free(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_kind_survives),
        cmocka_unit_test(numbers_survive_to_the_last_bit),
        cmocka_unit_test(text_of_any_bytes_becomes_json),
        cmocka_unit_test(overlong_text_is_cut_between_characters),
        cmocka_unit_test(hostile_json_is_refused),
        cmocka_unit_test(broken_json_does_no_harm),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
