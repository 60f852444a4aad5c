// SPDX-License-Identifier: MIT
// Registers MatMul, and the engines of matrix products for MatMul and InnerProduct.
#include "ops/matmul/engine.hpp"
#include "ops/matmul/operator.hpp"

namespace dlprim {

void register_matmul() {
    OperatorRegistry::instance().add(std::make_unique<matmul::Operator>());
    for (const char* op : {"MatMul", "InnerProduct"}) {
        matmul::add_host(op);
        matmul::add_vector(op);
        matmul::add_dot(op);
        matmul::add_wgmma_half(op);
        matmul::add_wgmma_direct(op);
        matmul::add_wgmma_split(op);
        matmul::add_subgroup(op);
        matmul::add_tiled(op);
        matmul::add_gemv(op);
        matmul::add_reference(op);
    }
}

}  // namespace dlprim
