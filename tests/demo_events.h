/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A whole session as events, made up: tasks of a small network, explored and refined, with failures,
 * noise and notes. Equal seeds give equal events; no clock, no hardware. For tests of what watches a
 * session, and for looking at the screen.
 */
#ifndef TESTS_DEMO_EVENTS_H
#define TESTS_DEMO_EVENTS_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/tune/event.h"

struct demo_options {
    uint64_t seed;
    int nr_tasks;           /* 1 .. 12 */
    int explore, refine;    /* trials a task */
    double failing;         /* share of trials that fail */
};

struct demo {
    struct event *event;
    int nr, cap;
};

void demo_init(struct demo *d, const struct demo_options *o);
void demo_release(struct demo *d);

#endif
