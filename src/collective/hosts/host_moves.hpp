// SPDX-License-Identifier: MIT
// HostMoves: collective operations of processes of a host on tensors of their devices, in steps of
// a chunk each. In one step a process sends chunk i, adds up its slice of chunk i - 1, publishes
// that of chunk i - 2 and takes the other slices of chunk i - 3, so that copies in both directions
// and additions run at once.
//
// All processes have to call the same. Each writes what it calls as a note in the first step; where
// these differ, all throw in the second one.
//
// Threads: one at a time.
#pragma once

#include "collective/hosts/host_board.hpp"
#include "collective/hosts/host_rooms.hpp"

#include <dlprim/error.hpp>
#include <dlprim/tensor.hpp>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace dlprim {

/// How elements of several ranks become one. All that is enqueued is on the tensors' context.
struct HostReduction {
    /// out = a op b; `out` may be one of them.
    std::function<void(const Tensor& a, const Tensor& b, const Tensor& out)> combine;
    /// Changes the result of all ranks; may be empty.
    std::function<void(const Tensor& result)> complete;
};

class HostMoves {
  public:
    using Deadline = HostBoard::Deadline;
    /// What all processes throw where their calls differ.
    class Mismatch : public Error {
      public:
        explicit Mismatch(const std::string& text) : Error(ErrorKind::invalid_argument, text) {}
    };
    HostMoves(HostBoard& board, HostRooms& rooms) : board_(board), rooms_(rooms) {}

    void all_reduce(const Tensor& tensor, const HostReduction& reduction, const std::string& call,
                    Deadline deadline);
    void broadcast(const Tensor& tensor, std::size_t root, const std::string& call,
                   Deadline deadline);
    void all_gather(const Tensor& own, const std::vector<Tensor>& all, const std::string& call,
                    Deadline deadline);

  private:
    /// Elements [begin, end).
    struct Range {
        std::int64_t begin = 0, end = 0;
        std::int64_t size() const { return end - begin; }
    };
    /// A row-major tensor cut in chunks, which all processes cut alike, and a chunk in slices.
    struct Cut {
        std::int64_t elements = 0, each = 1, chunks = 0;
        std::uint64_t size = 1;  ///< bytes of an element
        std::size_t processes = 1;
        explicit Cut(const Tensor& tensor, std::size_t parts);
        Range chunk(std::int64_t index) const;
        Range slice(std::int64_t index, std::size_t process) const;
        /// How far a range begins behind its chunk.
        std::uint64_t offset(std::int64_t index, const Range& range) const {
            return static_cast<std::uint64_t>(range.begin - chunk(index).begin) * size;
        }
        bool has(std::int64_t index) const { return index >= 0 && index < chunks; }
    };
    /// Makes so many steps: `work(side, i)` enqueues what is done in step i.
    void run(const Context& context, std::int64_t steps, const std::string& call, Deadline deadline,
             const std::function<void(HostSide& side, std::int64_t step)>& work);
    void compare_notes() const;
    void reduce(HostSide& side, const Cut& cut, std::int64_t index, const Tensor& whole,
                const HostReduction& reduction) const;

    HostBoard& board_;
    HostRooms& rooms_;
};

}  // namespace dlprim
