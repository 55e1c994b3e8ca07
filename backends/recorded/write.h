/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Recorded spaces as other tools read them. What is written reads back as the same rows: knobs,
 * values, status, costs, samples, measurements and time stamps.
 */
#ifndef BACKENDS_RECORDED_WRITE_H
#define BACKENDS_RECORDED_WRITE_H

#include "backends/recorded/recorded.h"

/*
 *     t4    T4 results 1.0.0 (no domains, device or kernel: the format has no place for them)
 *     kt    a Kernel Tuner cachefile, one line a configuration
 *     csv   a row a configuration: knobs, status, objective, cost_s, reason, then every measurement
 *           that is one number
 *     json  all that is known of the space, as squall sees it
 */
typedef void recorded_writer(const struct recorded *r, struct strbuf *out);

/* NULL where the name is none. */
recorded_writer *recorded_writer_of(const char *format);

void recorded_write_t4(const struct recorded *r, struct strbuf *out);
void recorded_write_kt(const struct recorded *r, struct strbuf *out);
void recorded_write_csv(const struct recorded *r, struct strbuf *out);
void recorded_write_json(const struct recorded *r, struct strbuf *out);

#endif
