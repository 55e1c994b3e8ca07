/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Canary: work of a fixed length, timed beside every measurement to see how fast the machine is.
 *
 * A chain of dependent integer operations, some 30 us of it: it touches no memory, needs one port
 * and fills no vector, so that its time is a number of cycles over the clock. It sees the clock, a
 * hypervisor that takes time away, and little else: bandwidth of memory and of shared caches not.
 */
#ifndef BACKENDS_CANARY_H
#define BACKENDS_CANARY_H

/* One run on the core of the caller; any thread. */
void canary_host(void);

#endif
