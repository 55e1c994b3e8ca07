/* SPDX-License-Identifier: Apache-2.0 */
/* The runner, with kernels that do everything a kernel should not. Limits are generous and nothing
 * here depends on how fast the machine is. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <pthread.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>

#include "engine/tensor/compare.h"
#include "backends/region.h"
#include "backends/runner.h"
#include "backends/timing.h"
#include "engine/base/cpu_cache.h"
#include "tests/fake_backend.h"

static const int64_t ms = 1000000;

/* One runner and one task for all tests: each must leave the runner fit for the next. */
static struct runner *runner;
static struct task *task;
static struct operands *operands;

static struct runner *start_runner(const char *exe, int threads, struct err *e)
{
    struct runner *r;
    const struct runner_options o = {.exe = exe, .backend = "fake", .cpu = 0, .threads = threads};
    return runner_start(&o, &r, e) ? NULL : r;
}

static int set_up(void **state)
{
    (void)state;
    struct err e = ERR_INIT;
    runner = start_runner("/proc/self/exe", 1, &e);
    task = fake_task(0);
    operands = operands_new(task, &e);
    if (!runner || !operands)
        fail_msg("%s", e.msg);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    operands_free(operands);
    task_free(task);
    runner_free(runner);
    return 0;
}

static struct measure_request request(void)
{
    return (struct measure_request){
        .operands = operands, .nr = 1, .fill_ns = 3 * ms, .check = true, .timeout_ns = 60000 * ms};
}

/* Measures the named kernels in turn, `second` may be NULL. */
static struct measure_result measure_on(struct runner *r, const struct task *t,
                                        struct measure_request q, const char *first,
                                        const char *second)
{
    struct artifact a[2];
    struct measure_result res;
    fake_artifact(first, t, &a[0]);
    fake_artifact(second ? second : "good", t, &a[1]);
    q.nr = second ? 2 : 1;
    q.artifact[0] = &a[0];
    q.artifact[1] = &a[1];
    runner_measure(r, &q, &res);
    artifact_release(&a[0]);
    artifact_release(&a[1]);
    return res;
}

static struct measure_result measure(const char *kernel)
{
    return measure_on(runner, task, request(), kernel, NULL);
}

static void assert_good(const struct measure_result *r)
{
    if (r->status != TRIAL_OK)
        fail_msg("status %d: %s", (int)r->status, r->reason);
    assert_true(r->nr_samples >= 1 && r->nr_samples <= TRIAL_MAX_SAMPLES);
    assert_true(r->checked);
    assert_true(r->error <= 1);
    for (int i = 0; i < r->nr_samples; i++)
        assert_true(r->sample_ns[0][i] > 0);
    assert_true(r->canary_ns[0] > 0 && r->canary_ns[1] > 0);
}

/* The kernel fails as it should, and the next one is none the worse for it. */
static void assert_fails(const char *kernel, enum trial_status status, const char *reason)
{
    struct measure_result r = measure(kernel);
    if (r.status != status || !strstr(r.reason, reason))
        fail_msg("\"%s\": status %d, reason \"%s\"", kernel, (int)r.status, r.reason);
    assert_int_equal(r.nr_samples, 0);
    r = measure("good");
    assert_good(&r);
}

static void test_good_kernel_is_measured(void **state)
{
    (void)state;
    struct measure_result r = measure("good");
    assert_good(&r);
    assert_true(r.measure_ns > 0);
    assert_string_equal(r.reason, "");
    r = measure("reads_behind");
    assert_good(&r);
}

static void test_without_check_nothing_is_compared(void **state)
{
    (void)state;
    struct measure_request q = request();
    q.check = false;
    struct measure_result r = measure_on(runner, task, q, "wrong", NULL);
    assert_int_equal(r.status, TRIAL_OK);
    assert_false(r.checked);
}

