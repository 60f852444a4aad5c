// SPDX-License-Identifier: MIT
// What the tests of convolution's engines share: a convolution with the oracle's results, and the
// problems that it and its gradients are.
#pragma once

#include "graph/operator.hpp"
#include "ops/conv2d/options.hpp"
#include "support/engine_trials.hpp"

#include <dlprim/context.hpp>

#include <string>
#include <vector>

namespace dlprim::conv2d {

/// A convolution: sizes, random contents, rounded to those that engines see, and the oracle's
/// results.
struct Example {
    Attrs attrs;
    HostArray x, weight, bias, y, dy, dx, dweight;

    /// x and dy contain values of `dtype`.
    Example(const std::string& name, const Attrs& options, const Shape& input, unsigned seed,
            DType dtype = DType::f32);
    /// Makes y, dx and dweight, of the other arrays.
    void ask_oracle();

    Problem forward() const;
    Problem backward_data() const;
    Problem backward_filter() const;
    /// x, the weight, and the bias if there is one.
    std::vector<HostArray> operands() const;

    /// Checks the forward pass, with the weights as parameters and as constants.
    void check_forward(const Context& context) const;
};

}  // namespace dlprim::conv2d
