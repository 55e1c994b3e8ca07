/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Index: what the screen counts over all trials, kept up to date by looking at each trial twice: when
 * it appears and when it has ended. So a frame costs what happened since the last one, not the
 * length of the session.
 */
#ifndef UI_SCREEN_INDEX_H
#define UI_SCREEN_INDEX_H

#include "engine/tune/board.h"

enum { INDEX_GROUPS = 48, INDEX_PATTERN = 160 };

/* Failures with the same status and, but for the numbers in it, the same reason. */
struct failure_group {
    enum trial_status status;
    int64_t count, last;         /* last: the trial that failed so most recently */
    char pattern[INDEX_PATTERN]; /* the reason with # for numbers */
};

struct index {
    int64_t scanned;             /* trials seen */
    int64_t *pending;            /* of them, those that have not ended */
    int nr_pending, cap_pending;
    struct failure_group group[INDEX_GROUPS];
    int nr_groups;
    int64_t nr_other;            /* failures past the last group */

    /* Of one task, the selected. */
    int32_t task;                /* -1 for none */
    int64_t *member;             /* its trials in order: member[i] is the (i + 1)-th of the task */
    int nr_members, cap_members;
    int64_t *failed;             /* its failed trials, in the order of failing */
    int nr_failed, cap_failed;
    int64_t first_refine;        /* its first trial of refinement, 0 */
    int64_t last_ended_ns;
};

void index_init(struct index *ix);
void index_release(struct index *ix);
void index_update(struct index *ix, const struct board *b, int32_t task);

/* The number of a trial among those of the task, from 1; 0 where it is none of them. */
int index_ordinal(const struct index *ix, int64_t trial);

/* A trial that went wrong, as opposed to one that is slow. */
bool trial_failed(enum trial_status s);

#endif
