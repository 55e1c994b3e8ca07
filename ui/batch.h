/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `--batch`: one line an event, and a table at the end.
 *
 * The lines are stable; new fields come at their end. All begin with the session's active time and
 * a word of seven columns:
 *
 *   [   12.3s] session  net.onnx on llvm:cpu=znver4, ...
 *   [   12.3s] task     NAME  WORKLOAD  weight W  SPACE candidates
 *   [   12.3s] phase    NAME  PHASE  STRATEGY  budget N
 *   [   12.3s] trial      57  NAME  explore  evolutionary  ok  1.234 ms (188 GFLOP/s)  best 1.1 ms
 *   [   12.3s] trial      58  NAME  explore  evolutionary  crashed  signal 11
 *   [   12.3s] best       57  NAME  explore  1.100 ms (210 GFLOP/s)  2.13x
 *   [   12.3s] result   NAME  default 2.345 ms  explored 1.100 ms  refined 0.998 ms  2.35x
 *   [   12.3s] note     TEXT            (warning and error stand in front of it)
 *   [   12.3s] command  VERB  TEXT
 *   [   12.3s] ended    finished: WHY
 *
 * NAME is padded to the longest name of the session, 48 columns at most. What is told of a trial
 * before it ends, knobs, decisions and usage have no line.
 */
#ifndef UI_BATCH_H
#define UI_BATCH_H

#include "engine/base/strbuf.h"
#include "engine/tune/board.h"

/* Appends the line of an event that was just applied to the board; nothing for a quiet one. */
void batch_line(const struct board *b, const struct event *ev, struct strbuf *out);

/* Appends the table of what the session found, in at most `cols` columns (80 or more). */
void batch_table(const struct board *b, int cols, struct strbuf *out);

/* Its line of the model alone: the sums of the three stages. */
void batch_model(const struct board *b, struct strbuf *out);

/* Its first part alone, of the tasks whose name matches (NULL: all, and their sum). */
void batch_tasks(const struct board *b, const char *glob, int cols, struct strbuf *out);

#endif
