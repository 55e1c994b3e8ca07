/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Conformance: folders of ONNX's own test suite.
 *
 *   CASE/model.onnx
 *   CASE/test_data_set_N/input_M.pb, output_M.pb    tensors, N and M from 0
 *
 * A case runs as any model does: read, fused, laid out, and each call of the plan done by whoever
 * the caller names. Outputs are compared as the suite does it, |got - want| <= 1e-7 + 1e-3 |want|.
 */
#ifndef ENGINE_MODEL_CONFORMANCE_H
#define ENGINE_MODEL_CONFORMANCE_H

#include <stdbool.h>

#include "engine/base/err.h"
#include "engine/model/plan.h"

enum conformance_status { CASE_PASSED, CASE_FAILED, CASE_UNSUPPORTED };

struct conformance {
    const char *folder;
    int block;          /* of the layouts, as in model.h */
    const char *shapes; /* as in model.h */
    int runs; /* of the plan on each set of data, at least one; run(ctx, i) is called before each */
    void (*run)(void *ctx, int i);
    struct plan_runner runner;
};

/* Is there a case in this folder? */
bool conformance_is_case(const char *folder);

/* The operator it is about: of the first node that is no constant. "?" where there is none. */
void conformance_operator(const char *folder, char *out, size_t size);

/* Runs all sets of data. Unsupported: the model needs something that this program lacks. The
 * sentence tells why a case did not pass. */
enum conformance_status conformance_run(const struct conformance *c, struct err *e);

#endif
