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

Architecture::HuggingFace::Source parse_source(const JsonView& view) {
    if (view.is_text()) return {.names = split(view.name(), '|')};
    view.object({"name", "transpose", "halves", "positions", "add"});
    Architecture::HuggingFace::Source source{.names = split(view.at("name").name(), '|')};
    if (const auto transpose = view.find("transpose")) source.transpose = transpose->boolean();
    if (const auto halves = view.find("halves")) source.halves = halves->boolean();
    if (const auto positions = view.find("positions")) source.positions = positions->boolean();
    if (const auto add = view.find("add")) source.add = static_cast<float>(add->number());
    return source;
}

Architecture::HuggingFace parse_hugging_face(const JsonView& view) {
    view.object({"models", "written", "sizes", "expects", "prefixes", "weights"});
    Architecture::HuggingFace all;
    for (const auto& [name, model] : view.at("models").object()) all.models[name] = model.name();
    if (const auto written = view.find("written"))
        for (const auto& [name, both] : written->object()) all.written[name] = names_of(both);
    if (const auto sizes = view.find("sizes"))
        for (const auto& [name, key] : sizes->object()) all.sizes[name] = split(key.name(), '|');
    if (const auto expects = view.find("expects"))
        for (const auto& [key, values] : expects->object()) all.expects[key] = names_of(values);
    if (const auto prefixes = view.find("prefixes")) {
        all.prefixes.clear();
        for (const JsonView& prefix : prefixes->array()) all.prefixes.push_back(prefix.text());
    }
    for (const auto& [name, source] : view.at("weights").object())
        all.weights[name] = parse_source(source);
    return all;
}

std::vector<Architecture> parse_embedded() {
    std::vector<Architecture> all;
    for (const EmbeddedArchitecture* entry = embedded_architectures; entry->path != nullptr;
         ++entry)
        all.push_back(parse_architecture(entry->text, entry->path));
    return all;
}

const std::vector<Architecture>& embedded() {
    static const std::vector<Architecture> all = parse_embedded();
    return all;
}

/// The architecture that has the name among those that `names_of` gives of it.
template <typename Names>
const Architecture& find_named(const std::string& name, const Names& names_of) {
    std::vector<std::string> known;
    for (const Architecture& one : embedded()) {
        if (names_of(one).count(name)) return one;
        for (const auto& item : names_of(one)) known.push_back(item.first);
    }
    std::sort(known.begin(), known.end());
    fail(ErrorKind::unsupported, "language models of the architecture '", name,
         "' are not supported", did_you_mean(name, known), "; supported are ", join(known, ", "));
}

}  // namespace

std::optional<HuggingFaceWeight> hugging_face_weight(const Architecture& architecture,
                                                     const std::string& weight) {
    // "blk.12.attn_q.weight": the description has "blk.N.attn_q", for the weight and the bias.
    const std::size_t dot = std::min(weight.rfind('.'), weight.size());
    std::string stem = weight.substr(0, dot), layer;
    const std::string end = weight.substr(dot), before = "blk.";
    if (stem.starts_with(before)) {
        layer = stem.substr(before.size(), stem.find('.', before.size()) - before.size());
        stem.replace(before.size(), layer.size(), "N");
    }
    const auto source = architecture.hugging_face.weights.find(stem);
    if (source == architecture.hugging_face.weights.end()) return std::nullopt;
    HuggingFaceWeight found{&source->second, {}};
    for (std::string name : source->second.names) {
        const std::size_t at = name.find(".N.");
        if (at != std::string::npos)
            name.replace(at + 1, 1, layer);
        else if (name.starts_with("N."))
            name.replace(0, 1, layer);
        for (const std::string& prefix : architecture.hugging_face.prefixes)
            found.names.push_back(cat(prefix, name, end));
    }
    return found;
}

Architecture parse_architecture(std::string_view text, const std::string& source) {
    const JsonDocument document(text, source);
    const JsonView root = document.root();
    root.object({"encoder", "names", "hugging_face", "before", "layer", "after"});
    std::map<std::string, Attrs> models;
    for (const auto& [name, values] : root.at("names").object())
        models[name] = read_options(values);
    const auto encoder = root.find("encoder");
    Architecture made{source,
                      encoder && encoder->boolean(),
                      std::move(models),
                      parse_steps(root.at("before")),
                      parse_steps(root.at("layer")),
                      parse_steps(root.at("after"))};
    if (const auto names = root.find("hugging_face"))
        made.hugging_face = parse_hugging_face(*names);
    return made;
}

const Architecture& find_architecture(const std::string& name) {
    return find_named(
        name, [](const Architecture& one) -> auto& { return one.models; });
}

const Architecture& find_hugging_face_architecture(const std::string& name) {
    return find_named(
        name, [](const Architecture& one) -> auto& { return one.hugging_face.models; });
}

}  // namespace dlprim::language
