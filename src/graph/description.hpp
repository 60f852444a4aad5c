// SPDX-License-Identifier: MIT
// NetDescription: a network as a file describes it (JSON or ONNX), before shapes are checked.
#pragma once

#include "base/attrs.hpp"
#include "graph/graph.hpp"

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace dlprim {

struct NetDescription {
    struct Input {
        std::string name;
        Shape shape;
        DType dtype = DType::f32;
    };
    struct Output {
        std::string name;
        std::optional<double> loss_weight;
        bool plain = false;  ///< it is no loss, whatever its name
    };
    struct Op {
        std::string name, type;
        std::vector<std::string> inputs, outputs, params;
        Attrs options;
        /// Of functions: it makes the gradients of these of its inputs and parameters, of that of
        /// its first output, which is the last of `inputs`. Empty: it makes its results.
        std::vector<std::int64_t> gradients = {};
        bool frozen = false;
        bool recompute = false;  ///< as Node::recompute
        std::string device, engine;
        std::optional<Precision> precision;
    };
    std::vector<Input> inputs;
    std::vector<Output> outputs;
    std::vector<Op> operators;
    std::string source;  ///< file name for messages
    /// Of the types that passes make, such as gradients, those that operators may have, too. Where
    /// there are any, the description is a function's.
    std::span<const std::string_view> internal_types;
};

/// Overrides the precisions of operators by name or by type. Overrides by name apply always;
/// overrides by type apply to operators whose description sets no precision. If a name or type
/// appears twice, the last one wins. Returns a remark for each type of which the network has no
/// operator. Throws Error(invalid_argument), with the nearest name, on what is neither a name nor a
/// type.
std::vector<std::string> override_precisions(
    NetDescription& description, const std::vector<std::pair<std::string, Precision>>& precisions);

/// Builds the graph: resolves names (an output that names an input makes a new version of it),
/// makes parameters, completes options, and infers shapes. `input_shapes` overrides declared
/// shapes. A `batch` > 0 replaces the first dimension of every input. `precision` is for operators
/// that set none. Throws Error(invalid_argument) with the prefix "[type 'name'] " on an unknown
/// type, a tensor that no operator makes, a cycle (operators out of order are sorted first),
/// duplicate operator names, and shapes that do not fit.
Graph build_graph(const NetDescription& description,
                  const std::map<std::string, Shape>& input_shapes = {}, std::int64_t batch = 0,
                  bool training = false, Precision precision = Precision::fp32);

}  // namespace dlprim