static void test_wrong_results_say_where(void **state)
{
    (void)state;
    assert_fails("wrong", TRIAL_WRONG_RESULT, "element [2, 5] is ");
    assert_fails("wrong", TRIAL_WRONG_RESULT, " 1.67 % of elements wrong)");
    assert_fails("nan", TRIAL_WRONG_RESULT, "element [0, 7] is not a number or was never written");
    assert_fails("unwritten", TRIAL_WRONG_RESULT, "element [5, 4] is not a number or was never");
    assert_fails("unwritten", TRIAL_WRONG_RESULT, "(10 % of elements wrong)");
    struct measure_result r = measure("wrong");
    assert_true(r.checked);
    assert_true(r.error > 1 && isfinite(r.error));
}

static void test_crashes_are_explained(void **state)
{
    (void)state;
    int before = runner_restarts(runner);
    assert_fails("segfault", TRIAL_CRASHED, "killed by SIGSEGV (invalid memory access)");
    assert_fails("abort", TRIAL_CRASHED, "killed by SIGABRT");
    assert_fails("exit", TRIAL_CRASHED, "exited with code 3: this ?[31mcannot go on");
    assert_int_equal(runner_restarts(runner), before + 3);
    assert_fails("good_once", TRIAL_CRASHED, "killed by SIGABRT");
}

static void test_stray_writes_are_caught(void **state)
{
    (void)state;
    assert_fails("past_end", TRIAL_CRASHED, "wrote past the end of buffer 2 (output)");
    assert_fails("scratch_past_end", TRIAL_CRASHED, "wrote past the end of buffer 3 (scratch)");
    assert_fails("far_past_end", TRIAL_CRASHED, "SIGSEGV");
    assert_fails("writes_input", TRIAL_CRASHED, "SIGSEGV");
    assert_fails("writes_constant", TRIAL_CRASHED, "SIGSEGV");
}

static void test_output_of_kernels_does_no_harm(void **state)
{
    (void)state;
    struct measure_result r = measure("prints");
    assert_good(&r);
    r = measure("chatters");
    assert_good(&r);
}

static void test_hanging_kernel_times_out(void **state)
{
    (void)state;
    struct measure_request q = request();
    q.timeout_ns = 200 * ms;
    struct measure_result r = measure_on(runner, task, q, "hang", NULL);
    assert_int_equal(r.status, TRIAL_RUN_TIMEOUT);
    assert_string_equal(r.reason, "no answer for 0.2 s");
    r = measure("good");
    assert_good(&r);
}

static void test_broken_conversation_is_a_crash(void **state)
{
    (void)state;
    assert_fails("nonsense", TRIAL_CRASHED, "answered nonsense");
    assert_fails("closes", TRIAL_CRASHED, "closed its connection");
}

static void test_code_that_does_not_load_is_a_build_error(void **state)
{
    (void)state;
    assert_fails("no such thing", TRIAL_BUILD_ERROR, "no such kernel");
}

static void test_artifact_of_another_task_is_refused(void **state)
{
    (void)state;
    struct task *other = fake_task(4);
    struct measure_result r = measure_on(runner, other, request(), "blocked", NULL);
    assert_int_equal(r.status, TRIAL_BUILD_ERROR);
    assert_non_null(strstr(r.reason, "buffer 0"));
    task_free(other);
}

static void test_pairs_have_equal_samples(void **state)
{
    (void)state;
    struct measure_result r = measure_on(runner, task, request(), "good", "slow");
    assert_good(&r);
    assert_true(r.nr_samples >= 3);
    for (int i = 0; i < r.nr_samples; i++) {
        assert_true(r.sample_ns[0][i] > 0);
        assert_true(r.sample_ns[1][i] >= 2e6);
    }
}

