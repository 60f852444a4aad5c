// SPDX-License-Identifier: MIT
// BorderMemory: the tensors of values that cross the borders of a network's parts, and the moves
// between those of different devices.
#pragma once

#include "api/placement/cut.hpp"

#include <dlprim/context.hpp>
#include <dlprim/tensor.hpp>

#include <cstdint>
#include <map>
#include <vector>

namespace dlprim {

/// A copy of a value, or of its gradient, between the tensors of two parts. Parts on one context
/// have one tensor in common, and nothing moves between them.
struct BorderMove {
    std::size_t crossing = 0;
    bool gradient = false;
    int from = 0, to = 0;   ///< parts; of an input of the network, `from` is its first reader
    bool at_start = false;  ///< before forward: an input of the network
    std::size_t source = 0, target = 0;  ///< tensors
    std::uint64_t times = 0;             ///< how often it was made
};

class BorderMemory {
  public:
    BorderMemory() = default;
    /// `contexts`: of each part. Allocates nothing.
    BorderMemory(const CutNet& net, std::vector<Context> contexts);

    const std::vector<BorderMove>& moves() const { return moves_; }
    /// Bytes on a context that the plans of several parts count, although they share them.
    std::uint64_t counted_twice(const Context& context) const;

    /// Allocates the tensors, which are zero. They are what the plans of the part are to use.
    void allocate();
    GivenMemory memory_of(int part) const;

    /// Makes the moves before forward, or those after the part has run.
    void move_inputs();
    void move_after(int part, bool backward);

  private:
    struct Slot {
        Context context;
        TensorSpec spec;
        int users = 0;  ///< parts whose plans bind it
        Tensor tensor;
    };
    struct Binding {
        int part;
        std::map<std::string, Tensor> GivenMemory::*list;
        std::string name;
        std::size_t slot;
    };

    std::size_t add_slot(int part, const TensorSpec& spec);
    void bind(int part, std::map<std::string, Tensor> GivenMemory::*list, std::string name,
              std::size_t slot);
    const Context& context(int part) const { return contexts_[static_cast<std::size_t>(part)]; }
    void add_value(const Crossing& crossing, std::size_t index);
    void add_gradient(const Crossing& crossing, std::size_t index);
    void make(BorderMove& move);

    std::vector<Context> contexts_;
    std::vector<Slot> slots_;
    std::vector<Binding> bindings_;
    std::vector<BorderMove> moves_;
};

}  // namespace dlprim
