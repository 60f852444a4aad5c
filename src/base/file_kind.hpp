// SPDX-License-Identifier: MIT
// What a file seems to be by its first bytes, or a word by its form: for messages about files that
// are given in the place of others.
#pragma once

#include <string>
#include <string_view>

namespace dlprim {

/// "a PNG picture", "an HDF5 file (weights or data)", "an ONNX model", "JSON"; empty if the first
/// bytes are those of none that is known.
std::string_view kind_of_bytes(std::string_view bytes);

/// Whether the text is a path rather than the content of a file: it is short, has one line and none
/// of JSON's brackets, and a file of that name exists or it ends as a file's name.
bool is_path_like(std::string_view text);

/// Whether a word is a device's name by its form: cpu, gpu, gpus, opencl, or two numbers as 0:1.
bool is_device_like(std::string_view word);

/// Throws Error(format) if the bytes are those of another kind than `expected`, such as "JSON",
/// which is what the message says is expected.
void check_kind(std::string_view bytes, std::string_view name, std::string_view expected);

}  // namespace dlprim
