// SPDX-License-Identifier: MIT
// The operator Pad; operator.cpp has its shapes and gradient, oracle.cpp its oracle.
#pragma once

#include "engine/engine.hpp"
#include "graph/declared_operator.hpp"
#include "ops/pad/options.hpp"

namespace dlprim::pad {

class Pad : public DeclaredOperator<ops::Pad> {
  public:
    FloatTypes float_types(const Attrs& attrs) const override {
        return attrs.text("mode") == "constant" ? FloatTypes::all : FloatTypes::single;
    }
    std::vector<TensorSpec> infer(const Attrs& attrs,
                                  std::span<const TensorSpec> inputs) const override;
    bool differentiable() const override { return true; }
    void gradient(GradientContext& context) const override;
    void oracle(OracleCall& call) const override;
    void oracle_backward(OracleBackwardCall& call) const override;
};

// Each function registers the engines of one file.
void add_gather_engine(EngineRegistry& engines);       ///< gather.cpp
void add_gather_host_engine(EngineRegistry& engines);  ///< gather_host.cpp

}  // namespace dlprim::pad
