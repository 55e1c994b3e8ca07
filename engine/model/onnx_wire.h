/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Unpacking of foreign files: a look at the wire format before it, since the unpacker recurses with
 * the nesting of messages, and a file decides how deep that is; and a limit of its memory, since an
 * empty message of two bytes becomes a struct of hundreds.
 */
#ifndef ENGINE_MODEL_ONNX_WIRE_H
#define ENGINE_MODEL_ONNX_WIRE_H

#include <stdbool.h>
#include <stddef.h>

#include <protobuf-c/protobuf-c.h>

/* Are all messages that can contain themselves well-formed, and nested less than 32 deep? */
bool onnx_wire_is_sound(const void *data, size_t size);

/* The unpacked message, to be freed by its free_unpacked() with NULL for the allocator; NULL where it
 * is damaged or would take too much memory. */
void *onnx_unpack(const ProtobufCMessageDescriptor *type, const void *data, size_t size);

#endif
