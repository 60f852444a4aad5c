// SPDX-License-Identifier: MIT
// time_shards.
#include "api/shard_times.hpp"

#include "base/text.hpp"
#include "runtime/context_impl.hpp"

#include <dlprim/solver.hpp>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <utility>

namespace dlprim {

namespace {

using Seconds = std::chrono::duration<double>;

/// A device has been timed enough after so many runs that took so long in all, or after one that
/// took long by itself.
constexpr std::size_t enough_runs = 5;
constexpr double enough_seconds = 0.05, long_seconds = 1;

/// What the threads share, and keep if one of them is left behind.
struct Times {
    std::vector<std::shared_ptr<NetImpl>> nets;
    std::vector<double> seconds;
    std::atomic<std::size_t> busy{0};  ///< devices that have not been timed enough
    double deadline = 0;
};

/// Where running statistics are kept meanwhile. The executor itself uses the first slot.
constexpr std::size_t slot = 1;

/// Forward and backward on an idle device, until it is idle again. The parts are run by themselves,
/// so that no random number is used up.
double seconds_of_shard(NetImpl& net) {
    const auto begin = std::chrono::steady_clock::now();
    net.run(Part::forward);
    net.run(Part::backward);
    Access::impl(net.context()).queue().finish();
    return Seconds(std::chrono::steady_clock::now() - begin).count();
}

double median(std::vector<double> values) {
    const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
    std::nth_element(values.begin(), middle, values.end());
    return *middle;
}

/// Says once that a device need not be waited for, at the latest when it goes.
class Busy {
  public:
    explicit Busy(std::atomic<std::size_t>& busy) : busy_(busy) {}
    ~Busy() { end(); }
    Busy(const Busy&) = delete;
    Busy& operator=(const Busy&) = delete;
    void end() {
        if (!std::exchange(ended_, true)) --busy_;
    }

  private:
    std::atomic<std::size_t>& busy_;
    bool ended_ = false;
};

void warm_up(NetImpl& net) {
    net.built().executor->keep_states(slot);
    seconds_of_shard(net);
    seconds_of_shard(net);
}

void time_rank(Times& times, std::size_t rank) {
    Busy busy(times.busy);
    NetImpl& net = *times.nets[rank];
    std::vector<double> runs;
    double all = 0;
    do {
        runs.push_back(seconds_of_shard(net));
        all += runs.back();
        if ((runs.size() >= enough_runs && all >= enough_seconds) || all >= long_seconds)
            busy.end();
    } while (times.busy > 0 && all < times.deadline);
    net.built().executor->restore_states(slot);
    net.built().ran_forward = false;
    net.params_changed();  // what setup made of them may be of values that nobody has set
    times.seconds[rank] = median(std::move(runs));
}

}  // namespace

std::vector<double> time_shards(RankThreads& threads,
                                const std::vector<std::shared_ptr<NetImpl>>& nets, Seconds deadline,
                                const std::function<void()>& warm) {
    const auto times = std::make_shared<Times>();
    times->nets = nets;
    times->seconds.resize(nets.size());
    times->busy = nets.size();
    times->deadline = deadline.count();
    threads.run([times](std::size_t rank) { warm_up(*times->nets[rank]); },
                std::max(deadline, compiling));
    if (warm) warm();
    threads.run([times](std::size_t rank) { time_rank(*times, rank); }, deadline);
    return times->seconds;
}

std::vector<double> time_shards(const std::vector<Context>& devices,
                                const std::function<Net(const Context&, int rank)>& open,
                                const SolverOptions& solver, Seconds deadline,
                                const std::function<void()>& warm) {
    std::vector<std::string> names;
    names.reserve(devices.size());
    for (const Context& device : devices)
        names.push_back(cat("rank ", names.size(), ", device ", device.info().str()));
    RankThreads threads(std::make_shared<Barrier>(names, deadline));
    using Nets = std::vector<std::shared_ptr<NetImpl>>;
    const auto nets = std::make_shared<Nets>(devices.size());
    threads.run(
        [nets, devices, open, solver](std::size_t rank) {
            Net net = open(devices[rank], static_cast<int>(rank));
            const Solver unused(net, solver);
            (*nets)[rank] = one_device(net);
        },
        std::max(deadline, compiling));
    return time_shards(threads, *nets, deadline, warm);
}

std::string note_of_times(const std::vector<double>& seconds, const std::vector<int>& shards) {
    std::vector<std::string> times, numbers;
    for (const double each : seconds) times.push_back(fixed(each * 1000, each < 0.01 ? 3 : 1));
    for (const int each : shards) numbers.push_back(cat(each));
    return cat("a shard takes the devices ", join(times, ", "), " ms, so that they compute ",
               join(numbers, ","), " shards of each batch");
}

}  // namespace dlprim
