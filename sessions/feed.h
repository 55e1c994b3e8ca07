/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Feed: the events of a session in order, for whoever watches.
 *
 * The same call serves a live session (its writer's hand-over, and the file where that left a gap),
 * one that another squall runs (the file as it grows), and a finished one (the file). Between two
 * calls no read transaction is open, so that a slow watcher does not keep the log from shrinking.
 * Owned and used by one thread.
 */
#ifndef SESSIONS_FEED_H
#define SESSIONS_FEED_H

#include "sessions/store.h"

struct feed;

/* From the file, beginning with the event after `seq`. */
int feed_open(const char *path, int64_t seq, struct feed **out, struct err *e);

/* Of a session that this process runs; free it before the session is closed. */
int feed_live(struct session *s, int64_t seq, struct feed **out, struct err *e);
void feed_free(struct feed *f);

/* 1 and the next event; 0 none yet; or an error. */
int feed_next(struct feed *f, struct event *ev, struct err *e);

/* Goes on with the event after `seq`, earlier or later. */
void feed_seek(struct feed *f, int64_t seq);

/* Readable when a live session has more: feed_next() until 0, which silences it. -1 of a file: ask
 * again after a while. */
int feed_fd(struct feed *f);

#endif
