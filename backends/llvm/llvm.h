/* SPDX-License-Identifier: Apache-2.0 */
/* The llvm backend: loop programs compiled by LLVM in builder threads, linked by ORC in the runner.
 * Target specification: "cpu=NAME" (as llc -mcpu; default: this machine). */
#ifndef BACKENDS_LLVM_LLVM_H
#define BACKENDS_LLVM_LLVM_H

#include "backends/backend.h"

extern const struct backend llvm_backend;

#endif
