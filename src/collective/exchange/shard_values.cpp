// SPDX-License-Identifier: MIT
// ShardValues. There are two places for the values of each rank, which are used in turns: a rank
// comes to the barrier of the next meeting when it has read all values of this one.
#include "collective/exchange/shard_values.hpp"

#include "base/text.hpp"

#include <array>
#include <cstring>
#include <numeric>
#include <utility>

namespace dlprim {

struct ShardValues::State {
    using Place = std::vector<std::vector<double>>;  ///< by rank of all processes
    std::shared_ptr<Barrier> barrier;
    std::shared_ptr<ProcessGroup> group;  ///< none for one process
    std::size_t first = 0;                ///< of this process's ranks
    std::vector<std::size_t> counts;      ///< with a group: how many ranks each process has
    std::array<Place, 2> values;
    std::vector<PieceExchange> pieces;  ///< with a group: likewise two, of each process's values

    void exchange(std::size_t turn, const std::string& what);
};

void ShardValues::State::exchange(std::size_t turn, const std::string& what) {
    Place& place = values[turn];
    PieceExchange& piece = pieces[turn];
    const std::size_t each = place[first].size(), bytes = each * sizeof(double);
    std::vector<std::uint64_t> sizes;
    for (const std::size_t count : counts) sizes.push_back(count * bytes);
    piece.make(sizes);
    for (std::size_t own = 0; own < barrier->size(); ++own)
        std::memcpy(piece.data(group->rank()) + own * bytes, place[first + own].data(), bytes);
    piece.carry(what, PieceExchange::Patience::deadline);
    piece.meet(what, PieceExchange::Patience::deadline);
    std::size_t rank = 0;
    for (std::size_t process = 0; process < counts.size(); ++process)
        for (std::size_t i = 0; i < counts[process]; ++i, ++rank) {
            place[rank].resize(each);
            std::memcpy(place[rank].data(), piece.data(process) + i * bytes, bytes);
        }
}

class ShardValues::OfRank final : public ShardMeeting {
  public:
    OfRank(std::shared_ptr<State> state, std::size_t rank)
        : state_(std::move(state)), rank_(rank) {}

    std::vector<std::vector<double>> gather(const std::string& what,
                                            const std::vector<double>& values) override {
        const std::size_t turn = meetings_++ % 2;
        auto& place = state_->values[turn];
        place[state_->first + rank_] = values;
        const std::string text = cat("for ", what, " (", values.size(), " numbers)");
        state_->barrier->arrive(rank_, text, Barrier::middle);
        if (!state_->group) return place;
        if (rank_ == 0) state_->exchange(turn, what);
        state_->barrier->arrive(rank_, text + " of other processes", Barrier::middle);
        return place;
    }

  private:
    std::shared_ptr<State> state_;
    std::size_t rank_;
    std::uint64_t meetings_ = 0;
};

ShardValues::ShardValues(std::shared_ptr<Barrier> barrier, std::shared_ptr<ProcessGroup> group,
                         std::vector<std::size_t> counts,
                         const std::vector<LevelPlan::Groups>& levels)
    : state_(std::make_shared<State>()) {
    state_->barrier = std::move(barrier);
    state_->group = std::move(group);
    state_->counts = std::move(counts);
    std::size_t all = state_->barrier->size();
    if (state_->group) {
        const auto own =
            state_->counts.begin() + static_cast<std::ptrdiff_t>(state_->group->rank());
        state_->first = std::accumulate(state_->counts.begin(), own, std::size_t{0});
        all = std::accumulate(own, state_->counts.end(), state_->first);
        const std::size_t self = state_->group->rank();
        const PieceRoutes routes = PieceRoutes::of_all(levels, self);
        const bool is_shared = routes.mates().size() > 1;
        for (std::size_t turn = 0; turn < state_->values.size(); ++turn)
            state_->pieces.emplace_back(state_->group, routes, self,
                                        PieceExchange::plain_memory(state_->group, is_shared));
    }
    for (auto& place : state_->values) place.resize(all);
}

std::unique_ptr<ShardMeeting> ShardValues::meeting(std::size_t rank) const {
    return std::make_unique<OfRank>(state_, rank);
}

}  // namespace dlprim
