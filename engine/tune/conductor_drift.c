/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Drift of the machine.
 *
 * With every measurement the device times a *canary*, work that is always the same
 * (backends/canary.h), right before and right after the samples. Its time over the *reference*, the
 * median of the session's first canaries, is how much slower the machine is than it was at first.
 * It is stored with every trial, told with EV_USAGE, and noted when it has changed by NOTE_CHANGE.
 * The reference is stored too: a resumed session goes on with it. That it comes from measurements
 * under way, with builders at work, and not from an idle moment before them, makes it that of a
 * warm clock.
 *
 * WHAT IS COMPENSATED. The cost and the median of a trial, on which the search and the leaderboard
 * rest, are the samples' over the drift of that moment: kernels that arithmetic bounds take as many
 * cycles whatever the clock. Not compensated are
 *   - tasks of less than INTENSITY operations a byte that must be moved: the canary knows nothing
 * of the bandwidth that bounds them,
 *   - kernels of several threads: the canary sees one core,
 *   - trials in which the canaries before and after differ by UNSTEADY: which of them is right for
 *     which sample cannot be told,
 *   - pairs and finals: what is measured interleaved has the drift in both and needs no help.
 * Samples are stored as they were taken.
 *
 * WHAT IT IS WORTH, on one of two cores of an AMD EPYC under KVM whose clock cannot be set. In a
 * session of SqueezeNet, with copies and loops running on and off beside it, the incumbents of the
 * tasks were measured again and again, 42 kernels 875 times in all, by the comparisons with their
 * neighbours: the median of their spreads (half of the middle 68 %) fell from 0.74 to 0.51 %. For
 * the tasks below INTENSITY, 15 kernels, it was 0.99 and would have been 0.97 %, in another
 * session 1.21 and 1.33 %. The median of the last nine canaries would give 0.62 %, leaving out
 * drifts below 2 % no gain at all: what is compensated changes from trial to trial.
 */
#include "engine/tune/conductor_private.h"

#include <math.h>

#include "engine/search/stats.h"

/* A processor core does some 10 operations and more in the time of a byte from memory, and kernels
 * below half of that are rather bound by memory. */
static const double INTENSITY = 4;
static const double UNSTEADY = 0.05, NOTE_CHANGE = 0.05;
/* Beyond it is another machine, or a canary gone wrong. */
static const double MAX_DRIFT = 2;
/* The cut has so much room; past it a candidate as good as the incumbent would be near it. */
static const double CUT_ROOM = 1.3;

void drift_init(struct conductor *c)
{
    const struct event *past = c->history ? c->history->usage : NULL;
    double stored = past ? past->u.usage.canary_ns : NAN;
    c->drift =
        (struct drift){.reference_ns = stored > 0 && isfinite(stored) ? stored : NAN, .noted = 1};
}

double drift_now(const struct conductor *c)
{
    const struct drift *d = &c->drift;
    return stats_median(d->recent_ns, d->nr) / d->reference_ns;
}

static bool is_compensated(const struct course *t)
{
    const struct workload *wl = &t->task->wl;
    return t->c->info->threads <= 1 && wl->flops >= INTENSITY * (double)workload_bytes(wl);
}

static void tell(struct conductor *c)
{
    double now = drift_now(c);
    if (c->drift.nr < DRIFT_WINDOW || fabs(now / c->drift.noted - 1) < NOTE_CHANGE)
        return;
    c->drift.noted = now;
    emit_note(c, -1, 1, "the machine is %.0f %% %s than at the session's start, by its canary: %s",
              100 * fabs(now - 1), now < 1 ? "faster" : "slower",
              c->info->threads <= 1 ? "costs of what arithmetic bounds are compensated"
                                    : "costs of several threads are not compensated");
}

static void take_canary(struct conductor *c, double canary_ns)
{
    struct drift *d = &c->drift;
    d->recent_ns[d->next++ % DRIFT_WINDOW] = canary_ns;
    if (d->nr < DRIFT_WINDOW)
        d->nr++;
    if (isnan(d->reference_ns) && d->nr == DRIFT_WINDOW) {
        d->reference_ns = stats_median(d->recent_ns, d->nr);
        emit_usage(c); /* stored before the first cost that rests on it */
    }
    if (!isnan(d->reference_ns))
        tell(c);
}

double drift_canary(const struct measure_result *r)
{
    double a = r->canary_ns[0], b = r->canary_ns[1];
    return a > 0 && b > 0 ? (a + b) / 2 : NAN;
}

double drift_take(struct course *t, const struct measure_result *r)
{
    struct conductor *c = t->c;
    double canary_ns = drift_canary(r);
    if (isnan(canary_ns))
        return NAN;
    take_canary(c, canary_ns);
    double drift = canary_ns / c->drift.reference_ns;
    bool steady = fabs(r->canary_ns[0] - r->canary_ns[1]) <= UNSTEADY * canary_ns;
    bool plausible = drift <= MAX_DRIFT && drift >= 1 / MAX_DRIFT; /* not before the reference */
    return steady && plausible && is_compensated(t) ? drift : 1;
}

double drift_cut(const struct course *t)
{
    double now = drift_now(t->c);
    return now > CUT_ROOM && now <= MAX_DRIFT && is_compensated(t) ? now : 1;
}
