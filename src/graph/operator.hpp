// SPDX-License-Identifier: MIT
// Operator: the contract of an operator type: options, shapes, gradient, oracle. Engines that
// compute it register separately (engine/engine.hpp) under the same type name.
//
// One operator lives in one folder src/ops/<op>/ whose register.cpp defines
//   void register_<op>();   // adds its Operators and Engines
// and is named in the list of src/ops/CMakeLists.txt.
#pragma once

#include "graph/graph.hpp"

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace dlprim {

struct ParamSpec {
    TensorSpec spec;
    Init init;
    bool trainable = true;
};

/// Host data of an oracle: row-major doubles, with the dtype that the tensor has on devices.
struct HostArray {
    Shape shape;
    std::vector<double> data;
    DType dtype = DType::f32;
};

struct OracleCall {
    const Attrs& attrs;
    bool training = false;
    std::vector<HostArray> inputs;   ///< tensors, then parameters
    std::vector<HostArray> outputs;  ///< to fill
    /// States that the training forward changes: (input index, new contents).
    std::vector<std::pair<int, HostArray>> updated;
    std::uint64_t seed = 0, step = 0;
};

struct OracleBackwardCall {
    const Attrs& attrs;
    bool training = false;
    std::vector<HostArray> inputs;
    std::vector<HostArray> outputs;           ///< as the forward oracle made them
    std::vector<HostArray> output_gradients;  ///< one an output
    std::vector<HostArray> input_gradients;   ///< to fill, one an input; empty data: no gradient
    std::uint64_t seed = 0, step = 0;
    /// Of an input whose gradient is a difference of terms that may all but cancel (a softmax that
    /// is all but certain): for each element the sum of its terms' absolute values, by which
    /// rounding errors are measured. Empty: the gradient's own size is the measure.
    std::vector<HostArray> terms;
};

/// Which floating-point types nodes of an operator, and those of its gradient, compute on as they
/// are.
enum class FloatTypes : std::uint8_t {
    all,   ///< elementwise work in one kernel, which rounds once; data movement
    wide,  ///< float and double, by Pointwise nodes; 16 bits go through casts, so that what passes
           ///< between those is not rounded
    single,  ///< float; 16 bits go through casts, double is refused
};

/// What a gradient rule works with.
struct GradientContext {
    Graph& graph;
    const Node& node;                           ///< a copy: adding nodes does not move it
    std::span<const ValueId> output_gradients;  ///< no_value where nothing flows back
    std::span<const bool> wanted;               ///< an input: is its gradient needed
    std::vector<ValueId> input_gradients;       ///< to fill; no_value: none
};

class Operator {
  public:
    virtual ~Operator() = default;

    virtual std::string_view type() const = 0;
    virtual const Schema& schema() const = 0;
    /// Types that passes make (…Backward…) and JSON may not name.
    virtual bool internal() const { return false; }

    /// Number of input tensors, parameters not counted.
    virtual int min_inputs() const { return 1; }
    virtual int max_inputs() const { return 1; }
    virtual int outputs(const Attrs&) const { return 1; }

    /// The operator's parameters in the order of formats (weight, bias), from the shapes of its
    /// input tensors. Throws Error(invalid_argument) without a prefix; the graph adds it.
    virtual std::vector<ParamSpec> params(const Attrs& attrs,
                                          std::span<const TensorSpec> inputs) const;

    /// Output shapes and types from all inputs (tensors, then parameters). Throws like params(),
    /// with both shapes where two disagree.
    virtual std::vector<TensorSpec> infer(const Attrs& attrs,
                                          std::span<const TensorSpec> inputs) const = 0;

    /// expand_composites puts casts around a node, or refuses it, by this.
    virtual FloatTypes float_types(const Attrs&) const { return FloatTypes::single; }

    /// Before differentiation: a composite replaces itself by other nodes and says where its
    /// outputs come from: fills `outputs` and returns true. Default: not a composite. Gradients
    /// then come from the nodes it is made of.
    virtual bool expand(Graph& graph, const Node& node, std::vector<ValueId>& outputs) const;

    /// Adds the nodes that compute the gradients of its inputs. The default: none, and asking for
    /// one is an error that names the operator.
    virtual bool differentiable() const { return false; }
    virtual void gradient(GradientContext& context) const;

    /// After differentiation: replace itself by cheaper nodes where it has no engine of its own
    /// (BatchNorm in inference, Softmax without an engine). Like expand().
    virtual bool lower(Graph& graph, const Node& node, std::vector<ValueId>& outputs) const;

    /// What fuse_epilogues may have another node do in its place: an activation the node that makes
    /// its input; a plain sum of its two inputs, whose `operand` the pass sets, the node that makes
    /// one of them. Default: nothing.
    virtual std::optional<EpilogueStage> as_epilogue(const Attrs&) const { return std::nullopt; }
    /// y = W x + b, with output channels: input 1 is W, whose first dimension they are, and input 2
    /// is b where the option "bias" is set. fold_batch_norms changes both.
    virtual bool is_linear_layer() const { return false; }
    /// Where inference computes y = (x - mean) / sqrt(variance + eps) * scale + offset by channel
    /// from the inputs x, mean and variance, and scale and offset where there are five: eps.
    /// fold_batch_norms folds that into a linear layer that makes x.
    virtual std::optional<double> channel_norm_eps(const Attrs&) const { return std::nullopt; }

    /// The output is the input's memory under another shape (Reshape, Flatten, Squeeze).
    virtual bool is_view() const { return false; }
    /// The output is how the memory of the input begins, where both have the same layout: the
    /// planner lets them share it, without a launch.
    virtual bool is_beginning(const Node&, const Shape& /*input*/) const { return false; }
    /// Inputs whose memory an output may take over (pointwise): pairs (output, input).
    virtual std::vector<std::pair<int, int>> in_place(const Node&) const { return {}; }

    /// Nominal operations: 2 x multiply-adds of convolutions and matrix products, else 0.
    virtual double flops(const Attrs& attrs, std::span<const TensorSpec> inputs,
                         std::span<const TensorSpec> outputs) const;

    /// An input that holds class numbers: its index and the number of classes, for range checks.
    /// {-1, 0}: none.
    virtual std::pair<int, std::int64_t> label_input(const Attrs& attrs,
                                                     std::span<const TensorSpec> inputs) const;

    /// Naive host code in double. Every non-internal operator has both.
    virtual void oracle(OracleCall& call) const;
    virtual void oracle_backward(OracleBackwardCall& call) const;
};

class OperatorRegistry {
  public:
    static OperatorRegistry& instance();  ///< with every operator registered
    void add(std::unique_ptr<Operator> op);
    /// Throws Error(invalid_argument) offering the nearest type.
    const Operator& get(std::string_view type) const;
    const Operator* find(std::string_view type) const;
    std::vector<std::string> types(bool internal = false) const;

  private:
    std::vector<std::unique_ptr<Operator>> operators_;
};

/// Generated from the list in src/ops/CMakeLists.txt: registers all operators and engines, once.
void register_all_operators();

}  // namespace dlprim
