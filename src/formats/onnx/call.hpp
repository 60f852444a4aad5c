// SPDX-License-Identifier: MIT
// Call: one node of a model, for the rule that imports it: its inputs as values of the network that
// is built, its attributes with ONNX's defaults, and functions that report what is not supported.
//
// A rule reads every attribute that it knows. An attribute that the rule has not read is an error,
// since ignoring it could change the result.
#pragma once

#include "formats/onnx/any_value.hpp"
#include "formats/onnx/builder.hpp"
#include "formats/onnx/model.hpp"

#include "base/text.hpp"

#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace dlprim::onnx {

/// Runs the graphs that a node owns (If, Loop, Scan, SequenceMap).
class GraphRunner {
  public:
    virtual ~GraphRunner() = default;
    /// Imports the graph's nodes with these values for its inputs, and returns its outputs. Names
    /// that it does not define are those of the graph around it.
    virtual std::vector<AnyValue> run_graph(const Graph& graph,
                                            const std::vector<AnyValue>& inputs) = 0;
    virtual std::int64_t max_iterations() const = 0;
};

class Call {
  public:
    /// An input that the node leaves out is none (AnyValue::is_none()).
    Call(Builder& builder, GraphRunner& runner, const Node& node, std::int64_t version,
         std::vector<AnyValue> inputs)
        : build(builder),
          graphs(runner),
          node_(node),
          version_(version),
          inputs_(std::move(inputs)) {}

    Builder& build;
    GraphRunner& graphs;
    /// Values that the rule still reads after it has run a graph (GraphRunner). Running a graph may
    /// run parts of the network, which drop values that are neither here nor read by later nodes.
    std::vector<AnyValue> kept;

    /// The version of the node's operator set.
    std::int64_t version() const { return version_; }
    const Node& node() const { return node_; }

    // Inputs. Asking for an input that the node does not have throws Error(format).
    int inputs() const { return static_cast<int>(inputs_.size()); }
    bool has(int i) const {
        return i < inputs() && !inputs_[static_cast<std::size_t>(i)].is_none();
    }
    /// A tensor. Throws Error(format) for a sequence.
    Ref in(int i) const;
    /// The input of whatever kind; none if it is left out.
    AnyValue value(int i) const;
    /// Throws Error(format) for a tensor.
    const AnyValue::Sequence& sequence(int i) const;
    const Shape& shape(int i) const { return in(i)->spec.shape; }
    /// A tensor of any rank: its dimensions and, in some shape, its elements (AnyValue).
    Ints dims(int i) const { return tensor_of_any_rank(i).dims(); }
    Ref elements(int i) const { return tensor_of_any_rank(i).elements(); }
    DType dtype(int i) const { return in(i)->spec.dtype; }
    /// The contents of an input that must be known, such as sizes or axes. If they are computed,
    /// the operators built so far are run; a static import throws Error(unsupported) instead, in
    /// which `what` names the input.
    std::vector<std::int64_t> known_integers(int i, std::string_view what) const;
    std::vector<double> known_numbers(int i, std::string_view what) const;
    HostValue known(int i, std::string_view what) const { return known(in(i), what); }
    HostValue known(Ref value, std::string_view what) const;
    /// The only element of an input that is a known integer or boolean.
    std::int64_t known_integer(int i, std::string_view what) const;
    std::vector<std::string> known_strings(int i, std::string_view what) const;
    /// The input's value, if it is a known, finite float of one element.
    std::optional<double> known_number(int i) const;

    // Attributes, or `otherwise` if the node does not have them.
    bool given(std::string_view name);
    std::int64_t integer(std::string_view name, std::int64_t otherwise);
    double number(std::string_view name, double otherwise);
    std::string text(std::string_view name, std::string_view otherwise);
    std::vector<std::int64_t> integers(std::string_view name,
                                       const std::vector<std::int64_t>& otherwise = {});
    std::vector<double> numbers(std::string_view name, const std::vector<double>& otherwise = {});
    std::vector<std::string> texts(std::string_view name);
    /// The type that an attribute has ONNX's number of. Throws Error(unsupported) for one that the
    /// library does not have.
    DType type(std::string_view name, DType otherwise);
    /// A graph that the node owns. Throws Error(format) where it has none of this name.
    const Graph& graph(std::string_view name);
    const Attribute* attribute(std::string_view name);
    /// Counts an attribute as read that does not change the result.
    void ignore(std::string_view name) { read_.insert(std::string(name)); }