static void test_failing_reference_is_not_blamed_on_the_candidate(void **state)
{
    (void)state;
    struct measure_result r = measure_on(runner, task, request(), "good", "segfault");
    assert_int_equal(r.status, TRIAL_DEVICE_ERROR);
    assert_non_null(strstr(r.reason, "the kernel compared with: killed by SIGSEGV"));
    r = measure_on(runner, task, request(), "good", "past_end");
    assert_int_equal(r.status, TRIAL_DEVICE_ERROR);
    assert_non_null(strstr(r.reason, "the kernel compared with: wrote past"));
    r = measure_on(runner, task, request(), "wrong", "good");
    assert_int_equal(r.status, TRIAL_WRONG_RESULT);
}

static void test_slow_kernel_is_cut(void **state)
{
    (void)state;
    struct measure_request q = request();
    q.cut_ns = 1e6;
    struct measure_result r = measure_on(runner, task, q, "slow", NULL);
    assert_int_equal(r.status, TRIAL_CUT);
    assert_int_equal(r.nr_samples, 1);
    assert_true(r.sample_ns[0][0] > 1e6);
    assert_non_null(strstr(r.reason, "cut at 1 ms"));
    q.cut_ns = 1e15;
    r = measure_on(runner, task, q, "slow", NULL);
    assert_good(&r);
}

/* Of the fake task in such blocks one kernel is right, and another wrong at an element. */
static void assert_checked(int block, const char *right, const char *wrong, const char *element)
{
    struct err e = ERR_INIT;
    struct task *t = fake_task(block);
    struct measure_request q = request();
    q.operands = operands_new(t, &e);
    assert_non_null(q.operands);
    struct measure_result r = measure_on(runner, t, q, right, NULL);
    assert_good(&r);
    r = measure_on(runner, t, q, wrong, NULL);
    assert_int_equal(r.status, TRIAL_WRONG_RESULT);
    assert_non_null(strstr(r.reason, element));
    operands_free(q.operands);
    task_free(t);
}

static void test_blocked_layouts_ignore_padding(void **state)
{
    (void)state;
    assert_checked(4, "blocked", "unwritten", "element ");
}

/* Blocks of three rows: nothing is padded, and the 26th number stored is another than the 26th. */
static void test_blocked_outputs_without_padding_are_checked_too(void **state)
{
    (void)state;
    assert_checked(-3, "good", "wrong", "element [1, 8] is ");
}

static void test_many_tasks_go_through_one_runner(void **state)
{
    (void)state;
    struct err e = ERR_INIT;
    struct operands *o[9];
    for (int i = 0; i < 9; i++)
        assert_non_null(o[i] = operands_new(task, &e));
    for (int i = 0; i < 18; i++) {
        struct measure_request q = request();
        q.operands = o[i % 9];
        q.fill_ns = 0;
        struct measure_result r = measure_on(runner, task, q, "good", NULL);
        assert_good(&r);
    }
    for (int i = 0; i < 9; i++)
        operands_free(o[i]);
}

static void test_kernel_with_threads(void **state)
{
    (void)state;
    struct err e = ERR_INIT;
    struct runner *r = start_runner("/proc/self/exe", 2, &e);
    assert_non_null(r);
    struct measure_result res = measure_on(r, task, request(), "good", NULL);
    assert_good(&res);
    runner_free(r);
}

static void pid_file(char *path, size_t size)
{
    snprintf(path, size, "/tmp/squall-test-runner-XXXXXX");
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    close(fd);
    setenv("FAKE_PID_FILE", path, 1);
}

/* Waits until a kernel has noted its process. */
static pid_t read_pid(const char *path)
{
    for (;;) {
        long pid = 0;
        FILE *f = fopen(path, "r");
        int n = f ? fscanf(f, "%ld\n", &pid) : 0;
        if (f)
            fclose(f);
        if (n == 1)
            return (pid_t)pid;
        nanosleep(&(struct timespec){.tv_nsec = 2 * 1000000}, NULL);
    }
}

static void *interrupt_when_running(void *path)
{
    read_pid(path);
    runner_interrupt(runner);
    return NULL;
}

