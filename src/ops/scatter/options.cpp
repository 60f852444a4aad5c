// SPDX-License-Identifier: MIT
// Scatter's options; see options.hpp.
#include "ops/scatter/options.hpp"

#include "base/schema.hpp"
#include "base/text.hpp"

#include <dlprim/op_options.hpp>

namespace dlprim::scatter {

Reduction reduction_of(const Attrs& attrs) {
    return chosen<Reduction, &ops::Scatter::reduction>(attrs);
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
