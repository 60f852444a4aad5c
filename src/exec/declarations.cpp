// SPDX-License-Identifier: MIT
// declarations(): what the structs of options say, as JSON.
#include "base/schema.hpp"
#include "base/text.hpp"
#include "formats/json_net.hpp"

#include <dlprim/ops.hpp>

#include <cmath>

namespace dlprim::ops {

namespace {

std::string option_json(const OptionSpec& option) {
    static constexpr const char* kinds[] = {"boolean",  "integer", "number", "text",
                                            "integers", "numbers", "texts"};
    const OptionText& text = option.text;
    Attrs said{{"name", std::string(text.name)},
               {"kind", std::string(kinds[static_cast<std::size_t>(option.kind)])},
               {"meaning", std::string(text.meaning)},
               {"required", text.is_required}};
    // NOLINTNEXTLINE(misc-redundant-expression): NaN, which differs from itself, is no default
    const bool is_number = option.value == option.value;
    const bool is_given = is_number && option.value != attr_of(std::optional<std::int64_t>()) &&
                          option.value != attr_of(std::string());
    if (is_given && !text.is_required) said.set("default", option.value);
    if (!text.other_name.empty()) said.set("also", std::string(text.other_name));
    Strings choices;
    for (const std::string_view choice : text.choices)
        if (!choice.empty()) choices.emplace_back(choice);
    if (!choices.empty()) said.set("choices", choices);
    if (std::isfinite(text.least)) said.set("least", text.least);
    if (std::isfinite(text.most)) said.set("most", text.most);
    return write_options_json(said);
}

template <typename Options>
std::string operator_json(const Options&) {
    const Schema& schema = schema_of<Options>();
    Attrs said{{"group", std::string(schema.group())}, {"takes", std::string(schema.takes())}};
    if constexpr (requires(Options options) { options.meant(); })
        said.set("alias_of", std::string(decltype(Options().meant())::type));
    if constexpr (requires { Options::other_names; })
        said.set("other_names", Strings(Options::other_names.begin(), Options::other_names.end()));
    std::string head = write_options_json(said);
    head.pop_back();  // the brace, behind which the options come
    std::vector<std::string> options;
    for (const OptionSpec& option : schema.options()) options.push_back(option_json(option));
    return cat("\"", Options::type, "\": ", head, ", \"options\": [", join(options, ",\n  "), "]}");
}

}  // namespace

std::string declarations() {
    std::vector<std::string> all;
    std::apply([&](const auto&... options) { (all.push_back(operator_json(options)), ...); },
               std::tuple_cat(AllOptions(), AllAliases()));
    return "{" + join(all, ",\n ") + "}\n";
}

}  // namespace dlprim::ops
