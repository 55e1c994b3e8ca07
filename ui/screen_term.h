/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Terminal: opens curses, reads keys, and gives the terminal back on every way out.
 *
 * Signals are blocked in the main thread but for the time it waits in term_wait(), so that none is
 * lost between looking and waiting and no handler runs inside curses. The terminal is raw: Ctrl-C
 * is a key and reaches this process alone, not the runner that is measuring.
 *
 * What anything writes to the error stream while the screen is up goes to a pipe and is shown by
 * the screen, not through it; where the error stream is not the terminal it is left alone.
 */
#ifndef UI_SCREEN_TERM_H
#define UI_SCREEN_TERM_H

#include <poll.h>
#include <stdbool.h>
#include <stdint.h>

#include "engine/base/err.h"
#include "ui/screen.h"

enum term_signal {
    TERM_STOP = 1,      /* SIGINT, SIGTERM */
    TERM_HANGUP = 2,    /* SIGHUP */
    TERM_SUSPEND = 4,   /* SIGTSTP */
    TERM_CONTINUED = 8, /* SIGCONT: the terminal may have been another's meanwhile */
};

/* There is one terminal: one at a time may be open. */
int term_open(const struct screen_options *o, struct theme *t, struct err *e);
void term_close(void);

/* The error stream's pipe, -1 for none. */
int term_log_fd(void);

/* poll() with the signals let in; timeout_ns < 0 waits for ever. Returns the bits of term_signal. */
unsigned term_wait(struct pollfd *fds, int nr, int64_t timeout_ns);

/* The next key (keys.h), UK_NONE when there is none. */
int term_key(void);

/* Gives the terminal back, stops the process (with its group: the job), takes it again. */
void term_suspend(bool group);
void term_repaint(void);

#endif
