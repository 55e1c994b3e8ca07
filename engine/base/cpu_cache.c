/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/base/cpu_cache.h"

#include <stdio.h>

static int64_t cache_bytes(int index)
{
    char path[80], unit = 0;
    long long size = 0;
    snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu0/cache/index%d/size", index);
    FILE *f = fopen(path, "r");
    if (!f)
        return 0;
    int nr = fscanf(f, "%lld%c", &size, &unit);
    fclose(f);
    if (nr < 1 || size <= 0 || size > 1 << 24)
        return 0;
    return size << (nr > 1 && unit == 'K' ? 10 : nr > 1 && unit == 'M' ? 20 : 0);
}

int64_t cpu_last_cache_bytes(void)
{
    int64_t most = 0;
    for (int i = 0; i < 8; i++) {
        int64_t bytes = cache_bytes(i);
        most = bytes > most ? bytes : most;
    }
    return most ? most : INT64_C(32) << 20;
}
