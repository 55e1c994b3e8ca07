/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/base/hash.h"

uint64_t hash64(uint64_t h, const void *data, size_t len)
{
    const unsigned char *p = data;
    for (size_t i = 0; i < len; i++)
        h = (h ^ p[i]) * UINT64_C(0x100000001b3);
    return h;
}

uint32_t hash32(uint32_t h, const void *data, size_t len)
{
    const unsigned char *p = data;
    for (size_t i = 0; i < len; i++)
        h = (h ^ p[i]) * UINT32_C(0x01000193);
    return h;
}
