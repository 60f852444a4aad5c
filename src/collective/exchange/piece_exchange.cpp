// SPDX-License-Identifier: MIT
// PieceExchange.
#include "collective/exchange/piece_exchange.hpp"

#include "base/text.hpp"
#include "collective/devices/staging_buffer.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

namespace dlprim {

PieceExchange::PieceExchange(std::shared_ptr<ProcessGroup> group, PieceRoutes routes,
                             std::size_t own, Memory memory)
    : group_(std::move(group)),
      routes_(std::move(routes)),
      own_(own),
      memory_(std::move(memory)),
      begins_(routes_.pieces(), 0),
      areas_(group_ ? group_->size() : 1) {}

void PieceExchange::make(const std::vector<std::uint64_t>& bytes) {
    bytes_ = bytes;
    std::vector<std::uint64_t> ends(areas_.size(), 0);
    for (std::size_t piece = 0; piece < bytes_.size(); ++piece) {
        std::uint64_t& end = ends[routes_.keeper(piece)];
        begins_[piece] = end;
        end += padded(bytes_[piece]);
    }
    for (const std::size_t process : routes_.mates()) {
        Area& area = areas_[process];
        if (ends[process] <= area.bytes) continue;
        area = {};  // goes before other memory comes
        if (process == own_) area.memory = memory_(own_, ends[process]);
        area.bytes = ends[process];
    }
}

std::byte* PieceExchange::data(std::size_t piece) const {
    return areas_[routes_.keeper(piece)].memory.get() + begins_[piece];
}

void PieceExchange::carry(const std::string& what, ProcessGroup::Wait wait) {
    for (const PieceRoutes::Round& round : routes_.rounds()) {
        std::vector<Pieces> to(areas_.size()), from(areas_.size());
        for (const auto& [process, piece] : round.sends)
            to[process].push_back({data(piece), bytes_[piece]});
        for (const auto& [process, piece] : round.receives)
            from[process].push_back({data(piece), bytes_[piece]});
        group_->exchange(to, from, what, wait);
    }
}

void PieceExchange::meet(const std::string& what, ProcessGroup::Wait wait) {
    if (routes_.mates().size() == 1) return;
    const std::uint64_t all = std::accumulate(bytes_.begin(), bytes_.end(), std::uint64_t{0});
    group_->meet_on_host(what, all, wait);
    for (const std::size_t process : routes_.mates())
        if (Area& area = areas_[process]; !area.memory && area.bytes > 0)
            area.memory = memory_(process, area.bytes);
}

}  // namespace dlprim
