// SPDX-License-Identifier: MIT
// Descriptions of architectures: parsing, and those that the library brings.
#include "language/architecture.hpp"

#include "base/text.hpp"
#include "formats/json_net.hpp"
#include "formats/json_tree.hpp"
#include "language/embedded_architectures.hpp"

#include <algorithm>

namespace dlprim::language {

namespace {

std::vector<std::string> names_of(const JsonView& list) {
    std::vector<std::string> names;
    for (const JsonView& item : list.array()) names.push_back(item.name());
    return names;
}

Architecture::Weight parse_weight(std::string text) {
    Architecture::Weight weight;
    weight.optional = text.ends_with('?');
    if (weight.optional) text.pop_back();
    weight.names = split(text, '|');
    return weight;
}

std::vector<Architecture::Step> parse_steps(const JsonView& list) {
    std::vector<Architecture::Step> steps;
    for (const JsonView& item : list.array()) {
        item.object({"type", "inputs", "output", "weights", "options"});
        Architecture::Step step;
        step.type = item.at("type").name();
        step.inputs = names_of(item.at("inputs"));
        step.output = item.at("output").name();
        if (const auto weights = item.find("weights"))
            for (std::string& name : names_of(*weights))
                step.weights.push_back(parse_weight(std::move(name)));
        if (const auto options = item.find("options")) step.options = read_options(*options);
        steps.push_back(std::move(step));
    }
    return steps;
}

std::vector<Architecture> parse_embedded() {
    std::vector<Architecture> all;
    for (const EmbeddedArchitecture* entry = embedded_architectures; entry->path != nullptr;
         ++entry)
        all.push_back(parse_architecture(entry->text, entry->path));
    return all;
}

}  // namespace

Architecture parse_architecture(std::string_view text, const std::string& source) {
    const JsonDocument document(text, source);
    const JsonView root = document.root();
    root.object({"names", "before", "layer", "after"});
    std::map<std::string, Attrs> models;
    for (const auto& [name, values] : root.at("names").object())
        models[name] = read_options(values);
    return {source, std::move(models), parse_steps(root.at("before")),
            parse_steps(root.at("layer")), parse_steps(root.at("after"))};
}

const Architecture& find_architecture(const std::string& name) {
    static const std::vector<Architecture> all = parse_embedded();
    std::vector<std::string> known;
    for (const Architecture& one : all) {
        if (one.models.count(name)) return one;
        for (const auto& item : one.models) known.push_back(item.first);
    }
    std::sort(known.begin(), known.end());
    fail(ErrorKind::unsupported, "language models of the architecture '", name,
         "' are not supported", did_you_mean(name, known), "; supported are ", join(known, ", "));
}

}  // namespace dlprim::language
