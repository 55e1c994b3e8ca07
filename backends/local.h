/* SPDX-License-Identifier: Apache-2.0 */
/* Local device: a backend's target built in this process and measured in its runner; implements
 * engine/tune/device.h. */
#ifndef BACKENDS_LOCAL_H
#define BACKENDS_LOCAL_H

#include "engine/base/err.h"
#include "engine/tune/device.h"

/* `target` is "NAME" or "NAME:spec". `jobs` builders are made ready lazily, one a thread. */
int local_device_open(const char *target, int threads, struct device **out, struct err *e);

#endif
