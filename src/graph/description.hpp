// SPDX-License-Identifier: MIT
// NetDescription: a network as a file gives it (JSON today), before shapes are known to agree.
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
    };
    struct Op {
        std::string name, type;
        std::vector<std::string> inputs, outputs, params;
        Attrs options;
        bool frozen = false;
        std::string device, engine;
        std::optional<Precision> precision;
    };
    std::vector<Input> inputs;
    std::vector<Output> outputs;
    std::vector<Op> operators;
    std::string source;  ///< file name for messages
};

/// Gives operators the precisions that are asked for by name or by type; a name goes before what
/// the description says of an operator, and that before a type. Of the same name or type the last
/// counts. Returns remarks: types of which the network has no operator. Throws
/// Error(invalid_argument) offering the nearest on what is neither.
std::vector<std::string> override_precisions(
    NetDescription& description, const std::vector<std::pair<std::string, Precision>>& precisions);

/// Builds the graph: resolves names (an output that names an input makes a new version of it),
/// makes parameters, completes options, infers shapes. `input_shapes` overrides declared shapes;
/// `batch` > 0 replaces the first dimension of every input. `precision`: of operators without one
/// of their own. Throws Error(invalid_argument): "[type 'name'] ...": unknown type, tensor nobody
/// makes, a cycle (operators out of order are sorted; what cannot be is a cycle), duplicate
/// operator names, shapes.
Graph build_graph(const NetDescription& description,
                  const std::map<std::string, Shape>& input_shapes = {}, std::int64_t batch = 0,
                  bool training = false, Precision precision = Precision::fp32);

}  // namespace dlprim
