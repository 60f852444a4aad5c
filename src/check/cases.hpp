// SPDX-License-Identifier: MIT
// Cases: small problems of operators, as the table in tests/cases has them. Those that it marks for
// the self-test are built into the library.
#pragma once

#include "check/fill.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace dlprim {

/// An operator with its options and inputs.
struct Case {
    std::string file, name;  ///< "conv2d.json", "stride2"
    std::string type;
    std::string options = "{}";              ///< JSON
    std::vector<CaseTensor> inputs, params;  ///< the operator determines the shapes of parameters
    bool training = false, golden = false, gradient = true, speed = false;
    /// Whether Oclgrind may get it. It computes the gradient of a pooling with windows of 4
    /// wrongly, by a kernel that is right for windows of 3 and 5, and on other devices.
    bool simulated = true;
    bool self_test = false;  ///< whether the library's self-test has it
    std::string title() const { return type + "/" + name; }
};

/// Reads a file of the table. Throws Error, which names `file`, on unknown contents.
std::vector<Case> read_cases(std::string_view json, const std::string& file);

/// The cases that are built into the library.
const std::vector<Case>& embedded_cases();

/// Their text (generated: cmake/EmbedCases.cmake).
extern const char* const embedded_cases_json;

/// The operands of a case and the operator's completed options.
struct CaseData {
    Attrs attrs;
    std::vector<HostArray> inputs, params;

    std::vector<HostArray> operands() const;  ///< inputs, then parameters
    std::vector<TensorSpec> specs() const;    ///< of these
};
/// The same in every run. Throws Error if the operator refuses the case.
CaseData make_case_data(const Case& one, unsigned seed);
/// The seed of a case's data, which does not depend on other cases.
unsigned seed_of(const Case& one);

/// The seed and step that random operators get in the cases.
inline constexpr std::uint64_t call_seed = 5, call_step = 3;

/// The oracle's results.
struct Expected {
    std::vector<HostArray> outputs, output_gradients, gradients;
    std::vector<HostArray> terms;  ///< of gradients: see OracleBackwardCall
    std::vector<std::pair<int, HostArray>> updated;

    /// What the error of a gradient is relative to, at the least. The error of a float sum is
    /// proportional to its terms, not to what remains if they cancel.
    double least_norm(std::size_t gradient) const;
};
/// Includes gradients if the case has them. Output gradients are made from the seed after `seed`.
Expected ask_oracle(const Case& one, const CaseData& data, unsigned seed);
/// The gradients of a case's outputs.
std::vector<HostArray> output_gradients_of(const Case& one, const CaseData& data, unsigned seed);

}  // namespace dlprim
