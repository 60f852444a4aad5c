// SPDX-License-Identifier: MIT
// The order of a graph's nodes. ONNX wants them sorted, so that each stands behind those whose
// results it reads, but not every exporter sorts them.
#pragma once

#include "formats/onnx/model.hpp"

#include <functional>
#include <string>
#include <vector>

namespace dlprim::onnx {

/// Calls `use(name)` for every name that the node reads from the graph around it: its inputs, and
/// what graphs that it owns read and do not define themselves.
void each_name_read(const Node& node, const std::function<void(const std::string&)>& use);

/// Sorts the graph's nodes topologically. Nodes that are sorted keep their order. Throws
/// Error(format), which names the nodes, where some form a cycle. A name that nothing makes is no
/// error here.
void sort_nodes(Graph& graph);
void sort_nodes(Function& function);

}  // namespace dlprim::onnx
