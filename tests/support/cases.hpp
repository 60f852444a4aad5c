// SPDX-License-Identifier: MIT
// The table of cases (tests/cases/*.json): one reader for all tests, and the data of cases, made
// from a seed.
#pragma once

#include "graph/operator.hpp"

#include <cstdint>
#include <random>
#include <string>
#include <vector>

namespace dlprim::testing {

/// An input or parameter of a case: its type and shape, and how it is filled.
struct CaseTensor {
    Shape shape;  ///< for parameters the operator determines it
    DType dtype = DType::f32;
    /// "normal", "uniform", "positive", "distinct", "equal"; "labels": below `classes`; "indices":
    /// those and the same counted from the end; "once": labels of which none comes twice
    std::string fill = "normal";
    double min = -1, max = 1;  ///< of "uniform"
    std::int64_t classes = 2;
};

struct Case {
    std::string file, name;  ///< "conv2d.json", "stride2"
    std::string type;
    std::string options = "{}";  ///< JSON
    std::vector<CaseTensor> inputs, params;
    bool training = false, golden = false, gradient = true, speed = false;
    /// Whether Oclgrind may get it. It computes the gradient of a pooling with windows of 4
    /// wrongly, by a kernel that is right for windows of 3 and 5, and on other devices.
    bool simulated = true;
    std::string title() const { return type + "/" + name; }
};

/// All cases of all files in `folder`, by file name. Throws std::runtime_error, which names the
/// file, on unknown contents.
std::vector<Case> load_cases(const std::string& folder);

/// Values for a tensor that its dtype can hold.
HostArray make_data(const CaseTensor& tensor, std::mt19937& random);

/// The operands of a case (inputs, then parameters) and the operator's completed options.
struct CaseData {
    Attrs attrs;
    std::vector<HostArray> inputs, params;
};

/// Throws Error if the operator refuses the case.
CaseData make_case_data(const Case& one, unsigned seed);

/// Relative L2 distance. Values that are not finite must be equal. A norm below `scale` counts as
/// `scale`, for results that are zero except for rounding.
double relative_error(const std::vector<double>& found, const std::vector<double>& wanted,
                      double scale);

}  // namespace dlprim::testing
