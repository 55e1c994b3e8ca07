/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Wire: what the parent and its runner say to each other, over a stream socket.
 *
 *   child:  hello     once, when it is ready or cannot be
 *   parent: request   a wire_request and the encoded artifacts one after the other; the operands'
 *                     file descriptor travels with the first byte
 *   child:  result    one for each request
 *
 * Both ends are one program, so structs are sent as they are; what the child says is still checked,
 * because a kernel may have written over it.
 *
 * Beside the socket both map the *board*, a page on which the child notes what it is doing. Where
 * it dies or hangs, the note is the only witness; a message a step would wake the parent meanwhile.
 */
#ifndef BACKENDS_WIRE_H
#define BACKENDS_WIRE_H

#include <stdatomic.h>
#include <stdint.h>

#include "engine/tune/device.h"

/* File descriptors the child finds open. */
enum { WIRE_SOCKET_FD = 3, WIRE_BOARD_FD = 4 };

enum wire_type { WIRE_HELLO = 1, WIRE_REQUEST, WIRE_RESULT };

static const uint32_t wire_magic = 0x31575153; /* "SQW1" */

struct wire_head {
    uint32_t magic;
    uint32_t type;
    uint64_t bytes; /* that follow */
};

struct wire_hello {
    int32_t ready;
    char reason[DEVICE_REASON];
};

struct wire_request {
    uint64_t operands; /* id */
    int32_t nr;
    int32_t check;
    int32_t cold;
    int64_t fill_ns, timeout_ns;
    double cut_ns;
    uint64_t artifact_bytes[DEVICE_MAX_KERNELS];
};

struct wire_result {
    int32_t status;
    int32_t nr_samples;
    int32_t checked;
    char reason[DEVICE_REASON];
    double error;
    double canary_ns[2];
    double sample_ns[DEVICE_MAX_KERNELS][TRIAL_MAX_SAMPLES];
};

enum { WIRE_MAX_REQUEST = 1 << 30 };

/* What the child is doing, and with which kernel of the request. */
enum step { STEP_IDLE, STEP_PREPARE, STEP_LOAD, STEP_WARM_UP, STEP_TIME, NR_STEPS };

struct board {
    _Atomic int step;
    _Atomic int kernel;
    _Atomic int64_t running_since; /* CLOCK_MONOTONIC of the first call; 0 before it */
};

#endif
