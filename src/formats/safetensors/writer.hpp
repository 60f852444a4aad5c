// SPDX-License-Identifier: MIT
// Writing of files of the format safetensors (formats/safetensors/file.hpp has it).
#pragma once

#include "formats/float_tensors.hpp"

#include <string>

namespace dlprim {

/// Writes the file whole or not at all. Throws Error(io), and what `read` throws.
void write_safetensors(const std::string& path, const FloatTensors& contents);

}  // namespace dlprim
