/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Child: the runner process as its parent holds it: start it, send, wait for a message, end it and
 * say how it died.
 */
#ifndef BACKENDS_CHILD_H
#define BACKENDS_CHILD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "backends/runner.h"
#include "backends/wire.h"
#include "engine/base/strbuf.h"

struct child {
    pid_t pid;  /* 0: there is none */
    int pid_fd; /* readable when it has died; -1 where the kernel has no such thing */
    int sock;
    int err_fd;      /* its standard error */
    char tail[2048]; /* the last of what it said there */
    size_t tail_len;
    struct {
        struct wire_head head;
        union {
            struct wire_hello hello;
            struct wire_result result;
        };
    } in;          /* the message being received */
    size_t in_len; /* bytes of it that are here */
};

enum child_event {
    CHILD_MESSAGE, /* in child.in */
    CHILD_SENT,
    CHILD_GONE,        /* it died, or closed its end */
    CHILD_NONSENSE,    /* what it sent is no message */
    CHILD_LATE,        /* the deadline has passed */
    CHILD_INTERRUPTED, /* interrupt_fd is readable */
};

/* Starts it; it says hello when it is ready. It is killed when the calling *thread* ends (that is
 * how the kernel understands the death of a parent): see child_is_alive(). */
int child_start(struct child *c, const struct runner_options *o, int board_fd, struct err *e);

/* False where it died since it was last talked to. */
bool child_is_alive(const struct child *c);

/* Sends all of `msg`, with `fd` beside the first byte. */
enum child_event child_send(struct child *c, const struct strbuf *msg, int fd, int interrupt_fd,
                            int64_t deadline_ns);

/* Waits for a message of `type`. After CHILD_LATE it can be called again to wait longer. */
enum child_event child_receive(struct child *c, enum wire_type type, int interrupt_fd,
                               int64_t deadline_ns);

/* Ends it, at once or after `grace_ns` in which it may end by itself, and everything it started.
 * `how` (may be NULL) gets how it ended in words: "killed by SIGSEGV (invalid memory access)",
 * "exited with code 3: last line of its standard error". */
void child_end(struct child *c, int64_t grace_ns, struct strbuf *how);

/* Replaces what is not printable ASCII: text from the child goes to a terminal. */
void child_clean_text(char *text);

#endif
