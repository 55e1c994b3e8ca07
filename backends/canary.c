/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/canary.h"

#include <stdint.h>

enum { STEPS = 30000 }; /* of a multiplication and an addition, about four cycles each */

void canary_host(void)
{
    volatile uint64_t any = 1; /* the compiler may neither know the end nor leave the way out */
    uint64_t x = any;
    for (int i = 0; i < STEPS; i++)
        x = x * UINT64_C(6364136223846793005) + 1442695040888963407; /* Knuth, MMIX */
    any = x;
}
