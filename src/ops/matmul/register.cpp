// SPDX-License-Identifier: MIT
// Registers MatMul, and the engines of matrix products for MatMul and InnerProduct.
#include "ops/matmul/engine.hpp"
#include "ops/matmul/operator.hpp"
#include "ops/matmul/wide.hpp"

namespace dlprim {

void register_matmul(OperatorRegistry& operators, EngineRegistry& engines) {
    operators.add(matmul::make_operator());
    matmul::add_small(engines);
    matmul::add_blocks_host(engines);
    matmul::add_blocks(engines);
    matmul::add_blocks_integers(engines);
    matmul::add_blocks_few(engines);
    matmul::add_blocks_group(engines);
    matmul::add_blocks_reference(engines);
    for (const char* op : {"MatMul", "InnerProduct"}) {
        matmul::add_host(engines, op);
        matmul::add_host_wide(engines, op);
        matmul::add_vector(engines, op);
        matmul::add_cache_blocked(engines, op);
        matmul::add_dot(engines, op);
        matmul::add_stored16_weights(engines, op);
        matmul::add_stored16(engines, op);
        matmul::add_planes(engines, op);
        matmul::add_split(engines, op);
        matmul::add_subgroup(engines, op);
        matmul::add_tiled(engines, op);
        matmul::add_gemv(engines, op);
        matmul::add_wide(engines, op);
        matmul::add_reference(engines, op);
    }
}

}  // namespace dlprim
