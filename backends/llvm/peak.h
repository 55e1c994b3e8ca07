/* SPDX-License-Identifier: Apache-2.0 */
#ifndef BACKENDS_LLVM_PEAK_H
#define BACKENDS_LLVM_PEAK_H

#include <llvm-c/TargetMachine.h>

/* Most GFLOP/s of one core of this machine in float32 multiply-adds, measured in some milliseconds
 * with a loop of independent vectors in registers; 0 where it could not be. The machine must be one
 * for this processor. Not thread-safe. */
double measure_peak_gflops(LLVMTargetMachineRef machine, const char *cpu, const char *features,
                           int lanes, int registers);

#endif
