// SPDX-License-Identifier: MIT
// Scatter's options; see options.hpp.
#include "ops/scatter/options.hpp"

#include "base/text.hpp"

namespace dlprim::scatter {

Reduction reduction_of(const Attrs& attrs) {
    const std::string& name = attrs.text("reduction");
    if (name == "add") return Reduction::add;
    if (name == "mul") return Reduction::mul;
    if (name == "max") return Reduction::max;
    if (name == "min") return Reduction::min;
    if (name == "mean") return Reduction::mean;
    require(name == "none", "reduction '", name, "' is not one of none, add, mul, max, min, mean");
    return Reduction::none;
}

Operands::Operands(const Problem& problem)
    : has_data(problem.inputs.size() == 3),
      indices(has_data ? 1 : 0),
      updates(indices + 1),
      result(updates + 1),
      reduction(reduction_of(problem.attrs)),
      includes_self(problem.attrs.boolean("include_self")),
      indexing(problem.attrs, problem.outputs[0].shape,
               problem.inputs[static_cast<std::size_t>(indices)].shape,
               problem.inputs[static_cast<std::size_t>(indices)].dtype) {}

}  // namespace dlprim::scatter
