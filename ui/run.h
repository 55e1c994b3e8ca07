/* SPDX-License-Identifier: Apache-2.0 */
/* Runs a conductor on a session, and watches it: what `tune` and `resume` have in common. */
#ifndef UI_RUN_H
#define UI_RUN_H

#include "engine/base/err.h"
#include "sessions/feed.h"
#include "ui/cli.h"

/*
 * `s` is claimed, its writer not yet started; it is closed here in any case. `resuming`: go on with
 * what it holds. `device` and `tasks` belong to the caller. Returns an exit code, after the sentence.
 */
int run_session(const struct cli_options *o, struct session *s, struct device *device,
                const struct task_list *tasks, bool resuming);

/* Whose events are shown: of the conductor of this process, of one of another, or of the past. */
enum show_mode { SHOW_LIVE, SHOW_ATTACHED, SHOW_REPLAY };

/* Shows the events of `f` (taken over) on the screen or as lines. `c`, `seen` and `fail_fd` are as
 * for watch_run(); NULL, 0 and -1 where nothing is live. 0 or an error. */
int show_events(const struct cli_options *o, enum show_mode mode, struct feed *f,
                struct conductor *c, int64_t seen, int fail_fd, struct err *e);

#endif
