// SPDX-License-Identifier: MIT
// How long a shard takes each device of a team, so that uneven devices get uneven numbers of
// shards.
#pragma once

#include "api/net_impl.hpp"
#include "api/rank_threads.hpp"

#include <dlprim/net.hpp>

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace dlprim {

/// Times forward and backward of the ranks' nets, which have solvers, by the threads of all of them
/// at once, as they compute while they train: each again and again until all have been timed for a
/// moment. `warm` is called between the runs that compile and those that are timed. What lasts is
/// afterwards as before: parameters, statistics, the solver's state and random numbers. Inputs and
/// parameters may be unset. Returns the median of each, in seconds.
std::vector<double> time_shards(RankThreads& threads,
                                const std::vector<std::shared_ptr<NetImpl>>& nets,
                                std::chrono::duration<double> deadline,
                                const std::function<void()>& warm = {});

/// The same with nets that live as long as the call; `open` as for Team's constructor.
std::vector<double> time_shards(const std::vector<Context>& devices,
                                const std::function<Net(const Context&, int rank)>& open,
                                const SolverOptions& solver, std::chrono::duration<double> deadline,
                                const std::function<void()>& warm = {});

/// A sentence for notes on the measured seconds and the numbers of shards that follow.
std::string note_of_times(const std::vector<double>& seconds, const std::vector<int>& shards);

}  // namespace dlprim
