// SPDX-License-Identifier: MIT
// A look at a file's outermost protobuf fields, before protobuf reads it: what is wrong with a file
// that protobuf refuses, and whether it is an ONNX model at all. protobuf itself only says no.
#pragma once

#include <string>
#include <string_view>

namespace dlprim::onnx {

/// Throws Error(format), which begins "'<source>'", where the bytes are no protobuf message, are
/// cut short, or hold a message without a model's graph.
void check_message(std::string_view bytes, const std::string& source);

}  // namespace dlprim::onnx
