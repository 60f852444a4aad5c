// SPDX-License-Identifier: MIT
// Flatten: a view of shape [N, product of the rest] of the same memory.
#include "base/text.hpp"
#include "graph/declared_operator.hpp"
#include "graph/view_operator.hpp"

namespace dlprim::flatten {

namespace {

class Flatten : public DeclaredOperator<ops::Flatten, ViewOperator> {
  public:
    Shape view(const Attrs&, const Shape& input) const override {
        require(input.rank() >= 1, "input is a scalar; Flatten needs a batch dimension");
        return {input[0], input.product(1, input.rank())};
    }
};

}  // namespace

void register_flatten(OperatorRegistry& operators, EngineRegistry&) {
    operators.add(std::make_unique<Flatten>());
}

}  // namespace dlprim::flatten
