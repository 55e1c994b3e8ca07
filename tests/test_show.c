/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include <fcntl.h>
#include <locale.h>
#include <unistd.h>

#include "engine/base/arena.h"
#include "sessions/store.h"
#include "tests/story.h"
#include "ui/cli.h"

/* `show s.squall --json`: fields may be added to it, but none of these may change. */
static const char session_json[] = "{\n"
                                   "  \"session\": {\n"
                                   "    \"state\": \"interrupted\",\n"
                                   "    \"why\": \"stopped by a person\",\n"
                                   "    \"input\": \"net.onnx\",\n"
                                   "    \"model\": \"net\",\n"
                                   "    \"target\": \"llvm:cpu=test\",\n"
                                   "    \"hardware\": \"test CPU, 2 cores\",\n"
                                   "    \"compiler\": \"LLVM 19.1.7\",\n"
                                   "    \"version\": \"0.1.0\",\n"
                                   "    \"strategy\": \"evolutionary, droplet\",\n"
                                   "    \"seed\": \"18364758544493064720\",\n"
                                   "    \"explore\": 8,\n"
                                   "    \"refine\": 8,\n"
                                   "    \"weights_cold\": false,\n"
                                   "    \"threads\": 2,\n"
                                   "    \"peak_gflops\": 153.5,\n"
                                   "    \"resumed\": 0,\n"
                                   "    \"active_s\": 5.2999999999999998\n"
                                   "  },\n"
                                   "  \"tasks\": [\n"
                                   "    {\n"
                                   "      \"name\": \"conv2d_64x56x56_3x3_64_relu\",\n"
                                   "      \"workload\": \"000000000000abc0\",\n"
                                   "      \"weight\": 3.0,\n"
                                   "      \"default_ns\": 4100000.0,\n"
                                   "      \"explored_ns\": 2050000.0,\n"
                                   "      \"refined_ns\": 1520000.0,\n"
                                   "      \"gflops\": 152.11250526315789,\n"
                                   "      \"trials\": {\n"
                                   "        \"ok\": 4,\n"
                                   "        \"invalid\": 0,\n"
                                   "        \"build_error\": 1,\n"
                                   "        \"build_timeout\": 0,\n"
                                   "        \"wrong_result\": 0,\n"
                                   "        \"crashed\": 0,\n"
                                   "        \"run_timeout\": 0,\n"
                                   "        \"cut\": 1,\n"
                                   "        \"device_error\": 0\n"
                                   "      },\n"
                                   "      \"phase\": \"done\",\n"
                                   "      \"why\": \"\",\n"
                                   "      \"kind\": \"conv2d\",\n"
                                   "      \"where\": \"node\",\n"
                                   "      \"space\": 12345.0,\n"
                                   "      \"speedup\": 2.6973684210526314,\n"
                                   "      \"final\": true,\n"
                                   "      \"default_interval\": [\n"
                                   "        4000000.0,\n"
                                   "        4200000.0\n"
                                   "      ],\n"
                                   "      \"explored_interval\": [\n"
                                   "        2000000.0,\n"
                                   "        2100000.0\n"
                                   "      ],\n"
                                   "      \"refined_interval\": [\n"
                                   "        1500000.0,\n"
                                   "        1540000.0\n"
                                   "      ],\n"
                                   "      \"default_trial\": 1,\n"
                                   "      \"explored_trial\": 2,\n"
                                   "      \"refined_trial\": 5,\n"
                                   "      \"best_trial\": 5,\n"
                                   "      \"error\": 0.125,\n"
                                   "      \"order\": \"separated\",\n"
                                   "      \"p_value\": 0.0001220703125,\n"
                                   "      \"gain\": 0.25,\n"
                                   "      \"gain_interval\": [\n"
                                   "        0.23999999999999999,\n"
                                   "        0.26000000000000001\n"
                                   "      ]\n"
                                   "    },\n"
                                   "    {\n"
                                   "      \"name\": \"matmul_512x512x512\",\n"
                                   "      \"workload\": \"000000000000abc1\",\n"
                                   "      \"weight\": 1.0,\n"
                                   "      \"default_ns\": 800000.0,\n"
                                   "      \"explored_ns\": 400000.0,\n"
                                   "      \"refined_ns\": null,\n"
                                   "      \"gflops\": 671.08864000000005,\n"
                                   "      \"trials\": {\n"
                                   "        \"ok\": 2,\n"
                                   "        \"invalid\": 0,\n"
                                   "        \"build_error\": 0,\n"
                                   "        \"build_timeout\": 0,\n"
                                   "        \"wrong_result\": 0,\n"
                                   "        \"crashed\": 1,\n"
                                   "        \"run_timeout\": 0,\n"
                                   "        \"cut\": 0,\n"
                                   "        \"device_error\": 0\n"
                                   "      },\n"
                                   "      \"phase\": \"explore\",\n"
                                   "      \"why\": \"\",\n"
                                   "      \"kind\": \"conv2d\",\n"
                                   "      \"where\": \"node\",\n"
                                   "      \"space\": 12345.0,\n"
                                   "      \"speedup\": 2.0,\n"
                                   "      \"final\": false,\n"
                                   "      \"default_interval\": [\n"
                                   "        null,\n"
                                   "        null\n"
                                   "      ],\n"
                                   "      \"explored_interval\": [\n"
                                   "        null,\n"
                                   "        null\n"
                                   "      ],\n"
                                   "      \"refined_interval\": [\n"
                                   "        null,\n"
                                   "        null\n"
                                   "      ],\n"
                                   "      \"default_trial\": 7,\n"
                                   "      \"explored_trial\": 8,\n"
                                   "      \"refined_trial\": null,\n"
                                   "      \"best_trial\": 8,\n"
                                   "      \"error\": null,\n"
                                   "      \"order\": null,\n"
                                   "      \"p_value\": null,\n"
                                   "      \"gain\": null,\n"
                                   "      \"gain_interval\": null\n"
                                   "    }\n"
                                   "  ],\n"
                                   "  \"model\": {\n"
                                   "    \"default_ns\": 13100000.0,\n"
                                   "    \"explored_ns\": 6550000.0,\n"
                                   "    \"refined_ns\": 4960000.0\n"
                                   "  },\n"
                                   "  \"trials\": 9,\n"
                                   "  \"trials_per_s\": 1.6981132075471699,\n"
                                   "  \"by_status\": {\n"
                                   "    \"ok\": 6,\n"
                                   "    \"invalid\": 0,\n"
                                   "    \"build_error\": 1,\n"
                                   "    \"build_timeout\": 0,\n"
                                   "    \"wrong_result\": 0,\n"
                                   "    \"crashed\": 1,\n"
                                   "    \"run_timeout\": 0,\n"
                                   "    \"cut\": 1,\n"
                                   "    \"device_error\": 0\n"
                                   "  },\n"
                                   "  \"usage\": {\n"
                                   "    \"active_ns\": 6000000000,\n"
                                   "    \"build_ns\": 1500000000,\n"
                                   "    \"measure_ns\": 3000000000,\n"
                                   "    \"search_ns\": 300000000,\n"
                                   "    \"prepare_ns\": 600000000,\n"
                                   "    \"wait_ns\": 600000000,\n"
                                   "    \"restarts\": 1,\n"
                                   "    \"canary_ns\": 30000.0,\n"
                                   "    \"drift\": 1.0625\n"
                                   "  }\n"
                                   "}\n";

