// SPDX-License-Identifier: MIT
// What tests that read tests/cases/*.json as JSON, below the network's passes, ask of a case.
#pragma once

#include "formats/json_net.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <string>

namespace dlprim::testing {

/// A case's options, read as those of a network's file; throws Error on a kind that no option has.
inline Attrs attrs_of(const nlohmann::json& options) {
    return parse_options_json(options.dump());
}

/// Inputs of 16 bits: operators_test, which knows how they are rounded, has these cases.
inline bool has_narrow_inputs(const nlohmann::json& entry) {
    const nlohmann::json& inputs = entry.at("inputs");
    return std::any_of(inputs.begin(), inputs.end(), [](const nlohmann::json& input) {
        const std::string dtype = input.value("dtype", "float");
        return dtype == "half" || dtype == "bfloat16";
    });
}

}  // namespace dlprim::testing
