/* SPDX-License-Identifier: Apache-2.0 */
/* `--json`: every event as one JSON object on a line of its own, fields as in engine/tune/event.h. */
#ifndef UI_JSON_LINES_H
#define UI_JSON_LINES_H

#include "engine/base/strbuf.h"
#include "engine/tune/event.h"

/* Appends the line. */
void json_line(const struct event *ev, struct strbuf *out);

#endif
