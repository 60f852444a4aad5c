// SPDX-License-Identifier: MIT
// ShardValues. There are two places for the values of each rank, which are used in turns: a rank
// comes to the barrier of the next meeting when it has read all values of this one.
#include "collective/shard_values.hpp"

#include "base/text.hpp"

#include <array>
#include <utility>

namespace dlprim {

struct ShardValues::State {
    std::shared_ptr<ProcessGroup> group;  ///< or the members below
    std::shared_ptr<Barrier> barrier;
    std::array<std::vector<std::vector<double>>, 2> values;  ///< by rank
};

class ShardValues::OfRank final : public ShardMeeting {
  public:
    OfRank(std::shared_ptr<State> state, std::size_t rank)
        : state_(std::move(state)), rank_(rank) {}

    std::vector<std::vector<double>> gather(const std::string& what,
                                            const std::vector<double>& values) override {
        auto& place = state_->values[meetings_++ % 2];
        place[rank_] = values;
        state_->barrier->arrive(rank_, cat("for ", what, " (", values.size(), " numbers)"),
                                Barrier::middle);
        return place;
    }

  private:
    std::shared_ptr<State> state_;
    std::size_t rank_;
    std::uint64_t meetings_ = 0;
};

class ShardValues::OfProcess final : public ShardMeeting {
  public:
    explicit OfProcess(std::shared_ptr<ProcessGroup> group) : group_(std::move(group)) {}

    std::vector<std::vector<double>> gather(const std::string& what,
                                            const std::vector<double>& values) override {
        std::vector<std::vector<double>> all(group_->size(), values);
        std::vector<Pieces> to(all.size()), from(all.size());
        const auto piece = [&](std::size_t rank) {
            return MessagePiece{reinterpret_cast<std::byte*>(all[rank].data()),
                                values.size() * sizeof(double)};
        };
        for (std::size_t rank = 0; rank < all.size(); ++rank) {
            if (rank == group_->rank()) continue;
            to[rank] = {piece(group_->rank())};
            from[rank] = {piece(rank)};
        }
        group_->alltoall(to, from, what);
        return all;
    }

  private:
    std::shared_ptr<ProcessGroup> group_;
};

ShardValues::ShardValues(std::shared_ptr<ProcessGroup> group) : state_(std::make_shared<State>()) {
    state_->group = std::move(group);
}

ShardValues::ShardValues(std::shared_ptr<Barrier> barrier) : state_(std::make_shared<State>()) {
    for (auto& place : state_->values) place.resize(barrier->size());
    state_->barrier = std::move(barrier);
}

std::unique_ptr<ShardMeeting> ShardValues::meeting(std::size_t rank) const {
    if (state_->group) return std::make_unique<OfProcess>(state_->group);
    return std::make_unique<OfRank>(state_, rank);
}

}  // namespace dlprim
