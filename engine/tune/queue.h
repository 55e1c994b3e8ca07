/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bounded queue of fixed-size items between threads, with an optional eventfd to wake a poll loop.
 *
 * A producer blocks while it is full, a consumer while it is empty. After queue_close() pushes are
 * refused and pops drain what is left, then say so. Wake-ups of the eventfd coalesce: it is written
 * when the queue goes from empty to not empty; the reader reads the eventfd first and then drains.
 */
#ifndef ENGINE_TUNE_QUEUE_H
#define ENGINE_TUNE_QUEUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct queue;

struct queue *queue_new(size_t item_bytes, int capacity);
void queue_free(struct queue *q);

/* False when closed. */
bool queue_push(struct queue *q, const void *item);
bool queue_try_push(struct queue *q, const void *item);

/* False when closed and empty, or (timeout_ns >= 0) when nothing came in time. */
bool queue_pop(struct queue *q, void *item, int64_t timeout_ns);
bool queue_try_pop(struct queue *q, void *item);

void queue_close(struct queue *q);

/* Closed, and everything taken out: there will be no more. */
bool queue_finished(struct queue *q);
int queue_length(struct queue *q);

/* An eventfd that becomes readable when something arrives; owned by the queue. */
int queue_fd(struct queue *q);

#endif
