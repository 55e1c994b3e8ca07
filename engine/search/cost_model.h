/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Cost model: learns the speed of candidates from those that were measured, of all tasks together.
 *
 *   add       what was measured, as it comes
 *
 *   learn     begins to learn from all of it, on a thread of its own, when it has grown by a fifth
 *             since the last time; at first when there are 32 trials
 *
 *   settle    waits for that thread; from here on predictions are by what it learned
 *
 *   recalls   says where to find what was learned before: what was learned from the very same data
 *             is taken from there in place of learning it once more
 *
 *   predict   the speed of candidates, relative to the fastest of their task
 *
 * What it learns is how far the speed is from the one that is estimated without any measurement: the
 * estimate times a factor of each task that fits it best. So a few trials correct the estimate where
 * it is wrong instead of replacing it, and before anything was learned the estimate stands for
 * itself.
 *
 * Who calls decides when to settle, by counting results and not by the clock, and so decisions stay
 * a function of the results. After MetaSchedule's (xgb_model.py): labels, loss and the rule of a
 * fifth are its own. Different here: failed and slow trials weigh something, so that the search
 * learns to leave them alone; and what it learns is the difference to an estimate.
 *
 * One thread uses it.
 */
#ifndef ENGINE_SEARCH_COST_MODEL_H
#define ENGINE_SEARCH_COST_MODEL_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/base/err.h"
#include "engine/base/strbuf.h"
#include "engine/search/strategy.h"

struct cost_model;

/* Trials of other sessions, for a model to begin with. */
struct lesson {
    int task, nr_rows; /* tasks are numbered over all of them */
    double cost_ns;    /* INFINITY where it failed */
    float (*row)[FEATURES];
};
struct lessons {
    struct lesson *v;
    int nr, cap;
};

/* Rows are copied. */
void lessons_add(struct lessons *l, int task, const float (*row)[FEATURES], int nr_rows,
                 double cost_ns);
void lessons_release(struct lessons *l);

/* What was learned, when it comes into use. */
struct cost_model_news {
    int nr;           /* trials learned from */
    int64_t train_ns; /* time of the thread */
    int nr_pairs;     /* pairs of trials of one task that came since the model before, and of these
                         the share that it had put into the right order; 0 where there are none */
    double right;
    uint64_t data;      /* names what it was learned from: all that was added, and what became of it */
    bool recalled;      /* it was not learned now */
    struct err refused; /* code < 0: it was found, but could not be read, and so was learned anew */
};

/* NULL with a sentence where this build has no cost model. */
struct cost_model *cost_model_new(struct err *e);
void cost_model_free(struct cost_model *m); /* waits for its thread; NULL is fine */

/* From now on cost_model_learn() asks `find` first: true where it appended to `out` what
 * cost_model_write() once wrote of what was learned from this `data`. The bytes are not trusted. */
void cost_model_recalls(struct cost_model *m,
                        bool (*find)(void *ctx, uint64_t data, struct strbuf *out), void *ctx);

/* What is to be learned of a trial: the search's estimator; of a cut one, the sample that made it be
 * cut; INFINITY of a failed one; NAN where it says nothing about the candidate. */
double cost_model_cost(enum trial_status status, double cost_ns, int nr_samples,
                       const double *sample_ns);

/* A trial of a task; cost_ns is INFINITY where it failed. Rows are copied. */
void cost_model_add(struct cost_model *m, int task, const float (*row)[FEATURES], int nr_rows,
                    double cost_ns);

/* True where it began to learn, or recalled. */
bool cost_model_learn(struct cost_model *m);

/* False where it was not learning, or could not (`e` says why). `news` may be NULL. */
bool cost_model_settle(struct cost_model *m, struct cost_model_news *news, struct err *e);

/* What it predicts by, appended to `out`; nothing where it has learned nothing. */
void cost_model_write(const struct cost_model *m, struct strbuf *out);

/* The estimated cost of a candidate with these features, above 0. */
double cost_model_estimate(const float (*row)[FEATURES], int nr_rows);

/* How many trials it has. */
int cost_model_size(const struct cost_model *m);

/* Speeds of candidates of a task, all of whose sketches have features; in [0, 1], higher is faster. */
void cost_model_predict(struct cost_model *m, int task, const struct space *s,
                        const struct candidate *c, int nr, double *out);

#endif
