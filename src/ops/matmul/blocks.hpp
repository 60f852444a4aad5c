// SPDX-License-Identifier: MIT
// BlockEngine: the base of engines for InnerProduct whose weight is stored in GGUF's blocks (option
// `blocks`), and for NormedProduct. A MatMul with the option becomes such an InnerProduct.
#pragma once

#include "engine/block_defines.hpp"
#include "ops/matmul/engine.hpp"

#include <string>
#include <string_view>
#include <utility>

namespace dlprim::matmul {

class BlockEngine : public MatMulEngine {
  public:
    explicit BlockEngine(std::string_view way, std::string_view op = "InnerProduct",
                         bool on_host = false)
        : MatMulEngine(op, way, on_host) {}
    /// Yes if the weight is in blocks, all else is float, and the epilogue adds one tensor at most.
    Verdict is_applicable(const Traits& device, const Problem& problem) const override {
        if (problem.attrs.text("blocks").empty())
            return Verdict::no("it reads weights in blocks, and this one is not");
        Problem of_floats = problem;
        for (Operand& input : of_floats.inputs)
            if (input.dtype == DType::u8) input.dtype = DType::f32;
        return MatMulEngine::is_applicable(device, of_floats);
    }

  protected:
    static const GgufType& type_of(const Problem& problem) {
        return block_type(problem.attrs.text("blocks"));
    }
    /// Binds the factors, the bias, the epilogue's operand, the result, n and k.
    static KernelCall& bind(KernelCall& call, const Problem& problem, const Gemm& g) {
        bind_factors(call, problem, g);
        bind_output(call, problem, g);
        return call.sizes({{"n", g.n}, {"k", g.k}});
    }
};

}  // namespace dlprim::matmul
