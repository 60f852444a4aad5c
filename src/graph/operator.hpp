// SPDX-License-Identifier: MIT
// Operator: the contract of an operator type: options, shapes, gradient, oracle. Engines that
// compute it register separately (engine/engine.hpp) under the same type name.
//
// One operator lives in one folder src/ops/<op>/ of which one file defines
//   void register_<op>(OperatorRegistry& operators, EngineRegistry& engines);
// in the namespace dlprim::<op>, and which is named in the list of src/ops/operators.cmake.
#pragma once

#include "graph/graph.hpp"

#include <dlprim/error.hpp>

#include <algorithm>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <unordered_map>
#include <vector>

namespace dlprim {

class EngineRegistry;

struct ParamSpec {
    TensorSpec spec;
    Init init;
    bool trainable = true;
};

/// Host data of an oracle: row-major doubles, and the dtype of the tensor on devices.
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
    /// States that the training-mode forward pass changes: (input index, new contents).
    std::vector<std::pair<int, HostArray>> updated;
    std::uint64_t seed = 0, step = 0;
};

struct OracleBackwardCall {
    const Attrs& attrs;
    bool training = false;
    std::vector<HostArray> inputs;
    std::vector<HostArray> outputs;           ///< as the forward oracle made them
    std::vector<HostArray> output_gradients;  ///< one per output
    std::vector<HostArray> input_gradients;   ///< to fill, one per input; empty data: no gradient
    std::uint64_t seed = 0, step = 0;
    /// For each element of an input's gradient, the sum of the absolute values of its terms. It is
    /// set when the gradient is a difference of terms that may nearly cancel (for example a softmax
    /// that is almost certain), because rounding errors are then measured relative to the terms. If
    /// empty, errors are measured relative to the gradient itself.
    std::vector<HostArray> terms;
};

/// The floating-point types that an operator, and its gradient, can compute on without casts.
enum class FloatTypes : std::uint8_t {
    all,     ///< all types: elementwise work in one kernel, which rounds once, and data movement
    wide,    ///< float and double, by Pointwise nodes; 16-bit tensors are cast, so that values
             ///< between those nodes are not rounded
    single,  ///< float only: 16-bit tensors are cast, and double is refused
};

/// Which part of an input a gradient belongs to. Outside of it the gradient is zero.
struct GradientPart {
    static constexpr int whole = -1;
    int dim = whole;         ///< the dimension of which it is a part; `whole`: it is no part
    std::int64_t begin = 0;  ///< where it starts in that dimension; its end follows from its shape
};

/// The arguments and results of a gradient rule.
struct GradientContext {
    Graph& graph;
    const Node& node;                           ///< a copy: adding nodes does not move it
    std::span<const ValueId> output_gradients;  ///< no_value where no gradient flows back
    std::span<const bool> wanted;               ///< per input: whether its gradient is needed
    std::vector<ValueId> input_gradients;       ///< to fill; no_value: none
    /// Per input, to change where a gradient has elements of a part of the input only: parts that
    /// lie beside each other become one Concat, which costs less than a sum of padded ones.
    std::vector<GradientPart> parts;
};

class Operator {
  public:
    virtual ~Operator() = default;

    virtual std::string_view type() const = 0;
    virtual const Schema& schema() const = 0;
    /// The type by which engines know its problems, and rows of tunings name them. It differs where
    /// those are older than the operator's name.
    virtual std::string_view problem_type() const { return type(); }
    /// Whether this type is made by passes only (...Backward...) and cannot be named in JSON.
    virtual bool internal() const { return false; }

    /// Number of input tensors, without parameters: by default one, or as many as are needed.
    virtual int min_inputs() const { return 1; }
    virtual int max_inputs() const { return std::max(1, min_inputs()); }
    virtual int outputs(const Attrs&) const { return 1; }

    /// The operator's parameters, in the order of the weights file (weight, bias), from the shapes
    /// of its input tensors. Throws Error(invalid_argument) without a prefix, which the graph adds.
    virtual std::vector<ParamSpec> params(const Attrs& attrs,
                                          std::span<const TensorSpec> inputs) const;

    /// Parameters that a training forward writes, by index into params(): running statistics.
    virtual std::vector<std::size_t> written_params(const Attrs&) const { return {}; }

    /// Output shapes and types from all inputs (tensors, then parameters). Throws like params(). If
    /// two shapes disagree, the message contains both.
    virtual std::vector<TensorSpec> infer(const Attrs& attrs,
                                          std::span<const TensorSpec> inputs) const = 0;

    /// Tells expand_composites whether a node needs casts around it or is refused.
    virtual FloatTypes float_types(const Attrs&) const { return FloatTypes::single; }

    /// Runs before differentiation. A composite replaces itself by other nodes, writes the values
    /// of its outputs to `outputs`, and returns true. Gradients then come from those nodes. By
    /// default an operator is not a composite and returns false.
    virtual bool expand(Graph& graph, const Node& node, std::vector<ValueId>& outputs) const;
    /// Whether there are engines for a composite, too, so that it is not expanded where these take
    /// less time than the nodes that it consists of (WholePays in passes/passes.hpp).
    virtual bool may_stay_whole() const { return false; }

    /// Adds the nodes that compute the gradients of the inputs. It is called where a gradient flows
    /// back into at least one output, and at least one input needs one. By default there are none,
    /// and asking for one is an error that names the operator.
    virtual void gradient(GradientContext& context) const;

