/* SPDX-License-Identifier: Apache-2.0 */
/* FNV-1a, 64 and 32 bits (Fowler, Noll, Vo). Start with HASH64_INIT / HASH32_INIT and chain. */
#ifndef ENGINE_BASE_HASH_H
#define ENGINE_BASE_HASH_H

#include <stddef.h>
#include <stdint.h>

#define HASH64_INIT UINT64_C(0xcbf29ce484222325)
#define HASH32_INIT UINT32_C(0x811c9dc5)

uint64_t hash64(uint64_t h, const void *data, size_t len);
uint32_t hash32(uint32_t h, const void *data, size_t len);

#endif
