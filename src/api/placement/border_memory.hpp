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

class PlacedTrace;

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
    /// Bytes of one copy on a context, and what the plans of its parts count of them: tensors that
    /// several of them share count for each.
    std::uint64_t bytes(const Context& context) const;
    std::uint64_t counted_bytes(const Context& context) const;
    std::uint64_t counted_bytes(int part) const;

    /// Allocates the tensors, which are zero, so many times. They are what the plans of the part
    /// are to use: each copy is for a shard in flight.
    void allocate(std::size_t copies);
    std::size_t copies() const { return memory_.size(); }
    const GivenMemory& memory_of(int part, std::size_t copy) const {
        return memory_.at(copy).at(static_cast<std::size_t>(part));
    }

    /// Makes the moves before forward, or those after the part has run, of the first copy.
    void move_inputs(const PlacedTrace& trace);
    void move_after(int part, bool backward, const PlacedTrace& trace);

    const Tensor& source_of(const BorderMove& move, std::size_t copy) const {
        return slots_[move.source].tensors.at(copy);
    }
    const Tensor& target_of(const BorderMove& move, std::size_t copy) const {
        return slots_[move.target].tensors.at(copy);
    }
    /// Records that others have made the move so often.
    void count(std::size_t move, std::uint64_t times) { moves_.at(move).times += times; }

  private:
    struct Slot {
        Context context;
        TensorSpec spec;
        std::vector<Tensor> tensors;  ///< by copy

        std::uint64_t bytes() const {
            return static_cast<std::uint64_t>(spec.shape.numel()) * size_of(spec.dtype);
        }
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
    void make(std::size_t index, const PlacedTrace& trace);

    std::vector<Context> contexts_;
    std::vector<Slot> slots_;
    std::vector<Binding> bindings_;
    std::vector<BorderMove> moves_;
    std::vector<std::vector<GivenMemory>> memory_;  ///< by copy and part
};

}  // namespace dlprim
