// SPDX-License-Identifier: MIT
// Constant: no input; its output is a literal of the graph, whose values stand in the options. As a
// composite it vanishes: readers of the output read the literal. What depends on literals alone is
// computed once, when the plan is set up.
#include "base/text.hpp"
#include "graph/declared_operator.hpp"

#include <algorithm>
#include <cstring>

namespace dlprim::constant {

namespace {

/// A literal is held in host memory while the graph is; one value may stand for all elements.
constexpr std::int64_t largest = std::int64_t{1} << 28;

struct ConstantOptions {
    static constexpr std::string_view type = "Constant", group = "source";
    static constexpr std::string_view takes = "no input; its output is a literal";
    std::vector<std::int64_t> shape = {};
    DType dtype = DType::f32;
    std::vector<double> values = {};
    std::vector<std::int64_t> integers = {};
    static constexpr auto fields() {
        return ops::option_table(
            ops::required<&ConstantOptions::shape>("its sizes; none: a single number"),
            ops::option<&ConstantOptions::dtype>("its type"),
            ops::option<&ConstantOptions::values>("its elements, or one for all"),
            ops::option<&ConstantOptions::integers>(
                "the same of integers, exact to 64 bits, and of bool"));
    }
};

struct Options {
    TensorSpec spec;
    Doubles values;  ///< of floats
    Ints integers;   ///< of all other types

    explicit Options(const Attrs& attrs)
        : spec{Shape(attrs.ints("shape")), parse_dtype(attrs.text("dtype"))},
          values(attrs.numbers("values")),
          integers(attrs.ints("integers")) {
        require(!spec.shape.empty(), "shape ", spec.shape,
                " has a dimension of 0; sizes are at least 1");
        require(spec.shape.numel() <= largest, "a constant of shape ", spec.shape,
                " is larger than ", largest, " elements; a Parameter may be");
        require(values.empty() || integers.empty(), "values and integers are both given");
        const auto given = static_cast<std::int64_t>(std::max(values.size(), integers.size()));
        require(given == 1 || given == spec.shape.numel(), "a constant of shape ", spec.shape,
                " has ", spec.shape.numel(), " elements, ", given,
                " values are given; one value stands for all");
    }

    double value(std::size_t i) const {
        const auto at = [i](const auto& list) {
            return static_cast<double>(list[list.size() == 1 ? 0 : i]);
        };
        return values.empty() ? at(integers) : at(values);
    }
};

/// The elements as the tensor stores them.
std::vector<std::byte> stored(const Options& options) {
    const auto count = static_cast<std::size_t>(options.spec.shape.numel());
    const std::size_t size = size_of(options.spec.dtype);
    std::vector<std::byte> data(count * size);
    const std::size_t given = std::max(options.values.size(), options.integers.size());
    if (options.values.empty())
        convert(options.integers.data(), DType::i64, data.data(), options.spec.dtype, given);
    else
        convert(options.values.data(), DType::f64, data.data(), options.spec.dtype, given);
    for (std::size_t i = given; i < count; ++i) std::memcpy(&data[i * size], data.data(), size);
    return data;
}

class Constant : public DeclaredOperator<ConstantOptions> {
  public:
    FloatTypes float_types(const Attrs&) const override { return FloatTypes::all; }
    int min_inputs() const override { return 0; }
    int max_inputs() const override { return 0; }
    std::vector<TensorSpec> infer(const Attrs& attrs, std::span<const TensorSpec>) const override {
        return {Options(attrs).spec};
    }
    bool expand(Graph& graph, const Node& node, std::vector<ValueId>& outputs) const override {
        const Options options(node.attrs);
        Value literal;
        literal.name = node.name;
        literal.spec = options.spec;
        literal.role = Role::constant;
        literal.data = stored(options);
        outputs = {graph.add_value(std::move(literal))};
        return true;
    }
    void oracle(OracleCall& call) const override {
        const Options options(call.attrs);
        for (std::size_t i = 0; i < call.outputs[0].data.size(); ++i)
            call.outputs[0].data[i] = options.value(i);
    }
    void oracle_backward(OracleBackwardCall&) const override {}
};

}  // namespace

void register_constant(OperatorRegistry& operators, EngineRegistry&) {
    operators.add(std::make_unique<Constant>());
}

}  // namespace dlprim::constant
