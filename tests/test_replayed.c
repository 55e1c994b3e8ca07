/* SPDX-License-Identifier: Apache-2.0 */
/* Sessions on recorded spaces, in virtual time. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "backends/recorded/device.h"
#include "engine/search/stats.h"
#include "engine/tune/conductor.h"

static char path[] = "/tmp/squall-replayed-XXXXXX";

/* 8 x 8 configurations, a bowl with its bottom at (5, 2); x = 7 did not compile, (6, 6) is missing.
 * A row costs 2 seconds, one that did not compile 1. */
static void write_file(const char *objective, bool samples)
{
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fprintf(f, "{\"device_name\":\"ACME\",\"kernel_name\":\"bowl\",\"tune_params_keys\":[\"x\",\"y\","
               "\"how\"],\"tune_params\":{\"x\":[0,1,2,3,4,5,6,7],\"y\":[0,1,2,3,4,5,6,7],\"how\":"
               "[\"only\"]},\"objective\":\"%s\",\"cache\":{", objective);
    for (int x = 0; x < 8; x++) {
        for (int y = 0; y < 8; y++) {
            double ms = 1 + 0.1 * ((x - 5) * (x - 5) + (y - 2) * (y - 2));
            if (x == 6 && y == 6)
                continue;
            fprintf(f, "\"%d,%d,only\":{\"x\":%d,\"y\":%d,\"how\":\"only\",", x, y, x, y);
            if (x == 7)
                fprintf(f, "\"%s\":\"CompilationFailedConfig\",\"compile_time\":1000},", objective);
            else if (samples)
                fprintf(f, "\"time\":%.17g,\"times\":[%.17g,%.17g,%.17g,%.17g,%.17g],", ms, ms * 1.5,
                        ms, ms * 1.001, ms * 0.999, ms * 0.998);
            else
                fprintf(f, "\"%s\":%.17g,", objective, strcmp(objective, "time") ? 1 / ms : ms);
            if (x < 7)
                fprintf(f, "\"compile_time\":1500,\"benchmark_time\":500},");
        }
    }
    fclose(f);
}

struct seen {
    struct task_list tasks;
    int trials, by[TRIAL_NR_STATUS], unknown;
    int64_t last_ns, usage_ns;
    double best_ns, refined_ns, space;
    char knobs[1024], reason[256], ended[128];
};

static void emit(void *ctx, const struct event *ev)
{
    struct seen *s = ctx;
    assert_true(ev->t_ns >= s->last_ns);
    s->last_ns = ev->t_ns;
    switch (ev->kind) {
    case EV_TASK:
        s->space = ev->u.task.space;
        break;
    case EV_TRIAL:
        s->trials++;
        s->by[ev->u.trial.status]++;
        s->unknown += strncmp(ev->u.trial.reason, "unknown", 7) == 0;
        if (ev->u.trial.status == TRIAL_BUILD_ERROR)
            strcpy(s->reason, ev->u.trial.reason);
        if (ev->u.trial.status == TRIAL_OK)
            s->best_ns = fmin(s->best_ns, ev->u.trial.median_ns);
        break;
    case EV_PROPOSED:
        strcpy(s->knobs, ev->u.proposed.knobs);
        break;
    case EV_RESULT:
        s->refined_ns = ev->u.result.refined_ns;
        break;
    case EV_USAGE:
        s->usage_ns = ev->u.usage.active_ns;
        break;
    case EV_ENDED:
        strcpy(s->ended, ev->u.ended.why);
        break;
    default:
        break;
    }
}

static void run(struct seen *s, const struct recorded_device_options *d,
                const struct tune_options *more)
{
    struct device *device;
    struct err e = ERR_INIT;
    struct tune_options o = {.explore = 16, .refine = 32, .seed = 1, .input = "bowl"};
    struct event_sink sink = {.emit = emit, .ctx = s};
    const char *const file = path;
    strcpy(o.explore_strategy, "evolutionary");
    strcpy(o.refine_strategy, "droplet");
    if (more)
        o = *more;
    memset(s, 0, sizeof *s);
    s->best_ns = INFINITY;
    if (recorded_device_open(1, &file, d, &s->tasks, &device, &e))
        fail_msg("%s", e.msg);
    struct conductor *c = conductor_start(&o, &s->tasks, device, &sink, NULL, &e);
    assert_non_null(c);
    if (conductor_join(c, &e))
        fail_msg("%s", e.msg);
    conductor_free(c);
    device->class->close(device);
    task_list_release(&s->tasks);
}

static void test_a_session_in_virtual_time(void **state)
{
    (void)state;
    struct seen s;
    struct timespec from, to;
    write_file("time", true);
    clock_gettime(CLOCK_MONOTONIC, &from);
    run(&s, &(struct recorded_device_options){0}, NULL);
    clock_gettime(CLOCK_MONOTONIC, &to);
    assert_true(to.tv_sec - from.tv_sec < 20);
    assert_int_equal(s.space, 63);
    assert_true(s.trials > 20);
    assert_int_equal(s.trials, s.by[TRIAL_OK] + s.by[TRIAL_BUILD_ERROR]);
    if (s.by[TRIAL_BUILD_ERROR])
        assert_string_equal(s.reason, "CompilationFailedConfig");
    /* The median of the samples is the recorded value; the descent finds the bottom. */
    assert_true(fabs(s.best_ns - 1e6) < 1e-3);
    assert_true(fabs(s.refined_ns - 1e6) < 1e4);
    /* Each configuration was paid for once, and the final measurements were free. */
    int64_t cost_ns = (int64_t)(2 * s.by[TRIAL_OK] + s.by[TRIAL_BUILD_ERROR]) * 1000000000;
    assert_int_equal(s.last_ns, cost_ns);
    assert_int_equal(s.usage_ns, cost_ns);
    assert_non_null(strstr(s.knobs, "\"x\":"));
    assert_null(strstr(s.knobs, "how")); /* nothing to decide */
}

