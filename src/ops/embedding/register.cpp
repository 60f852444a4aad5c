// SPDX-License-Identifier: MIT
// Registers Embedding, its gradient and their engines.
#include "ops/embedding/engines.hpp"
#include "ops/embedding/operators.hpp"

namespace dlprim {

void register_embedding(OperatorRegistry& operators, EngineRegistry& engines) {
    operators.add(embedding::make_forward());
    operators.add(embedding::make_backward());
    embedding::add_host_engines(engines);
    embedding::add_reference_engines(engines);
}

}  // namespace dlprim