    /// An axis that counts from the end where it is negative. Throws Error(format) beyond `rank`.
    int axis(std::int64_t axis, int rank) const;
    /// The same of several, sorted.
    std::vector<std::int64_t> axes(std::vector<std::int64_t> given, int rank) const;

    // Outputs.
    int outputs() const { return static_cast<int>(node_.outputs.size()); }
    bool wants(int i) const {
        return i < outputs() && !node_.outputs[static_cast<std::size_t>(i)].empty();
    }
    void set(int i, AnyValue value);
    /// The results of a function that runs on the host between two parts. A static import, which
    /// has one part, throws Error(unsupported); `reason` says why the host must compute them.
    std::vector<Ref> on_host(const std::vector<Ref>& inputs, const HostFunction& function,
                             std::string_view reason = size_by_values) const;
    static constexpr std::string_view size_by_values =
        "the result's size depends on values that are known only while the network runs";
    /// What the rule of another type of ONNX's own makes of these inputs, as a node would with this
    /// node's attributes of these names. `version`: of ONNX's operator set.
    std::vector<std::optional<AnyValue>> run_rule(std::string_view type, std::int64_t version,
                                                  std::vector<AnyValue> inputs,
                                                  const std::vector<std::string_view>& attributes);
    /// The tensors that another type's rule makes of these inputs and attributes for a node with so
    /// many outputs; null where it makes none.
    std::vector<Ref> made_by(std::string_view type, std::int64_t version,
                             std::vector<AnyValue> inputs, Attributes attributes = {},
                             std::size_t outputs = 1);
    /// The results by output; empty if the rule has not set one.
    const std::vector<std::optional<AnyValue>>& results() const { return results_; }

    /// Throws Error(unsupported); the importer says of which node.
    template <typename... Parts>
    [[noreturn]] void unsupported(const Parts&... parts) const {
        fail(ErrorKind::unsupported, parts...);
    }
    template <typename... Parts>
    void supports(bool condition, const Parts&... parts) const {
        if (!condition) fail(ErrorKind::unsupported, parts...);
    }
    /// Throws Error(format): the model breaks a rule of ONNX.
    template <typename... Parts>
    void check(bool condition, const Parts&... parts) const {
        if (!condition) fail(ErrorKind::format, parts...);
    }
    /// After the rule: throws Error(unsupported) for an attribute that it has not read.
    void check_all_read() const;

  private:
    const AnyValue& tensor_of_any_rank(int i) const;
    /// What the rule of a node's type makes of it.
    std::vector<std::optional<AnyValue>> run_node(const Node& node, std::int64_t version,
                                                  std::vector<AnyValue> inputs) const;
    template <typename Kind>
    const Kind* find(std::string_view name, const char* kind);

    const Node& node_;
    std::int64_t version_;
    std::vector<AnyValue> inputs_;
    std::vector<std::optional<AnyValue>> results_;
    std::set<std::string, std::less<>> read_;
};

/// How nodes of one type become operators of this library, from version `since` of the operator set
/// on, until another row of the type has a higher one that is not above the model's.
struct Rule {
    /// What a rule does with tensors of strings, which are known integers to it (Builder::strings):
    /// it takes none; it moves elements, so that of strings it makes strings; or it says by itself
    /// what its results are.
    enum class Strings { none, moved, own };
    static constexpr std::uint32_t all_inputs = ~std::uint32_t{0};

    /// Of another domain than ONNX's own: "domain.type".
    std::string_view type;
    std::int64_t since;
    std::function<void(Call&)> import;
    Strings strings = Strings::none;
    /// Bit i: input i has elements that are moved. Either all such inputs are of strings or none.
    std::uint32_t moved_inputs = 1;
    std::string_view family = {};  ///< that of its file; the table sets it
};

/// The rule for a type, as Rule::type has it, in this version; null where there is none.
const Rule* find_rule(std::string_view type, std::int64_t version);
/// Whether an operator of this domain has a rule.
bool has_rules_of(std::string_view domain);
/// All types that have a rule, sorted.
std::vector<std::string> supported_types();

}  // namespace dlprim::onnx
