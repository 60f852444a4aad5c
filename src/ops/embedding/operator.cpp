// SPDX-License-Identifier: MIT
// Embedding and EmbeddingBackward as operators, with Embedding's oracles.
#include "base/text.hpp"
#include "engine/element_types.hpp"
#include "graph/block_oracle.hpp"
#include "graph/declared_operator.hpp"
#include "ops/embedding/operators.hpp"
#include "ops/embedding/options.hpp"

namespace dlprim::embedding {

namespace {

struct BackwardOptions : ops::Embedding {
    static constexpr std::string_view type = backward_type;
};

class Forward : public DeclaredOperator<ops::Embedding> {
  public:
    FloatTypes float_types(const Attrs&) const override { return FloatTypes::wide; }

    std::vector<ParamSpec> params(const Attrs& attrs, std::span<const TensorSpec>) const override {
        const Options options = Options::read(attrs);
        require(options.padding_idx == Options::no_padding ||
                    (options.padding_idx >= 0 && options.padding_idx < options.num_embeddings),
                "option padding_idx is ", attrs.integer("padding_idx"), ", the table has ",
                options.num_embeddings, " rows");
        Init init;
        init.kind = Init::Kind::normal;
        init.b = 1;
        if (options.padding_idx >= 0) {
            init.zero = options.padding_idx * options.embedding_dim;
            init.zeros = options.embedding_dim;
        }
        if (!options.blocks.empty())
            return {{{options.table(), DType::u8}, Init::constant(0), false}};
        return {{{options.table(), DType::f32}, init}};
    }
    std::vector<TensorSpec> infer(const Attrs& attrs,
                                  std::span<const TensorSpec> inputs) const override {
        const Options options = Options::read(attrs);
        require(inputs.size() == 2, "takes indices and a weight, got ", inputs.size(), " tensors");
        const bool in_blocks = !options.blocks.empty();
        require(inputs[1].shape == options.table(), "weight is ", inputs[1].shape,
                ", the options need ", options.table());
        require(!in_blocks || inputs[1].dtype == DType::u8, "blocks of ", options.blocks,
                " need a weight of uint8, got ", name_of(inputs[1].dtype));
        std::vector<std::int64_t> dims = inputs[0].shape.to_vector();
        dims.push_back(options.embedding_dim);
        return {{Shape(dims), in_blocks ? DType::f32 : inputs[1].dtype}};
    }
    std::pair<int, std::int64_t> label_input(const Attrs& attrs,
                                             std::span<const TensorSpec>) const override {
        return {0, attrs.integer("num_embeddings")};
    }

    void gradient(GradientContext& context) const override {
        const ValueId dy = context.output_gradients[0];
        if (dy == no_value || !context.wanted[1]) return;
        if (!Options::read(context.node.attrs).blocks.empty()) return;
        context.input_gradients[1] =
            context.graph.add1(backward_type, context.node.name + "/backward",
                               {context.node.inputs[0], dy}, context.node.attrs);
    }

    void oracle(OracleCall& call) const override {
        const Options options = Options::read(call.attrs);
        const HostArray& indices = call.inputs[0];
        const HostArray weight = unpacked_weights(options.blocks, call.inputs[1]);
        HostArray& y = call.outputs[0];
        std::vector<std::int64_t> dims = indices.shape.to_vector();
        dims.push_back(options.embedding_dim);
        y.shape = Shape(dims);
        y.data.clear();
        for (double index : indices.data) {
            const auto row = static_cast<std::int64_t>(index);
            require(row >= 0 && row < options.num_embeddings, "index ", row,
                    " is no row of a table of ", options.num_embeddings);
            for (std::int64_t d = 0; d < options.embedding_dim; ++d)
                y.data.push_back(
                    weight.data[static_cast<std::size_t>(row * options.embedding_dim + d)]);
        }
    }
    void oracle_backward(OracleBackwardCall& call) const override {
        const Options options = Options::read(call.attrs);
        call.input_gradients.resize(2);
        call.input_gradients[0] = {call.inputs[0].shape, {}, call.inputs[0].dtype};
        if (!options.blocks.empty()) return;  // blocks have no gradient
        HostArray& dw = call.input_gradients[1];
        dw.shape = call.inputs[1].shape;
        dw.data.assign(call.inputs[1].data.size(), 0);
        const auto dim = static_cast<std::size_t>(options.embedding_dim);
        for (std::size_t i = 0; i < call.inputs[0].data.size(); ++i) {
            const auto row = static_cast<std::int64_t>(call.inputs[0].data[i]);
            if (row == options.padding_idx) continue;
            for (std::size_t d = 0; d < dim; ++d)
                dw.data[static_cast<std::size_t>(row) * dim + d] +=
                    call.output_gradients[0].data[i * dim + d];
        }
    }
};

class Backward : public InternalOperator<BackwardOptions> {
  public:
    int min_inputs() const override { return 2; }
    std::vector<TensorSpec> infer(const Attrs& attrs,
                                  std::span<const TensorSpec> inputs) const override {
        const Options options = Options::read(attrs);
        Ints rows = inputs[0].shape.to_vector();
        rows.push_back(options.embedding_dim);
        require(inputs[1].shape == Shape(rows), "the output gradient is ", inputs[1].shape,
                ", indices ", inputs[0].shape, " need ", Shape(rows));
        return {{Shape{options.num_embeddings, options.embedding_dim}, inputs[1].dtype}};
    }
    std::pair<int, std::int64_t> label_input(const Attrs& attrs,
                                             std::span<const TensorSpec>) const override {
        return {0, attrs.integer("num_embeddings")};
    }
};

}  // namespace

Verdict check(const Traits& device, const Problem& problem) {
    const DType table = problem.outputs[0].dtype;
    for (const Operand* operand : {&problem.inputs[1], &problem.outputs[0]})
        if ((operand->dtype != DType::f32 && operand->dtype != DType::f64) ||
            operand->dtype != table)
            return Verdict::no(
                cat("it supports float and double tensors only, not ", name_of(operand->dtype)));
    const DType indices = problem.inputs[0].dtype;
    if (indices != DType::f32 && !is_integer(indices))
        return Verdict::no(cat("it does not support indices of type ", name_of(indices)));
    if (!problem.epilogue.empty()) return Verdict::no("it does not support an epilogue");
    return has_double(device, table);
}

void register_embedding(OperatorRegistry& operators, EngineRegistry& engines) {
    operators.add(std::make_unique<Forward>());
    operators.add(std::make_unique<Backward>());
    add_host_engines(engines);
    add_grouped_engine(engines);
    add_block_engines(engines);
    add_reference_engines(engines);
}

}  // namespace dlprim::embedding
