// SPDX-License-Identifier: MIT
// Registers Embedding, its gradient and their engines.
#include "ops/embedding/operators.hpp"

namespace dlprim {

void register_embedding() {
    OperatorRegistry::instance().add(embedding::make_forward());
    OperatorRegistry::instance().add(embedding::make_backward());
    embedding::add_host_engines();
    embedding::add_reference_engines();
}

}  // namespace dlprim
