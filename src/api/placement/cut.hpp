// SPDX-License-Identifier: MIT
// cut_net: cuts a network into parts, each of which runs on one device. A part is a run of
// operators, in their order, that have the same device.
#pragma once

#include "api/part_border.hpp"
#include "graph/description.hpp"

#include <cstddef>
#include <map>
#include <string>
#include <vector>

namespace dlprim {

/// A value that crosses a border: one part makes it, or the caller feeds it, and parts read it.
struct Crossing {
    static constexpr int caller = -1;
    std::string name;
    TensorSpec spec;
    int maker = caller;
    std::vector<int> readers;  ///< parts other than the maker, in their order
    /// Those through which its gradient flows back. Backward begins with the last one; each adds to
    /// what the later ones have made, and the maker continues with the sum. So the sum has the
    /// order that it has in the whole network.
    std::vector<int> differentiable;
};

struct CutPart {
    std::size_t device = 0;
    NetDescription description;
    PartBorder border;
    bool runs = true;       ///< false: nobody needs its results, and it only keeps parameters
    bool trains = false;    ///< whether it has trainable parameters
    bool backward = false;  ///< whether gradients flow through it
};

struct CutNet {
    std::vector<CutPart> parts;
    std::vector<Crossing> crossings;
    std::map<std::string, int> output_parts, param_parts;  ///< the part that has it, by name
};

/// The operator of the part that a node comes from: "conv" of "conv/backward_filter". Empty if it
/// is from none.
std::string operator_of(const CutPart& part, std::string node);

struct CutOptions {
    std::map<std::string, std::size_t> devices;  ///< by operator
    bool gradients = false;                      ///< whether the parts run backward
    bool input_gradients = false;                ///< also to float inputs of the network
};

/// `whole` is the graph of the description before any pass. Throws Error(invalid_argument) where
/// two parts share a parameter.
CutNet cut_net(const NetDescription& description, const Graph& whole, const CutOptions& options);

}  // namespace dlprim