static const char trial_text[] = "id            5\n"
                                 "task          conv2d_64x56x56_3x3_64_relu\n"
                                 "strategy      droplet\n"
                                 "phase         refine\n"
                                 "sketch        tiled\n"
                                 "knobs         tile 5,59  unroll 1\n"
                                 "status        ok\n"
                                 "median        1.500 ms\n"
                                 "samples       3\n"
                                 "parent        2\n"
                                 "started       2.550 s\n"
                                 "ended         2.600 s\n"
                                 "cost          1.500 ms\n"
                                 "code          0:5.59/1\n"
                                 "origin        neighbour\n"
                                 "p_value       0.004\n"
                                 "gain          0.25\n"
                                 "verdict       moved\n"
                                 "decision      a step of the tile\n"
                                 "error         0.25\n"
                                 "build         12.00 ms\n"
                                 "measure       15.00 ms\n"
                                 "code_bytes    4096\n"
                                 "step          tile: 2 from level 0 to 1\n"
                                 "ended_at      2025-06-15T15:06:42.600Z\n"
                                 "sample_ns     [1499999.0,1500000.0,1500001.0]\n";

static const char trial_json[] = "{\n"
                                 "  \"id\": 5,\n"
                                 "  \"task\": \"conv2d_64x56x56_3x3_64_relu\",\n"
                                 "  \"strategy\": \"droplet\",\n"
                                 "  \"phase\": \"refine\",\n"
                                 "  \"sketch\": \"tiled\",\n"
                                 "  \"knobs\": {\n"
                                 "    \"tile\": [\n"
                                 "      5,\n"
                                 "      59\n"
                                 "    ],\n"
                                 "    \"unroll\": 1\n"
                                 "  },\n"
                                 "  \"status\": \"ok\",\n"
                                 "  \"reason\": null,\n"
                                 "  \"median_ns\": 1500000.0,\n"
                                 "  \"samples\": 3,\n"
                                 "  \"parent\": 2,\n"
                                 "  \"started\": 2.5499999999999998,\n"
                                 "  \"ended\": 2.6000000000000001,\n"
                                 "  \"cost_ns\": 1500000.0,\n"
                                 "  \"code\": \"0:5.59/1\",\n"
                                 "  \"origin\": \"neighbour\",\n"
                                 "  \"p_value\": 0.0040000000000000001,\n"
                                 "  \"gain\": 0.25,\n"
                                 "  \"verdict\": \"moved\",\n"
                                 "  \"decision\": \"a step of the tile\",\n"
                                 "  \"error\": 0.25,\n"
                                 "  \"build_ns\": 12000000,\n"
                                 "  \"measure_ns\": 15000000,\n"
                                 "  \"code_bytes\": 4096,\n"
                                 "  \"step\": \"tile: 2 from level 0 to 1\",\n"
                                 "  \"ended_at\": \"2025-06-15T15:06:42.600Z\",\n"
                                 "  \"sample_ns\": [\n"
                                 "    1499999.0,\n"
                                 "    1500000.0,\n"
                                 "    1500001.0\n"
                                 "  ]\n"
                                 "}\n";

