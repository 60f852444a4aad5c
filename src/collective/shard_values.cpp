// SPDX-License-Identifier: MIT
// ShardValues. There are two places for the values of each rank, which are used in turns: a rank
// comes to the barrier of the next meeting when it has read all values of this one.
#include "collective/shard_values.hpp"

#include "base/text.hpp"

#include <array>
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

    void exchange(Place& place, const std::string& what) const;
};

void ShardValues::State::exchange(Place& place, const std::string& what) const {
    std::vector<Pieces> to(group->size()), from(group->size());
    const std::size_t each = place[first].size();
    const auto piece = [&](std::size_t rank) {
        place[rank].resize(each);
        return MessagePiece{reinterpret_cast<std::byte*>(place[rank].data()),
                            each * sizeof(double)};
    };
    std::size_t rank = 0;
    for (std::size_t process = 0; process < group->size(); ++process) {
        const std::size_t end = rank + counts[process];
        if (process == group->rank()) {
            rank = end;
            continue;
        }
        for (std::size_t own = first; own < first + barrier->size(); ++own)
            to[process].push_back(piece(own));
        for (; rank < end; ++rank) from[process].push_back(piece(rank));
    }
    group->alltoall(to, from, what);
}

class ShardValues::OfRank final : public ShardMeeting {
  public:
    OfRank(std::shared_ptr<State> state, std::size_t rank)
        : state_(std::move(state)), rank_(rank) {}

    std::vector<std::vector<double>> gather(const std::string& what,
                                            const std::vector<double>& values) override {
        auto& place = state_->values[meetings_++ % 2];
        place[state_->first + rank_] = values;
        const std::string text = cat("for ", what, " (", values.size(), " numbers)");
        state_->barrier->arrive(rank_, text, Barrier::middle);
        if (!state_->group) return place;
        if (rank_ == 0) state_->exchange(place, what);
        state_->barrier->arrive(rank_, text + " of other processes", Barrier::middle);
        return place;
    }

  private:
    std::shared_ptr<State> state_;
    std::size_t rank_;
    std::uint64_t meetings_ = 0;
};

ShardValues::ShardValues(std::shared_ptr<Barrier> barrier, std::shared_ptr<ProcessGroup> group,
                         std::vector<std::size_t> counts)
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
    }
    for (auto& place : state_->values) place.resize(all);
}

std::unique_ptr<ShardMeeting> ShardValues::meeting(std::size_t rank) const {
    return std::make_unique<OfRank>(state_, rank);
}

}  // namespace dlprim
