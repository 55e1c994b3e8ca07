/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/base/clock.h"

#include <stdio.h>
#include <time.h>

static int64_t read_clock(clockid_t id)
{
    struct timespec t;
    clock_gettime(id, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

int64_t clock_mono_ns(void)
{
    return read_clock(CLOCK_MONOTONIC);
}

int64_t clock_wall_ns(void)
{
    return read_clock(CLOCK_REALTIME);
}

int64_t clock_thread_cpu_ns(void)
{
    return read_clock(CLOCK_THREAD_CPUTIME_ID);
}

char *clock_text(char buf[CLOCK_TEXT], double ns)
{
    static const char *const units[] = {"ns", "us", "ms", "s"};
    int i = 0;
    /* 999.95 would print as "1000": it belongs to the next unit. */
    for (; i < 3 && ns >= 999.95; i++)
        ns /= 1000;
    snprintf(buf, CLOCK_TEXT, "%.4g %s", ns, units[i]);
    return buf;
}