    /// Runs after differentiation. An operator without an engine of its own replaces itself by
    /// cheaper nodes (BatchNorm in inference, or Softmax). Arguments as for expand().
    virtual bool lower(Graph& graph, const Node& node, std::vector<ValueId>& outputs) const;

    /// The epilogue stage that fuse_epilogues may add to another node instead of running this
    /// operator. An activation becomes a stage of the node that makes its input. A plain sum of two
    /// inputs becomes a stage of the node that makes one of them, and the pass sets `operand` to
    /// the other. By default nothing.
    virtual std::optional<EpilogueStage> as_epilogue(const Attrs&) const { return std::nullopt; }
    /// Whether it computes y = W x + b with output channels. Input 1 is W, whose first dimension is
    /// the output channels. Input 2 is b if the option "bias" is set. fold_batch_norms changes
    /// both.
    virtual bool is_linear_layer() const { return false; }
    /// eps, if in inference the operator computes y = (x - mean) / sqrt(variance + eps) * scale +
    /// offset per channel, from the inputs x, mean and variance, and scale and offset if there are
    /// five inputs. fold_batch_norms folds that into a linear layer that makes x.
    virtual std::optional<double> channel_norm_eps(const Attrs&) const { return std::nullopt; }

    /// Whether the output is the input's memory with another shape (Reshape, Flatten, Squeeze).
    virtual bool is_view() const { return false; }
    /// Whether the output equals the first bytes of the input's memory if both have the same
    /// layout. The planner then lets them share memory, without a launch.
    virtual bool is_beginning(const Node&, const Shape& /*input*/) const { return false; }
    /// Pairs (output, input) where the output may overwrite the input's memory (pointwise).
    virtual std::vector<std::pair<int, int>> in_place(const Node&) const { return {}; }

    /// Nominal operations: 2 x multiply-adds for convolutions and matrix products, else 0.
    virtual double flops(const Attrs& attrs, std::span<const TensorSpec> inputs,
                         std::span<const TensorSpec> outputs) const;

    /// The input that holds class numbers and the number of classes, for range checks. {-1, 0} if
    /// there is none.
    virtual std::pair<int, std::int64_t> label_input(const Attrs& attrs,
                                                     std::span<const TensorSpec> inputs) const;

    /// Naive host code in double precision. Every operator that is not internal has both functions.
    virtual void oracle(OracleCall& call) const;
    virtual void oracle_backward(OracleBackwardCall& call) const;
};

/// Another name of an operator's type, which has options of its own: Interpolation is Resize with
/// other names of options. Where a type enters, in Graph::add(), it becomes the operator's type,
/// and its options become the operator's. Errors and listings speak of the name that the user
/// wrote.
struct TypeAlias {
    std::string_view name, type;
    const Schema* schema = nullptr;  ///< null: the options are the operator's
    /// The operator's options that the alias's completed ones mean. Throws like Operator::params().
    Attrs (*meant)(const Attrs& options) = nullptr;
};

/// What a type's name and options mean.
struct CompleteType {
    const Operator& op;
    Attrs attrs;             ///< completed by the operator's schema
    std::string_view alias;  ///< the name, if it is an alias, and its completed options
    Attrs alias_attrs;
};

class OperatorRegistry {
  public:
    static OperatorRegistry& instance();  ///< with every operator registered
    void add(std::unique_ptr<Operator> op);
    void add(const TypeAlias& alias);
    /// The operator of a type or of an alias. Throws Error(invalid_argument), with the nearest
    /// type, if it is unknown.
    const Operator& get(std::string_view type) const;
    const Operator* find(std::string_view type) const;
    /// The type that an alias means; of another name the name.
    std::string type_of(std::string_view name) const;
    /// The operator of a type or of an alias, and its options. Attributes whose names begin with
    /// '@' are the library's own and stay as they are. Throws Error(invalid_argument), prefixed by
    /// `where` if the options are wrong.
    CompleteType complete(std::string_view type, const Attrs& options,
                          std::string_view where) const;
    /// The same, where the prefix is made only for an error.
    template <typename MakeWhere>
    requires std::is_invocable_r_v<std::string, MakeWhere> CompleteType
    complete(std::string_view type, const Attrs& options, const MakeWhere& where)
    const {
        try {
            return complete(type, options, std::string_view());
        } catch (const Error&) {
            return complete(type, options, std::string_view(where()));
        }
    }
    /// The operators' types, without aliases.
    std::vector<std::string> types(bool internal = false) const;
    /// What a user may write, for hints: types, and aliases that have options of their own.
    std::vector<std::string> names(bool internal = false) const;

  private:
    const TypeAlias* find_alias(std::string_view name) const;
    std::vector<std::unique_ptr<Operator>> operators_;
    std::deque<TypeAlias> aliases_;
    std::unordered_map<std::string_view, const Operator*> by_type_;
    std::unordered_map<std::string_view, const TypeAlias*> by_alias_;
};

/// Whether a type or alias `what` names the node: an alias names the nodes that the user wrote with
/// it, and those that passes made.
bool is_named(const Node& node, std::string_view what);

/// Calls register_<op>() of every folder. Generated from the list in src/ops/operators.cmake.
void register_all_operators(OperatorRegistry& operators, EngineRegistry& engines);

}  // namespace dlprim