static void test_interrupt_ends_a_measurement(void **state)
{
    (void)state;
    char path[64];
    pid_file(path, sizeof path);
    /* the environment is given to a child when it is started */
    struct measure_result r = measure("abort");
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, interrupt_when_running, path), 0);
    r = measure("hang");
    pthread_join(thread, NULL);
    unsetenv("FAKE_PID_FILE");
    unlink(path);
    assert_int_equal(r.status, TRIAL_DEVICE_ERROR);
    assert_string_equal(r.reason, "interrupted");
    r = measure("good");
    assert_good(&r);
}

static void test_late_interrupt_does_not_hit_the_next(void **state)
{
    (void)state;
    runner_interrupt(runner);
    struct measure_result r = measure("good");
    assert_good(&r);
}

static void test_runner_that_cannot_start(void **state)
{
    (void)state;
    struct err e = ERR_INIT;
    assert_null(start_runner("/nonexistent/squall", 1, &e));
    assert_non_null(strstr(e.msg, "cannot start the runner of backend \"fake\""));
    err_clear(&e);
    assert_null(start_runner("/bin/false", 1, &e));
    assert_non_null(strstr(e.msg, "exited with code 1"));
    err_clear(&e);
    setenv("FAKE_LOADER_FAILS", "1", 1);
    assert_null(start_runner("/proc/self/exe", 1, &e));
    unsetenv("FAKE_LOADER_FAILS");
    assert_non_null(strstr(e.msg, "the driver is not there"));
}

static void test_runner_that_cannot_start_again(void **state)
{
    (void)state;
    setenv("FAKE_LOADER_DIES", "1", 1);
    struct measure_result r = measure("abort");
    assert_int_equal(r.status, TRIAL_CRASHED);
    r = measure("good");
    assert_int_equal(r.status, TRIAL_DEVICE_ERROR);
    assert_non_null(strstr(r.reason, "cannot start the runner"));
    assert_non_null(strstr(r.reason, "exited with code 7"));
    unsetenv("FAKE_LOADER_DIES");
    r = measure("good");
    assert_good(&r);
}

static void test_no_child_is_left(void **state)
{
    (void)state;
    struct err e = ERR_INIT;
    runner_free(runner);
    errno = 0;
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
    assert_int_equal(errno, ECHILD);
    assert_non_null(runner = start_runner("/proc/self/exe", 1, &e));
    runner_free(NULL);
}

/* What a kernel started goes away with it. */
static void test_processes_of_kernels_are_killed(void **state)
{
    (void)state;
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    assert_fails("forks", TRIAL_CRASHED, "exited with code 4");
    int status;
    pid_t pid;
    /* orphans come to this process; the runner itself lives on, so wait for another */
    do {
        pid = waitpid(-1, &status, 0);
    } while (pid < 0 && errno == EINTR);
    assert_true(pid > 0 && WIFSIGNALED(status));
    assert_int_equal(WTERMSIG(status), SIGKILL);
    prctl(PR_SET_CHILD_SUBREAPER, 0);
    struct measure_result r = measure("good");
    assert_good(&r);
}

static void test_death_of_the_parent_ends_the_child(void **state)
{
    (void)state;
    char path[64];
    pid_file(path, sizeof path);
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    pid_t parent = fork();
    if (parent == 0) {
        struct err e = ERR_INIT;
        struct runner *r = start_runner("/proc/self/exe", 1, &e);
        if (r)
            measure_on(r, task, request(), "hang", NULL);
        _exit(1);
    }
    assert_true(parent > 0);
    pid_t child = read_pid(path);
    kill(parent, SIGKILL);
    int status;
    assert_int_equal(waitpid(parent, &status, 0), parent);
    assert_true(WIFSIGNALED(status));
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    prctl(PR_SET_CHILD_SUBREAPER, 0);
    unsetenv("FAKE_PID_FILE");
    unlink(path);
}

/* The second child is this thread's own, and is at work before the thread ends. */
static void *measure_in_thread(void *out)
{
    struct measure_result *r = out;
    r[0] = measure("abort");
    r[1] = measure("good");
    return NULL;
}

