/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Regions: parts of a model that could as well flow plain.
 *
 * Where an operator works on blocks its values flow in blocks (layouts.c). That is right as long as
 * blocks are passed on; between operators that only work plain, as the channel shuffles of a
 * ShuffleNet, it costs a conversion on each side. A region is a set of groups that pass values in
 * blocks to each other, and to no group outside, with conversions within the model. With the region
 * plain these are gone, and its kernels work on plain arrays: which is faster is known when the
 * kernels that differ have been measured, and then chosen for the whole region.
 *
 * A conversion at the edge of the model makes no region: that of what has not been in blocks
 * before, or will not be again. Nor do a few of them among many kernels that pass blocks on. Most
 * networks have no regions.
 *
 * A choice is a text, "88:3,17-19": of the model's 88 groups these flow plain. It ends with its
 * line. It is meaningful for the same model, read by a program that makes the same groups of it.
 */
#ifndef ENGINE_MODEL_REGIONS_H
#define ENGINE_MODEL_REGIONS_H

#include <stdbool.h>

#include "engine/base/err.h"
#include "engine/base/strbuf.h"
#include "engine/model/plan.h"

/* How much oftener a task is called with the region plain; negative: so much more seldom. */
struct region_change {
    int task, calls;
};

struct region {
    int nr_groups, *group; /* in their order */
    int nr_changes;
    struct region_change *change;
};

/* A zeroed one is valid and empty. */
struct regions {
    int nr, cap;
    struct region *region;
    int nr_groups; /* of the model */
};

/*
 * Finds the regions of a finished graph, planned as `o` says. Adds to `tasks`, which may hold some,
 * the tasks of the model and those it has with a region plain; the changes are by their numbers
 * there. The graph may be freed afterwards. Finds none on failure.
 */
int regions_find(struct regions *r, struct graph *g, const struct model_options *o,
                 struct task_list *tasks, struct err *e);
void regions_release(struct regions *r);

/* What is gained by choosing: sums over the regions chosen. */
struct regions_gain {
    int kernels; /* that flow plain */
    double blocked_ns, plain_ns;
};

/*
 * Adds the text of the choice to `text`, nothing where no region gains: a region flows plain if
 * that is faster by more than measurements vary. `cost_ns` of each task, NAN where unknown: regions
 * that need it stay in blocks. Adds to `gain`.
 */
void regions_choose(const struct regions *r, const double *cost_ns, struct strbuf *text,
                    struct regions_gain *gain);

/* Reads a choice from outside for a model of `nr_groups`, into as many flags, all false before. */
int regions_read(const char *text, int nr_groups, bool *plain, struct err *e);

#endif
