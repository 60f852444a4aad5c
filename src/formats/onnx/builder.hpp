// SPDX-License-Identifier: MIT
// Builder: makes a NetDescription operator by operator, with shapes and types known at every step,
// and folds on the host what depends on constants alone. It knows nothing of ONNX.
//
// A value is referred to by a Ref, which is valid as long as its Builder. A value that is known (a
// constant) costs nothing until an operator reads it: it then becomes that operator's parameter, a
// Constant or a Parameter.
#pragma once

#include "graph/description.hpp"

#include <dlprim/tensor_file.hpp>

#include <cstddef>
#include <deque>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace dlprim::onnx {

using HostValue = std::shared_ptr<const HostTensor>;

/// A network and the values of its parameters, by name; values are shared with the model's.
struct ImportedNet {
    NetDescription description;
    std::map<std::string, HostValue> values;
};

struct BuiltValue {
    TensorSpec spec;
    HostValue known;      ///< null: only the device knows
    bool stored = false;  ///< known, and an initialiser of the model: a solver may change it
    int producer = -1;    ///< the operator that makes it
};
using Ref = const BuiltValue*;

/// An operator of the network that is built.
struct BuiltOperator {
    std::string type, name;
    Attrs options;
    std::vector<Ref> inputs, params, outputs;
};

class Builder {
  public:
    Ref input(const std::string& name, const TensorSpec& spec);
    /// A value that is known. `stored`: an initialiser, which may be trained.
    Ref constant(const std::string& name, HostValue value, bool stored = false);
    Ref integers(const std::string& name, const std::vector<std::int64_t>& values);

    /// The next operators get this name, or names that begin with it.
    void begin(const std::string& name) { at_ = name; }

    /// Adds an operator and returns its outputs. `params`: its parameters in the order of weights
    /// files; they may be known or computed. Where all is known and small, nothing is added: the
    /// operator's oracle computes the outputs here. Throws Error(invalid_argument), which names the
    /// operator, as build_graph() does.
    std::vector<Ref> add(std::string_view type, const std::vector<Ref>& inputs,
                         const Attrs& options = {}, const std::vector<Ref>& params = {});
    /// add() for an operator of one output.
    Ref add1(std::string_view type, const std::vector<Ref>& inputs, const Attrs& options = {},
             const std::vector<Ref>& params = {});
    /// A Pointwise operator of one output.
    Ref pointwise(std::string_view code, const std::vector<Ref>& inputs,
                  const std::vector<double>& scalars = {}, std::string_view dtype = {});
    /// A view of another shape; the value itself where it has that shape. The operator deduces
    /// dimension `deduced`, so that the network may be given another batch.
    Ref reshape(Ref value, const Shape& shape, int deduced = -1);
    Ref cast(Ref value, DType dtype);
    Ref transpose(Ref value, const std::vector<std::int64_t>& order);

    /// Names the value as the model does; the first name counts.
    void name(Ref value, const std::string& name);
    /// "" where it has none.
    std::string name_of(Ref value) const;

    /// The network whose outputs are these values under these names. Operators that none of them
    /// needs are left out.
    ImportedNet finish(const std::vector<std::pair<std::string, Ref>>& outputs);

  private:
    BuiltValue& make(const TensorSpec& spec, const std::string& name = {});
    Ref output(const std::string& name, Ref value, std::set<Ref>& taken);
    std::string unique(const std::string& wanted, const std::set<std::string>& taken);
    std::vector<bool> needed(const std::vector<std::pair<std::string, Ref>>& outputs) const;
    void write(const BuiltOperator& made, ImportedNet& net);
    /// The tensor's name in the description; of a known value an operator is added that makes it.
    std::string tensor_name(Ref value, ImportedNet& net);
    std::string parameter_name(Ref value, ImportedNet& net);

    std::string at_;
    std::deque<BuiltValue> values_;
    std::vector<BuiltOperator> made_;
    std::vector<NetDescription::Input> inputs_;
    std::set<std::string> operator_names_, tensor_names_, parameter_names_;
    /// Where unique() goes on for a set and a name: thousands of nodes may have the same name.
    std::map<std::pair<const std::set<std::string>*, std::string>, int> next_;
    /// What the model calls values; what the description calls tensors and parameters.
    std::map<Ref, std::string> names_, tensors_, parameters_;
};

/// What the operator makes of known values, by its oracle: one tensor an output; empty where the
/// result would be too large to be worth it, or an integer would lose digits in a double.
std::vector<HostValue> fold(const Operator& op, const Attrs& options,
                            const std::vector<HostValue>& inputs,
                            const std::vector<TensorSpec>& outputs);

/// Values of one dimension as integers; a number is a list of one. Throws Error(invalid_argument)
/// for floats.
std::vector<std::int64_t> to_integers(const HostTensor& value);
std::vector<double> to_numbers(const HostTensor& value);
HostValue host_integers(const Shape& shape, const std::vector<std::int64_t>& values,
                        DType dtype = DType::i64);
HostValue host_numbers(const Shape& shape, const std::vector<double>& values, DType dtype);

}  // namespace dlprim::onnx