static void test_budget_of_virtual_seconds(void **state)
{
    (void)state;
    struct seen s;
    struct tune_options o = {.explore = 64, .seconds = 40, .seed = 1, .input = "bowl"};
    strcpy(o.explore_strategy, "random");
    strcpy(o.refine_strategy, "none");
    write_file("time", true);
    run(&s, &(struct recorded_device_options){0}, &o);
    assert_string_equal(s.ended, "40 seconds used");
    assert_true(s.trials >= 20 && s.trials < 63);
}

static void test_what_the_file_does_not_have_is_unknown(void **state)
{
    (void)state;
    struct seen s;
    struct recorded_rules rules = {0};
    struct tune_options o = {.explore = 64, .seed = 1, .input = "bowl"};
    strcpy(o.explore_strategy, "grid");
    strcpy(o.refine_strategy, "none");
    recorded_rules_add(&rules, "x >= 4 and y >= 1");
    write_file("time", false);
    run(&s, &(struct recorded_device_options){.rules = &rules}, &o);
    recorded_rules_release(&rules);
    assert_int_equal(s.space, 28);
    assert_int_equal(s.trials, 28);
    assert_int_equal(s.by[TRIAL_INVALID], 1);
    assert_int_equal(s.unknown, 1);
    assert_int_equal(s.by[TRIAL_BUILD_ERROR], 7);
    /* It costs what the median row does. */
    assert_int_equal(s.last_ns, INT64_C(1000000000) * (20 * 2 + 7 + 2));
}

static void test_rates_are_times_of_a_unit(void **state)
{
    (void)state;
    struct seen s;
    write_file("GFLOP/s", false);
    run(&s, &(struct recorded_device_options){0}, NULL);
    assert_true(fabs(s.best_ns - 1e9) < 1); /* 1 GFLOP/s is the largest: a second a GFLOP */
}

static void test_pace(void **state)
{
    (void)state;
    struct seen s;
    struct timespec from, to;
    struct tune_options o = {.explore = 4, .seed = 1, .input = "bowl"};
    strcpy(o.explore_strategy, "random");
    strcpy(o.refine_strategy, "none");
    write_file("time", true);
    clock_gettime(CLOCK_MONOTONIC, &from);
    run(&s, &(struct recorded_device_options){.speed = 20}, &o);
    clock_gettime(CLOCK_MONOTONIC, &to);
    double took_s = (double)(to.tv_sec - from.tv_sec) + (double)(to.tv_nsec - from.tv_nsec) / 1e9;
    assert_true(took_s >= (double)s.last_ns / 1e9 / 20);
}

static void test_scales(void **state)
{
    (void)state;
    static const struct {
        const char *objective, *rows;
        int direction;
        double best_ns, worst_ns;
    } cases[] = {
        {"time", "2 4", 0, 2e6, 4e6},
        {"energy", "2 4", 0, 2e6, 4e6},
        {"GB/s", "50 100", 0, 1e7, 2e7},
        {"score", "-0.5 -0.25", 0, 0.25e6, 0.5e6},
        {"score", "-1 3", 0, 1e6, 2e6},
        {"loss", "-1 3", 0, 1e6, 2e6},
        {"loss", "0 0", 0, 1e6, 1e6},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct strbuf text = {0};
        struct recorded_list l = {0};
        struct err e = ERR_INIT;
        double a, b;
        assert_int_equal(sscanf(cases[i].rows, "%lf %lf", &a, &b), 2);
        strbuf_addf(&text, "{\"tune_params_keys\":[\"x\"],\"tune_params\":{\"x\":[0,1]},"
                    "\"objective\":\"%s\",\"cache\":{\"0\":{\"x\":0,\"%s\":%g},"
                    "\"1\":{\"x\":1,\"%s\":%g}}}", cases[i].objective, cases[i].objective, a,
                    cases[i].objective, b);
        assert_int_equal(recorded_parse("a.json", strbuf_text(&text), text.len, NULL, &l, &e), 0);
        struct recorded_scale s = recorded_scale_of(l.v[0]);
        double *v = recorded_sorted(l.v[0]);
        assert_true(fabs(recorded_ns(&s, v[0]) - cases[i].best_ns) < 1e-3);
        assert_true(fabs(recorded_ns(&s, v[1]) - cases[i].worst_ns) < 1e-3);
        free(v);
        recorded_list_release(&l);
        strbuf_release(&text);
    }
}

static int setup(void **state)
{
    (void)state;
    int fd = mkstemp(path);
    return fd < 0 || close(fd);
}

static int teardown(void **state)
{
    (void)state;
    return unlink(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_session_in_virtual_time),
        cmocka_unit_test(test_budget_of_virtual_seconds),
        cmocka_unit_test(test_what_the_file_does_not_have_is_unknown),
        cmocka_unit_test(test_rates_are_times_of_a_unit),
        cmocka_unit_test(test_pace),
        cmocka_unit_test(test_scales),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
