// SPDX-License-Identifier: MIT
// Graph: values (edges) and nodes (applied operators) in static single assignment form. Nodes are
// ordered so that every value is made before it is used.
//
// Passes (src/graph/passes) expand composites, differentiate, add the solver, simplify, and lower
// for the phase, in this order. Then src/plan turns the graph into launches.
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

/// The initial value of a parameter. With fan sizes, a user's choice of He or Xavier replaces the
/// default.
struct Init {
    enum class Kind { constant, uniform, normal };
    Kind kind = Kind::constant;
    double a = 0;  ///< constant: the value; uniform: lower bound; normal: mean
    double b = 0;  ///< uniform: upper bound; normal: standard deviation
    std::int64_t fan_in = 0, fan_out = 0;  ///< > 0 for weights of linear maps
    std::int64_t zero = 0, zeros = 0;  ///< elements that are always zero: the first, their number
    static Init constant(double v) { return {Kind::constant, v, 0, 0, 0, 0, 0}; }
    static Init uniform(double bound) { return {Kind::uniform, -bound, bound, 0, 0, 0, 0}; }
};

enum class Role : std::uint8_t {
    input,      ///< fed by the user
    parameter,  ///< stored in weights files; may be trainable
    block,      ///< all trainable parameters ("@params") or their gradients ("@gradients") in one
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
    /// Of role block, or a state of such elements: the element of the block with which a part of it
    /// begins. -1: it is the whole block.
    std::int64_t part_begin = -1;
};

/// The part of a training step that a node belongs to. Parts run in this order, each by its own
/// call. "accumulate" adds up gradients over batches, and "update" is the solver.
enum class Part : std::uint8_t { forward, backward, accumulate, update };
inline const char* name_of(Part part) {
    constexpr const char* names[] = {"forward", "backward", "accumulate", "update"};
    return names[static_cast<std::size_t>(part)];
}

struct Node {
    Part part = Part::forward;
    std::string name;  ///< unique; derived nodes are "conv1/backward_filter"
    const Operator* op = nullptr;
    Attrs attrs;  ///< completed by the operator's schema
    /// The alias of the operator's type (graph/operator.hpp) that the user wrote, with its
    /// completed options. Empty if that is the type itself, and of nodes that passes make.
    std::string_view alias;
    Attrs alias_attrs;
    std::vector<ValueId>
        inputs;  ///< tensors, then the operator's parameters, then epilogue operands
    std::vector<ValueId> outputs;
    Epilogue epilogue;
    std::vector<std::string> fused;  ///< names of nodes that fusion merged into this one
    std::string engine;              ///< forced engine, or empty
    std::string engine_from;         ///< the name or type by which force_engines() forced it;
                                     ///< empty if the description did
    bool engine_by_type =
        false;  ///< forced by type: another engine is chosen where it does not apply
    Precision precision = Precision::fp32;  ///< of its products and of its gradients' products
    bool frozen = false;
    bool removed = false;  ///< tombstone left by passes; skip
    /// A forward node whose results are not kept for backward, but computed again there
    /// (passes/run_again.hpp). Passes hand it on to what replaces the node.
    bool recompute = false;
    bool again = false;  ///< runs a forward node once more, in backward

    std::string_view type() const;  ///< as the user wrote it: the alias, or the operator's type
};

/// After the node that makes `source` and all readers of `target` have run, `target` (a parameter
/// or state) gets the value of `source` for the next step. The planner updates it in place where it
/// can.
struct Assignment {
    ValueId target;
    ValueId source;
};

class Graph {
  public:
    bool training = false;                  ///< training-mode semantics (batch statistics, dropout)
    int shards = 1;                         ///< of a batch, of which the graph computes one
    Part part = Part::forward;              ///< the part of the nodes that add() makes
    Precision precision = Precision::fp32;  ///< the precision of the nodes that add() makes

    std::vector<Value> values;
    std::vector<Node> nodes;
    std::vector<ValueId> inputs;                           ///< in declared order
    std::vector<std::pair<ValueId, std::string>> outputs;  ///< value, name the user gave
    std::map<ValueId, double> losses;                      ///< loss outputs and their weights
    std::vector<Assignment> assignments;
    std::map<ValueId, ValueId> gradients;  ///< value -> its gradient, after differentiate
    std::set<std::string, std::less<>>
        forced;  ///< names and types of force_engines() that matched a node

    const Value& value(ValueId id) const { return values[static_cast<std::size_t>(id)]; }
    Value& value(ValueId id) { return values[static_cast<std::size_t>(id)]; }
    const TensorSpec& spec(ValueId id) const { return value(id).spec; }
    const Shape& shape(ValueId id) const { return value(id).spec.shape; }

    ValueId add_value(Value value);
    /// Returns the value of this name, or no_value.
    ValueId find(std::string_view name) const;
    /// Returns the shared [1] scalar of this name ("@step", "@seed", "@lr"), made on first use.
    ValueId scalar(std::string_view name, DType dtype);
    /// Adds literal data.
    ValueId constant(std::string_view name, const Shape& shape, const std::vector<float>& data);

    /// Appends a node of registered type `type`: completes attrs, infers outputs and names them
    /// "<name>:0", ... Parameters must already be among `inputs`. If the name is taken, "#2" is
    /// appended to it. Throws Error(invalid_argument) with the prefix "[type 'name'] ".
    std::vector<ValueId> add(std::string_view type, std::string_view name,
                             std::vector<ValueId> inputs, const Attrs& attrs = {});
    /// Lets the next add() reuse this name, for passes that replace a node by another of the same
    /// name.
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

    /// Makes every reader (nodes, outputs, losses, assignments) of `from` read `to` instead.
    void replace_uses(ValueId from, ValueId to);
    /// Drops tombstones and sorts nodes so that producers come first. Otherwise keeps their order.
    void sort();
    /// Drops nodes that no output, wanted gradient or assignment depends on.
    void remove_dead();

    /// The offsets of trainable f32 parameters in the parameter block, in order of creation, and
    /// the block's size, both in elements. Each parameter starts at a multiple of 64 elements. The
    /// gradient block has the same offsets.
    std::map<ValueId, std::int64_t> block_offsets() const;
    std::int64_t block_elements() const;
    /// Returns the value of role block that is called "@params" or "@gradients".
    ValueId block(std::string_view name);
    /// Parts of blocks begin at multiples of so many elements (256 bytes, as vectors and devices
    /// need), as the parameters in them do.
    static constexpr std::int64_t block_grain = 64;
    /// Adds the value of the block's elements [begin, begin + count), which has the block's memory.
    ValueId block_part(std::string_view name, std::int64_t begin, std::int64_t count);

  private:
    std::map<std::string, int, std::less<>> names_;
    std::map<std::string, ValueId, std::less<>> scalars_;
};

}  // namespace dlprim
