// SPDX-License-Identifier: MIT
// The operator Pad; operator.cpp has its shapes and gradient, oracle.cpp its oracle.
#pragma once

#include "graph/operator.hpp"
#include "ops/pad/options.hpp"

namespace dlprim::pad {

class Pad : public Operator {
  public:
    std::string_view type() const override { return "Pad"; }
    FloatTypes float_types(const Attrs& attrs) const override {
        return attrs.text("mode") == "constant" ? FloatTypes::all : FloatTypes::single;
    }
    const Schema& schema() const override;
    std::vector<TensorSpec> infer(const Attrs& attrs,
                                  std::span<const TensorSpec> inputs) const override;
    bool differentiable() const override { return true; }
    void gradient(GradientContext& context) const override;
    void oracle(OracleCall& call) const override;
    void oracle_backward(OracleBackwardCall& call) const override;
};

std::unique_ptr<Operator> make_operator();
std::unique_ptr<Operator> make_backward();

}  // namespace dlprim::pad
