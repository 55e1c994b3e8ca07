/* SPDX-License-Identifier: Apache-2.0 */
/* Watching without a screen: events to lines, signals to commands. */
#ifndef UI_WATCH_H
#define UI_WATCH_H

#include <signal.h>

#include "engine/base/err.h"
#include "engine/tune/board.h"
#include "engine/tune/conductor.h"
#include "engine/tune/queue.h"
#include "ui/cli.h"

/*
 * Prints events of the queue until it is closed or the session has ended: a live one (`c`) with the
 * EV_ENDED of this run, another's when nothing follows its EV_ENDED. Events up to number `seen`, of
 * earlier runs, are not printed. `c` is NULL where nothing can be steered; else SIGINT and SIGTERM
 * stop it gracefully, a second one at once. `fail_fd` readable (-1: none) stops it, too: the
 * session cannot be stored.
 */
int watch_run(const struct cli_options *o, struct queue *events, struct conductor *c, int64_t seen,
              int fail_fd, struct board *b, struct err *e);

/*
 * Without events: a signalfd of the signals that stop a session, blocked from now on, which the
 * caller closes and unblocks (`before`); -1 and a sentence. And waiting with it until the conductor
 * has ended; signals stop it as above.
 */
int watch_signals(sigset_t *before, struct err *e);
void watch_quietly(struct conductor *c, int signals);

#endif