static const char leaderboard_text[] =
    "task                         rank  trial      time  GFLOP/s  speedup  sketch  knobs\n"
    "conv2d_64x56x56_3x3_64_relu     1      6  1.490 ms      155    2.75x  tiled   tile 6,58  "
    "unroll 1\n"
    "matmul_512x512x512              1      8  400.0 us      671    2.00x  tiled   tile 8,56  "
    "unroll 1\n";

static const char failures_text[] =
    "task                         count  status       example  reason\n"
    "conv2d_64x56x56_3x3_64_relu      1  build_error        3  out of registers:^J^[[31m\"ymm\" 17 "
    "of 16\n"
    "matmul_512x512x512               1  crashed            9  signal 11 (Segmentation fault)\n";

static char folder[32];
static char path[64];
static char *out_text, *err_text_got;

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
    char command[64];
    free(out_text);
    free(err_text_got);
    out_text = err_text_got = NULL;
    snprintf(command, sizeof command, "rm -rf %s", folder);
    return system(command) == 0 ? 0 : -1;
}

/* A session of the story's first `nr` events (0: all of them). */
static void told(int nr)
{
    struct story *s = xcalloc(1, sizeof *s);
    struct tune_options o = {0};
    struct session *session = NULL;
    struct err e = ERR_INIT;
    story_tell(s);
    if (session_create(path, &o, &session, &e) != 0 || session_start(session, &e) != 0)
        fail_msg("%s", e.msg);
    struct event_sink sink = session_sink(session);
    for (int i = 0; i < (nr ? nr : s->nr); i++)
        sink.emit(sink.ctx, &s->ev[i]);
    assert_int_equal(session_close(session, &e), 0);
    free(s);
}

static char *slurp(FILE *f)
{
    struct strbuf text = {0};
    char buf[4096];
    size_t n;
    rewind(f);
    while ((n = fread(buf, 1, sizeof buf, f)) > 0)
        strbuf_add(&text, buf, n);
    fclose(f);
    return strbuf_detach(&text);
}

/* Runs `squall show` with blank-separated arguments; what it prints is in out_text, err_text_got.
 */
static int show(const char *arguments)
{
    char *argv[16] = {(char *)"show"}, *words = xstrdup(arguments);
    int argc = 1;
    for (char *w = strtok(words, " "); w; w = strtok(NULL, " "))
        argv[argc++] = !strcmp(w, "S") ? path : w;
    FILE *out = tmpfile(), *err = tmpfile();
    fflush(NULL);
    int saved_out = dup(STDOUT_FILENO), saved_err = dup(STDERR_FILENO);
    dup2(fileno(out), STDOUT_FILENO);
    dup2(fileno(err), STDERR_FILENO);
    int code = cmd_show(argc, argv);
    fflush(NULL);
    dup2(saved_out, STDOUT_FILENO);
    dup2(saved_err, STDERR_FILENO);
    close(saved_out);
    close(saved_err);
    free(words);
    free(out_text);
    free(err_text_got);
    out_text = slurp(out);
    err_text_got = slurp(err);
    return code;
}

