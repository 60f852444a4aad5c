// SPDX-License-Identifier: MIT
// PieceExchange: gives pieces of bytes that processes have to all processes of a run: in memory
// that those of a host share, and by the transport between hosts, as PieceRoutes says. Each process
// has memory for its own piece and for those that it carries.
//
//     make()      memory; then the process writes its own piece to data(its number)
//     carry()     the transport, between processes that share no memory
//     meet()      the barrier of the host; then all pieces can be read at data()
//
// Pieces are written again only when all processes of the host have read them, which the caller
// takes care of: by two objects that are used in turns, or by another barrier between.
//
// Threads: one at a time, except that data() may be called by several.
#pragma once

#include "collective/processes/piece_routes.hpp"
#include "collective/processes/process_group.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace dlprim {

class PieceExchange {
  public:
    /// Makes memory of this process, which the others of its host reach, or reaches theirs.
    using Memory =
        std::function<std::shared_ptr<std::byte>(std::size_t process, std::uint64_t bytes)>;

    /// Without a group there is one process, and nothing is moved. `own` is the process's number.
    PieceExchange(std::shared_ptr<ProcessGroup> group, PieceRoutes routes, std::size_t own,
                  Memory memory);

    /// Makes memory for pieces of these sizes, where there is less than that. All processes do so
    /// at once, with the same sizes.
    void make(const std::vector<std::uint64_t>& bytes);
    /// Where a piece lies.
    std::byte* data(std::size_t piece) const;
    /// Whether carry() moves anything in any process.
    bool is_carried() const { return !routes_.rounds().empty(); }
    /// `what` says what for, in messages.
    void carry(const std::string& what, ProcessGroup::Wait wait = ProcessGroup::Wait::deadline);
    void meet(const std::string& what, ProcessGroup::Wait wait = ProcessGroup::Wait::deadline);

  private:
    struct Area {
        std::shared_ptr<std::byte> memory;  ///< none: another process's, not reached yet
        std::uint64_t bytes = 0;
    };
    const std::shared_ptr<ProcessGroup> group_;
    const PieceRoutes routes_;
    const std::size_t own_;
    const Memory memory_;
    std::vector<std::uint64_t> bytes_, begins_;  ///< by piece, the second in its keeper's memory
    std::vector<Area> areas_;                    ///< by process
};

}  // namespace dlprim
