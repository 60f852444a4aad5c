// SPDX-License-Identifier: MIT
// Graph: values (edges) and nodes (operators applied), in static single assignment, nodes in an
// order in which every value is made before it is used.
//
// What happens to a graph, in order (src/graph/passes): expand composites, differentiate, add the
// solver, simplify and lower for the phase; then src/plan turns it into launches.
#pragma once

#include "base/attrs.hpp"
#include "engine/problem.hpp"

#include <dlprim/dtype.hpp>
#include <dlprim/precision.hpp>
#include <dlprim/shape.hpp>

#include <cstddef>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace dlprim {

class Operator;

using ValueId = int;
using NodeId = int;
constexpr int no_value = -1;

struct TensorSpec {
    Shape shape;
    DType dtype = DType::f32;
    bool operator==(const TensorSpec&) const = default;
};

/// How a parameter starts. Fan sizes let a user's choice of He or Xavier replace the default.
struct Init {
    enum class Kind { constant, uniform, normal };
    Kind kind = Kind::constant;
    double a = 0;  ///< constant: the value; uniform: lower bound; normal: mean
    double b = 0;  ///< uniform: upper bound; normal: standard deviation
    std::int64_t fan_in = 0, fan_out = 0;  ///< weights of linear maps: > 0
    std::int64_t zero = 0, zeros = 0;  ///< elements that are zero whatever the rest: from, number
    static Init constant(double v) { return {Kind::constant, v, 0, 0, 0, 0, 0}; }
    static Init uniform(double bound) { return {Kind::uniform, -bound, bound, 0, 0, 0, 0}; }
};

enum class Role : std::uint8_t {
    input,      ///< fed by the user
    parameter,  ///< lives in a parameter block, in weights files; may be trainable
    block,   ///< all trainable parameters ("@params") or all their gradients ("@gradients") as one
             ///< vector
    scalar,  ///< a [1] value the executor sets each step: "@seed", "@step" (i64), "@lr", ... (f32)
    constant,      ///< literal data in the graph
    state,         ///< kept between steps, not a parameter (solver moments, accumulated gradients)
    intermediate,  ///< made by a node
};

struct Value {
    std::string name;
    TensorSpec spec;
    Role role = Role::intermediate;
    NodeId producer = -1;
    bool trainable = false;       ///< parameters
    Init init;                    ///< parameters and states
    std::vector<std::byte> data;  ///< constants
};

/// Which part of a training step a node belongs to; parts run in this order, each by a call of its
/// own (accumulate: gradients are added up over batches; update: the solver).
enum class Part : std::uint8_t { forward, backward, accumulate, update };

struct Node {
    Part part = Part::forward;
    std::string name;  ///< unique; derived nodes are "conv1/backward_filter"
    const Operator* op = nullptr;
    Attrs attrs;  ///< completed by the operator's schema
    std::vector<ValueId>
        inputs;  ///< tensors, then the operator's parameters, then epilogue operands
    std::vector<ValueId> outputs;
    Epilogue epilogue;
    std::vector<std::string> fused;  ///< names of nodes that fusion merged into this one
    std::string engine;              ///< forced engine, or empty
    std::string engine_from;         ///< name or type that force_engines() found it by; empty: the
                                     ///< description's field
    bool engine_by_type =
        false;  ///< it was forced on the type: chosen freely where it does not apply
    Precision precision = Precision::fp32;  ///< of its products; its gradients' too
    bool frozen = false;
    bool removed = false;  ///< tombstone left by passes; skip
};

/// After the node that makes `source` and all readers of `target` have run, `target` (a parameter
/// or state) takes the value of `source` for the next step. The planner does it in place where it
/// can.
struct Assignment {
    ValueId target;
    ValueId source;
};

class Graph {
  public:
    bool training = false;                  ///< training-mode semantics (batch statistics, dropout)
    Part part = Part::forward;              ///< what add() marks nodes with
    Precision precision = Precision::fp32;  ///< likewise

    std::vector<Value> values;
    std::vector<Node> nodes;
    std::vector<ValueId> inputs;                           ///< in declared order
    std::vector<std::pair<ValueId, std::string>> outputs;  ///< value, name the user gave
    std::map<ValueId, double> losses;                      ///< loss outputs and their weights
    std::vector<Assignment> assignments;
    std::map<ValueId, ValueId> gradients;  ///< value -> its gradient, after differentiate
    std::set<std::string, std::less<>>
        forced;  ///< names and types of force_engines() that a node answered to

    const Value& value(ValueId id) const { return values[static_cast<std::size_t>(id)]; }
    Value& value(ValueId id) { return values[static_cast<std::size_t>(id)]; }
    const TensorSpec& spec(ValueId id) const { return value(id).spec; }
    const Shape& shape(ValueId id) const { return value(id).spec.shape; }

    ValueId add_value(Value value);
    /// The value of this name, or no_value.
    ValueId find(std::string_view name) const;
    /// The shared [1] scalar of this name ("@step", "@seed", "@lr"), made at first use.
    ValueId scalar(std::string_view name, DType dtype);
    /// A literal.
    ValueId constant(std::string_view name, const Shape& shape, const std::vector<float>& data);

    /// Appends a node of registered type `type`; completes attrs, infers outputs and names them
    /// "<name>:0", ... Parameters must already be among `inputs`. Throws Error(invalid_argument)
    /// prefixed "[type 'name'] ". A name that is taken gets "#2" behind it.
    std::vector<ValueId> add(std::string_view type, std::string_view name,
                             std::vector<ValueId> inputs, const Attrs& attrs = {});
    /// Lets the next add() of this name have it: for passes that replace a node by one of its name.
    void release_name(std::string_view name);
    /// add() for an operator of one output.
    ValueId add1(std::string_view type, std::string_view name, std::vector<ValueId> inputs,
                 const Attrs& attrs = {});
    /// add() of a Pointwise node from its code; see engine/pointwise/program.hpp.
    std::vector<ValueId> pointwise(std::string_view name, std::string_view code,
                                   std::vector<ValueId> inputs,
                                   const std::vector<double>& scalars = {});
    ValueId pointwise1(std::string_view name, std::string_view code, std::vector<ValueId> inputs,
                       const std::vector<double>& scalars = {});
    /// A view of the value with another shape (a "Reshape" node, which costs nothing).
    ValueId reshape(std::string_view name, ValueId value, const Shape& shape);

    /// Makes every reader (nodes, outputs, losses, assignments) of `from` read `to`.
    void replace_uses(ValueId from, ValueId to);
    /// Drops tombstones and orders nodes so that producers come first, otherwise stable.
    void sort();
    /// Drops nodes none of whose outputs reach an output, gradient wanted or assignment.
    void remove_dead();

    /// Where trainable f32 parameters lie in the parameter block, in order of creation, and its
    /// size, both in elements; gradients lie alike in the gradient block. Parts are aligned to 64
    /// elements.
    std::map<ValueId, std::int64_t> block_offsets() const;
    std::int64_t block_elements() const;
    /// The value of role block called "@params" or "@gradients".
    ValueId block(std::string_view name);

  private:
    std::map<std::string, int, std::less<>> names_;
    std::map<std::string, ValueId, std::less<>> scalars_;
};

}  // namespace dlprim
