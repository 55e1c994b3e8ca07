/* SPDX-License-Identifier: Apache-2.0 */
/* The caches of the processor. */
#ifndef ENGINE_BASE_CPU_CACHE_H
#define ENGINE_BASE_CPU_CACHE_H

#include <stdint.h>

/*
 * Bytes of the last-level cache of the first core, as Linux tells it (/sys/devices/system/cpu); 32 MiB
 * where it does not. sysconf() is no substitute: in a virtual machine it adds up the host's. Any
 * thread.
 */
int64_t cpu_last_cache_bytes(void);

#endif
