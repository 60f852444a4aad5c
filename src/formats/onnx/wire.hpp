// SPDX-License-Identifier: MIT
// Checks the outermost protobuf fields of a file before protobuf parses it. protobuf does not say
// why it rejects a file; this check does, and it recognises messages that are no ONNX models.
#pragma once

#include <string>
#include <string_view>

namespace dlprim::onnx {

/// Throws Error(format), which begins "'<source>'", where the bytes are no protobuf message, are
/// cut short, or hold a message without a model's graph.
void check_message(std::string_view bytes, const std::string& source);

}  // namespace dlprim::onnx
