// SPDX-License-Identifier: MIT
// Registers MatMul and NormedProduct, and the engines of matrix products for these and
// InnerProduct.
#include "ops/matmul/engine.hpp"
#include "ops/matmul/normed.hpp"
#include "ops/matmul/operator.hpp"
#include "ops/matmul/wide.hpp"

namespace dlprim::matmul {

void register_matmul(OperatorRegistry& operators, EngineRegistry& engines) {
    operators.add(make_operator());
    operators.add(make_normed());
    add_small(engines);
    add_blocks_host(engines);
    add_blocks(engines);
    add_blocks_integers(engines);
    add_blocks_few(engines);
    add_blocks_group(engines);
    add_blocks_reference(engines);
    for (const char* op : {"MatMul", "InnerProduct"}) {
        add_host(engines, op);
        add_host_wide(engines, op);
        add_vector(engines, op);
        add_cache_blocked(engines, op);
        add_dot(engines, op);
        add_stored16_weights(engines, op);
        add_stored16(engines, op);
        add_planes(engines, op);
        add_split(engines, op);
        add_subgroup(engines, op);
        add_tiled(engines, op);
        add_gemv(engines, op);
        add_wide(engines, op);
        add_reference(engines, op);
    }
}

}  // namespace dlprim::matmul