/* The child is killed when the thread that started it ends; that is no failure of the next trial.
 */
static void test_end_of_the_starting_thread_is_survived(void **state)
{
    (void)state;
    struct measure_result r[2];
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, measure_in_thread, r), 0);
    pthread_join(thread, NULL);
    assert_int_equal(r[0].status, TRIAL_CRASHED);
    assert_good(&r[1]);
    /* a joined thread may still be on its way out: its child's death is waited for, not taken */
    siginfo_t death;
    assert_int_equal(waitid(P_ALL, 0, &death, WEXITED | WNOWAIT), 0);
    assert_int_equal(death.si_status, SIGKILL);
    r[0] = measure("good");
    assert_good(&r[0]);
}

/* A comparison of equals whose first samples decide nothing: the plan is kept. */
static void test_without_a_cut_the_plan_is_kept(void **state)
{
    (void)state;
    struct measure_request q = request();
    q.fill_ns = 4 * ms;
    struct measure_result r = measure_on(runner, task, q, "slow", "good");
    assert_good(&r);
    /* 2 ms and more each: five rounds. With a cut, three would do to see that it is slower. */
    assert_int_equal(r.nr_samples, 5);
    q.cut_ns = 1e15;
    r = measure_on(runner, task, q, "slow", "good");
    assert_good(&r);
    assert_int_equal(r.nr_samples, 3);
}

static void test_regions_of_all_sizes(void **state)
{
    (void)state;
    static const size_t sizes[] = {0, 1, 63, 64, 4032, 4096, 2 << 20, (5 << 20) + 12};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        struct region r;
        assert_true(region_init(&r, sizes[i]));
        assert_int_equal((uintptr_t)r.data % REGION_ALIGN, 0);
        for (size_t k = 0; k < sizes[i]; k++)
            assert_int_equal(r.data[k], 0);
        memset(r.data, 1, sizes[i]);
        assert_true(region_intact(&r));
        r.data[sizes[i]] = 1;
        assert_false(region_intact(&r));
        region_mend(&r);
        r.data[sizes[i] + REGION_SLACK - 1] = 1;
        assert_false(region_intact(&r));
        region_protect(&r);
        region_release(&r);
    }
    struct region r;
    assert_false(region_init(&r, SIZE_MAX - 1));
}

static void test_timing_plan(void **state)
{
    (void)state;
    /* microseconds: all samples there can be, slices that share the time */
    struct timing_plan p = timing_plan((double[]){1000}, 1, 3 * ms);
    assert_int_equal(p.rounds, TRIAL_MAX_SAMPLES);
    assert_in_range(p.calls[0], 90, 97);
    /* as slow as the time to fill, ten times and more */
    assert_int_equal(timing_plan((double[]){1e6}, 1, 5 * ms).rounds, 5);
    assert_int_equal(timing_plan((double[]){3e6}, 1, 3 * ms).rounds, 3);
    assert_int_equal(timing_plan((double[]){29e6}, 1, 3 * ms).rounds, 3);
    assert_int_equal(timing_plan((double[]){40e6}, 1, 3 * ms).rounds, 2);
    assert_int_equal(timing_plan((double[]){1e9}, 1, 3 * ms).rounds, 1);
    /* comparisons: the fast one fills the same time with more calls */
    p = timing_plan((double[]){1e6, 4e6}, 2, 5 * ms);
    assert_int_equal(p.rounds, 5);
    assert_int_equal(p.calls[0], 1);
    p = timing_plan((double[]){1e4, 1e6}, 2, 10 * ms);
    assert_int_equal(p.rounds, 10);
    assert_int_equal(p.calls[0], 100);
    assert_int_equal(p.calls[1], 1);
    assert_int_equal(timing_plan((double[]){1e6, 60e6}, 2, 5 * ms).rounds, 3);
    /* no time to fill, no time at all */
    p = timing_plan((double[]){0}, 1, 0);
    assert_true(p.rounds >= 1 && p.calls[0] >= 1);
}

