// SPDX-License-Identifier: MIT
// Rotary embeddings in config.json: the base, the share of features, and methods of scaling.
#include "language/rotary.hpp"

#include "base/text.hpp"

#include <cmath>
#include <numbers>

namespace dlprim::language {

namespace {

double positive(const JsonView& view) {
    const double value = view.number();
    if (!(value > 0 && value < 1e30)) view.fail(cat("is ", value, ", and must be above 0"));
    return value;
}

/// Llama 3's method: slow angles are divided by a factor, fast ones stay, and those between get a
/// mixture of both.
void set_llama3(const JsonView& how, ModelSizes& sizes) {
    const double factor = positive(how.at("factor")), low = positive(how.at("low_freq_factor")),
                 high = positive(how.at("high_freq_factor")),
                 context = positive(how.at("original_max_position_embeddings"));
    if (high <= low) how.fail("has a high_freq_factor that is not above low_freq_factor");
    for (std::int64_t pair = 0; pair < sizes.rotary / 2; ++pair) {
        const double exponent = 2 * static_cast<double>(pair) / static_cast<double>(sizes.rotary);
        const double length = 2 * std::numbers::pi * std::pow(sizes.rotary_base, exponent);
        const double turns = context / length;
        const double share = std::min(1.0, std::max(0.0, (turns - low) / (high - low)));
        sizes.rotary_factors.push_back(static_cast<float>(1 / ((1 - share) / factor + share)));
    }
}

}  // namespace

void read_rotary(const JsonView& config, ModelSizes& sizes) {
    // Newer files have all in rope_parameters, older ones the base beside rope_scaling.
    std::optional<JsonView> how = config.find_value("rope_parameters");
    if (!how) how = config.find_value("rope_scaling");
    // Layers with a window may have a base of their own.
    std::optional<JsonView> windowed = config.find_value("rope_local_base_freq");
    if (const auto all = how ? how->find_value("full_attention") : std::nullopt) {
        const std::optional<JsonView> own = how->find_value("sliding_attention");
        windowed = own ? own->find_value("rope_theta") : std::nullopt;
        how = all;
    }
    if (windowed) sizes.windowed_rotary_base = positive(*windowed);
    const auto value = [&](const char* key) {
        const std::optional<JsonView> own = how ? how->find_value(key) : std::nullopt;
        return own ? own : config.find_value(key);
    };
    const std::optional<JsonView> base = value("rope_theta"),
                                  share = value("partial_rotary_factor");
    sizes.rotary_base = base ? positive(*base) : 10000;
    const double features =
        static_cast<double>(sizes.head_size) * std::min(1.0, share ? positive(*share) : 1.0);
    sizes.rotary = static_cast<std::int64_t>(features);
    if (!how) return;
    std::optional<JsonView> type = how->find_value("rope_type");
    if (!type) type = how->find_value("type");
    if (!type || type->text() == "default") return;
    if (type->text() == "linear")
        sizes.rotary_scale = positive(how->at("factor"));
    else if (type->text() == "llama3")
        set_llama3(*how, sizes);
    else
        fail(ErrorKind::unsupported, "positions that are scaled by the method '", type->text(),
             "' are not supported; supported are default, linear and llama3");
}

}  // namespace dlprim::language
