// SPDX-License-Identifier: MIT
// Names of operator types in other frameworks, and their names here.
#include "graph/type_hint.hpp"

#include "base/synonyms.hpp"
#include "base/text.hpp"
#include "engine/activations.hpp"

namespace dlprim {
namespace {

std::string hint(std::string_view type, std::string_view option) {
    return cat("; did you mean '", type, "'", option.empty() ? "" : " with ", option, "?");
}

}  // namespace

std::string type_hint(std::string_view name, std::span<const std::string> types) {
    constexpr std::size_t longest = 64;  // no type is longer; keeps hostile input cheap
    if (name.size() > longest) return {};
    const std::string wanted = plain_name(name);
    for (const std::string& type : types)
        if (plain_name(type) == wanted) return hint(type, {});
    if (const TypeSynonym* synonym = find_type_synonym(name))
        return hint(synonym->type, synonym->option);
    for (const std::string& activation : activation_names())
        if (plain_name(activation) == wanted)
            return hint("Activation", cat("\"activation\": \"", activation, "\""));
    return did_you_mean(name, types);
}

}  // namespace dlprim
