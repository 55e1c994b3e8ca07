/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/bench/bench.h"

#include <time.h>

/* Threads of a library spin for some time after a call, OpenBLAS's for about 20 ms: on the cores of
 * whoever comes next, where that is another process. */
static void settle(void)
{
    nanosleep(&(struct timespec){.tv_nsec = 30 * 1000 * 1000}, NULL);
}

/* The one who was timed last, to know whose threads may still spin. */
struct turn {
    const struct layer *l;
    const struct entrant *last;
};

static double take_turn(struct turn *t, struct entrant *en, int64_t calls)
{
    bool elsewhere = en->slice || (t->last && t->last->slice);
    if (t->l->cores->nr > 1 && elsewhere && t->last != en)
        settle();
    t->last = en;
    return entrant_slice(en, calls);
}

static void take_round_trip(struct turn *t, struct layer *l)
{
    if (l->cores->nr == 1)
        return;
    settle();
    t->last = NULL;
    l->trip_ns[l->nr_trips++] = round_trip_ns(l->cores->cpu[0], l->cores->cpu[1]);
}

/* The operands go once the layer is done; what was measured stays. */
static void summarise(struct entrant *en)
{
    const double *v = en->sample_ns;
    int n = en->nr_samples;
    en->median_ns = quantile(v, n, 0.5);
    en->spread = (quantile(v, n, 0.75) - quantile(v, n, 0.25)) / en->median_ns;
    if (en->free)
        en->free(en->ctx);
    en->free = NULL;
}

int layer_rounds(struct layer *l, int rounds, double slice_ns, struct err *e)
{
    struct turn turn = {.l = l};
    for (int i = 0; i < l->nr_entrants; i++)
        l->entrant[i].calls = entrant_calls(&l->entrant[i], slice_ns);
    for (int r = 0; r < rounds; r++) {
        take_round_trip(&turn, l);
        for (int j = 0; j < l->nr_entrants; j++) {
            struct entrant *en = &l->entrant[r % 2 ? l->nr_entrants - 1 - j : j];
            double ns = take_turn(&turn, en, en->calls);
            if (ns < 0)
                return err_set(e, ERR_BACKEND, "%s: %s stopped answering", l->name, en->name);
            en->sample_ns[en->nr_samples++] = ns;
        }
    }
    for (int i = 0; i < l->nr_entrants; i++)
        summarise(&l->entrant[i]);
    return 0;
}
