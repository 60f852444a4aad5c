// SPDX-License-Identifier: MIT
// Activations: the table of activation functions, as expressions of the pointwise language
// (engine/pointwise/) and as OpenCL C for epilogues.
//
// Formulas and constants are PyTorch's. `alpha` and `beta` are parameters of the activations that
// have any.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace dlprim {

struct Activation {
    std::string name;        ///< "leaky_relu"
    std::string expression;  ///< in x, alpha, beta: "x > 0 ? x : alpha * x"
    std::string opencl;      ///< in v, ALPHA, BETA, for float and floatN: "fmax(v, 0.0f)"
    double alpha = 0;        ///< defaults
    double beta = 0;
    std::string processor = {};  ///< variant of `opencl` for CPUs, or empty
};

/// Throws Error(invalid_argument), with the nearest name, if there is none of this name.
const Activation& find_activation(std::string_view name);
std::vector<std::string> activation_names();
/// The value on the host in double, for oracles and host engines.
double activate(std::string_view name, double x, double alpha, double beta);
/// d activate / dx.
double activate_gradient(std::string_view name, double x, double alpha, double beta);

}  // namespace dlprim
