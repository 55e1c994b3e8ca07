/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Spool: events that wait while the view is frozen, packed to the bytes their kind uses.
 *
 * The queue is drained all the same, or the conductor would wait for the person to thaw the view.
 */
#ifndef UI_LOOP_H
#define UI_LOOP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/tune/event.h"

struct spool {
    unsigned char *buf;
    size_t head, len, cap;
    int64_t nr;
};

void spool_release(struct spool *s);
/* False when the spool is full: the view thaws then. */
bool spool_push(struct spool *s, const struct event *ev);
bool spool_pop(struct spool *s, struct event *ev);

#endif
