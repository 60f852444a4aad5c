// SPDX-License-Identifier: MIT
// Nonzero and NonzeroRows as operators.
#include "ops/nonzero/operators.hpp"

#include "base/text.hpp"
#include "engine/element.hpp"
#include "graph/declared_operator.hpp"
#include "graph/oracle_loops.hpp"
#include "ops/nonzero/rows.hpp"

namespace dlprim::nonzero {

namespace {

std::int64_t size_of(const Attrs& attrs, const Shape& x) {
    const std::int64_t size = attrs.integer("size");
    require(size >= -1, "size is ", size,
            ", it is a number of rows, or -1 for as many as elements");
    return size < 0 ? x.numel() : size;
}

/// The sizes in which positions count.
Ints sizes_of(const Attrs& attrs, const Shape& x) {
    return attrs.boolean("flat") ? Ints{x.numel()} : x.to_vector();
}

class Nonzero : public DeclaredOperator<ops::Nonzero> {
  public:
    FloatTypes float_types(const Attrs&) const override { return FloatTypes::all; }
    int outputs(const Attrs&) const override { return 2; }
    std::vector<TensorSpec> infer(const Attrs& attrs,
                                  std::span<const TensorSpec> inputs) const override {
        require_comparable(inputs[0].dtype);
        const Shape& x = inputs[0].shape;
        const std::int64_t size = size_of(attrs, x);
        return {{attrs.boolean("flat") ? Shape{size} : Shape{size, x.rank()}, DType::i64},
                {Shape{1}, DType::i64}};
    }
    bool expand(Graph& graph, const Node& node, std::vector<ValueId>& outputs) const override {
        const Shape x = graph.shape(node.inputs[0]);
        const std::int64_t size = size_of(node.attrs, x);
        outputs = graph.add(rows_type, node.name, {counts(graph, node, x)},
                            {{"size", size},
                             {"fill", node.attrs.integer("fill")},
                             {"shape", sizes_of(node.attrs, x)}});
        if (!node.attrs.boolean("flat")) return true;
        outputs[0] = graph.add1("Reshape", node.name + "/flat", {outputs[0]}, {{"dims", Ints{0}}});
        return true;
    }

    void oracle(OracleCall& call) const override {
        const HostArray& x = call.inputs[0];
        const std::int64_t size = size_of(call.attrs, x.shape);
        const bool flat = call.attrs.boolean("flat");
        const Shape shape = flat ? Shape{size} : Shape{size, x.shape.rank()};
        call.outputs.resize(2);
        HostArray& positions = make_array(call.outputs, 0, shape, DType::i64);
        positions.data.assign(positions.data.size(),
                              static_cast<double>(call.attrs.integer("fill")));
        std::int64_t count = 0;
        std::size_t to = 0;
        for_each_position(x.shape, [&](const Ints& at, std::size_t place) {
            if (x.data[place] == 0 || ++count > size) return;
            if (flat) positions.data[to++] = static_cast<double>(place);
            if (flat) return;
            for (const std::int64_t coordinate : at)
                positions.data[to++] = static_cast<double>(coordinate);
        });
        make_array(call.outputs, 1, Shape{1}, DType::i64).data[0] = static_cast<double>(count);
    }

  private:
    /// How many elements up to each are not 0.
    static ValueId counts(Graph& graph, const Node& node, const Shape& x) {
        if (x.empty())
            return graph.add1("Pointwise", node.name + "/none", {},
                              {{"code", std::string("y0 = 0")},
                               {"shape", Ints{0}},
                               {"dtypes", Strings{"int64"}}});
        ValueId truths = node.inputs[0];
        if (graph.spec(truths).dtype != DType::boolean)
            truths =
                graph.add1("Pointwise", node.name + "/truths", {truths},
                           {{"code", std::string("y0 = x0 != 0")}, {"dtypes", Strings{"bool"}}});
        truths = graph.reshape(node.name + "/all", truths, Shape{x.numel()});
        return graph.add1("Scan", node.name + "/counts", {truths},
                          {{"dtype", std::string("int64")}});
    }
};

struct RowsOptions {
    static constexpr std::string_view type = rows_type;
    std::int64_t size = 0, fill = -1;
    Ints shape = {};
    static constexpr auto fields() {
        return ops::option_table(
            ops::option<&RowsOptions::size>("rows of the result"),
            ops::option<&RowsOptions::fill>("what stands behind the last position"),
            ops::option<&RowsOptions::shape>("sizes in which positions count"));
    }
};

class NonzeroRows : public InternalOperator<RowsOptions> {
  public:
    FloatTypes float_types(const Attrs&) const override { return FloatTypes::all; }
    int outputs(const Attrs&) const override { return 2; }
    std::vector<TensorSpec> infer(const Attrs& attrs,
                                  std::span<const TensorSpec> inputs) const override {
        return {{Rows(attrs, inputs[0].shape).result(), DType::i64}, {Shape{1}, DType::i64}};
    }
};

}  // namespace

Rows::Rows(const Attrs& attrs, const Shape& counts)
    : elements(counts.numel()),
      size(attrs.integer("size")),
      fill(attrs.integer("fill")),
      sizes(attrs.ints("shape")) {}

void register_nonzero(OperatorRegistry& operators, EngineRegistry& engines) {
    operators.add(std::make_unique<Nonzero>());
    operators.add(std::make_unique<NonzeroRows>());
    add_host_engine(engines);
    add_reference_engine(engines);
}

}  // namespace dlprim::nonzero
