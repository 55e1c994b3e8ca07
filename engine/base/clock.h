/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ENGINE_BASE_CLOCK_H
#define ENGINE_BASE_CLOCK_H

#include <stdint.h>

/* CLOCK_MONOTONIC in nanoseconds. */
int64_t clock_mono_ns(void);

/* CLOCK_REALTIME in nanoseconds since 1970. */
int64_t clock_wall_ns(void);

/* CPU time of the calling thread in nanoseconds. */
int64_t clock_thread_cpu_ns(void);

enum { CLOCK_TEXT = 32 };

/* "59.55 ms": four digits in the unit that suits, for sentences. `ns` is above 0. Returns `buf`. */
char *clock_text(char buf[CLOCK_TEXT], double ns);

#endif
