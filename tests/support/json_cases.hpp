// SPDX-License-Identifier: MIT
// For tests that read tests/cases/*.json as JSON, below the network's passes.
#pragma once

#include "formats/json_net.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <string>

namespace dlprim::testing {

/// A case's options, parsed like those of a network file. Throws Error on a kind that no option
/// has.
inline Attrs attrs_of(const nlohmann::json& options) {
    return parse_options_json(options.dump());
}

/// Whether a case has 16-bit inputs. Such cases are tested by operators_test, which knows their
/// rounding.
inline bool has_narrow_inputs(const nlohmann::json& entry) {
    const nlohmann::json& inputs = entry.at("inputs");
    return std::any_of(inputs.begin(), inputs.end(), [](const nlohmann::json& input) {
        const std::string dtype = input.value("dtype", "float");
        return dtype == "half" || dtype == "bfloat16";
    });
}

}  // namespace dlprim::testing
