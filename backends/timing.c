/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/timing.h"

#include <math.h>
#include <time.h>

#include <emmintrin.h>

static const double min_slice_ns = 50e3;

/* Long enough for a first guess: some hundred times what reading the clock takes. */
static const double min_guess_ns = 12e3;

/* Below this a call is cheap enough to be tried again before it is cut: a single interruption makes
 * a kernel of microseconds look a hundred times slower than it is. */
static const double cheap_call_ns = 3e6;

static const double slow_compare_ns = 50e6;

/* Not adjusted by NTP: a slewed clock would stretch some of the samples. */
static double now_ns(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC_RAW, &ts);
    return (double)ts.tv_sec * 1e9 + (double)ts.tv_nsec;
}

/* Past this size data is out of the caches by itself when the next call comes to it. */
static const size_t flush_bytes = (size_t)128 << 20;

static void flush(const struct timed_kernel *k)
{
    for (int i = 0; i < k->nr_cold; i++) {
        const char *p = k->cold[i].data;
        size_t bytes = k->cold[i].bytes < flush_bytes ? k->cold[i].bytes : 0;
        for (size_t at = 0; at < bytes; at += 64)
            _mm_clflush(p + at);
    }
    _mm_mfence();
}

static double cold_slice(const struct timed_kernel *k, int64_t calls)
{
    double sum = 0;
    for (int64_t i = 0; i < calls; i++) {
        flush(k);
        double start = now_ns();
        k->call(k->buf);
        sum += now_ns() - start;
    }
    return sum / (double)calls;
}

/* Mean time of one of `calls` calls. */
static double slice(const struct timed_kernel *k, int64_t calls)
{
    if (k->nr_cold)
        return cold_slice(k, calls);
    if (k->settles)
        k->call(k->buf);
    double start = now_ns();
    for (int64_t i = 0; i < calls; i++)
        k->call(k->buf);
    return (now_ns() - start) / (double)calls;
}

/* What ran before, a check of outputs perhaps, has left the caches full of other things, and a call
 * or two of a kernel of microseconds take twice as long as all later ones. Data of megabytes that a
 * shared cache has lost, on a busy host within the milliseconds between two trials, takes six or
 * seven calls to be back, each faster than the one before, the last five times as fast as the
 * first: so calls are made until one gains little, within a limit. */
static const double settle_ns = 300e3, settle_most_ns = 3e6, settle_gain = 0.03;

bool timing_settled(double before_ns, double call_ns, double spent_ns)
{
    return spent_ns >= settle_most_ns ||
           (spent_ns >= settle_ns && call_ns > before_ns * (1 - settle_gain));
}

/* Calls until the kernel is settled; the time of the last one. */
static double settle(const struct timed_kernel *k)
{
    double start = now_ns(), before = INFINITY, call_ns = slice(k, 1);
    while (!timing_settled(before, call_ns, now_ns() - start)) {
        before = call_ns;
        call_ns = slice(k, 1);
    }
    return call_ns;
}

/* A first idea of the time of one call; *calls gets how many were made for it. */
static double guess(const struct timed_kernel *k, int64_t *calls)
{
    double call_ns = settle(k);
    *calls = 1;
    while (call_ns * (double)*calls < min_guess_ns && *calls < 1 << 20)
        call_ns = slice(k, *calls *= 2);
    return call_ns;
}

/* The fewest rounds, where the slowest call takes so long that more do not fit the time to fill. */
static int min_rounds(int nr, double slowest_ns, double fill_ns)
{
    if (nr > 1)
        return slowest_ns > slow_compare_ns ? 3 : 5;
    if (slowest_ns * 5 <= fill_ns * 4)
        return 5;
    if (slowest_ns <= fill_ns * 10)
        return 3;
    return slowest_ns <= fill_ns * 20 ? 2 : 1;
}

struct timing_plan timing_plan(const double *call_ns, int nr, int64_t fill_ns)
{
    struct timing_plan p = {0};
    double slowest = min_slice_ns, fill = fill_ns > 0 ? (double)fill_ns : 0;
    for (int k = 0; k < nr; k++)
        if (call_ns[k] > slowest)
            slowest = call_ns[k];
    int least = min_rounds(nr, slowest, fill);
    double rounds = fill / slowest;
    p.rounds = rounds > TRIAL_MAX_SAMPLES ? TRIAL_MAX_SAMPLES : (int)rounds;
    if (p.rounds < least)
        p.rounds = least;
    double slice_ns = fill / p.rounds;
    if (slice_ns < min_slice_ns)
        slice_ns = min_slice_ns;
    for (int k = 0; k < nr; k++) {
        double calls = call_ns[k] > 0 ? slice_ns / call_ns[k] : slice_ns;
        p.calls[k] = calls < 1 ? 1 : (int64_t)(calls + 0.5);
    }
    return p;
}

