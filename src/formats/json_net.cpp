// SPDX-License-Identifier: MIT
// Reading and writing network JSON.
#include "formats/json_net.hpp"

#include "base/text.hpp"
#include "formats/json_tree.hpp"

#include <dlprim/error.hpp>

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

namespace dlprim {
namespace {

/// Runs `action`. If a lower room throws an Error, adds the file, line and path of `view` to it.
template <typename Action>
auto located(const JsonView& view, Action action) {
    try {
        return action();
    } catch (const Error& error) {
        view.fail(cat("is wrong: ", error.what()));
    }
}

std::vector<std::string> read_names(const JsonView& view) {
    std::vector<std::string> names;
    for (const JsonView& item : view.array()) names.push_back(item.name());
    return names;
}

Shape read_shape(const JsonView& view) {
    Ints dims;
    for (const JsonView& item : view.array()) {
        dims.push_back(item.integer());
        if (dims.back() < 1) item.fail(cat("must be at least 1, not ", dims.back()));
    }
    return located(view, [&] { return Shape(dims); });
}

/// JSON has no infinities and no NaN. As options they are these texts.
const std::pair<const char*, double> special_numbers[] = {
    {"inf", std::numeric_limits<double>::infinity()},
    {"-inf", -std::numeric_limits<double>::infinity()},
    {"nan", std::numeric_limits<double>::quiet_NaN()}};

std::optional<double> special_number(const JsonView& view) {
    if (view.is_text())
        for (const auto& [text, number] : special_numbers)
            if (view.text() == text) return number;
    return std::nullopt;
}

Attr read_list(const JsonView& view) {
    const std::vector<JsonView> items = view.array();
    Ints ints;
    Doubles numbers;
    Strings texts;
    for (const JsonView& item : items) {
        if (const std::optional<double> special = special_number(item)) {
            numbers.push_back(*special);
        } else if (item.is_text()) {
            texts.push_back(item.text());
        } else if (item.is_number()) {
            if (item.is_integer()) ints.push_back(item.integer());
            numbers.push_back(item.number());
        } else {
            item.fail(cat("must be a number or a string, not ", item.value().kind_name()));
        }
        if (!texts.empty() && !numbers.empty()) item.fail("mixes numbers and strings in one list");
    }
    if (!texts.empty()) return texts;
    if (ints.size() == items.size()) return ints;
    return numbers;
}

Attr read_option(const JsonView& view) {
    if (const std::optional<double> special = special_number(view)) return *special;
    if (view.is_text()) return view.text();
    if (view.is_array()) return read_list(view);
    if (view.is_integer()) return view.integer();
    if (view.is_number()) return view.number();
    if (const auto* boolean = std::get_if<bool>(&view.value().data)) return *boolean;
    view.fail(cat("must be a number, a string, a boolean or a list of them, not ",
                  view.value().kind_name()));
}

NetDescription::Input read_input(const JsonView& view) {
    NetDescription::Input input;
    view.object({"name", "shape", "dtype"});
    input.name = view.at("name").name();
    input.shape = read_shape(view.at("shape"));
    if (const auto dtype = view.find("dtype"))
        input.dtype = located(*dtype, [&] { return parse_dtype(dtype->text()); });
    return input;
}

NetDescription::Output read_output(const JsonView& view) {
    if (view.is_text()) return {view.name(), std::nullopt};
    if (!view.is_object()) view.fail("must be a tensor's name or {\"name\", \"loss_weight\"}");
    NetDescription::Output output;
    view.object({"name", "loss_weight"});
    output.name = view.at("name").name();
    if (const auto weight = view.find("loss_weight")) output.loss_weight = weight->number();
    return output;
}

NetDescription::Op read_operator(const JsonView& view) {
    NetDescription::Op op;
    view.object({"name", "type", "inputs", "outputs", "options", "gradients", "params", "frozen",
                 "recompute", "device", "engine", "precision"});
    op.name = view.at("name").name();
    op.type = view.at("type").name();
    if (const auto inputs = view.find("inputs")) op.inputs = read_names(*inputs);
    op.outputs = read_names(view.at("outputs"));
    if (op.outputs.empty()) view.at("outputs").fail("must name at least one tensor");
    if (const auto options = view.find("options")) op.options = read_options(*options);
    if (const auto gradients = view.find("gradients")) {
        for (const JsonView& item : gradients->array()) op.gradients.push_back(item.integer());
        if (op.gradients.empty()) gradients->fail("must name at least one input by its number");
    }
    if (const auto params = view.find("params")) op.params = read_names(*params);
    if (const auto frozen = view.find("frozen")) op.frozen = frozen->boolean();
    if (const auto recompute = view.find("recompute")) op.recompute = recompute->boolean();
    if (const auto device = view.find("device")) op.device = device->text();
    if (const auto engine = view.find("engine")) op.engine = engine->text();
    if (const auto precision = view.find("precision"))
        op.precision = located(*precision, [&] { return parse_precision(precision->text()); });
    return op;
}

using Json = nlohmann::ordered_json;

template <typename Value>
Json to_json(const Value& value) {
    return Json(value);
}
Json to_json(double value) {
    if (std::isfinite(value)) return Json(value);
    return std::isnan(value) ? "nan" : value < 0 ? "-inf" : "inf";
}
Json to_json(const Doubles& values) {
    Json list = Json::array();
    for (const double value : values) list.push_back(to_json(value));
    return list;
}
Json to_json(const Attrs& attrs) {
    Json object = Json::object();
    for (const auto& [name, value] : attrs.items())
        object[name] = std::visit([](const auto& v) { return to_json(v); }, value);
    return object;
}

/// Writes the value on one line, with ", " and ": " between parts.
std::string line_of(const Json& value) {
    if (value.is_object()) {
        std::vector<std::string> parts;
        for (const auto& [key, member] : value.items())
            parts.push_back(cat(line_of(Json(key)), ": ", line_of(member)));
        return cat("{", join(parts, ", "), "}");
    }
    if (value.is_array()) {
        std::vector<std::string> parts;
        for (const Json& item : value) parts.push_back(line_of(item));
        return cat("[", join(parts, ", "), "]");
    }
    return value.dump(-1, ' ', false, Json::error_handler_t::replace);
}

void append_list(std::string& out, std::string_view key, const std::vector<Json>& items,
                 bool last) {
    out += cat("  \"", key, "\": [");
    for (std::size_t i = 0; i < items.size(); ++i)
        out += cat(i > 0 ? ",\n    " : "\n    ", line_of(items[i]));
    out += cat(items.empty() ? "]" : "\n  ]", last ? "\n" : ",\n");
}

}  // namespace

Attrs read_options(const JsonView& object) {
    Attrs attrs;
    for (const auto& [name, value] : object.object()) attrs.set(name, read_option(value));
    return attrs;
}

NetDescription parse_net_json(std::string_view text, const std::string& source_name) {
    const JsonDocument document(text, source_name);
    const JsonView root = document.root();
    if (!root.is_object())
        root.fail("a network is an object of three lists: inputs, outputs, operators");
    if (root.find("net") && !root.find("operators"))
        root.fail("seems to be a training configuration, and a network is expected");
    root.object({"inputs", "outputs", "operators"});
    NetDescription net;
    net.source = source_name;
    for (const JsonView& input : root.at("inputs").array()) net.inputs.push_back(read_input(input));
    for (const JsonView& output : root.at("outputs").array())
        net.outputs.push_back(read_output(output));
    for (const JsonView& op : root.at("operators").array())
        net.operators.push_back(read_operator(op));
    return net;
}

Attrs parse_options_json(std::string_view text) {
    if (text.find_first_not_of(" \t\r\n") == std::string_view::npos) return {};
    const JsonDocument document(text, "options");
    return read_options(document.root());
}

std::string write_options_json(const Attrs& options) {
    return line_of(to_json(options));
}

std::string write_net_json(const NetDescription& net) {
    std::vector<Json> inputs, outputs, operators;
    for (const auto& input : net.inputs)
        inputs.push_back({{"name", input.name},
                          {"shape", input.shape.to_vector()},
                          {"dtype", std::string(name_of(input.dtype))}});
    for (const auto& output : net.outputs) {
        if (output.loss_weight)
            outputs.push_back({{"name", output.name}, {"loss_weight", *output.loss_weight}});
        else
            outputs.push_back(output.name);
    }
    for (const auto& op : net.operators) {
        Json json = {{"name", op.name}, {"type", op.type}};
        json["inputs"] = op.inputs;
        json["outputs"] = op.outputs;
        if (!op.options.items().empty()) json["options"] = to_json(op.options);
        if (!op.gradients.empty()) json["gradients"] = op.gradients;
        if (!op.params.empty()) json["params"] = op.params;
        if (op.frozen) json["frozen"] = true;
        if (op.recompute) json["recompute"] = true;
        if (!op.device.empty()) json["device"] = op.device;
        if (!op.engine.empty()) json["engine"] = op.engine;
        if (op.precision) json["precision"] = std::string(name_of(*op.precision));
        operators.push_back(std::move(json));
    }
    std::string out = "{\n";
    append_list(out, "inputs", inputs, false);
    append_list(out, "outputs", outputs, false);
    append_list(out, "operators", operators, true);
    return out + "}\n";
}

}  // namespace dlprim
