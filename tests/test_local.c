/* SPDX-License-Identifier: Apache-2.0 */
/* The local device: from a candidate to samples, over the fake backend. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <pthread.h>

#include "backends/local.h"
#include "backends/runner.h"
#include "tests/fake_backend.h"

static struct device *device;
static struct task *task;

static int set_up(void **state)
{
    (void)state;
    struct err e = ERR_INIT;
    if (local_device_open("fake:cpu=x", 1, &device, &e))
        fail_msg("%s", e.msg);
    task = fake_task(0);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    device->class->close(device);
    task_free(task);
    return 0;
}

static struct candidate candidate(int value)
{
    return (struct candidate){.sketch = 0, .nr = 1, .v = {value}};
}

static struct build_result build(int builder, int value)
{
    struct build_result r;
    struct candidate c = candidate(value);
    device->class->build(device, builder, task, NULL, &c, &r);
    return r;
}

static int number_of(const char *kernel)
{
    for (int i = 0; i < FAKE_NR_KERNELS; i++)
        if (!strcmp(fake_kernels[i].name, kernel))
            return i;
    fail_msg("no kernel %s", kernel);
    return -1;
}

static void test_target_is_opened_with_its_options(void **state)
{
    (void)state;
    const struct device_info *info = device->class->info(device);
    assert_string_equal(info->target, "fake:cpu=x");
    assert_int_equal(info->threads, 1);
}

static void test_unknown_target_is_refused(void **state)
{
    (void)state;
    struct device *d;
    struct err e = ERR_INIT;
    assert_int_equal(local_device_open("nothing:at=all", 1, &d, &e), ERR_USAGE);
    assert_string_equal(e.msg, "no backend for target \"nothing:at=all\"; there are: fake");
    assert_null(d);
    err_clear(&e);
    assert_int_equal(local_device_open("fake:bad", 1, &d, &e), ERR_INPUT);
    assert_string_equal(e.msg, "no such processor \"bad\"");
}

static void test_build_failures_have_a_status(void **state)
{
    (void)state;
    static const struct {
        int value;
        enum trial_status status;
        const char *reason;
    } cases[] = {
        {FAKE_UNSUPPORTED, TRIAL_INVALID, "not on this processor"},
        {FAKE_TOO_LARGE, TRIAL_INVALID, "more than 1024 threads"},
        {FAKE_NO_BUILD, TRIAL_BUILD_ERROR, "the compiler failed"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct build_result r = build(0, cases[i].value);
        assert_int_equal(r.status, cases[i].status);
        assert_string_equal(r.reason, cases[i].reason);
        assert_null(r.artifact);
    }
    struct build_result r = build(100000, 0);
    assert_int_equal(r.status, TRIAL_BUILD_ERROR);
    device->class->artifact_free(device, NULL);
}

static void test_candidate_becomes_samples(void **state)
{
    (void)state;
    struct err e = ERR_INIT;
    struct build_result good = build(0, number_of("good"));
    struct build_result bad = build(1, number_of("wrong"));
    assert_int_equal(good.status, TRIAL_OK);
    assert_int_equal(good.code_bytes, sizeof "good");
    void *operands = device->class->operands(device, task, &e);
    assert_non_null(operands);
    struct measure_request q = {.operands = operands,
                                .nr = 2,
                                .fill_ns = 1000000,
                                .check = true,
                                .timeout_ns = INT64_C(60000000000)};
    struct measure_result r;
    q.artifact[0] = good.artifact;
    q.artifact[1] = bad.artifact;
    device->class->measure(device, &q, &r);
    assert_int_equal(r.status, TRIAL_OK);
    assert_true(r.nr_samples >= 3);
    q.artifact[0] = bad.artifact;
    q.nr = 1;
    device->class->measure(device, &q, &r);
    assert_int_equal(r.status, TRIAL_WRONG_RESULT);
    device->class->operands_free(device, operands);
    device->class->artifact_free(device, good.artifact);
    device->class->artifact_free(device, bad.artifact);
}

static void *build_many(void *number)
{
    for (int i = 0; i < 50; i++) {
        struct build_result r = build((int)(intptr_t)number, i % FAKE_NR_KERNELS);
        assert_int_equal(r.status, TRIAL_OK);
        device->class->artifact_free(device, r.artifact);
    }
    return NULL;
}

static void test_builders_work_side_by_side(void **state)
{
    (void)state;
    pthread_t thread[4];
    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&thread[i], NULL, build_many, (void *)(intptr_t)i), 0);
    for (int i = 0; i < 4; i++)
        pthread_join(thread[i], NULL);
}

int main(int argc, char **argv)
{
    backend_register(&fake_backend);
    if (argc > 1 && !strcmp(argv[1], "runner"))
        return runner_main(argc, argv);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_target_is_opened_with_its_options),
        cmocka_unit_test(test_unknown_target_is_refused),
        cmocka_unit_test(test_build_failures_have_a_status),
        cmocka_unit_test(test_candidate_becomes_samples),
        cmocka_unit_test(test_builders_work_side_by_side),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
