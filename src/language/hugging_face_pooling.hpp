// SPDX-License-Identifier: MIT
// How the folder of an encoder says that tokens become a text's embedding: modules.json and what it
// names, as the package sentence-transformers writes them.
#pragma once

#include "language/model_file.hpp"

#include <string>

namespace dlprim::language {

/// The mean over all tokens if the folder does not say. Throws Error(format), or Error(unsupported)
/// for another way, and for modules behind the pooling other than a normalisation.
Pooling read_pooling(const std::string& folder);

}  // namespace dlprim::language
