// SPDX-License-Identifier: MIT
// Call: reading a node; see call.hpp.
#include "formats/onnx/call.hpp"

#include "formats/onnx/types.hpp"

#include <algorithm>
#include <cmath>

namespace dlprim::onnx {

AnyValue Call::value(int i) const {
    return i < inputs() ? inputs_[static_cast<std::size_t>(i)] : AnyValue();
}

const AnyValue& Call::tensor_of_any_rank(int i) const {
    check(has(i), "input ", i, " is missing");
    const AnyValue& value = inputs_[static_cast<std::size_t>(i)];
    if (value.elements() == nullptr)
        check(false, "input ", i, " is ", value, "; it must be a tensor");
    return value;
}

Ref Call::in(int i) const {
    const AnyValue& value = tensor_of_any_rank(i);
    if (value.is_wide())
        unsupported("input ", i, " is ", value.str(), "; this operator takes at most ",
                    Shape::max_rank, " dimensions");
    return value.tensor();
}

const AnyValue::Sequence& Call::sequence(int i) const {
    check(has(i), "input ", i, " is missing");
    const AnyValue& value = inputs_[static_cast<std::size_t>(i)];
    check(value.sequence() != nullptr, "input ", i, " is ", value, "; it must be a sequence");
    return *value.sequence();
}

HostValue Call::known(Ref value, std::string_view what) const {
    supports(build.know(value), what,
             " are known only while the network runs; they must follow from constants and from the "
             "inputs' shapes, or the model is run by an ONNXSession");
    return value->known;
}

std::vector<std::int64_t> Call::known_integers(int i, std::string_view what) const {
    const Ref value = in(i);
    check(!is_float(value->spec.dtype), what, " are ", name_of(value->spec.dtype),
          "; they must be integers");
    return to_integers(*known(value, what));
}

std::vector<double> Call::known_numbers(int i, std::string_view what) const {
    return to_numbers(*known(i, what));
}

std::int64_t Call::known_integer(int i, std::string_view what) const {
    const Ints values = known_integers(i, what);
    check(values.size() == 1, what, " has shape ", shape(i), "; it must be one element");
    return values[0];
}

std::vector<std::string> Call::known_strings(int i, std::string_view what) const {
    const Ref value = in(i);
    check(value->strings, what, " are ", name_of(value->spec.dtype), "; they must be strings");
    known(value, what);
    return build.texts(value);
}

std::optional<double> Call::known_number(int i) const {
    const Ref value = in(i);
    if (!value->known || value->spec.shape.numel() != 1 || !is_float(value->spec.dtype))
        return std::nullopt;
    const double number = to_numbers(*value->known).front();
    if (!std::isfinite(number)) return std::nullopt;  // no option can hold it in JSON
    return number;
}

const Attribute* Call::attribute(std::string_view name) {
    read_.insert(std::string(name));
    const auto found = node_.attributes.find(name);
    return found == node_.attributes.end() ? nullptr : &found->second;
}

bool Call::given(std::string_view name) {
    return attribute(name) != nullptr;
}

template <typename Kind>
const Kind* Call::find(std::string_view name, const char* kind) {
    const Attribute* const found = attribute(name);
    if (!found) return nullptr;
    const Kind* const value = std::get_if<Kind>(&found->data);
    check(value != nullptr, "attribute '", name, "' is not ", kind);
    return value;
}

std::int64_t Call::integer(std::string_view name, std::int64_t otherwise) {
    const auto* const value = find<std::int64_t>(name, "an integer");
    return value ? *value : otherwise;
}

double Call::number(std::string_view name, double otherwise) {
    const auto* const value = find<double>(name, "a number");
    return value ? *value : otherwise;
}

std::string Call::text(std::string_view name, std::string_view otherwise) {
    const auto* const value = find<std::string>(name, "a text");
    return value ? *value : std::string(otherwise);
}

std::vector<std::int64_t> Call::integers(std::string_view name,
                                         const std::vector<std::int64_t>& otherwise) {
    const auto* const value = find<std::vector<std::int64_t>>(name, "a list of integers");
    return value ? *value : otherwise;
}

std::vector<double> Call::numbers(std::string_view name, const std::vector<double>& otherwise) {
    const auto* const value = find<std::vector<double>>(name, "a list of numbers");
    return value ? *value : otherwise;
}

std::vector<std::string> Call::texts(std::string_view name) {
    const auto* const value = find<std::vector<std::string>>(name, "a list of texts");
    return value ? *value : std::vector<std::string>{};
}

DType Call::type(std::string_view name, DType otherwise) {
    if (!given(name)) return otherwise;
    const std::int64_t number = integer(name, 0);
    const std::optional<DType> dtype = dtype_of(number);
    if (!dtype) unsupported("type ", type_name(number), " is not supported");
    return *dtype;
}

const Graph& Call::graph(std::string_view name) {
    const auto* const value = find<std::shared_ptr<const Graph>>(name, "a graph");
    check(value != nullptr, "attribute '", name, "' is missing");
    return **value;
}

int Call::axis(std::int64_t axis, int rank) const {
    check(axis >= -rank && axis < rank, "axis ", axis, " is none of ", rank, " dimensions");
    return static_cast<int>(axis < 0 ? axis + rank : axis);
}

std::vector<std::int64_t> Call::axes(std::vector<std::int64_t> given, int rank) const {
    for (std::int64_t& one : given) one = axis(one, rank);
    std::sort(given.begin(), given.end());
    check(std::adjacent_find(given.begin(), given.end()) == given.end(), "an axis stands twice");
    return given;
}

void Call::set(int i, AnyValue value) {
    if (static_cast<int>(results_.size()) <= i) results_.resize(static_cast<std::size_t>(i) + 1);
    if (value.tensor() && wants(i))
        build.name(value.tensor(), node_.outputs[static_cast<std::size_t>(i)]);
    results_[static_cast<std::size_t>(i)] = std::move(value);
}

std::vector<Ref> Call::on_host(const std::vector<Ref>& inputs, const HostFunction& function,
                               std::string_view reason) const {
    std::vector<Ref> results = build.call_host(inputs, function);
    supports(!results.empty(), reason, ": an ONNXSession runs such models");
    return results;
}

std::vector<std::optional<AnyValue>> Call::run_rule(
    std::string_view type, std::int64_t version, std::vector<AnyValue> inputs,
    const std::vector<std::string_view>& attributes) {
    Node node;
    node.type = type;
    node.name = node_.name;
    for (const std::string_view name : attributes)
        if (const Attribute* const given = attribute(name))
            node.attributes.emplace(std::string(name), *given);
    return run_node(node, version, std::move(inputs));
}

std::vector<Ref> Call::made_by(std::string_view type, std::int64_t version,
                               std::vector<AnyValue> inputs, Attributes attributes,
                               std::size_t outputs) {
    Node node;
    node.type = type;
    node.name = node_.name;
    node.outputs.assign(outputs, "made");
    node.attributes = std::move(attributes);
    const auto results = run_node(node, version, std::move(inputs));
    std::vector<Ref> made(std::max(outputs, results.size()), nullptr);
    for (std::size_t i = 0; i < results.size(); ++i)
        if (results[i]) made[i] = results[i]->tensor();
    return made;
}

std::vector<std::optional<AnyValue>> Call::run_node(const Node& node, std::int64_t version,
                                                    std::vector<AnyValue> inputs) const {
    Call call(build, graphs, node, version, std::move(inputs));
    find_rule(node.type, version)->import(call);
    call.check_all_read();
    return call.results();
}

void Call::check_all_read() const {
    for (const auto& item : node_.attributes) {
        // Up to opset 5 it said which inputs may be overwritten.
        if (item.first == "consumed_inputs" && version_ < 6) continue;
        supports(read_.count(item.first) > 0, "attribute '", item.first, "' is not supported");
    }
}

}  // namespace dlprim::onnx
