/* SPDX-License-Identifier: Apache-2.0 */
/* What a new session's cost model can learn from an earlier one. */
#ifndef UI_LEARN_H
#define UI_LEARN_H

#include "engine/search/cost_model.h"
#include "engine/tune/device.h"

/* Adds the trials of the session at `path`, which must have been tuned for the target of `device`.
 */
int learn_from(const char *path, struct device *device, struct lessons *out, struct err *e);

#endif
