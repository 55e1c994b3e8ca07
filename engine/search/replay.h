/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Replay: a strategy on a space whose every candidate has been measured before, in virtual time.
 *
 * The strategy is asked for one candidate at a time and is told the recorded cost at once; the
 * clock advances by what the evaluation took when it was recorded. A candidate that failed costs
 * its time and gives no value, one that is proposed again costs nothing. The strategy's own time is
 * not counted, so that a run is a function of its seed alone; it is measured beside the clock.
 */
#ifndef ENGINE_SEARCH_REPLAY_H
#define ENGINE_SEARCH_REPLAY_H

#include <stdint.h>

#include "engine/search/score.h"
#include "engine/search/strategy.h"

struct candset;

/* A recorded space, shared by all of its runs. Build it with replay_init() and replay_add(). */
struct replay {
    const struct space *space; /* the caller's; holds exactly the candidates added */
    struct candset *set;       /* history.h; its candidates by number */
    double *value;             /* of candidate i; the smaller the better; NAN where it failed */
    double *cost_s;            /* NAN where it was not recorded: counted as the median */
    double *cost_ns;           /* what a strategy is told: positive, in the order of the values */
    int cap_value, cap_cost;
    struct score_space score;
};

void replay_init(struct replay *r, const struct space *space);
void replay_release(struct replay *r);

/* Of a candidate given twice the last values count. */
void replay_add(struct replay *r, const struct candidate *c, double value, double cost_s);

/* After the last candidate, before the first run. The errors of score_space_init(). */
int replay_ready(struct replay *r, struct err *e);

struct replay_result {
    struct score_run run;
    int evaluations; /* until the budget, the end of the strategy, or the optimum ended the run */
    int failed;      /* of these */
    int64_t strategy_ns; /* time the strategy took, of this thread's CPU */
};

/*
 * Runs until the clock passes the budget, the strategy ends, or the optimum is found, after which
 * nothing can change. Any thread. Release result->run.
 */
int replay_run(const struct replay *r, const struct strategy_class *class, uint64_t seed,
               struct replay_result *result, struct err *e);

#endif
