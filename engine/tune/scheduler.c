/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/tune/scheduler.h"

#include <math.h>
#include <string.h>

/* MetaSchedule's default: how much the recent gain counts against the optimistic guess. */
static const double alpha = 0.2;

void sched_task_init(struct sched_task *t, double weight)
{
    memset(t, 0, sizeof *t);
    t->weight = weight;
    t->live = true;
    t->best_ns = INFINITY;
}

void sched_begin(struct sched_task *t)
{
    t->busy = true;
    t->rounds++;
}

void sched_end(struct sched_task *t, int64_t trials, double best_ns)
{
    t->busy = false;
    if (t->nr_past == SCHED_WINDOW) {
        memmove(t->past_ns, t->past_ns + 1, sizeof t->past_ns - sizeof *t->past_ns);
        memmove(t->past_trials, t->past_trials + 1, sizeof t->past_trials - sizeof *t->past_trials);
        t->nr_past--;
    }
    t->past_ns[t->nr_past] = t->best_ns;
    t->past_trials[t->nr_past++] = trials;
    t->trials += trials;
    t->best_ns = best_ns;
}

void sched_phase(struct sched_task *t)
{
    t->trials = 0;
    t->nr_past = 0;
}

double sched_gradient(const struct sched_task *t)
{
    if (!isfinite(t->best_ns))
        return 0;
    double recent = 0;
    if (t->nr_past == SCHED_WINDOW && isfinite(t->past_ns[0])) {
        int64_t trials = 0;
        for (int i = 0; i < SCHED_WINDOW; i++)
            trials += t->past_trials[i];
        recent = (t->past_ns[0] - t->best_ns) / (double)(trials > 0 ? trials : 1);
    }
    double optimistic = t->best_ns / (double)(t->trials > 0 ? t->trials : 1);
    return t->weight * (alpha * recent + (1 - alpha) * optimistic);
}

static bool is_warming(const struct sched_task *t)
{
    return t->rounds < SCHED_WARM_ROUNDS;
}

/* Is a to be preferred to b, which comes before it in the list? */
static bool better(const struct sched_task *a, const struct sched_task *b)
{
    if (is_warming(a) || is_warming(b))
        return a->rounds < b->rounds;
    bool a_valid = isfinite(a->best_ns), b_valid = isfinite(b->best_ns);
    if (a_valid != b_valid)
        return b_valid;
    if (!a_valid)
        return a->rounds < b->rounds;
    return sched_gradient(a) > sched_gradient(b);
}

int scheduler_pick(const struct sched_task *t, int nr)
{
    int best = -1;
    for (int i = 0; i < nr; i++)
        if (t[i].live && !t[i].busy && (best < 0 || better(&t[i], &t[best])))
            best = i;
    return best;
}
