// SPDX-License-Identifier: MIT
// Language models in GGUF files.
#pragma once

#include "language/model_file.hpp"

#include <memory>
#include <string>

namespace dlprim::language {

/// Throws what open_model() throws.
std::unique_ptr<const ModelFile> open_gguf(const std::string& path);

}  // namespace dlprim::language
