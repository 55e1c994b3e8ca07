/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pump: a thread that moves events from a session's feed to a queue, for a loop that watches them.
 * The source may be this process's session, a finished one, or one that another squall writes; the
 * watcher sees the same. With a speed, events are held back until their moment.
 */
#ifndef UI_PUMP_H
#define UI_PUMP_H

#include "engine/base/err.h"
#include "engine/tune/queue.h"
#include "sessions/feed.h"

struct pump;

/* Takes the feed over. `speed` 0: at once; else session time passes `speed` times as fast as the
 * clock. `follow`: more may come after the last event; otherwise the queue is closed there. */
struct pump *pump_start(struct feed *f, double speed, bool follow, struct err *e);

/* Of struct event; belongs to the pump. */
struct queue *pump_queue(struct pump *p);

/* Ends the thread and frees the feed and the queue. */
void pump_free(struct pump *p);

#endif
