/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/search/strategies.h"

#include <string.h>

#include "engine/search/strategy.h"

static const struct strategy_class *const classes[] = {
    &strategy_evolutionary,
    &strategy_droplet,
    &strategy_random,
    &strategy_grid,
    &strategy_auto,
    &strategy_forest,
    &strategy_portfolio,
    &strategy_tabu,
    &strategy_annealing,
    &strategy_genetic,
    &strategy_differential,
    &strategy_swarm,
};

enum { NR_CLASSES = sizeof classes / sizeof *classes };

const struct strategy_class *strategy_at(int i)
{
    return i >= 0 && i < NR_CLASSES ? classes[i] : NULL;
}

const struct strategy_class *strategy_find(const char *name)
{
    for (int i = 0; i < NR_CLASSES; i++) {
        if (!strcmp(classes[i]->name, name))
            return classes[i];
    }
    return NULL;
}

const char *trial_status_name(enum trial_status s)
{
    static const char *const names[] = {
#define NAME(name, text) text,
        TRIAL_STATUS_LIST(NAME)
#undef NAME
    };
    return (unsigned)s < TRIAL_NR_STATUS ? names[s] : "unknown";
}

int trial_status_parse(const char *text)
{
    for (int i = 0; i < TRIAL_NR_STATUS; i++) {
        if (!strcmp(trial_status_name((enum trial_status)i), text))
            return i;
    }
    return -1;
}

const char *origin_name(enum origin o)
{
    switch (o) {
    case ORIGIN_DEFAULT:
        return "default";
    case ORIGIN_SAMPLE:
        return "sample";
    case ORIGIN_MUTATE:
        return "mutate";
    case ORIGIN_NEIGHBOUR:
        return "neighbour";
    case ORIGIN_SPECULATE:
        return "speculate";
    case ORIGIN_PAIR:
        return "pair";
    case ORIGIN_START:
        return "start";
    case ORIGIN_ENUMERATE:
        return "enumerate";
    case ORIGIN_FINAL:
        return "final";
    }
    return "unknown";
}

const char *verdict_name(enum verdict v)
{
    switch (v) {
    case VERDICT_BETTER:
        return "better";
    case VERDICT_WORSE:
        return "worse";
    case VERDICT_NOISE:
        return "noise";
    case VERDICT_FAILED:
        return "failed";
    case VERDICT_MOVED:
        return "moved";
    }
    return "unknown";
}
