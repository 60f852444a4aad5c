// SPDX-License-Identifier: MIT
// The table of cases (tests/cases/*.json): one reader for all tests, and the data that cases are
// tried on, made from a seed.
#pragma once

#include "graph/operator.hpp"

#include <cstdint>
#include <random>
#include <string>
#include <vector>

namespace dlprim::testing {

/// An input or parameter of a case: what it looks like and what it is filled with.
struct CaseTensor {
    Shape shape;  ///< of a parameter: left to the operator
    DType dtype = DType::f32;
    std::string fill =
        "normal";              ///< "normal", "uniform", "positive", "distinct", "equal", "labels"
    double min = -1, max = 1;  ///< of "uniform"
    std::int64_t classes = 2;  ///< of "labels"
};

struct Case {
    std::string file, name;  ///< "conv2d.json", "stride2"
    std::string type;
    std::string options = "{}";  ///< JSON
    std::vector<CaseTensor> inputs, params;
    bool training = false, golden = false, gradient = true, speed = false;
    std::string title() const { return type + "/" + name; }
};

/// All cases of all files of `folder`, by file name. Throws std::runtime_error that names the file
/// on what it does not know.
std::vector<Case> load_cases(const std::string& folder);

/// Values for a tensor, such as its dtype can hold.
HostArray make_data(const CaseTensor& tensor, std::mt19937& random);

/// The operands of a case, inputs then parameters, and the operator's completed options.
struct CaseData {
    Attrs attrs;
    std::vector<HostArray> inputs, params;
};

/// Throws Error where the operator refuses the case.
CaseData make_case_data(const Case& one, unsigned seed);

/// Relative L2 distance. Values that are not finite must be equal. `scale`: what a norm below it
/// counts as, for results that are zero but for rounding.
double relative_error(const std::vector<double>& found, const std::vector<double>& wanted,
                      double scale);

}  // namespace dlprim::testing
