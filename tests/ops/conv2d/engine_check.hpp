// SPDX-License-Identifier: MIT
// What the tests of convolution's engines share: a convolution with its results by the oracle, and
// a check of all engines of a device that apply to a problem. Other layouts are made by the Reorder
// engines.
#pragma once

#include "engine/engine.hpp"
#include "ops/conv2d/operators.hpp"
#include "ops/conv2d/options.hpp"
#include "support/turns.hpp"

#include <dlprim/context.hpp>
#include <dlprim/tensor.hpp>

#include <random>
#include <string>
#include <string_view>
#include <vector>

namespace dlprim::conv2d {

/// One convolution: sizes and random contents, rounded to float as the engines see them, and what
/// the oracle makes of them.
struct Example {
    std::string name;
    Attrs attrs;
    HostArray x, weight, bias, y, dy, dx, dweight;

    /// x and dy are values of `dtype`.
    Example(std::string title, const Attrs& options, const Shape& input, unsigned seed,
            DType dtype = DType::f32);

    static HostArray array(const Shape& shape, std::mt19937& random, DType dtype = DType::f32);
};

/// At an offset in a larger tensor.
Tensor upload(const Context& context, const HostArray& array, DType dtype = DType::f32);

Problem problem_of(const char* op, const Attrs& attrs, const std::vector<Shape>& inputs,
                   const Shape& output);
/// The attributes of a gradient's problem, of those of the convolution.
Attrs gradient_attrs(const Attrs& attrs, const char* name, const Shape& shape);

/// Runs the problem by every engine of the context's device and checks the first output. `only`: by
/// those with this in their names, whoever's turn it is.
void check(const Context& context, Problem problem, const std::vector<Tensor>& inputs,
           const std::vector<double>& wanted, bool all_tunings = false, std::string_view only = {});
/// Forward, in inference and in training, and both gradients.
void check(const Context& context, const Example& example);

/// Which engines had their turn in check().
testing::Turns& turns();

}  // namespace dlprim::conv2d
