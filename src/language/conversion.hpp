// SPDX-License-Identifier: MIT
// What conversions of language models to GGUF files and to folders share.
#pragma once

#include "language/architecture.hpp"
#include "language/model_file.hpp"

#include <memory>
#include <set>
#include <string>

namespace dlprim::language {

/// The model of a path, with the adapter of that folder added to its weights unless it is empty.
std::shared_ptr<const ModelFile> open_with_adapter(const std::string& model,
                                                   const std::string& adapter);

/// The weights that the model's network has, each once.
std::set<std::string> weights_of(const ModelFile& file, const ModelSizes& sizes,
                                 const Architecture& architecture);

}  // namespace dlprim::language
