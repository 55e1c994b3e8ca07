/* SPDX-License-Identifier: Apache-2.0 */
/* What a session was made from, read back as options of the command line. */
#ifndef UI_RESTORE_H
#define UI_RESTORE_H

#include "engine/base/strbuf.h"
#include "sessions/store.h"
#include "ui/cli.h"

enum { RESTORE_TEXTS = 6 };

/* Inputs, target, threads, shapes, layouts and tasks into `o`; its other fields stay. `text` holds the
 * strings that `o` then points to. Fails where an input is gone or has changed. */
int restore_inputs(struct session *s, struct cli_options *o, struct strbuf text[RESTORE_TEXTS],
                   struct err *e);

#endif