/* Calls of a memory-bound kernel on a busy host, whose shared cache has lost its data: the first
 * samples were four times what the kernel takes. */
static void test_sampling_waits_while_calls_get_faster(void **state)
{
    (void)state;
    static const double call_us[] = {414, 268, 215, 145, 88, 77, 71, 70};
    double before = INFINITY, spent = 0;
    int i = -1;
    do {
        before = i < 0 ? before : call_us[i] * 1e3;
        spent += call_us[++i] * 1e3;
    } while (!timing_settled(before, call_us[i] * 1e3, spent));
    assert_int_equal(i, 7);
    /* cheap calls go on for a while all the same, slow ones are not repeated */
    assert_false(timing_settled(1000, 1000, 2000));
    assert_true(timing_settled(1000, 1000, 400e3));
    assert_true(timing_settled(INFINITY, 7e6, 7e6));
    assert_false(timing_settled(INFINITY, 1e6, 1e6));
}

/* Of pairs of which `slower` show the challenger 3 % slower, and the others as much faster. */
static bool compares_on(int pairs, int slower, int planned)
{
    struct timing t = {.nr_samples = pairs};
    for (int i = 0; i < pairs; i++) {
        t.sample_ns[0][i] = i < slower ? 1030 : 970;
        t.sample_ns[1][i] = 1000;
    }
    return timing_compares_on(&t, planned);
}

static void test_a_challenger_that_looks_slower_is_not_measured_on(void **state)
{
    (void)state;
    assert_true(compares_on(2, 2, 5)); /* too few to tell */
    assert_false(compares_on(3, 3, 5));
    assert_false(compares_on(3, 2, 5));
    assert_true(compares_on(3, 1, 5));
    assert_true(compares_on(4, 2, 5));
    assert_true(compares_on(5, 2, 5)); /* past the plan while it looks faster */
    assert_true(compares_on(13, 0, 5));
    assert_false(compares_on(14, 0, 5));
    assert_false(compares_on(6, 3, 5));
}

/* Who was called, in order; a call takes longer than a slice. */
static struct {
    int nr;
    char who[4096];
} calls;

static void slow_call(void *const *buf)
{
    nanosleep(&(struct timespec){.tv_nsec = 500000}, NULL);
    if (calls.nr < (int)sizeof calls.who)
        calls.who[calls.nr++] = *(const char *)buf[0];
}

/* The fewest calls of a kernel in a row, after the first guesses. */
static int shortest_turn(bool settles, double cut_ns)
{
    char a = 'a', b = 'b';
    void *buf[2] = {&a, &b};
    struct timed_kernel k[2] = {{.call = slow_call, .buf = &buf[0], .settles = settles},
                                {.call = slow_call, .buf = &buf[1], .settles = settles}};
    struct timing_limits limits = {.fill_ns = ms, .cut_ns = cut_ns, .budget_ns = INT64_MAX / 4};
    struct timing t;
    calls.nr = 0;
    timing_run(k, 2, &limits, &t);
    int least = INT_MAX, turn = 0, turns = 0;
    for (int i = 1; i < calls.nr; i++) {
        turn++;
        if (calls.who[i] == calls.who[i - 1])
            continue;
        least = ++turns > 2 && turn < least ? turn : least;
        turn = 0;
    }
    return least;
}

/* Each slice is one call here, and rounds go forwards and backwards: two of each in a row. */
static void test_kernels_that_settle_are_called_before_their_slices(void **state)
{
    (void)state;
    assert_int_equal(shortest_turn(false, 0), 2);
    assert_int_equal(shortest_turn(false, 1e12), 2);
    assert_int_equal(shortest_turn(true, 1e12), 4);
}

/* A kernel of 14 MB took half as long again beside two others as by itself. */
static void test_finalists_are_timed_as_each_is_by_itself(void **state)
{
    (void)state;
    assert_in_range(shortest_turn(true, 0), 6, 1000);
}

