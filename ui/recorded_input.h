/* SPDX-License-Identifier: Apache-2.0 */
/* Recorded spaces as inputs of commands: which inputs they are, their options, and the device that
 * answers from them. */
#ifndef UI_RECORDED_INPUT_H
#define UI_RECORDED_INPUT_H

#include <stdbool.h>

#include "backends/recorded/recorded.h"
#include "backends/recorded/rules.h"
#include "engine/tune/device.h"
#include "sessions/store.h"
#include "ui/cli.h"

/* Are the inputs recorded spaces? Looks at the first one. */
bool recorded_inputs(const struct cli_options *o);

/* The constraints of the command line and of its file; release them in any case. */
int recorded_input_rules(const struct cli_options *o, struct recorded_rules *out, struct err *e);

struct recorded_options recorded_input_options(const struct cli_options *o);

/* The device and its tasks; on failure nothing is left open. */
int recorded_prepare(const struct cli_options *o, struct device **device, struct task_list *tasks,
                     struct err *e);

/* Keeps in a session what it takes to open the same spaces again. */
int recorded_store(struct session *s, const struct cli_options *o, struct err *e);
/* The same back into `o`; `text` holds what it points to. */
void recorded_restore(struct session *s, struct cli_options *o, struct strbuf text[2]);

#endif
