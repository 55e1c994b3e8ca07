/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Flow: in which layouts the activations of a session's models flow.
 *
 * By a rule, in blocks wherever an operator works on them (engine/model/layouts.c); or plain; or by
 * measured costs: regions of a model that gain by it flow plain (engine/model/regions.h). What was
 * chosen is kept with the session as a text, so that its tasks are found again without measuring:
 *
 *   plain          everything
 *   0 88:3,17-19   a line for each input with a choice: its number from 0, and the choice
 *
 * No text, as in older sessions: the rule.
 */
#ifndef UI_FLOW_H
#define UI_FLOW_H

#include "engine/base/strbuf.h"
#include "engine/model/model.h"
#include "engine/tune/device.h"
#include "ui/cli.h"

/* Completes the options of input number `input`; o->plain points into the text. `flow` may be NULL;
 * it has been checked. */
void flow_options(const char *flow, int input, struct model_options *o);

/* Is it such a text, for so many inputs? What it chooses is checked where a model is planned. */
int flow_check(const char *flow, int nr_inputs, struct err *e);

/*
 * Measures where the rule can be beaten, for some seconds, says on standard error what came of it,
 * and adds the text to `flow`: nothing where the rule stays. Models without regions measure
 * nothing. A signal stops it: ERR_INTERRUPTED. *stuck: a builder hangs in the device, which must
 * then be left alone, and the process be left by _exit() (conductor_stuck).
 */
int flow_survey(const struct cli_options *o, struct device *device, struct strbuf *flow,
                bool *stuck, struct err *e);

#endif