static void assert_shows(const char *arguments, const char *want)
{
    if (show(arguments) != EXIT_DONE)
        fail_msg("show %s: %s", arguments, err_text_got);
    assert_string_equal(out_text, want);
    assert_string_equal(err_text_got, "");
}

static void assert_has(const char *text, const char *part)
{
    if (!strstr(text, part))
        fail_msg("'%s' is not in:\n%s", part, text);
}

static void json_is_stable(void **state)
{
    (void)state;
    told(0);
    assert_shows("S --json", session_json);
    assert_shows("S trial 5", trial_text);
    assert_shows("--json S trial 5", trial_json);
}

static void lists_come_from_the_views(void **state)
{
    (void)state;
    told(0);
    assert_shows("S leaderboard --limit 1", leaderboard_text);
    assert_shows("S failures", failures_text);
    assert_shows("S failures --task nothing", "no trial of such a task failed\n");
    assert_int_equal(show("S leaderboard --task matmul* --json --limit 5"), EXIT_DONE);
    assert_has(out_text, "\"trial\": 8");
    assert_null(strstr(out_text, "conv2d"));
    assert_int_equal(show("S failures --json --limit 1"), EXIT_DONE);
    assert_has(out_text, "\"status\": \"build_error\"");
    assert_null(strstr(out_text, "crashed"));
    assert_int_equal(show("S --task matmul* --json"), EXIT_DONE);
    assert_has(out_text, "matmul");
    assert_null(strstr(out_text, "conv2d_64"));
    assert_int_equal(show("S"), EXIT_DONE);
    assert_has(out_text, "net.onnx on llvm:cpu=test: interrupted, stopped by a person, after 0:05");
    assert_has(out_text, "all, by weight");
}

static void a_session_without_trials_says_so(void **state)
{
    (void)state;
    told(1);
    assert_int_equal(show("S"), EXIT_DONE);
    assert_has(out_text, "interrupted, closed before its end");
    assert_has(out_text, "no task yet");
    assert_shows("S leaderboard", "no trial has a time yet\n");
    assert_shows("S failures", "no trial failed\n");
    assert_int_equal(show("S trial 1"), EXIT_FAILED);
    assert_has(err_text_got, "has no trial 1");
}

static void a_trial_in_flight_is_shown(void **state)
{
    (void)state;
    told(7); /* up to its proposal */
    assert_int_equal(show("S trial 1"), EXIT_DONE);
    assert_has(out_text, "state         proposed");
}

static void wrong_usage_is_2_and_says_what(void **state)
{
    (void)state;
    static const struct {
        const char *arguments;
        int code;
        const char *says;
    } cases[] = {
        {"", 2, "wants a session"},
        {"S trees", 2, "there is no \"trees\" to show"},
        {"S trial", 2, "trial wants a number"},
        {"S trial five", 2, "\"five\" is no number of a trial"},
        {"S trial 0", 2, "\"0\" is no number"},
        {"S trial 99999999999999999999", 2, "is no number"},
        {"S tasks more", 2, "\"more\" is one argument too many"},
        {"S --limit none", 2, "--limit wants a number above 0, not \"none\""},
        {"S --limit", 2, "--limit wants a value"},
        {"S --colour", 2, "there is no option --colour"},
        {"S trial 77", 1, "has no trial 77: the last is 9"},
        {"/nowhere/s.squall", 1, "no session \"/nowhere/s.squall\": no such file"},
        {"/tmp", 1, "\"/tmp\" is a folder"},
    };
    told(0);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_int_equal(show(cases[i].arguments), cases[i].code);
        assert_has(err_text_got, cases[i].says);
        assert_string_equal(out_text, "");
    }
    assert_int_equal(show("--help"), 0);
    assert_has(out_text, "usage: squall show");
}

int main(void)
{
    setlocale(LC_CTYPE, "C.UTF-8");
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(json_is_stable),
        TEST(lists_come_from_the_views),
        TEST(a_session_without_trials_says_so),
        TEST(a_trial_in_flight_is_shown),
        TEST(wrong_usage_is_2_and_says_what),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