static void test_last_cache_has_a_size(void **state)
{
    (void)state;
    assert_in_range(cpu_last_cache_bytes(), 1 << 16, INT64_C(1) << 33);
}

static void test_comparison_finds_the_worst_element(void **state)
{
    (void)state;
    enum { N = FAKE_SIZE };
    float want[N], got[N];
    for (int i = 0; i < N; i++)
        got[i] = want[i] = sinf((float)i);
    got[11] += 1e-5f;
    got[12] -= 1e-6f;
    got[40] += 1e-4f;
    int64_t at;
    double error = task_error(task, got, want, N, &at);
    struct comparison c =
        compare_output(got, want, NULL, N, tolerance_of(want, NULL, N, task->reduce_length));
    assert_true(fabs(c.error - error) <= 1e-9 * error);
    assert_int_equal(c.at, at);
    assert_int_equal(c.at, 40);
    assert_int_equal(c.wrong, 2);
    want[3] = INFINITY;
    got[3] = 1;
    c = compare_output(got, want, NULL, N, tolerance_of(want, NULL, N, 1));
    assert_true(isinf(c.error));
    assert_int_equal(c.at, 3);
    float zero[2] = {0, 0};
    assert_true(compare_output(zero, zero, NULL, 2, tolerance_of(zero, NULL, 2, 1)).error == 0);
}

int main(int argc, char **argv)
{
    backend_register(&fake_backend);
    if (argc > 1 && !strcmp(argv[1], "runner"))
        return runner_main(argc, argv);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_good_kernel_is_measured),
        cmocka_unit_test(test_without_check_nothing_is_compared),
        cmocka_unit_test(test_wrong_results_say_where),
        cmocka_unit_test(test_crashes_are_explained),
        cmocka_unit_test(test_stray_writes_are_caught),
        cmocka_unit_test(test_output_of_kernels_does_no_harm),
        cmocka_unit_test(test_hanging_kernel_times_out),
        cmocka_unit_test(test_broken_conversation_is_a_crash),
        cmocka_unit_test(test_code_that_does_not_load_is_a_build_error),
        cmocka_unit_test(test_artifact_of_another_task_is_refused),
        cmocka_unit_test(test_pairs_have_equal_samples),
        cmocka_unit_test(test_failing_reference_is_not_blamed_on_the_candidate),
        cmocka_unit_test(test_slow_kernel_is_cut),
        cmocka_unit_test(test_blocked_layouts_ignore_padding),
        cmocka_unit_test(test_blocked_outputs_without_padding_are_checked_too),
        cmocka_unit_test(test_many_tasks_go_through_one_runner),
        cmocka_unit_test(test_kernel_with_threads),
        cmocka_unit_test(test_interrupt_ends_a_measurement),
        cmocka_unit_test(test_late_interrupt_does_not_hit_the_next),
        cmocka_unit_test(test_runner_that_cannot_start),
        cmocka_unit_test(test_runner_that_cannot_start_again),
        cmocka_unit_test(test_no_child_is_left),
        cmocka_unit_test(test_processes_of_kernels_are_killed),
        cmocka_unit_test(test_death_of_the_parent_ends_the_child),
        cmocka_unit_test(test_end_of_the_starting_thread_is_survived),
        cmocka_unit_test(test_without_a_cut_the_plan_is_kept),
        cmocka_unit_test(test_regions_of_all_sizes),
        cmocka_unit_test(test_timing_plan),
        cmocka_unit_test(test_sampling_waits_while_calls_get_faster),
        cmocka_unit_test(test_finalists_are_timed_as_each_is_by_itself),
        cmocka_unit_test(test_a_challenger_that_looks_slower_is_not_measured_on),
        cmocka_unit_test(test_kernels_that_settle_are_called_before_their_slices),
        cmocka_unit_test(test_last_cache_has_a_size),
        cmocka_unit_test(test_comparison_finds_the_worst_element),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
