// SPDX-License-Identifier: MIT
// The built-in cases of the self-test: small problems of every operator, of which each engine
// supports some.
#pragma once

#include "graph/operator.hpp"

#include <cstdint>
#include <random>
#include <vector>

namespace dlprim {

/// An input or parameter of a case, and how it is filled.
struct SelfTestTensor {
    Shape shape = {};  ///< of parameters the operator determines it
    DType dtype = DType::f32;
    /// "normal", "uniform", "positive", "distinct"; "labels": class numbers below `classes`;
    /// "indices": those and the same counted from the end; "once": labels, none of them twice
    const char* fill = "normal";
    double min = -1, max = 1;  ///< of "uniform"
    std::int64_t classes = 2;
};

struct SelfTestProblem {
    const char* type;
    const char* name;
    const char* options;  ///< JSON
    std::vector<SelfTestTensor> inputs, params;
    bool training = false;
    bool gradient = true;
};

const std::vector<SelfTestProblem>& self_test_problems();

/// Values for a tensor that its type can hold. They depend on the state of `random` alone.
HostArray self_test_data(const SelfTestTensor& tensor, std::mt19937& random);

}  // namespace dlprim
