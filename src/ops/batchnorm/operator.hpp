// SPDX-License-Identifier: MIT
// BatchNorm: normalises each channel (dimension 1) by statistics, then applies scale and offset.
//
// BatchNorm itself uses the running statistics: in inference, in evaluation, when frozen, and with
// use_global_stats. Otherwise it expands in training into BatchNormTraining, which uses the batch's
// statistics, and into assignments of the running statistics.
#pragma once

#include "graph/declared_operator.hpp"

namespace dlprim::batchnorm {

class BatchNorm : public DeclaredOperator<ops::BatchNorm> {
  public:
    FloatTypes float_types(const Attrs&) const override { return FloatTypes::wide; }
    std::vector<ParamSpec> params(const Attrs& attrs,
                                  std::span<const TensorSpec> inputs) const override;
    int outputs(const Attrs& attrs) const override {
        return attrs.boolean("return_statistics") ? 3 : 1;
    }
    std::vector<std::size_t> written_params(const Attrs& attrs) const override;
    std::vector<TensorSpec> infer(const Attrs& attrs,
                                  std::span<const TensorSpec> inputs) const override;
    bool expand(Graph& graph, const Node& node, std::vector<ValueId>& outputs) const override;
    void gradient(GradientContext& context) const override;
    std::optional<double> channel_norm_eps(const Attrs& attrs) const override {
        if (attrs.boolean("return_statistics")) return std::nullopt;
        return attrs.number("eps");
    }
    bool lower(Graph& graph, const Node& node, std::vector<ValueId>& outputs) const override;
    void oracle(OracleCall& call) const override;
    void oracle_backward(OracleBackwardCall& call) const override;
};

struct TrainingOptions {
    static constexpr std::string_view type = "BatchNormTraining";
    double eps = 1e-5, momentum = 0.1;
    std::int64_t shards = 1;
    static constexpr auto fields() {
        return ops::option_table(
            ops::option<&TrainingOptions::eps>("added to the variance"),
            ops::option<&TrainingOptions::momentum>(
                "share of the new batch in the running statistics"),
            ops::option<&TrainingOptions::shards>(
                "of so many shards of a batch, of which this is one, are the statistics"));
    }
};

/// Inputs: x, the running mean and variance [C], then scale [C] and offset [C] when affine.
/// Outputs:
/// - y
/// - of shape [1, C, 1, ...]: a shift near the mean; the mean minus the shift (`rest`);
///   r = 1 / sqrt(variance + eps); and a weight for the gradient, 1 / (variance + eps) / r, with r
///   as rounded, divided by (elements per channel / the next power of two)
/// - of shape [C]: the running mean and variance after this batch
/// Differences from the mean are computed as (x - shift) - rest, which is accurate also if the mean
/// is large compared with the deviation.
class BatchNormTraining : public InternalOperator<TrainingOptions> {
  public:
    int min_inputs() const override { return 3; }
    int max_inputs() const override { return 5; }
    int outputs(const Attrs&) const override { return 7; }
    std::vector<TensorSpec> infer(const Attrs& attrs,
                                  std::span<const TensorSpec> inputs) const override;
    void gradient(GradientContext& context) const override;
    bool lower(Graph& graph, const Node& node, std::vector<ValueId>& outputs) const override;
};

/// The type of statistics of a tensor: float, or double for double.
DType statistic_type(DType x);

std::unique_ptr<Operator> make_operator();
std::unique_ptr<Operator> make_backward();
std::unique_ptr<Operator> make_training();

/// The operator that takes values of all shards of a batch (shard_sum.cpp).
constexpr const char* shard_sum_type = "ShardSum";
std::unique_ptr<Operator> make_shard_sum();
void add_shard_sum_engines(EngineRegistry& engines);

}  // namespace dlprim::batchnorm
