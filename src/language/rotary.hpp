// SPDX-License-Identifier: MIT
// How positions turn features, as config.json of Hugging Face's models says it.
#pragma once

#include "formats/json_tree.hpp"
#include "language/model_file.hpp"

namespace dlprim::language {

/// Sets what begins with `rotary`. Throws Error(format), or Error(unsupported) for a method of
/// scaling positions other than linear and Llama 3's.
void read_rotary(const JsonView& config, ModelSizes& sizes);

}  // namespace dlprim::language
