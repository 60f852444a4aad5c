// SPDX-License-Identifier: MIT
// What the tests of convolution's engines share: a convolution with the oracle's results, and a
// check of all engines of a device that apply to a problem. Reorder engines make the other layouts.
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

/// A convolution: sizes, random contents, rounded to float as engines see them, and the oracle's
/// results.
struct Example {
    std::string name;
    Attrs attrs;
    HostArray x, weight, bias, y, dy, dx, dweight;

    /// x and dy contain values of `dtype`.
    Example(std::string title, const Attrs& options, const Shape& input, unsigned seed,
            DType dtype = DType::f32);

    static HostArray array(const Shape& shape, std::mt19937& random, DType dtype = DType::f32);
};

/// Uploads the array at an offset in a larger tensor.
Tensor upload(const Context& context, const HostArray& array, DType dtype = DType::f32);

Problem problem_of(const char* op, const Attrs& attrs, const std::vector<Shape>& inputs,
                   const Shape& output);
/// The attributes of a gradient's problem, made from those of the convolution.
Attrs gradient_attrs(const Attrs& attrs, const char* name, const Shape& shape);

/// Runs the problem with every engine of the context's device and checks the first output. With
/// `only`, runs the engines whose name contains it, in every call.
void check(const Context& context, Problem problem, const std::vector<Tensor>& inputs,
           const std::vector<double>& wanted, bool all_tunings = false, std::string_view only = {});
/// Checks the forward pass, in inference and in training, and both gradients.
void check(const Context& context, const Example& example);

/// Which engines check() has run.
testing::Turns& turns();

}  // namespace dlprim::conv2d