/* The smallest of up to three first samples of kernel 0, while they say that it is too slow. */
static double second_thoughts(const struct timed_kernel *k, double call_ns, int64_t calls,
                              double cut_ns)
{
    for (int i = 0; i < 2 && call_ns > cut_ns && call_ns < cheap_call_ns; i++) {
        double again = slice(k, calls);
        if (again < call_ns)
            call_ns = again;
    }
    return call_ns;
}

/* Pairs up to which a comparison goes on past its plan while kernel 0 looks faster than kernel 1:
 * what a signed-rank test over a ring of neighbours needs to tell. And pairs after which it ends
 * where it looks slower: the usual case, of which nobody needs to know by how much exactly. */
enum { PROMISING_ROUNDS = 14, HOPELESS_ROUNDS = 3 };

static const double looks_faster = 0.995, looks_slower = 1.005;

bool timing_compares_on(const struct timing *t, int planned)
{
    int faster = 0, slower = 0, nr = t->nr_samples;
    for (int r = 0; r < nr; r++) {
        double ratio = t->sample_ns[0][r] / t->sample_ns[1][r];
        faster += ratio < looks_faster;
        slower += ratio > looks_slower;
    }
    if (nr >= HOPELESS_ROUNDS && slower * 2 > nr)
        return false;
    return nr < planned || (nr < PROMISING_ROUNDS && faster * 2 > nr);
}

void timing_run(const struct timed_kernel *k, int nr, const struct timing_limits *limits,
                struct timing *out)
{
    double start = now_ns();
    double call_ns[DEVICE_MAX_KERNELS];
    bool guess_is_slice = true;
    out->nr_samples = 0;
    for (int i = 0; i < nr; i++) {
        int64_t calls;
        call_ns[i] = guess(&k[i], &calls);
        if (i == 0 && limits->cut_ns > 0)
            call_ns[0] = second_thoughts(&k[0], call_ns[0], calls, limits->cut_ns);
        out->sample_ns[i][0] = call_ns[i];
        if (calls != 1)
            guess_is_slice = false;
    }
    out->cut = limits->cut_ns > 0 && call_ns[0] > limits->cut_ns;
    if (out->cut) {
        out->nr_samples = 1;
        return;
    }

    /* Two samples tell that a candidate is no good; the time goes to those that may be. */
    bool mediocre = nr == 1 && limits->cut_ns > 0 && call_ns[0] > limits->cut_ns / 2;
    struct timing_plan plan =
        timing_plan(call_ns, nr, mediocre ? limits->fill_ns / 4 : limits->fill_ns);
    if (mediocre && plan.rounds > 2)
        plan.rounds = 2;
    /* Without a cut kernel 0 challenges nobody: all that is planned is measured, no more, and as
     * the kernel is by itself. A challenger and its incumbent find the caches equally spoilt. */
    bool challenge = nr == 2 && limits->cut_ns > 0, alone = !(limits->cut_ns > 0);
    double round_ns = 0;
    for (int i = 0; i < nr; i++) {
        round_ns += call_ns[i] * (double)(plan.calls[i] + k[i].settles);
        round_ns += k[i].settles && alone ? settle_most_ns : 0;
        if (plan.calls[i] != 1)
            guess_is_slice = false;
    }
    /* a slow call is not made twice where once would do */
    int first = guess_is_slice ? 1 : 0;
    int most = challenge ? TRIAL_MAX_SAMPLES : plan.rounds;
    for (int r = first; r < most; r++) {
        if (challenge && !timing_compares_on(out, plan.rounds))
            break;
        if (r > 0 && now_ns() - start + round_ns > (double)limits->budget_ns)
            break;
        for (int j = 0; j < nr; j++) {
            int i = r % 2 ? nr - 1 - j : j;
            if (k[i].settles && alone)
                settle(&k[i]);
            out->sample_ns[i][r] = slice(&k[i], plan.calls[i]);
        }
        out->nr_samples = r + 1;
    }
    if (out->nr_samples == 0)
        out->nr_samples = first;
}

double timing_canary(void (*canary)(void))
{
    double best = 0;
    for (int i = 0; i < 2; i++) {
        double start = now_ns();
        canary();
        double ns = now_ns() - start;
        if (i == 0 || ns < best)
            best = ns;
    }
    return best;
}
