/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A look at the wire format of an ONNX file before it is unpacked: the unpacker recurses with the
 * nesting of messages, and a file decides how deep that is.
 */
#ifndef ENGINE_MODEL_ONNX_WIRE_H
#define ENGINE_MODEL_ONNX_WIRE_H

#include <stdbool.h>
#include <stddef.h>

/* Are all messages that can contain themselves well-formed, and nested less than 32 deep? */
bool onnx_wire_is_sound(const void *data, size_t size);

#endif
